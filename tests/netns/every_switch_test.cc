// Switches from each mode to each other under a thousand open connections: the new mode is filled and takes
// new connections; the old one goes when its connections end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "proxy/model/service_change_tracker.h"
#include "tests/netns/ways.h"

namespace keelson::netns {
namespace {

class EverySwitch : public WayTest {};

TEST_P(EverySwitch, AThousandConnectionsLiveOn) {
  proxy::ServiceChangeTracker map(proxy::NodeTopology{"here", "a"});
  const corev1::Service service = block_.Service();
  const discoveryv1::EndpointSlice slice = block_.Slice(true);
  map.UpdateService("default/web", &service);
  map.UpdateSlice("default/web-4", &slice);

  std::unique_ptr<ServicePlane> plane;
  std::string now;
  std::map<std::string, std::unique_ptr<ServicePlane>> retiring;
  for (const char* mode : GetParam().modes) {
    SCOPED_TRACE(now + " to " + mode);
    auto next = world_->Start({.mode = mode, .pod_cidrs = {*IpPrefix::Parse("10.1.0.0/16")}});
    ASSERT_TRUE(next) << next.error().message();
    (*next)->SetService("default/web", map.Resolve("default/web", true));
    Result<> synced = (*next)->Sync();
    ASSERT_TRUE(synced) << synced.error().message();
    retiring.erase(mode);  // it has taken over the rest of that mode
    if (plane) retiring[now] = std::move(plane);
    for (auto at = retiring.begin(); at != retiring.end();) {
      Result<bool> gone = at->second->Retire();
      ASSERT_TRUE(gone) << gone.error().message();
      // The others carry by themselves what they have begun with: IPVS, and the programs at the node's
      // devices.
      EXPECT_TRUE(*gone || at->first != "nftables") << "something is left of " << at->first;
      at = *gone ? retiring.erase(at) : std::next(at);
    }
    plane = std::move(*next);
    now = mode;
    ASSERT_NO_FATAL_FAILURE(AllLiveAndMoreJoin());
  }
  EXPECT_EQ(crowd_->Dead(), 0);
  crowd_->Reset();
  if (auto ebpf = retiring.find("ebpf"); ebpf != retiring.end()) {
    EXPECT_TRUE(ebpf->second->Retire().value_or(false)) << "nobody needs it any more";
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, EverySwitch, ::testing::ValuesIn(kWays), WayName);

}  // namespace
}  // namespace keelson::netns

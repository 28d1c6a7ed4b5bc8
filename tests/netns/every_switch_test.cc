// From each mode to each other one below a thousand open connections: the new one is filled, takes what is
// new, and the old one goes as far as nobody needs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "proxy/model/service_map.h"
#include "tests/netns/crowd.h"

namespace keelson::netns {
namespace {

struct Way {
  const char* name;
  std::vector<const char*> modes;
};

class EverySwitch : public ::testing::TestWithParam<Way> {};

TEST_P(EverySwitch, AThousandConnectionsLiveOn) {
  for (const char* mode : GetParam().modes) {
    if (Result<> possible = Possible(mode); !possible) GTEST_SKIP() << possible.error().message();
  }
  if (Result<> may = Crowd::MayOpen(1700); !may) GTEST_SKIP() << may.error().message();
  auto made = ServiceWorld::Make();
  if (!made) GTEST_SKIP() << made.error().message();
  ServiceWorld& world = **made;
  ServiceBlock block{.number = 1, .name = "web", .protocol = "tcp", .flags = {"nodeport", "external"}};
  block.endpoints = {"pod1", "pod2", "remote"};
  proxy::ServiceMap map(proxy::NodePlace{"here", "a"});
  const corev1::Service service = block.Service();
  const discoveryv1::EndpointSlice slice = block.Slice(true);
  map.UpdateService("default/web", &service);
  map.UpdateSlice("default/web-4", &slice);

  std::unique_ptr<ServicePlane> plane;
  std::string now;
  std::map<std::string, std::unique_ptr<ServicePlane>> retiring;
  Crowd crowd(world, block);
  for (const char* mode : GetParam().modes) {
    SCOPED_TRACE(now + " to " + mode);
    auto next = world.Start({.mode = mode, .pod_cidrs = {*IpPrefix::Parse("10.1.0.0/16")}});
    ASSERT_TRUE(next) << next.error().message();
    (*next)->SetService("default/web", map.Resolve("default/web", true));
    Result<> synced = (*next)->Sync();
    ASSERT_TRUE(synced) << synced.error().message();
    retiring.erase(mode);  // it has taken over what was left of that
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
    EXPECT_EQ(crowd.Dead(), 0);
    Result<> more = crowd.Join(crowd.size() == 0 ? 1000 : 90);  // and new ones are served
    ASSERT_TRUE(more) << more.error().message();
    EXPECT_EQ(crowd.Dead(), 0);
  }
  crowd.Reset();
  if (auto ebpf = retiring.find("ebpf"); ebpf != retiring.end()) {
    EXPECT_TRUE(ebpf->second->Retire().value_or(false)) << "nobody needs it any more";
  }
}

// One of them has all six transitions.
INSTANTIATE_TEST_SUITE_P(
    Ways, EverySwitch,
    ::testing::Values(Way{"WithoutIpvs", {"nftables", "ebpf", "nftables", "ebpf"}},
                      Way{"WithIpvs", {"nftables", "ipvs", "nftables", "ebpf", "ipvs", "ebpf", "nftables"}}),
    [](const auto& way) { return std::string(way.param.name); });

}  // namespace
}  // namespace keelson::netns

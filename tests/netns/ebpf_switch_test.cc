// From mode nftables to ebpf and back while connections are open: the new one is filled, then the old one
// goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "proxy/model/service_map.h"
#include "tests/netns/service_world.h"

namespace keelson::netns {
namespace {

constexpr int kConnections = 1000;

TEST(EbpfSwitch, AThousandConnectionsLiveThroughEachTransition) {
  auto world = ServiceWorld::Make();
  if (!world) GTEST_SKIP() << world.error().message();
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 8192);
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur < 4 * kConnections) {
    GTEST_SKIP() << "too few files allowed";
  }
  ServiceBlock block{.number = 1, .name = "web", .protocol = "tcp", .flags = {"nodeport", "external"}};
  block.endpoints = {"pod1", "pod2", "remote"};
  proxy::ServiceMap map(proxy::NodePlace{"here", "a"});
  corev1::Service service = block.Service();
  discoveryv1::EndpointSlice slice = block.Slice(true);
  map.UpdateService("default/web", &service);
  map.UpdateSlice("default/web-4", &slice);

  std::unique_ptr<ServicePlane> plane, retiring;
  std::vector<Conversation> open;
  auto become = [&](const char* mode) {
    auto next = (*world)->Start({.mode = mode, .pod_cidrs = {*IpPrefix::Parse("10.1.0.0/16")}});
    ASSERT_TRUE(next) << next.error().message();
    (*next)->SetService("default/web", map.Resolve("default/web", true));
    Result<> synced = (*next)->Sync();
    ASSERT_TRUE(synced) << synced.error().message();
    if (plane) {
      auto gone = plane->Retire();
      ASSERT_TRUE(gone) << gone.error().message();
      // Who comes from outside is connected by way of what the devices remember.
      EXPECT_EQ(*gone, std::string(mode) == "ebpf");
    }
    retiring = std::move(plane);
    plane = std::move(*next);
  };
  auto connect = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const char* client = std::vector{"pod1", "pod2", "node", "outside", "stranger"}[i % 5];
      Question question = (*world)->From(client, true);
      const char* entry = std::vector{"cluster", "nodeport", "external"}[i % 3];
      std::tie(question.to, question.port) = block.Destination(entry, true);
      (*world)->Become(client);
      auto conversation = Conversation::Open((*world)->Place(client), question);
      ASSERT_TRUE(conversation) << client << " " << entry << ": " << conversation.error().message();
      open.push_back(std::move(*conversation));
    }
  };
  become("nftables");
  connect(kConnections);
  for (const char* mode : {"ebpf", "nftables", "ebpf", "nftables"}) {
    become(mode);
    int dead = 0;
    for (Conversation& conversation : open) dead += !conversation.Echoes();
    EXPECT_EQ(dead, 0) << "after the switch to " << mode;
    connect(kConnections / 4);  // and new ones are served
  }
  for (Conversation& conversation : open) conversation.Reset();
  EXPECT_TRUE(retiring->Retire().value_or(false)) << "nobody needs it any more";
}

}  // namespace
}  // namespace keelson::netns

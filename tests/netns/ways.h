// For tests: sequences of modes to switch through under a thousand open connections.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/netns/crowd.h"

namespace keelson::netns {

struct Way {
  const char* name;
  std::vector<const char*> modes;
};

// The second one has all six transitions.
inline const Way kWays[] = {
    {"WithoutIpvs", {"nftables", "ebpf", "nftables", "ebpf"}},
    {"WithIpvs", {"nftables", "ipvs", "nftables", "ebpf", "ipvs", "ebpf", "nftables"}}};
inline std::string WayName(const ::testing::TestParamInfo<Way>& way) { return way.param.name; }

class WayTest : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    for (const char* mode : GetParam().modes) {
      if (Result<> possible = Possible(mode); !possible) GTEST_SKIP() << possible.error().message();
    }
    if (Result<> may = Crowd::MayOpen(1700); !may) GTEST_SKIP() << may.error().message();
    auto world = ServiceWorld::Make();
    if (!world) GTEST_SKIP() << world.error().message();
    world_ = std::move(*world);
    block_.endpoints = {"pod1", "pod2", "remote"};
    crowd_ = std::make_unique<Crowd>(*world_, block_);
  }
  // All connections are alive, and new ones work.
  void AllLiveAndMoreJoin() {
    EXPECT_EQ(crowd_->Dead(), 0);
    Result<> more = crowd_->Join(crowd_->size() == 0 ? 1000 : 90);
    ASSERT_TRUE(more) << more.error().message();
  }

  std::unique_ptr<ServiceWorld> world_;
  ServiceBlock block_{.number = 1, .name = "web", .protocol = "tcp", .flags = {"nodeport", "external"}};
  std::unique_ptr<Crowd> crowd_;
};

}  // namespace keelson::netns

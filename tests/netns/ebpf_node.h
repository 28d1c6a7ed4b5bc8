// For tests: a node in mode ebpf whose programs serve without rules.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "proxy/ebpf/datapath.h"
#include "tests/netns/service_world.h"

namespace keelson::netns {

inline IpAddress Ip(const char* text) { return *IpAddress::Parse(text); }

class EbpfNodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto machine = NodeMachine::Make();
    if (!machine) GTEST_SKIP() << machine.error().message();
    machine_ = std::move(*machine);
    auto world = ServiceWorld::Make();
    if (!world) GTEST_SKIP() << world.error().message();
    world_ = std::move(*world);
    auto possible = world_->node().Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(node_, linux::NetnsCookie());
      return proxy::ebpf::Datapath::Check();
    });
    if (!possible) GTEST_SKIP() << possible.error().message();
  }

  static proxy::Backend At(const char* endpoint, bool v4 = true) {
    return {EndpointAddress(endpoint, v4), kEndpointPort, true};
  }
  void Write(proxy::ebpf::Datapath& sockets, proxy::ebpf::Plan& plan) {
    auto written = sockets.Write(plan);
    ASSERT_TRUE(written) << written.error().message();
    last_ = *written;
  }
  // The pins of an address family.
  std::string Pins(const std::string& name, bool v4 = true) const {
    return machine_->places().pins + (v4 ? "/v4/" : "/v6/") + name;
  }

  std::unique_ptr<NodeMachine> machine_;
  std::unique_ptr<ServiceWorld> world_;
  uint64_t node_ = 0;  // cookie of its network namespace
  proxy::ebpf::Datapath::Written last_;
};

}  // namespace keelson::netns

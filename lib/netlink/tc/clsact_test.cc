#include "lib/netlink/tc/clsact.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "lib/linux/netns.h"
#include "lib/netlink/link.h"
#include "lib/netlink/monitor.h"

namespace keelson::netlink {
namespace {

class ClsactTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto netns = linux::NetNs::Make();
    if (!netns) GTEST_SKIP() << netns.error().message();
    netns_ = std::make_unique<linux::NetNs>(std::move(*netns));
    socket_ = std::make_unique<Socket>(*Socket::OpenIn(*netns_));
    ASSERT_TRUE(CreateVeth(*socket_, {.name = "v0", .up = true}, {.name = "v1"}, 0));
    link_ = GetLink(*socket_, "v0")->index;
  }
  void Tc(const std::string& words) {
    ASSERT_TRUE(netns_->Run([&]() -> Result<> {
      return std::system(("tc " + words).c_str()) == 0 ? Result<>() : Error(Code::kInternal, words);
    }));
  }
  std::unique_ptr<linux::NetNs> netns_;
  std::unique_ptr<Socket> socket_;
  int link_ = 0;
};

TEST_F(ClsactTest, GoesWhenItHasNoFilters) {
  EXPECT_FALSE(*HasClsact(*socket_, link_));
  EXPECT_FALSE(*RemoveIdleClsact(*socket_, link_));
  Tc("qdisc add dev v1 clsact");
  EXPECT_FALSE(*HasClsact(*socket_, link_)) << "another interface's";
  Tc("qdisc add dev v0 clsact");
  EXPECT_TRUE(*HasClsact(*socket_, link_));
  for (const char* side : {"ingress", "egress"}) {
    Tc(std::string("filter add dev v0 ") + side + " prio 7 bpf bytecode '1,6 0 0 0,'");
    EXPECT_FALSE(*RemoveIdleClsact(*socket_, link_)) << side;
    EXPECT_TRUE(*HasClsact(*socket_, link_));
    Tc(std::string("filter del dev v0 ") + side + " prio 7");
  }
  EXPECT_TRUE(*RemoveIdleClsact(*socket_, link_));
  EXPECT_FALSE(*HasClsact(*socket_, link_));
}

TEST_F(ClsactTest, TheKernelTellsWhatIsTakenAway) {
  std::optional<Monitor> monitor;
  ASSERT_TRUE(netns_->Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(monitor, Monitor::Open());
    return {};
  }));
  // The next event that reports a removed filter or discipline.
  auto next = [&]() -> int {
    for (;;) {
      auto events = monitor->Wait({}, std::chrono::seconds(10));
      if (!events) return -1;
      for (const KernelEvent& event : *events) {
        if (event.kind == KernelEvent::Kind::kFilter && event.removed) return event.link_index;
      }
    }
  };
  Tc("qdisc add dev v0 clsact");
  Tc("filter add dev v0 ingress prio 7 bpf bytecode '1,6 0 0 0,'");
  Tc("filter del dev v0 ingress prio 7");
  EXPECT_EQ(next(), link_);
  Tc("qdisc del dev v0 clsact");
  EXPECT_EQ(next(), link_);
}

}  // namespace
}  // namespace keelson::netlink

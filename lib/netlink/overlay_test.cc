// VXLAN devices, forwarding entries, batches and the monitor, in a namespace of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "lib/linux/netns.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/batch.h"
#include "lib/netlink/fdb.h"
#include "lib/netlink/monitor.h"
#include "lib/netlink/vxlan.h"

namespace keelson::netlink {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

IpPrefix Prefix(const std::string& text) { return *IpPrefix::Parse(text); }
IpAddress Ip(const char* text) { return *IpAddress::Parse(text); }
MacAddress Mac(const char* text) { return *MacAddress::Parse(text); }

#define ASSERT_DONE(expr)                                    \
  do {                                                       \
    auto done = (expr);                                      \
    ASSERT_TRUE(done.has_value()) << done.error().message(); \
  } while (false)

class OverlayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = linux::NetNs::Make();
    if (!made) GTEST_SKIP() << made.error().message();
    netns_ = std::make_unique<linux::NetNs>(std::move(*made));
    socket_ = std::make_unique<Socket>(*Socket::OpenIn(*netns_));
    ASSERT_DONE(CreateBridge(*socket_, "up0", 0, std::nullopt));
    uplink_ = GetLink(*socket_, "up0")->index;
    ASSERT_DONE(netlink::SetUp(*socket_, uplink_));
    ASSERT_DONE(AddAddress(*socket_, uplink_, Prefix("10.0.0.1/24")));
    ASSERT_DONE(AddAddress(*socket_, uplink_, Prefix("fd00::1/64")));
  }
  std::unique_ptr<linux::NetNs> netns_;
  std::unique_ptr<Socket> socket_;
  int uplink_ = 0;
};

TEST_F(OverlayTest, VxlanIsAsItWasAsked) {
  for (const char* local : {"10.0.0.1", "fd00::1"}) {
    Vxlan wanted{.id = 77, .port = 8473, .local = Ip(local)};
    ASSERT_DONE(CreateVxlan(*socket_, "vx", wanted, Mac("02:00:00:00:00:01"), 1430));
    EXPECT_EQ(*GetVxlan(*socket_, "vx"), wanted) << local;
    Link link = *GetLink(*socket_, "vx");
    EXPECT_EQ(link.kind, "vxlan");
    EXPECT_EQ(link.mtu, 1430);
    EXPECT_TRUE(link.up);
    EXPECT_EQ(link.mac, Mac("02:00:00:00:00:01"));
    EXPECT_EQ(CreateVxlan(*socket_, "vx", wanted, link.mac, 0).error().code(), Code::kAlreadyExists);
    ASSERT_DONE(DeleteLink(*socket_, "vx"));
  }
  EXPECT_EQ(GetVxlan(*socket_, "vx").error().code(), Code::kNotFound);
  EXPECT_EQ(GetVxlan(*socket_, "up0").error().code(), Code::kInvalid);
}

TEST_F(OverlayTest, ForwardingEntriesHaveOneDestination) {
  ASSERT_DONE(CreateVxlan(*socket_, "vx", {.local = Ip("10.0.0.1")}, Mac("02:00:00:00:00:01"), 0));
  int vx = GetLink(*socket_, "vx")->index;
  Forwarding first{vx, Mac("02:00:00:00:00:02"), Ip("10.0.0.2")};
  Forwarding moved{vx, Mac("02:00:00:00:00:02"), Ip("10.0.0.3")};
  ASSERT_DONE(ReplaceForwarding(*socket_, first));
  EXPECT_THAT(*ListForwarding(*socket_, vx), ElementsAre(first));
  ASSERT_DONE(ReplaceForwarding(*socket_, moved));
  EXPECT_THAT(*ListForwarding(*socket_, vx), ElementsAre(moved));
  EXPECT_TRUE(*DeleteForwarding(*socket_, moved));
  EXPECT_FALSE(*DeleteForwarding(*socket_, moved));
  EXPECT_THAT(*ListForwarding(*socket_, vx), ElementsAre());
}

TEST_F(OverlayTest, BatchOfManyAndWhatIsRefused) {
  Batch batch(*socket_);
  for (int i = 0; i < 1000; ++i) {
    batch.ReplaceRoute(
        {.destination = Prefix("10.200." + std::to_string(i / 4) + "." + std::to_string(i % 4 * 64) + "/26"),
         .gateway = Ip("10.0.0.9"),
         .protocol = 75});
  }
  EXPECT_EQ(batch.size(), 1000u);
  auto refused = batch.Run();
  ASSERT_TRUE(refused) << refused.error().message();
  EXPECT_TRUE(refused->empty()) << refused->front().message();
  auto ours = [&] {
    auto routes = *ListRoutes(*socket_);
    return std::count_if(routes.begin(), routes.end(), [](const Route& r) { return r.protocol == 75; });
  };
  EXPECT_EQ(ours(), 1000);

  // The second is refused; the changes around it are made, and deleting a missing entry is fine.
  batch.ReplaceRoute({.destination = Prefix("10.201.0.0/24"), .gateway = Ip("10.0.0.9"), .protocol = 75});
  batch.ReplaceRoute({.destination = Prefix("10.202.0.0/24"), .gateway = Ip("172.16.0.1"), .protocol = 75});
  batch.DeleteRoute({.destination = Prefix("10.203.0.0/24"), .protocol = 75});
  batch.ReplaceRoute({.destination = Prefix("10.204.0.0/24"), .gateway = Ip("10.0.0.9"), .protocol = 75});
  refused = batch.Run();
  ASSERT_TRUE(refused) << refused.error().message();
  ASSERT_EQ(refused->size(), 1u);
  EXPECT_THAT(refused->front().message(), HasSubstr("replace route to 10.202.0.0/24"));
  EXPECT_EQ(ours(), 1002);

  // Another protocol's route is not deleted by ours, and the libnl verbs still work on the socket.
  ASSERT_DONE(AddRoute(*socket_, {.destination = Prefix("10.205.0.0/24"), .gateway = Ip("10.0.0.9")}));
  batch.DeleteRoute({.destination = Prefix("10.205.0.0/24"), .protocol = 75});
  EXPECT_TRUE(batch.Run()->empty());
  ASSERT_DONE(DeleteRoute(*socket_, {.destination = Prefix("10.205.0.0/24")}));
}

TEST_F(OverlayTest, MonitorNamesWhatChangedAndWho) {
  std::optional<Monitor> monitor;
  ASSERT_DONE(netns_->Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(monitor, Monitor::Open());
    return {};
  }));
  // The kernel reports the new link's state and addresses at its own pace, so other events may come in
  // between.
  auto await = [&](const std::function<bool(const KernelEvent&)>& meant) -> Result<KernelEvent> {
    for (;;) {
      KEELSON_ASSIGN_OR_RETURN(const std::vector<KernelEvent> events,
                               monitor->Wait({}, std::chrono::seconds(10)));
      for (const KernelEvent& event : events) {
        if (meant(event)) return event;
      }
    }
  };
  using Kind = KernelEvent::Kind;
  ASSERT_DONE(AddRoute(*socket_, {.destination = Prefix("10.9.0.0/24"), .gateway = Ip("10.0.0.9")}));
  auto event =
      await([&](const KernelEvent& e) { return e.kind == Kind::kRoute && e.author == socket_->port(); });
  ASSERT_DONE(event);
  EXPECT_EQ(event->table, 254);
  EXPECT_EQ(event->link_index, uplink_);
  EXPECT_FALSE(event->link_local);

  ASSERT_DONE(AddAddress(*socket_, uplink_, Prefix("169.254.7.7/16")));
  event = await([&](const KernelEvent& e) { return e.kind == Kind::kAddress && e.link_local; });
  ASSERT_DONE(event);

  Socket other = *Socket::OpenIn(*netns_);
  ASSERT_DONE(DeleteLink(other, "up0"));
  event =
      await([&](const KernelEvent& e) { return e.kind == Kind::kLink && e.removed && e.link_name == "up0"; });
  ASSERT_DONE(event);
  EXPECT_NE(event->author, socket_->port());
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  auto stopped = monitor->Wait(stop.get_token(), std::chrono::hours(1));
  while (stopped) stopped = monitor->Wait(stop.get_token(), std::chrono::hours(1));
  EXPECT_EQ(stopped.error().code(), Code::kCancelled);
}

}  // namespace
}  // namespace keelson::netlink

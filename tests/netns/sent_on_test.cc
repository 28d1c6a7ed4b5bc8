// Outside traffic to endpoints on other nodes that bypasses the node's rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>

#include "lib/base/file.h"
#include "lib/bpf/link.h"
#include "lib/netlink/conntrack.h"
#include "lib/netlink/link.h"
#include "tests/netns/outside_node.h"

namespace keelson::netns {
namespace {

using proxy::ResolvedPort;
using proxy::ebpf::Datapath;
using proxy::ebpf::Plan;

class SentOnTest : public OutsideNodeTest {
 protected:
  std::string FastDirectory() const { return machine_->places().pins + dataplane::kPinsXdp; }
  // Of another node's endpoint.
  static ResolvedPort Elsewhere(bool v4, uint8_t protocol = proxy::kTcp) {
    ResolvedPort out = Local({At("remote", v4)}, v4, protocol);
    out.cluster[0].local = false;
    out.local.clear();
    out.service.external_local = false;
    return out;
  }
  // Whether the driver of the node's device has a program, which is pinned.
  bool HasFast(const char* device) {
    int index = 0;
    EXPECT_TRUE(world_->node().Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
      KEELSON_ASSIGN_OR_RETURN(netlink::Link link, netlink::GetLink(socket, device));
      index = link.index;
      return {};
    }));
    auto link = bpf::Link::OpenPinned(FastDirectory() + "/" + std::to_string(index));
    return link && link->DeviceIndex().value_or(0) == index;
  }
  // Sets offloads (checksums) and receive modes of the peers of the node's devices.
  void SetPeers(uint32_t command, uint32_t value) {
    for (const char* place : {"outside", "remote"}) {
      Result<> set = world_->Place(place).Run([&]() -> Result<> {
        UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        ethtool_value asked{.cmd = command, .data = value};
        ifreq request{};
        std::strcpy(request.ifr_name, "eth0");
        request.ifr_data = reinterpret_cast<char*>(&asked);
        if (::ioctl(socket.get(), SIOCETHTOOL, &request) != 0) return ErrnoError("SIOCETHTOOL");
        return {};
      });
      ASSERT_TRUE(set) << set.error().message();
    }
  }
  // From the other node to clients, past the first one.
  void AddStraightWay() {
    auto run = [&](const char* place, const std::string& command) {
      Result<> done = world_->Place(place).Run([&]() -> Result<> {
        return std::system(command.c_str()) == 0 ? Result<>() : Error(Code::kInternal, command);
      });
      ASSERT_TRUE(done) << done.error().message();
    };
    netlink::Socket remote = *netlink::Socket::OpenIn(world_->Place("remote"));
    ASSERT_TRUE(netlink::CreateVeth(remote, {.name = "side", .up = true},
                                    {.name = "side", .netns_fd = world_->Place("outside").fd()}, 0));
    run("outside", "ip link set side address 02:00:00:00:00:29 up");
    run("remote",
        "ip addr add 172.29.0.2/24 dev side && ip addr add fd29::2/64 dev side nodad && "
        "ip neigh add 172.29.0.1 lladdr 02:00:00:00:00:29 dev side && "
        "ip neigh add fd29::1 lladdr 02:00:00:00:00:29 dev side && "
        "ip route add 172.30.0.0/24 via 172.29.0.1 && ip route add fd30::/64 via fd29::1");
  }
  // True when an exchange passes unseen by all filters: they count what they see.
  bool PassesFilters(Conversation& open, bool v4) {
    const std::vector<bpf::Map::Entry> before = Connections(v4);
    EXPECT_TRUE(open.Echoes());
    return Connections(v4) == before;
  }
};

// An endpoint on another node, masqueraded without rules: forwarded at the device, which alone knows the
// flow.
TEST_F(SentOnTest, SendsOnToOtherNodes) {
  for (bool v4 : {true, false}) {
    const std::string node = v4 ? "172.31.0.1" : "fd31::1";
    for (uint8_t protocol : {proxy::kTcp, proxy::kUdp}) {
      Plan plan = MakePlan(v4);
      plan.SetService("s", {Elsewhere(v4, protocol)});
      Datapath sockets = Start(v4, {.direct = true});
      Write(sockets, plan);
      const Question question = To("outside", Ip(v4 ? "192.0.2.1" : "fd99::1"), 80, protocol);
      for (int i = 0; i < 20; ++i) EXPECT_EQ(Ask(question), "remote " + node);
      auto flows = [&] {
        netlink::Socket socket = *netlink::Socket::OpenNetfilterIn(world_->node());
        return *netlink::ListFlows(socket, v4, protocol);
      };
      for (const netlink::Flow& flow : flows()) {
        EXPECT_NE(flow.destination, question.to);
        EXPECT_NE(flow.destination, EndpointAddress("remote", v4));
      }
      if (protocol != proxy::kTcp) {
        EXPECT_TRUE(sockets.Remove());
        continue;
      }
      auto open = Conversation::Open(world_->Place("outside"), question);
      ASSERT_TRUE(open) << open.error().message();
      EXPECT_TRUE(open->Echoes());
      Datapath next = Start(v4, {.direct = true});
      Write(next, plan);
      EXPECT_TRUE(open->Echoes()) << "a restart";
      // IPsec is wanted now: nothing more is sent on, least of all as it is.
      ASSERT_TRUE(OnNode("ip xfrm policy add dir out src 203.0.113.0/24 dst 203.0.113.0/24 action block"));
      next.LookAtDevices();
      Write(next, plan);
      EXPECT_EQ(Ask(question), "remote " + question.source->ToString())
          << "the usual way, without rules here";
      ASSERT_TRUE(OnNode("ip xfrm policy flush"));
      next.LookAtDevices();
      Write(next, plan);
      EXPECT_EQ(Ask(question), "remote " + node);
      EXPECT_TRUE(open->Echoes());
      EXPECT_TRUE(next.Remove());
    }
  }
}

// The same by the drivers, which veths have. Their other ends have to take frames.
TEST_F(SentOnTest, DriversSendOn) {
  Plan plans[] = {MakePlan(true), MakePlan(false)};
  for (bool v4 : {true, false}) plans[!v4].SetService("s", {Elsewhere(v4)});
  {
    Datapath sockets = Start(true, {.direct = true, .xdp = "auto"});
    Write(sockets, plans[0]);
    EXPECT_FALSE(HasFast("outside")) << "a veth, which nobody has named";
    Datapath named = Start(true, {.direct = true, .xdp = "*"});
    Write(named, plans[0]);
    EXPECT_FALSE(HasFast("outside")) << "its other end does not take frames";
    SetPeers(ETHTOOL_SGRO, 1);
    SetPeers(ETHTOOL_STXCSUM, 0);
    named.LookAtDevices();
    Write(named, plans[0]);
    if (!HasFast("outside")) GTEST_SKIP() << "a kernel before 6.3 does not tell what a veth takes";
    EXPECT_TRUE(HasFast("other"));
  }
  std::vector<Conversation> open;
  for (bool v4 : {true, false}) {
    Datapath sockets = Start(v4, {.direct = true, .xdp = "*"});
    Write(sockets, plans[!v4]);
    auto one =
        Conversation::Open(world_->Place("outside"), To("outside", Ip(v4 ? "192.0.2.1" : "fd99::1"), 80));
    ASSERT_TRUE(one) << one.error().message();
    open.push_back(std::move(*one));
    bool passed = false;
    for (int i = 0; i < 50 && !passed; ++i) passed = PassesFilters(open.back(), v4);
    EXPECT_TRUE(passed) << (v4 ? "IPv4" : "IPv6");
  }
  // One family is not served that way any more, and then neither.
  for (bool v4 : {true, false}) {
    Datapath sockets = Start(v4, {.direct = true, .xdp = "off"});
    Write(sockets, plans[!v4]);
    EXPECT_EQ(HasFast("outside"), v4);
    EXPECT_FALSE(PassesFilters(open[!v4], v4));
    bool passed = false;
    for (int i = 0; i < 50 && !passed; ++i) passed = PassesFilters(open[1], false);
    EXPECT_EQ(passed, v4) << "IPv6";
  }
  EXPECT_FALSE(PathExists(FastDirectory()));
  // A switch to another mode, and --cleanup.
  for (bool v4 : {true, false}) {
    Datapath sockets = Start(v4, {.direct = true, .xdp = "*"});
    Write(sockets, plans[!v4]);
    EXPECT_TRUE(HasFast("outside"));
    EXPECT_TRUE(open[!v4].Echoes());
    if (v4) {
      EXPECT_TRUE(sockets.Remove());
    }
  }
  EXPECT_TRUE(HasFast("outside")) << "IPv6 is still served";
  EXPECT_TRUE(Datapath::RemoveAll(machine_->places().pins));
  EXPECT_FALSE(PathExists(FastDirectory()));
}

// The endpoint's node answers directly as the Service (DSR). The entry node sees one direction only.
TEST_F(SentOnTest, AnswersGoStraight) {
  AddStraightWay();
  for (bool v4 : {true, false}) {
    const Ways ways{.direct = true, .dsr = true};
    Plan plan = MakePlan(v4), theirs({.v4 = v4});
    plan.SetService("s", {Elsewhere(v4)});
    theirs.SetService("s", {Elsewhere(v4)});
    Datapath sockets = Start(v4, ways), other = StartIn("remote", {"eth0", "side"}, v4, ways);
    Write(sockets, plan);
    Write(other, theirs);
    const std::string self = ClientAddress("outside", v4).ToString();
    // At the NodePort as the first node's address, which the other one has not.
    const std::pair<IpAddress, uint16_t> entries[] = {{Ip(v4 ? "192.0.2.1" : "fd99::1"), 80},
                                                      {ClientAddress("node", v4), 30080}};
    std::vector<Conversation> open;
    for (const auto& [ip, port] : entries) {
      for (int i = 0; i < 10; ++i) EXPECT_EQ(Ask(To("outside", ip, port)), "remote " + self) << ip.ToString();
      auto one = Conversation::Open(world_->Place("outside"), To("outside", ip, port));
      ASSERT_TRUE(one) << one.error().message();
      open.push_back(std::move(*one));
    }
    EXPECT_LE(Remembered(v4), 22u) << "one for each, none for answers";
    for (Conversation& one : open) EXPECT_TRUE(one.Echoes());
    // Both restart, and the one that was asked has no endpoints for new connections.
    plan.SetService("s", {});
    Datapath next = Start(v4, ways), other_next = StartIn("remote", {"eth0", "side"}, v4, ways);
    Write(next, plan);
    Write(other_next, theirs);
    for (Conversation& one : open) EXPECT_TRUE(one.Echoes());
    auto gone = next.Retire();
    ASSERT_TRUE(gone) << gone.error().message();
    EXPECT_FALSE(*gone) << "two are connected";
    for (Conversation& one : open) EXPECT_TRUE(one.Echoes());
    EXPECT_TRUE(next.Remove());
    EXPECT_TRUE(other_next.Remove());
  }
}

}  // namespace
}  // namespace keelson::netns

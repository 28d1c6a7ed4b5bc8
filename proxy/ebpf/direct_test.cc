// Connections that are sent on past the node's rules, packet in, packet out: by the filter, which decides
// (direct.h), and by drivers, which repeat it (xdp.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <set>

#include "lib/base/socket_address.h"
#include "proxy/ebpf/testing/direct.h"

namespace keelson::proxy::ebpf {
namespace {

constexpr uint16_t kPorts = 0x10000 - KP_FIRST_SNAT_PORT;

using Direct = DirectTest;
INSTANTIATE_TEST_SUITE_P(Outside, Direct, ::testing::Values(true, false),
                         [](const auto& family) { return family.param ? "Ipv4" : "Ipv6"; });

TEST_P(Direct, SendsOnAsTheNodeAndBackAsTheService) {
  for (uint8_t protocol : {kTcp, kUdp}) {
    Serve(protocol);
    for (bool checksum : {true, false}) {
      if (!checksum && (protocol == kTcp || !v4_)) continue;
      for (auto [ip, service_port] :
           {std::pair(n_.node, uint16_t{30080}), std::pair(n_.external, uint16_t{80}),
            std::pair(n_.balancer, uint16_t{80})}) {
        WirePacket begin = To(ip, service_port, kSyn, static_cast<uint16_t>(40000 + checksum));
        begin.protocol = protocol;
        begin.checksum = checksum;
        const uint16_t port = Begin(begin);
        for (uint8_t flags : {kSyn, kAck, kFin}) {
          WirePacket there = begin;
          there.tcp_flags = flags;
          const WirePacket at = FromNode(there, port, n_.elsewhere);
          ExpectSentOn(In(there), at, "there");
          ExpectSentOn(Back(Answer(at)), Hop(Answer(there)), "back");
        }
      }
    }
  }
}

// As the sums of packets come out, so do those that are made of them.
TEST_P(Direct, ChecksumsAreRightForEveryPayload) {
  for (uint8_t protocol : {kTcp, kUdp}) {
    Serve(protocol);
    WirePacket packet = To(n_.external, 80);
    packet.protocol = protocol;
    const uint16_t port = Begin(packet);
    packet.tcp_flags = kAck;
    for (int i = 0; i < 300; ++i) {
      packet.payload =
          std::string(static_cast<size_t>(i % 5), static_cast<char>(i)) + std::to_string(i * 7919);
      const WirePacket at = FromNode(packet, port, n_.elsewhere);
      ASSERT_EQ(In(packet).packet.substr(14), at.Ip()) << i;
      const Seen fast = Fast(packet);
      ASSERT_EQ(fast.packet.substr(14), at.Ip()) << i;
    }
  }
}

TEST_P(Direct, EveryConnectionHasAPortOfItsOwn) {
  Serve();
  std::set<uint16_t> ports;
  for (uint16_t from = 20000; from < 20300; ++from) ports.insert(Begin(To(n_.external, 80, kSyn, from)));
  EXPECT_EQ(ports.size(), 300u);
}

// All ports but none are others', who are alive, have ended, or are silent.
TEST_P(Direct, PortsAreTakenFromWhoHasEndedOnly) {
  Serve();
  auto fill = [&](uint8_t ends) {
    std::vector<bpf::Map::Entry> entries;
    for (uint32_t port = KP_FIRST_SNAT_PORT; port < 0x10000; ++port) {
      dataplane::ConnectionTuple there{
          .source_port = htons(static_cast<uint16_t>(port)), .destination_port = htons(80), .protocol = kTcp};
      dataplane::EncodeIp(n_.router, there.source);
      dataplane::EncodeIp(n_.external, there.destination);
      dataplane::NatEntry sent{.source_port = htons(static_cast<uint16_t>(port)),
                               .destination_port = htons(8080),
                               .flags = dataplane::kNatDirect,
                               .closing = ends};
      dataplane::EncodeIp(node_, sent.source);
      dataplane::EncodeIp(n_.elsewhere, sent.destination);
      dataplane::ConnectionTuple back{
          .source_port = sent.destination_port, .destination_port = sent.source_port, .protocol = kTcp};
      dataplane::EncodeIp(n_.elsewhere, back.source);
      dataplane::EncodeIp(node_, back.destination);
      dataplane::NatEntry answer{.source_port = there.destination_port,
                                 .destination_port = there.source_port,
                                 .flags = dataplane::kNatReply | dataplane::kNatDirect,
                                 .closing = ends};
      dataplane::EncodeIp(n_.external, answer.source);
      dataplane::EncodeIp(n_.router, answer.destination);
      entries.emplace_back(bpf::Map::Bytes(there), bpf::Map::Bytes(sent));
      entries.emplace_back(bpf::Map::Bytes(back), bpf::Map::Bytes(answer));
    }
    ASSERT_TRUE(kernel_->Map("connections").UpdateAll(entries));
  };
  fill(0);
  const Seen none = In(To(n_.external, 80));
  EXPECT_EQ(none.verdict, kNext) << "the rules find one";
  EXPECT_EQ(none.mark, 0x4000u);
  fill(dataplane::kNatFinished);
  EXPECT_GE(Begin(To(n_.external, 80, kSyn, 40001)), KP_FIRST_SNAT_PORT);
  fill(dataplane::kNatReset);
  EXPECT_GE(Begin(To(n_.external, 80, kSyn, 40002)), KP_FIRST_SNAT_PORT);
}

// A server of the node's that somebody has put there.
TEST_P(Direct, PortsOfTheNodesSocketsAreLeftToThem) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit limit{kPorts + 256u, std::max<rlim_t>(before.rlim_max, kPorts + 256u)};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    GTEST_SKIP() << "only " << before.rlim_max << " files may be open";
  }
  for (uint8_t protocol : {kTcp, kUdp}) {
    Serve(protocol);
    std::vector<UniqueFd> held;
    Result<> bound = place_->RunHere([&]() -> Result<> {
      for (uint32_t port = KP_FIRST_SNAT_PORT; port < 0x10000; ++port) {
        UniqueFd socket(::socket(v4_ ? AF_INET : AF_INET6, protocol == kTcp ? SOCK_STREAM : SOCK_DGRAM, 0));
        SocketAddress address(Ip(v4_ ? "0.0.0.0" : "::"), static_cast<uint16_t>(port));
        if (!socket || ::bind(socket.get(), address.get(), address.size()) != 0) return ErrnoError("bind");
        if (protocol == kTcp && ::listen(socket.get(), 1) != 0) return ErrnoError("listen");
        held.push_back(std::move(socket));
      }
      return {};
    });
    ASSERT_TRUE(bound) << bound.error().message();
    WirePacket packet = To(n_.external, 80);
    packet.protocol = protocol;
    const Seen none = In(packet);
    EXPECT_EQ(none.verdict, kNext) << int{protocol};
    EXPECT_EQ(none.mark, 0x4000u) << int{protocol};
    held.clear();
    packet.source_port = 40001;
    EXPECT_GE(Begin(packet), KP_FIRST_SNAT_PORT) << int{protocol};
  }
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_P(Direct, WhatCannotBeSentOnIsTheRules) {
  const WirePacket packet = To(n_.external, 80);
  struct {
    const char* what;
    std::function<void()> make;
  } const cases[] = {
      // Those that a device gets are the node's some time later only, with IPv6.
      {"an endpoint of this node", [&] { Serve(kTcp, Ip(v4_ ? "127.0.0.1" : "::1")); }},
      {"the way takes smaller packets only",
       [&] {
         Serve();
         PutDirect(in_, n_.node, 9000);
       }},
      {"by a device that is not the outside's",
       [&] {
         PutDirect(in_, n_.node, 1500);
         ASSERT_TRUE(kernel_->Map("direct_devices").Delete(bpf::Map::Bytes(out_)));
       }},
      {"from a device that is not",
       [&] {
         PutDirect(out_, node_, 1500);
         ASSERT_TRUE(kernel_->Map("direct_devices").Delete(bpf::Map::Bytes(in_)));
       }},
  };
  uint16_t from = 40000;
  for (const auto& c : cases) {
    c.make();
    WirePacket fresh = packet;
    fresh.source_port = ++from;
    const Seen seen = In(fresh);
    EXPECT_EQ(seen.verdict, kNext) << c.what;
    EXPECT_EQ(seen.mark, 0x4000u) << c.what;
  }
}

// Nobody else knows of the connection, and what is to be encrypted now must not leave as it is.
TEST_P(Direct, WhatWasSentOnGoesNoOtherWay) {
  Serve();
  const WirePacket begin = To(n_.external, 80), data = To(n_.external, 80, kAck);
  const WirePacket answer = Answer(FromNode(begin, Begin(begin), n_.elsewhere));
  for (uint32_t device : {in_, out_}) {
    ASSERT_TRUE(kernel_->Map("direct_devices").Delete(bpf::Map::Bytes(device)));
  }
  EXPECT_EQ(kernel_->RunXdp(Onto(data.Frame(), kIn, kClients), in_).verdict, static_cast<uint32_t>(XDP_PASS));
  ExpectLeft(In(data), data, TC_ACT_SHOT, "there");
  ExpectLeft(Back(answer), answer, TC_ACT_SHOT, "back");
}

TEST_P(Direct, PacketsThatHaveComeTooFarEnd) {
  Serve();
  WirePacket packet = To(n_.external, 80);
  Begin(packet);
  packet.hops = 1;
  packet.tcp_flags = kAck;
  ExpectLeft(In(packet), packet, TC_ACT_SHOT, "the filter");
  const Seen fast = kernel_->RunXdp(Onto(packet.Frame(), kIn, kClients), in_);
  ExpectLeft(fast, packet, XDP_PASS, "the driver leaves it to that");
}

TEST_P(Direct, DriversRepeatWhatTheFilterDoes) {
  for (uint8_t protocol : {kTcp, kUdp}) {
    Serve(protocol);
    for (bool checksum : {true, false}) {
      if (!checksum && (protocol == kTcp || !v4_)) continue;
      WirePacket packet = To(n_.external, 80, kSyn, static_cast<uint16_t>(40000 + checksum));
      packet.protocol = protocol;
      packet.checksum = checksum;
      const uint16_t port = Begin(packet);
      packet.tcp_flags = kAck;
      const WirePacket at = FromNode(packet, port, n_.elsewhere), answer = Answer(at);
      const Seen there = Fast(packet), back = Fast(answer, true);
      EXPECT_EQ(there.verdict, static_cast<uint32_t>(XDP_REDIRECT));
      EXPECT_EQ(there.packet, Onto(at.Frame(), kElsewhere, kOut));
      EXPECT_EQ(back.verdict, static_cast<uint32_t>(XDP_REDIRECT));
      EXPECT_EQ(back.packet, Onto(Hop(Answer(packet)).Frame(), kClients, kIn));
    }
  }
}

TEST_P(Direct, DriversSendBackByTheirOwnDevice) {
  const IpAddress near = Ip(v4_ ? "10.3.0.1" : "fd03::1");
  Serve(kTcp, near);
  WirePacket packet = To(n_.external, 80);
  const uint16_t port = Begin(packet);
  packet.tcp_flags = kAck;
  WirePacket at = FromNode(packet, port, near);
  at.source = n_.node;
  PutXdp(in_, kIn, false);
  const Seen seen = Fast(packet);
  EXPECT_EQ(seen.verdict, static_cast<uint32_t>(XDP_TX));
  EXPECT_EQ(seen.packet, Onto(at.Frame(), kNear, kIn));
}

TEST_P(Direct, DriversLeaveAllElseToTheFilter) {
  Serve();
  const WirePacket begin = To(n_.external, 80), data = To(n_.external, 80, kAck);
  Begin(begin);
  auto fast = [&](const std::string& frame) { return kernel_->RunXdp(frame, in_); };
  auto onto = [&](const std::string& ip) { return Onto(FrameOf(ip), kIn, kClients); };
  std::vector<std::pair<std::string, std::string>> frames;
  for (uint8_t flags : {kSyn, kFin, kRst}) {
    WirePacket packet = data;
    packet.tcp_flags = flags | kAck;
    frames.emplace_back("begins or ends", onto(packet.Ip()));
  }
  WirePacket stranger = data, udp = data;
  stranger.source_port = 50000;
  udp.protocol = kUdp;
  frames.emplace_back("of no connection", onto(stranger.Ip()));
  frames.emplace_back("of another protocol", onto(udp.Ip()));
  frames.emplace_back("for another machine", Onto(data.Frame(), kOut, kClients));
  std::string tagged = onto(data.Ip());
  tagged.insert(12, std::string("\x81\0\0\x0a", 4));
  frames.emplace_back("of a VLAN", tagged);
  auto changed = [&](const char* what, const std::function<void(std::string&)>& change) {
    std::string ip = data.Ip();
    change(ip);
    frames.emplace_back(what, onto(ip));
  };
  if (v4_) {
    changed("a first fragment", [](std::string& p) { p[6] = 0x20; });
    changed("a later fragment", [](std::string& p) { p[7] = 5; });
    changed("with options", [](std::string& p) {
      p[0] = 0x46;
      p.insert(20, std::string(4, 1));
    });
  } else {
    for (char next : {0, 43, 44, 60}) {
      changed("with an extension header", [&](std::string& p) {
        p[6] = next;
        p.insert(40, std::string("\x06\0\0\0\0\0\0\0", 8));
      });
    }
  }
  const std::string whole = onto(data.Ip());
  for (size_t size = 14; size < 14u + (v4_ ? 40 : 60); ++size) {
    frames.emplace_back("cut to " + std::to_string(size), whole.substr(0, size));
  }
  for (const auto& [what, frame] : frames) {
    const Seen seen = fast(frame);
    EXPECT_EQ(seen.verdict, static_cast<uint32_t>(XDP_PASS)) << what;
    EXPECT_TRUE(seen.packet == frame) << what;
  }
  EXPECT_EQ(Fast(data).verdict, static_cast<uint32_t>(XDP_REDIRECT)) << "the packet that they were made of";
  PutXdp(out_, kOut, false);
  EXPECT_EQ(fast(whole).verdict, static_cast<uint32_t>(XDP_PASS)) << "the other driver does not take it";
  ASSERT_TRUE(kernel_->Map("fast_devices").Delete(bpf::Map::Bytes(out_)));
  EXPECT_EQ(fast(whole).verdict, static_cast<uint32_t>(XDP_PASS)) << "nor is it known";
  PutXdp(out_, kOut, true);
  // As if a second had passed.
  auto connections = kernel_->Map("connections").Dump();
  ASSERT_TRUE(connections);
  for (auto& [key, value] : *connections) {
    dataplane::NatEntry one;
    std::memcpy(&one, value.data(), sizeof one);
    one.last_used -= 1'100'000'000;
    ASSERT_TRUE(kernel_->Map("connections").Update(key, bpf::Map::Bytes(one)));
  }
  EXPECT_EQ(fast(whole).verdict, static_cast<uint32_t>(XDP_PASS)) << "the filter looks once a second";
  EXPECT_EQ(Fast(data).verdict, static_cast<uint32_t>(XDP_REDIRECT)) << "which it has";
}

}  // namespace
}  // namespace keelson::proxy::ebpf

// For tests: a node whose programs send packets on past its rules, with what there is around it.
//
//   clients --- 172.30.0.2 --- in, 172.30.0.1  out, 172.31.0.1 --- 172.31.0.2 --- elsewhere, 10.2.0.1
//     and 10.3.0.1 --- 172.30.0.3 ---/
#pragma once

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "lib/dataplane/ebpf_codec.h"
#include "lib/netlink/link.h"
#include "proxy/ebpf/contribution.h"
#include "proxy/ebpf/testing/programs.h"

namespace keelson::proxy::ebpf {

using netlink::MacAddress;

constexpr uint32_t kNext = static_cast<uint32_t>(TC_ACT_UNSPEC);

inline IpAddress Ip(const char* text) { return *IpAddress::Parse(text); }
inline MacAddress Mac(uint8_t last) { return MacAddress({2, 0, 0, 0, 0, last}); }
inline const MacAddress kIn = Mac(1), kOut = Mac(2), kClients = Mac(3), kNear = Mac(4), kElsewhere = Mac(5);

// Parameter: of IPv4.
class DirectTest : public ::testing::TestWithParam<bool> {
 protected:
  explicit DirectTest(bool dsr = false) : dsr_(dsr) {}
  void SetUp() override;
  void PutDirect(uint32_t device, const IpAddress& address, uint32_t mtu) {
    dataplane::DirectDeviceEntry value{.address = {}, .mtu = mtu};
    dataplane::EncodeIp(address, value.address);
    ASSERT_TRUE(kernel_->Map("direct_devices").Put(device, value));
  }
  void PutXdp(uint32_t device, const MacAddress& mac, bool receives) {
    dataplane::XdpDeviceEntry value{.mac = {}, .receives = receives, .zero = 0};
    std::memcpy(value.mac, mac.bytes().data(), sizeof value.mac);
    ASSERT_TRUE(kernel_->Map("fast_devices").Put(device, value));
  }
  // With one endpoint elsewhere.
  void Serve(uint8_t protocol = kTcp, std::optional<IpAddress> endpoint = {}) {
    kernel_->Set("web", [&](ResolvedPort& port) {
      port.service.protocol = protocol;
      port.cluster = {{endpoint.value_or(n_.elsewhere), 8080, false}};
    });
  }
  WirePacket To(const IpAddress& ip, uint16_t port, uint8_t flags = kSyn, uint16_t from = 40000) const {
    return {n_.client, ip, from, port, kTcp, flags};
  }
  // As it comes in, and goes out.
  static std::string Onto(std::string frame, const MacAddress& destination, const MacAddress& source) {
    auto bytes = [](const MacAddress& mac) { return std::string(mac.bytes().begin(), mac.bytes().end()); };
    return frame.replace(0, 12, bytes(destination) + bytes(source));
  }
  Seen In(const WirePacket& packet) const {
    return kernel_->Run(dataplane::kIngressFilter, Onto(packet.Frame(), kIn, kClients), in_);
  }
  // From elsewhere.
  Seen Back(const WirePacket& packet) const {
    return kernel_->Run(dataplane::kIngressFilter, Onto(packet.Frame(), kOut, kElsewhere), out_);
  }
  // What the driver does right after the filter, which it follows for a second: this machine may be slow.
  Seen Fast(const WirePacket& packet, bool back = false) const {
    const std::string frame =
        back ? Onto(packet.Frame(), kOut, kElsewhere) : Onto(packet.Frame(), kIn, kClients);
    Seen seen;
    for (int i = 0; i < 20; ++i) {
      back ? Back(packet) : In(packet);
      seen = kernel_->RunXdp(frame, back ? out_ : in_);
      if (seen.verdict != XDP_PASS) break;
    }
    return seen;
  }
  // Of a packet that was sent on by `in`; 0: it was not.
  uint16_t PortOf(const Seen& seen) const {
    const size_t at = 14 + (v4_ ? 20u : 40u);
    if (seen.verdict != TC_ACT_REDIRECT || seen.packet.size() < at + 2) return 0;
    return static_cast<uint16_t>(static_cast<uint8_t>(seen.packet[at]) << 8 |
                                 static_cast<uint8_t>(seen.packet[at + 1]));
  }
  // What is on its way from the node to an endpoint.
  WirePacket FromNode(const WirePacket& packet, uint16_t port, const IpAddress& endpoint) const {
    WirePacket out = At(packet, endpoint, 8080);
    out.source = node_;
    out.source_port = port;
    out.hops = 63;
    return out;
  }
  static WirePacket Hop(WirePacket packet) {
    packet.hops = 63;
    return packet;
  }
  // The filter writes the headers of the link when the packet leaves, which does not happen here.
  static void ExpectSentOn(const Seen& seen, const WirePacket& expected, const char* what) {
    EXPECT_EQ(seen.verdict, static_cast<uint32_t>(TC_ACT_REDIRECT)) << what;
    EXPECT_EQ(seen.packet.substr(14), expected.Ip()) << what;
  }
  static void ExpectLeft(const Seen& seen, const WirePacket& packet, uint32_t verdict, const char* what) {
    EXPECT_EQ(seen.verdict, verdict) << what;
    EXPECT_EQ(seen.packet.substr(14), packet.Ip()) << what;
  }
  uint16_t Begin(const WirePacket& packet) {
    const uint16_t port = PortOf(In(packet));
    EXPECT_GE(port, KP_FIRST_SNAT_PORT);
    return port;
  }

  std::unique_ptr<linux::NetNs> place_;
  std::unique_ptr<Kernel> kernel_;
  Names n_;
  IpAddress node_;
  uint32_t in_ = 0, out_ = 0;
  bool v4_ = true;
  const bool dsr_;
};

}  // namespace keelson::proxy::ebpf

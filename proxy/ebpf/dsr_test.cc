// Answers that go straight to clients, packet in, packet out: what one node sends on, another one takes.
#include "lib/dataplane/ebpf_codec.h"
#include "proxy/ebpf/external_connections.h"
#include "proxy/ebpf/testing/direct.h"

namespace keelson::proxy::ebpf {
namespace {

class Straight : public DirectTest {
 protected:
  Straight() : DirectTest(true) {}
  // The endpoint's node.
  void StartOther(bool dsr = true) {
    other_ = std::make_unique<Kernel>(v4_, nullptr, dsr);
    ASSERT_TRUE(other_->Load());
    other_->Set("web", [&](ResolvedPort& port) { port.cluster = {{n_.elsewhere, 8080, true}}; });
  }
  // What says that a Service was asked.
  std::string Option(const IpAddress& ip, uint16_t port) const {
    const std::string number = {static_cast<char>(port >> 8), static_cast<char>(port)};
    if (v4_) return std::string("\x9a\x08", 2) + number + std::string(ip.bytes());
    return std::string("\x06\x02\x1b\x14", 4) + std::string(ip.bytes()) + number + std::string(2, '\0');
  }
  // On its way between the nodes.
  WirePacket Between(const WirePacket& packet) const {
    WirePacket out = At(Hop(packet), n_.elsewhere, 8080);
    if (packet.tcp_flags & kSyn) out.options = Option(packet.destination, packet.destination_port);
    return out;
  }
  static WirePacket Bare(WirePacket packet) {
    packet.options.clear();
    return packet;
  }
  size_t Remembered(const Kernel& kernel) const { return kernel.Map("connections").Dump()->size(); }

  std::unique_ptr<Kernel> other_;
};
INSTANTIATE_TEST_SUITE_P(Outside, Straight, ::testing::Values(true, false),
                         [](const auto& family) { return family.param ? "Ipv4" : "Ipv6"; });

TEST_P(Straight, ClientsKeepTheirAddressAndHearTheService) {
  Serve();
  StartOther();
  size_t asked = 0;
  // The NodePort is one of the first node's address, which the other one has not.
  for (auto [ip, port] : {std::pair(n_.node, uint16_t{30080}), std::pair(n_.external, uint16_t{80}),
                          std::pair(n_.balancer, uint16_t{80})}) {
    WirePacket packet = To(ip, port, kSyn, static_cast<uint16_t>(40000 + asked++));
    for (uint8_t flags : {kSyn, kSyn, kAck, kAck}) {
      packet.tcp_flags = flags;
      const WirePacket between = Between(packet);
      ExpectSentOn(In(packet), between, "there");
      const Seen arrived = other_->In(between);
      ExpectLeft(arrived, Bare(between), kNext, "arrives");
      ExpectLeft(other_->Out(Answer(Bare(between))), Answer(packet), kNext, "and is answered by the Service");
    }
    EXPECT_EQ(Remembered(*kernel_), asked) << "nothing comes back this way";
    EXPECT_EQ(Remembered(*other_), 2 * asked);
  }
}

TEST_P(Straight, ChecksumsAreRightForEveryPayload) {
  Serve();
  StartOther();
  for (int i = 0; i < 300; ++i) {
    WirePacket packet = To(n_.external, 80, kSyn, static_cast<uint16_t>(20000 + 7 * i));
    packet.payload = std::string(static_cast<size_t>(i % 5), static_cast<char>(i));
    const WirePacket between = Between(packet);
    ASSERT_EQ(In(packet).packet.substr(14), between.Ip()) << i;
    ASSERT_EQ(other_->In(between).packet.substr(14), Bare(between).Ip()) << i;
  }
}

TEST_P(Straight, DriversRepeatIt) {
  Serve();
  WirePacket packet = To(n_.external, 80);
  In(packet);
  packet.tcp_flags = kAck;
  const Seen seen = Fast(packet);
  EXPECT_EQ(seen.verdict, static_cast<uint32_t>(XDP_REDIRECT));
  EXPECT_EQ(seen.packet, Onto(Between(packet).Frame(), kElsewhere, kOut));
}

TEST_P(Straight, WhatCannotBeGoesByTheNodesAddress) {
  Serve();
  WirePacket large = To(n_.external, 80);
  large.payload = std::string(1500 - large.Ip().size() + large.payload.size(), 'x');
  EXPECT_GE(Begin(large), KP_FIRST_SNAT_PORT) << "no room for the option";
  large.source_port = 40001;
  large.payload.resize(large.payload.size() - Option(n_.external, 80).size());
  ExpectSentOn(In(large), Between(large), "just enough");
  Serve(kUdp);
  WirePacket datagram = To(n_.external, 80);
  datagram.protocol = kUdp;
  EXPECT_GE(Begin(datagram), KP_FIRST_SNAT_PORT) << "which no packet begins";
}

TEST_P(Straight, ConnectionsStayUntilTheyEnd) {
  Serve();
  const WirePacket begin = To(n_.external, 80);
  ExpectSentOn(In(begin), Between(begin), "begins");
  const IpAddress near = Ip(v4_ ? "10.3.0.1" : "fd03::1");
  // Both are endpoints; who is new gets the other one.
  kernel_->Set("web", [&](ResolvedPort& port) { port.cluster = {{near, 8080, false}}; });
  const dataplane::ServiceEndpointKey member{
      .service = dataplane::Encode(dataplane::ServiceAddress{n_.external, kTcp, 80}),
      .endpoint = dataplane::Encode(dataplane::EndpointAddress{n_.elsewhere, 8080})};
  ASSERT_TRUE(kernel_->Map("members").Put(member, uint8_t{1}));
  ExpectSentOn(In(begin), Between(begin), "a SYN that is sent again");
  for (uint8_t flags : {kAck, kFin}) {
    WirePacket data = begin;
    data.tcp_flags = flags;
    ExpectSentOn(In(data), Between(data), "goes on");
  }
  WirePacket anew = Between(begin);
  anew.destination = near;
  ExpectSentOn(In(begin), anew, "and has ended");
}

TEST_P(Straight, OnlyEndpointsAnswerAsServices) {
  StartOther();
  const WirePacket good = Between(To(n_.external, 80));
  auto with = [&](const std::function<void(WirePacket&)>& change) {
    WirePacket out = good;
    change(out);
    return out;
  };
  struct {
    const char* what;
    WirePacket packet;
    uint32_t verdict;
  } const cases[] = {
      {"another Service's address", with([&](WirePacket& p) { p.options = Option(n_.external, 81); }),
       TC_ACT_SHOT},
      {"another endpoint", with([](WirePacket& p) { p.destination_port = 8081; }), TC_ACT_SHOT},
      {"which is no beginning", with([](WirePacket& p) { p.tcp_flags = kAck; }), kNext},
      {"nor an answer", with([](WirePacket& p) { p.tcp_flags = kSyn | kAck; }), kNext},
      {"of UDP", with([](WirePacket& p) { p.protocol = kUdp; }), kNext},
      {"another option", with([&](WirePacket& p) { p.options[v4_ ? 0 : 2] = '\x44'; }), kNext},
      {"of another length", with([&](WirePacket& p) { p.options[v4_ ? 1 : 3] = '\x06'; }), kNext},
  };
  for (const auto& c : cases) {
    const Seen seen = other_->In(c.packet);
    EXPECT_EQ(seen.verdict, c.verdict) << c.what;
    EXPECT_TRUE(c.verdict != kNext || seen.packet.substr(14) == c.packet.Ip()) << c.what;
    EXPECT_EQ(Remembered(*other_), 0u) << c.what;
  }
  const std::string frame = good.Frame();
  for (size_t size = 14u + (v4_ ? 20 : 40); size < frame.size() - good.payload.size() - 6; ++size) {
    EXPECT_EQ(other_->Run(dataplane::kIngressFilter, frame.substr(0, size)).packet, frame.substr(0, size));
  }
  EXPECT_EQ(Remembered(*other_), 0u);
  EXPECT_EQ(In(good).packet.substr(14), good.Ip()) << "a node on the way";
  EXPECT_EQ(Remembered(*kernel_), 0u);
  StartOther(false);
  EXPECT_EQ(other_->In(good).packet, good.Frame()) << "a node without it";
}

// Whose two ends are seen in two places here: the endpoint's as answers, the client's as what it is sent.
TEST_P(Straight, TheOtherNodeSeesTheEnd) {
  StartOther();
  const WirePacket begin = To(n_.external, 80), there = Bare(Between(begin));
  WirePacket fin = there, itself = there;
  fin.tcp_flags = kFin | kAck;
  other_->In(Between(begin));
  ExpectLeft(other_->Out(Answer(there, kFin | kAck)), Answer(begin, kFin | kAck), kNext,
             "the server has finished");
  other_->In(itself);
  ExpectLeft(other_->Out(Answer(there)), Answer(begin), kNext, "the client has not");
  other_->In(fin);
  other_->In(itself);
  ExpectLeft(other_->Out(Answer(itself)), Answer(itself), kNext,
             "who asks the endpoint itself now hears that");
}

// An error about an answer comes to who has the Service's address.
TEST_P(Straight, ErrorsAreSentOn) {
  Serve();
  const WirePacket begin = To(n_.external, 80);
  In(begin);
  WirePacket answer = Answer(begin), quoted = Answer(At(begin, n_.elsewhere, 8080));
  const size_t cut = v4_ ? 28 : 48;  // as far as the ports
  const WireError error{n_.router, n_.external, 0, answer.Ip().substr(0, cut)};
  const WireError expected{n_.router, n_.elsewhere, 0, quoted.Ip().substr(0, cut)};
  const Seen seen = kernel_->Run(dataplane::kIngressFilter, Onto(error.Frame(), kIn, kClients), in_);
  EXPECT_EQ(seen.verdict, kNext);
  EXPECT_EQ(seen.packet.substr(14), expected.Frame().substr(14));
}

TEST_P(Straight, DrainingWaitsForIt) {
  Serve();
  const WirePacket begin = To(n_.external, 80);
  In(begin);
  auto entries = [&] { return *kernel_->Map("connections").Dump(); };
  dataplane::NatEntry one;
  ASSERT_EQ(entries().size(), 1u);
  std::memcpy(&one, entries()[0].second.data(), sizeof one);
  constexpr uint64_t kMinute = 60'000'000'000;
  EXPECT_TRUE(AnyOpen(entries(), std::chrono::nanoseconds(one.last_used + 60 * kMinute)));
  EXPECT_FALSE(AnyOpen(entries(), std::chrono::nanoseconds(one.last_used + 25 * 60 * kMinute)))
      << "a day of silence";
  WirePacket end = begin;
  end.tcp_flags = kFin | kAck;
  In(end);
  std::memcpy(&one, entries()[0].second.data(), sizeof one);
  EXPECT_TRUE(AnyOpen(entries(), std::chrono::nanoseconds(one.last_used + kMinute)))
      << "the server may have more to say";
  EXPECT_FALSE(AnyOpen(entries(), std::chrono::nanoseconds(one.last_used + 3 * kMinute)));
  end.tcp_flags = kRst;
  In(end);
  EXPECT_FALSE(AnyOpen(entries(), std::chrono::nanoseconds(one.last_used + kMinute)));
}

}  // namespace
}  // namespace keelson::proxy::ebpf

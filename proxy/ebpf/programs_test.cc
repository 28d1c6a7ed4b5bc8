// The programs on devices, packet in, packet out: what comes out is held to a packet made anew, to the last
// checksum.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/pkt_cls.h>

#include "lib/dataplane/ebpf_codec.h"
#include "proxy/ebpf/testing/programs.h"

namespace keelson::proxy::ebpf {
namespace {

constexpr uint32_t kNext = static_cast<uint32_t>(TC_ACT_UNSPEC);

void ToLocal(ResolvedPort& port) {
  port.service.external_local = true;
  port.local = port.cluster;
}

class Programs : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (Result<> loaded = kernel_.Load(); !loaded) {
      if (loaded.error().errnum() == EPERM) GTEST_SKIP() << loaded.error().message();
      FAIL() << loaded.error().message();
    }
  }
  WirePacket To(const IpAddress& ip, uint16_t port, uint8_t flags = kSyn, uint16_t from = 40000) const {
    return {n_.client, ip, from, port, kTcp, flags};
  }
  // Goes on as `expected`.
  static void ExpectPacket(const Seen& seen, const WirePacket& expected, const char* what) {
    EXPECT_EQ(seen.verdict, kNext) << what;
    EXPECT_TRUE(seen.packet == expected.Frame()) << what;
  }

  Kernel kernel_{GetParam()};
  const Names& n_ = kernel_.names;
};
INSTANTIATE_TEST_SUITE_P(Outside, Programs, ::testing::Values(true, false),
                         [](const auto& family) { return family.param ? "Ipv4" : "Ipv6"; });

TEST_P(Programs, GiveTheEndpointAndTakeItBack) {
  for (uint8_t protocol : {kTcp, kUdp}) {
    for (bool local : {true, false}) {
      kernel_.Set("web", [&](ResolvedPort& port) {
        port.service.protocol = protocol;
        if (local) ToLocal(port);
      });
      struct {
        const char* what;
        IpAddress ip;
        uint16_t port;
      } const entries[] = {
          {"NodePort", n_.node, 30080}, {"external", n_.external, 80}, {"lb", n_.balancer, 80}};
      for (size_t i = 0; i < std::size(entries); ++i) {
        const auto& entry = entries[i];
        WirePacket begin = To(entry.ip, entry.port, kSyn, static_cast<uint16_t>(40000 + 10 * i + local));
        begin.protocol = protocol;
        for (uint8_t flags : {kSyn, kAck}) {
          begin.tcp_flags = flags;
          const WirePacket at = At(begin, n_.pod, 8080);
          Seen in = kernel_.In(begin);
          ExpectPacket(in, at, entry.what);
          EXPECT_EQ(in.mark, local ? 0u : 0x4000u) << entry.what;
          ExpectPacket(kernel_.Out(Answer(at)), Answer(begin), entry.what);
        }
      }
    }
  }
}

TEST_P(Programs, DatagramsNeedNoChecksum) {
  kernel_.Set("web", [](ResolvedPort& port) { port.service.protocol = kUdp; });
  WirePacket begin = To(n_.external, 80);
  begin.protocol = kUdp;
  begin.checksum = !n_.node.is_v4();
  ExpectPacket(kernel_.In(begin), At(begin, n_.pod, 8080), "there");
  const WirePacket answer = Answer(At(begin, n_.pod, 8080));
  ExpectPacket(kernel_.Out(answer), Answer(begin), "back");
}

// Sums of every kind come up: the one's complement of what a packet has more.
TEST_P(Programs, ChecksumsAreRightForEveryPayload) {
  kernel_.Set("web", ToLocal);
  kernel_.Set("dns", [](ResolvedPort& port) {
    ToLocal(port);
    port.service.protocol = kUdp;
  });
  for (uint8_t protocol : {kTcp, kUdp}) {
    for (int i = 0; i < 600; ++i) {
      WirePacket begin = To(n_.external, 80, kSyn, static_cast<uint16_t>(20000 + 7 * i));
      begin.protocol = protocol;
      begin.payload = std::string(static_cast<size_t>(i % 5), static_cast<char>(i));
      ASSERT_TRUE(kernel_.In(begin).packet == At(begin, n_.pod, 8080).Frame()) << i;
      ASSERT_TRUE(kernel_.Out(Answer(At(begin, n_.pod, 8080))).packet == Answer(begin).Frame()) << i;
    }
  }
}

TEST_P(Programs, WhatIsNotTheirsPasses) {
  kernel_.Set("web", [](ResolvedPort& port) {
    port.service.source_ranges = {*IpPrefix::Parse("198.18.0.0/15"), *IpPrefix::Parse("2001:db8:f::/48")};
  });
  const Names other = NamesOf(!n_.node.is_v4());
  WirePacket foreign{other.client, other.external, 40000, 80, kTcp, kSyn};
  WirePacket udp = To(n_.external, 80), pod = To(n_.external, 80);
  udp.protocol = kUdp;
  pod.source = n_.elsewhere;
  struct {
    const char* what;
    WirePacket packet;
  } const cases[] = {
      {"of no connection", To(n_.external, 80, kAck)},
      {"an answer", To(n_.external, 80, kSyn | kAck)},
      {"a reset", To(n_.external, 80, kRst)},
      {"another port", To(n_.external, 81)},
      {"a port of the Service, not a NodePort", To(n_.node, 80)},
      {"NodePorts are on the node's addresses", To(n_.external, 30080)},
      {"another protocol", udp},
      {"an endpoint", To(n_.pod, 8080)},
      {"a pod", pod},
      {"who is not in the ranges", To(n_.balancer, 80)},
      {"the other family", foreign},
  };
  for (const auto& c : cases) {
    for (const char* program : {dataplane::kIngressFilter, dataplane::kEgressFilter}) {
      const Seen seen = kernel_.Run(program, c.packet.Frame());
      EXPECT_EQ(seen.verdict, kNext) << c.what;
      EXPECT_EQ(seen.mark, 0u) << c.what;
      EXPECT_TRUE(seen.packet == c.packet.Frame()) << c.what;
    }
  }
  EXPECT_EQ(kernel_.Map("connections").Dump()->size(), 0u);
}

TEST_P(Programs, WhatIsNotPlainPasses) {
  kernel_.Set("web", ToLocal);
  const WirePacket plain = To(n_.external, 80);
  const std::string ip = plain.Ip();
  const bool v4 = n_.node.is_v4();
  std::vector<std::pair<std::string, std::string>> frames;
  auto add = [&](const char* what, const std::function<void(std::string&)>& change) {
    std::string changed = ip;
    change(changed);
    frames.emplace_back(what, FrameOf(changed));
  };
  if (v4) {
    add("first fragment", [](std::string& p) { p[6] = 0x20; });
    add("later fragment", [](std::string& p) { p[7] = 5; });
    add("options", [](std::string& p) {
      p[0] = 0x46;
      p.insert(20, std::string(4, 1));
    });
    add("a header too short", [](std::string& p) { p[0] = 0x44; });
    add("SCTP", [](std::string& p) { p[9] = static_cast<char>(132); });
    add("ICMP", [](std::string& p) { p[9] = 1; });
  } else {
    for (char next : {0, 43, 44, 51, 60}) {  // hop by hop, routing, fragment, authentication, destination
      add("extension header", [&](std::string& p) {
        p[6] = next;
        p.insert(40, std::string("\x06\0\0\0\0\0\0\0", 8));
      });
    }
    add("SCTP", [](std::string& p) { p[6] = static_cast<char>(132); });
    add("ICMP", [](std::string& p) { p[6] = 58; });
  }
  add("another version", [](std::string& p) { p[0] = static_cast<char>((p[0] & 0xf) | 0x70); });
  std::string elsewhere = plain.Frame();
  elsewhere[0] = 2;
  frames.emplace_back("for another machine", elsewhere);
  // Cut short anywhere before its flags. Of less than the IP header the kernel makes no packet here.
  const size_t transport = v4 ? 20 : 40;
  for (size_t size = transport; size < transport + 14; ++size) {
    frames.emplace_back("cut to " + std::to_string(size), FrameOf(ip).substr(0, 14 + size));
  }
  for (const auto& [what, frame] : frames) {
    for (const char* program : {dataplane::kIngressFilter, dataplane::kEgressFilter}) {
      const Seen seen = kernel_.Run(program, frame);
      EXPECT_EQ(seen.verdict, kNext) << what;
      EXPECT_TRUE(seen.packet == frame) << what;
    }
  }
  EXPECT_EQ(kernel_.Map("connections").Dump()->size(), 0u);
}

TEST_P(Programs, SourceRangesLetIn) {
  kernel_.Set("web", [&](ResolvedPort& port) {
    port.service.source_ranges = {{n_.client, n_.client.is_v4() ? 24 : 64}};
    port.service.source_ranges[0] = port.service.source_ranges[0].Masked();
  });
  ExpectPacket(kernel_.In(To(n_.balancer, 80)), At(To(n_.balancer, 80), n_.pod, 8080), "inside");
  WirePacket stranger = To(n_.balancer, 80);
  stranger.source = NamesOf(n_.node.is_v4()).router;
  ExpectPacket(kernel_.In(stranger), stranger, "outside");
}

// Which endpoints connections go to, by how often.
std::map<IpAddress, int> Shares(const Kernel& kernel, const std::vector<Backend>& endpoints,
                                WirePacket begin) {
  std::map<IpAddress, int> out;
  for (uint16_t port = 20000; port < 20600; ++port) {
    begin.source_port = port;
    const Seen seen = kernel.In(begin);
    for (const Backend& endpoint : endpoints) {
      WirePacket at = begin;
      at.destination = endpoint.ip;
      at.destination_port = endpoint.port;
      if (seen.packet == at.Frame()) ++out[endpoint.ip];
    }
  }
  return out;
}

TEST_P(Programs, EveryEndpointHasItsShare) {
  std::vector<Backend> endpoints;
  for (int i = 0; i < 20; ++i) endpoints.push_back({n_.pod.Plus(i), 8080, true});
  kernel_.Set("web", [&](ResolvedPort& port) {
    port.cluster = endpoints;
    ToLocal(port);
  });
  std::map<IpAddress, int> shares = Shares(kernel_, endpoints, To(n_.external, 80));
  ASSERT_EQ(shares.size(), endpoints.size());
  int sum = 0;
  for (const auto& [ip, share] : shares) {
    EXPECT_GT(share, 8) << ip.ToString();  // of 30, by one fixed hash
    sum += share;
  }
  EXPECT_EQ(sum, 600);
}

TEST_P(Programs, AffinityIsTheClients) {
  const std::vector<Backend> endpoints = {{n_.pod, 8080, true}, {n_.other_pod, 8080, true}};
  auto set = [&](std::vector<Backend> now) {
    kernel_.Set("web", [&](ResolvedPort& port) {
      port.cluster = now;
      port.service.affinity = std::chrono::seconds(60);
      ToLocal(port);
    });
  };
  set(endpoints);
  std::map<IpAddress, int> shares = Shares(kernel_, endpoints, To(n_.external, 80));
  ASSERT_EQ(shares.size(), 1u);
  const IpAddress first = shares.begin()->first;
  set({first == n_.pod ? endpoints[1] : endpoints[0]});
  WirePacket again = To(n_.external, 80, kSyn, 50000);
  EXPECT_EQ(Shares(kernel_, endpoints, again).size(), 1u);
  const Seen moved = kernel_.In(again);
  EXPECT_FALSE(moved.packet == At(again, first, 8080).Frame()) << "its endpoint has gone";
  set(endpoints);
  again.source_port = 50001;
  EXPECT_FALSE(kernel_.In(again).packet == At(again, first, 8080).Frame()) << "it stays where it is now";
}

TEST_P(Programs, ConnectionsStayWithTheirEndpoint) {
  auto set = [&](const IpAddress& ip) {
    kernel_.Set("web", [&](ResolvedPort& port) {
      port.cluster = {{ip, 8080, true}};
      ToLocal(port);
    });
  };
  set(n_.pod);
  const WirePacket begin = To(n_.external, 80), data = To(n_.external, 80, kAck);
  ExpectPacket(kernel_.In(begin), At(begin, n_.pod, 8080), "begins");
  set(n_.other_pod);
  ExpectPacket(kernel_.In(data), At(data, n_.pod, 8080), "goes on");
  ExpectPacket(kernel_.In(begin), At(begin, n_.other_pod, 8080), "its endpoint has gone: a SYN begins anew");
  ExpectPacket(kernel_.In(data), At(data, n_.other_pod, 8080), "goes on there");
}

TEST_P(Programs, PortsThatComeAgainBeginAnew) {
  const std::vector<Backend> endpoints = {{n_.pod, 8080, true}, {n_.other_pod, 8080, true}};
  auto set = [&](std::vector<Backend> now) {
    kernel_.Set("web", [&](ResolvedPort& port) {
      port.cluster = std::move(now);
      ToLocal(port);
    });
  };
  const WirePacket begin = To(n_.external, 80);
  const WirePacket at = At(begin, n_.pod, 8080);
  set({endpoints[0]});
  ExpectPacket(kernel_.In(begin), at, "begins");
  // The other one is the only one that new ones get, but both are members.
  set(endpoints);
  auto rest = kernel_.Map("endpoints").Dump();
  ASSERT_TRUE(rest);
  for (const auto& [key, value] : *rest) {
    if (value == EndpointBytes({n_.pod, 8080})) {
      EXPECT_TRUE(kernel_.Map("endpoints").Update(key, EndpointBytes({n_.other_pod, 8080})));
    }
  }
  ExpectPacket(kernel_.In(begin), at, "a SYN that is sent again");
  ExpectPacket(kernel_.Out(Answer(at, kFin | kAck)), Answer(begin, kFin | kAck), "the server has finished");
  ExpectPacket(kernel_.In(begin), at, "the client has not");
  WirePacket fin = begin;
  fin.tcp_flags = kFin | kAck;
  ExpectPacket(kernel_.In(fin), At(fin, n_.pod, 8080), "now it has");
  ExpectPacket(kernel_.In(begin), At(begin, n_.other_pod, 8080), "another connection");
  WirePacket reset = begin;
  reset.tcp_flags = kRst;
  ExpectPacket(kernel_.In(reset), At(reset, n_.other_pod, 8080), "which is reset");
  ExpectPacket(kernel_.In(begin), At(begin, n_.other_pod, 8080), "and another one");
}

TEST_P(Programs, AnswersThatCouldNotBeToldApartAreLeftToTheRules) {
  kernel_.Set("web", ToLocal);
  const WirePacket one = To(n_.external, 80), two = To(n_.balancer, 80);
  ExpectPacket(kernel_.In(one), At(one, n_.pod, 8080), "the first");
  ExpectPacket(kernel_.In(two), two, "the same client, port and endpoint");
  WirePacket reset = one;
  reset.tcp_flags = kRst;
  ExpectPacket(kernel_.In(reset), At(reset, n_.pod, 8080), "the first ends");
  ExpectPacket(kernel_.In(two), At(two, n_.pod, 8080), "the second");
}

TEST_P(Programs, WhoAsksTheEndpointItselfHearsTheEndpoint) {
  kernel_.Set("web", ToLocal);
  const WirePacket begin = To(n_.external, 80), direct = To(n_.pod, 8080);
  ExpectPacket(kernel_.In(begin), At(begin, n_.pod, 8080), "by way of the Service");
  ExpectPacket(kernel_.In(direct), direct, "itself, while the other one lives");
  ExpectPacket(kernel_.Out(Answer(direct)), Answer(begin), "whose answer it is");
  ExpectPacket(kernel_.Out(Answer(direct, kRst)), Answer(begin, kRst), "and its end");
  ExpectPacket(kernel_.In(direct), direct, "itself");
  ExpectPacket(kernel_.Out(Answer(direct)), Answer(direct), "and it answers as itself");
}

TEST_P(Programs, NobodyNewComesWhileTheyDrain) {
  kernel_.Set("web", ToLocal);
  const WirePacket known = To(n_.external, 80), fresh = To(n_.external, 80, kSyn, 40001);
  ExpectPacket(kernel_.In(known), At(known, n_.pod, 8080), "before");
  ASSERT_TRUE(kernel_.Map("outside_state").Put(uint32_t{0}, dataplane::ExternalState{.draining = 1}));
  ExpectPacket(kernel_.In(fresh), fresh, "who is new");
  const WirePacket data = To(n_.external, 80, kAck);
  ExpectPacket(kernel_.In(data), At(data, n_.pod, 8080), "who is known");
  ExpectPacket(kernel_.Out(Answer(At(data, n_.pod, 8080))), Answer(data), "its answer");
}

TEST_P(Programs, OtherDevicesAreLeftAlone) {
  kernel_.Set("web", ToLocal);
  ASSERT_TRUE(kernel_.Map("devices").Delete(bpf::Map::Bytes(kLoopback)));
  ExpectPacket(kernel_.In(To(n_.external, 80)), To(n_.external, 80), "no header is known");
}

TEST_P(Programs, ErrorsReachWhoTheyAreFor) {
  for (uint8_t protocol : {kTcp, kUdp}) {
    kernel_.Set("web", [&](ResolvedPort& port) {
      ToLocal(port);
      port.service.protocol = protocol;
    });
    WirePacket begin = To(n_.external, 80);
    begin.protocol = protocol;
    const WirePacket at = At(begin, n_.pod, 8080);
    // As senders know what they have sent: quotes of eight bytes of it, and of all.
    ExpectPacket(kernel_.In(begin), at, "begins");
    for (size_t cut : {n_.node.is_v4() ? size_t{28} : size_t{48}, size_t{1000}}) {
      auto quote = [&](const WirePacket& packet) { return packet.Ip().substr(0, cut); };
      // Quoted checksums of TCP and UDP are the sender's, which nobody verifies.
      auto expect = [&](const char* program, const WireError& error, const WireError& expected,
                        const WirePacket& was) {
        const Seen seen = kernel_.Run(program, error.Frame());
        EXPECT_EQ(seen.verdict, kNext);
        const size_t ip = n_.node.is_v4() ? 20 : 40;
        WireError with_old_sum = expected;
        const size_t sum = ip + (protocol == kTcp ? 16 : 6);
        if (with_old_sum.quoted.size() >= sum + 2) {
          with_old_sum.quoted.replace(sum, 2, was.Ip().substr(sum, 2));
        }
        EXPECT_TRUE(seen.packet == with_old_sum.Frame()) << program << " " << int{protocol} << " " << cut;
      };
      expect(dataplane::kIngressFilter, {n_.router, n_.external, 0, quote(Answer(begin))},
             {n_.router, n_.pod, 0, quote(Answer(at))}, Answer(begin));
      expect(dataplane::kEgressFilter, {n_.pod, n_.client, 0, quote(at)},
             {n_.external, n_.client, 0, quote(begin)}, at);
      expect(dataplane::kEgressFilter, {n_.node, n_.client, 0, quote(at)},
             {n_.node, n_.client, 0, quote(begin)}, at);
      // About somebody else's, and cut within the ports.
      WirePacket other = begin;
      other.source_port = 50000;
      for (const WireError& error :
           {WireError{n_.router, n_.external, 0, quote(Answer(other))},
            WireError{n_.router, n_.external, static_cast<uint8_t>(n_.node.is_v4() ? 8 : 128),
                      quote(Answer(begin))},
            WireError{n_.router, n_.external, 0, quote(Answer(begin)).substr(0, cut > 100 ? 21 : cut - 5)}}) {
        EXPECT_TRUE(kernel_.Run(dataplane::kIngressFilter, error.Frame()).packet == error.Frame());
        EXPECT_TRUE(kernel_.Run(dataplane::kEgressFilter, error.Frame()).packet == error.Frame());
      }
    }
  }
}

}  // namespace
}  // namespace keelson::proxy::ebpf

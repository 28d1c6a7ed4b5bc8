#include "lib/dataplane/ebpf_connections.h"

#include <gtest/gtest.h>

#include "lib/dataplane/ebpf_codec.h"

namespace keelson::dataplane {
namespace {

using std::chrono::seconds;

constexpr uint8_t kTcp = 6, kUdp = 17;

NatEntry Entry() {
  NatEntry out{};
  const Endpoint client = Encode(EndpointAddress{*IpAddress::Parse("203.0.113.5"), 40000});
  const Endpoint endpoint = Encode(EndpointAddress{*IpAddress::Parse("10.1.0.1"), 8080});
  std::memcpy(out.source, client.ip, sizeof out.source);
  std::memcpy(out.destination, endpoint.ip, sizeof out.destination);
  out.source_port = client.port;
  out.destination_port = endpoint.port;
  return out;
}

TEST(EbpfConnections, DecodeEntriesAndTheReplysKey) {
  NatEntry entry = Entry();
  entry.flags = kNatReply | kNatDsr;
  entry.closing = kNatReset;
  entry.last_used = 5;
  const Nat nat = Decode(entry);
  EXPECT_EQ(nat.source.ip.ToString(), "203.0.113.5");
  EXPECT_EQ(nat.source.port, 40000);
  EXPECT_EQ(nat.destination.port, 8080);
  EXPECT_TRUE(nat.reply && nat.dsr && nat.reset);
  EXPECT_FALSE(nat.masquerade || nat.direct || nat.finished);
  EXPECT_EQ(nat.last_used.count(), 5);
  const Connection reply = Decode(ReplyTuple(entry, kTcp));
  EXPECT_EQ(reply, (Connection{kTcp, nat.destination, nat.source}));
}

TEST(EbpfConnections, HowLongTheyLive) {
  auto used = [](int at) { return Nat{.last_used = seconds(at)}; };
  auto finished = [&](int at) { return Nat{.finished = true, .last_used = seconds(at)}; };
  auto reset = [&](int at) { return Nat{.reset = true, .last_used = seconds(at)}; };
  struct Case {
    const char* what;
    uint8_t protocol;
    Nat forward, reply;
    int now;
    bool open;
  };
  for (const Case& c : {
           Case{"TCP", kTcp, used(10), used(11), 1000, true},
           Case{"a day's silence", kTcp, used(10), used(11), 11 + 86400, false},
           Case{"nobody has answered", kTcp, used(10), {}, 129, true},
           Case{"nobody has answered for long", kTcp, used(10), {}, 130, false},
           Case{"half closed", kTcp, finished(10), used(11), 1000, true},
           Case{"closed", kTcp, finished(10), finished(11), 12, false},
           Case{"reset", kTcp, used(10), reset(11), 12, false},
           Case{"UDP", kUdp, used(10), used(20), 199, true},
           Case{"UDP, silent", kUdp, used(10), used(20), 200, false},
           Case{"used after the clock was read", kUdp, used(10), used(20), 15, true},
       }) {
    EXPECT_EQ(IsOpen(c.forward, c.reply, c.protocol, seconds(c.now)), c.open) << c.what;
  }
  EXPECT_TRUE(IsOpenDsr(used(10), seconds(1000)));
  EXPECT_TRUE(IsOpenDsr(finished(10), seconds(129)));
  EXPECT_FALSE(IsOpenDsr(finished(10), seconds(130)));
  EXPECT_FALSE(IsOpenDsr(reset(10), seconds(11)));
}

}  // namespace
}  // namespace keelson::dataplane

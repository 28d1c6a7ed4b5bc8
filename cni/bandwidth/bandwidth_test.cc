#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>

#include "cni/lib/testing/plugin_fixture.h"
#include "lib/netlink/tc/shaping.h"

namespace keelson::cni {
namespace {

using ::testing::HasSubstr;

constexpr char kBoth[] =
    R"("ingressRate":80000000,"ingressBurst":8000000,"egressRate":160000000,"egressBurst":16000000)";

class BandwidthTest : public PluginFixture {
 protected:
  static std::string Config(const std::string& limits) {
    return R"({"cniVersion":"1.1.0","name":"net","type":"bandwidth","runtimeConfig":{"bandwidth":{)" +
           limits + "}}}";
  }
  std::vector<netlink::Link> Ifbs() const {
    auto host = Routing(*host_);
    std::vector<netlink::Link> out;
    std::vector<netlink::Link> links = *netlink::ListLinks(host);
    for (const netlink::Link& link : links) {
      if (link.kind == "ifb") out.push_back(link);
    }
    return out;
  }
};

TEST_F(BandwidthTest, BothDirectionsAreShapedAndTrafficPasses) {
  std::string joined = Join(*a_);
  Reply added = Call("bandwidth", "ADD", *a_, WithPrevious(Config(kBoth), joined));
  AddResult result = Parse(added);
  ASSERT_EQ(result.interfaces.size(), 4u);
  auto host = Routing(*host_);
  netlink::Link port = *netlink::GetLink(host, result.interfaces[1].name);
  netlink::Link ifb = *netlink::GetLink(host, result.interfaces[3].name);
  EXPECT_TRUE(ifb.up);
  EXPECT_EQ(ifb.alias, "net/a/eth0");
  EXPECT_EQ(ifb.mac.ToString(), result.interfaces[3].mac);
  auto ingress = *netlink::GetTokenBucket(host, port.index),
       egress = *netlink::GetTokenBucket(host, ifb.index);
  ASSERT_TRUE(ingress && egress);
  EXPECT_EQ(ingress->rate, 10'000'000u);
  EXPECT_NEAR(ingress->burst, 1'000'000.0, 1000);
  EXPECT_EQ(ingress->limit, 1'250'000u);
  EXPECT_EQ(egress->rate, 20'000'000u);
  EXPECT_EQ(*netlink::GetRedirection(host, port.index), ifb.index);
  EchoServer inside(a_->netns, SOCK_STREAM, 0), outside(*host_, SOCK_DGRAM, 0);
  EXPECT_EQ(Ask(*host_, SOCK_STREAM, "10.7.0.2", inside.port()), "10.7.0.1");
  EXPECT_EQ(Ask(a_->netns, SOCK_DGRAM, "10.7.0.1", outside.port()), "10.7.0.2");

  std::string check = WithPrevious(Config(kBoth), added.output);
  EXPECT_EQ(Call("bandwidth", "CHECK", *a_, check).exit_code, 0);
  ASSERT_TRUE(netlink::SetTokenBucket(host, port.index, {.rate = 1000, .burst = 1000000, .limit = 2000000}));
  EXPECT_THAT(Call("bandwidth", "CHECK", *a_, check).output, HasSubstr("Rate doesn't match"));

  EXPECT_EQ(Call("bandwidth", "DEL", *a_, Config(kBoth)).exit_code, 0);
  EXPECT_TRUE(Ifbs().empty());
  EXPECT_EQ(Call("bandwidth", "DEL", *a_, Config(kBoth)).exit_code, 0);
}

// Sends 2 MB in datagrams at full speed; returns the bytes that arrive, until none arrive for a while.
size_t Flood(const linux::NetNs& from, const linux::NetNs& to, const std::string& address) {
  UniqueFd receiver, sender;
  sockaddr_in where{};
  where.sin_family = AF_INET;
  ::inet_pton(AF_INET, address.c_str(), &where.sin_addr);
  auto* name = reinterpret_cast<sockaddr*>(&where);
  socklen_t size = sizeof where;
  EXPECT_TRUE(to.Run([&]() -> Result<> {
    receiver.Reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int bytes = 8 << 20;
    ::setsockopt(receiver.get(), SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    if (::bind(receiver.get(), name, size) != 0) return ErrnoError("bind");
    ::getsockname(receiver.get(), name, &size);
    return {};
  }));
  EXPECT_TRUE(from.Run([&]() -> Result<> {
    sender.Reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int bytes = 8 << 20;
    ::setsockopt(sender.get(), SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
    return {};
  }));
  std::string datagram(1000, 'x');
  for (int i = 0; i < 2000; ++i) ::sendto(sender.get(), datagram.data(), datagram.size(), 0, name, size);
  size_t received = 0;
  pollfd waiting{.fd = receiver.get(), .events = POLLIN, .revents = 0};
  while (::poll(&waiting, 1, 300) > 0) {
    char buffer[2000];
    ssize_t got = ::recv(receiver.get(), buffer, sizeof buffer, 0);
    if (got > 0) received += static_cast<size_t>(got);
  }
  return received;
}

TEST_F(BandwidthTest, WhatIsBeyondTheLimitDoesNotArrive) {
  std::string joined = Join(*a_);
  EXPECT_GT(Flood(*host_, a_->netns, "10.7.0.2"), 1'500'000u);
  // 1 kB a second, 100 kB at once and as much in the queue: at most a little over a tenth of 2 MB gets
  // through.
  auto limited = [&](const linux::NetNs& from, const linux::NetNs& to, const char* address) {
    auto begin = std::chrono::steady_clock::now();
    size_t received = Flood(from, to, address);
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    EXPECT_GT(received, 50'000u);
    EXPECT_LT(static_cast<double>(received), 210'000 + 1'000 * taken.count());
  };
  const char* limits = R"("ingressRate":8000,"ingressBurst":800000,"egressRate":8000,"egressBurst":800000)";
  Parse(Call("bandwidth", "ADD", *a_, WithPrevious(Config(limits), joined)));
  limited(*host_, a_->netns, "10.7.0.2");
  limited(a_->netns, *host_, "10.7.0.1");
}

TEST_F(BandwidthTest, OneDirectionAloneAndTwice) {
  std::string joined = Join(*a_);
  const char* egress = R"("egressRate":8000000,"egressBurst":800000)";
  for (int round = 0; round < 2; ++round) {  // the second time as after an interrupted ADD
    AddResult result = Parse(Call("bandwidth", "ADD", *a_, WithPrevious(Config(egress), joined)));
    auto host = Routing(*host_);
    EXPECT_FALSE(*netlink::GetTokenBucket(host, netlink::GetLink(host, result.interfaces[1].name)->index));
    ASSERT_EQ(Ifbs().size(), 1u);
    EXPECT_EQ(netlink::GetTokenBucket(host, Ifbs()[0].index)->value().rate, 1'000'000u);
  }
  Join(*b_);
}

TEST_F(BandwidthTest, CollectsDevicesOfItsNetwork) {
  std::string joined_a = Join(*a_), joined_b = Join(*b_);
  Parse(Call("bandwidth", "ADD", *a_, WithPrevious(Config(kBoth), joined_a)));
  Parse(Call("bandwidth", "ADD", *b_, WithPrevious(Config(kBoth), joined_b)));
  auto host = Routing(*host_);
  ASSERT_TRUE(netlink::CreateIfb(host, "bwpstranger", 0, "other/c/eth0"));
  ASSERT_EQ(Ifbs().size(), 3u);
  std::string valid = R"([{"containerID":"a","ifname":"eth0"}])";
  EXPECT_EQ(Call("bandwidth", "GC", *a_, WithField(Config(""), "cni.dev/valid-attachments", valid)).exit_code,
            0);
  auto left = Ifbs();
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].alias, "net/a/eth0");
  EXPECT_EQ(left[1].alias, "other/c/eth0");
}

TEST_F(BandwidthTest, WithoutLimitsNothingIsTouched) {
  std::string joined = Join(*a_);
  EXPECT_EQ(Call("bandwidth", "ADD", *a_, WithPrevious(Config(""), joined)).output, joined);
  EXPECT_THAT(Call("bandwidth", "ADD", *a_, Config(kBoth)).output,
              HasSubstr("must be called as chained plugin"));
  EXPECT_THAT(Call("bandwidth", "ADD", *a_, WithPrevious(Config(R"("ingressRate":5)"), joined)).output,
              HasSubstr(R"("code":7)"));
  EXPECT_EQ(Call("bandwidth", "STATUS", *a_, Config(kBoth)).exit_code, 0);
  // An interface that the previous plugins did not report is not shaped.
  Reply strange = Call("bandwidth", "ADD", *a_, WithPrevious(Config(kBoth), R"({"cniVersion":"1.1.0"})"));
  EXPECT_THAT(strange.output, HasSubstr("no veth peer of container interface found"));
  EXPECT_TRUE(Ifbs().empty());
}

}  // namespace
}  // namespace keelson::cni

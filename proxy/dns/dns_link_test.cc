#include "proxy/dns/dns_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/linux/netns.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/link.h"

namespace keelson::proxy::dns {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// In a network namespace of its own.
class DnsLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<linux::NetNs> netns = linux::NetNs::Make();
    if (!netns) GTEST_SKIP() << netns.error().message();
    netns_ = std::move(*netns);
    socket_ = *netlink::Socket::OpenIn(*netns_);
  }
  std::vector<std::string> Addresses() {
    std::vector<std::string> out;
    Result<netlink::Link> link = netlink::GetLink(*socket_, kDnsLink);
    if (!link) return out;
    std::vector<netlink::Address> found = *netlink::ListAddresses(*socket_, link->index);
    for (const netlink::Address& address : found) {
      if (!address.link_scope) out.push_back(address.prefix.ToString());
    }
    return out;
  }
  static std::vector<IpAddress> Ips(const std::vector<const char*>& texts) {
    std::vector<IpAddress> out;
    for (const char* text : texts) out.push_back(*IpAddress::Parse(text));
    return out;
  }

  std::optional<linux::NetNs> netns_;
  std::optional<netlink::Socket> socket_;
};

TEST_F(DnsLinkTest, HasTheAddressesAndNoOthers) {
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(SetDnsAddresses(*socket_, Ips({"10.96.0.10", "fd00::a"})));
    EXPECT_THAT(Addresses(), ElementsAre("10.96.0.10/32", "fd00::a/128"));
  }
  EXPECT_TRUE(netlink::GetLink(*socket_, kDnsLink)->up);
  ASSERT_TRUE(SetDnsAddresses(*socket_, Ips({"10.96.0.11"})));
  EXPECT_THAT(Addresses(), ElementsAre("10.96.0.11/32"));
  EXPECT_TRUE(*RemoveDnsLink(*socket_));
  EXPECT_THAT(Addresses(), IsEmpty());
  EXPECT_FALSE(*RemoveDnsLink(*socket_));
}

TEST_F(DnsLinkTest, LeavesAnotherKindOfLinkAlone) {
  ASSERT_TRUE(netlink::CreateVeth(*socket_, {.name = kDnsLink}, {.name = "peer"}, 0));
  EXPECT_FALSE(SetDnsAddresses(*socket_, Ips({"10.96.0.10"})));
  EXPECT_FALSE(*RemoveDnsLink(*socket_));
  EXPECT_TRUE(netlink::GetLink(*socket_, kDnsLink));
}

}  // namespace
}  // namespace keelson::proxy::dns

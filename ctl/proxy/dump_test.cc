#include "ctl/proxy/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keelson::ctl {
namespace {

using ::testing::HasSubstr;

IpAddress Ip(const std::string& text) { return *IpAddress::Parse(text); }

nft::Ruleset Table(nft::Family family) {
  nft::Ruleset out;
  out.table = {family, "keelson-proxy"};
  auto put = [&](const std::string& set, const nft::Key& key, const std::string& data = "") {
    out.sets[set].elements[key.bytes()] = {.key = key.bytes(), .data = data};
  };
  const std::string vip = family == nft::Family::kIpv4 ? "10.96.0.1" : "fd96::1";
  const std::string pods = family == nft::Family::kIpv4 ? "10.1.0." : "fd01::";
  for (uint32_t slot = 0; slot < 2; ++slot) {
    put("endpoints", nft::Key().Ip(Ip(vip)).Proto(6).Port(443).Mark(slot),
        nft::Key().Ip(Ip(pods + std::to_string(slot + 1))).Port(8443).bytes());
  }
  put("nodeport-endpoints", nft::Key().Proto(17).Port(30053).Mark(0),
      nft::Key().Ip(Ip(pods + "9")).Port(53).bytes());
  put("reject-services", nft::Key().Ip(Ip(vip)).Proto(6).Port(80));
  put("drop-nodeports", nft::Key().Proto(17).Port(30053));
  return out;
}

TEST(ProxyDump, ATableOfNftables) {
  EXPECT_EQ(ToTable({DumpTable(Table(nft::Family::kIpv4), "nftables")}),
            "MODE       PROTOCOL   ADDRESS         FROM         LEADS TO\n"
            "nftables   UDP        *:30053         everywhere   10.1.0.9:53\n"
            "nftables   UDP        *:30053         outside      drops\n"
            "nftables   TCP        10.96.0.1:80    everywhere   refuses\n"
            "nftables   TCP        10.96.0.1:443   everywhere   10.1.0.1:8443, 10.1.0.2:8443\n");
  EXPECT_THAT(
      ToTable({DumpTable(Table(nft::Family::kIpv6), "ipvs")}),
      HasSubstr("ipvs   TCP        [fd96::1]:443   pods and node   [fd01::1]:8443, [fd01::2]:8443\n"));
}

TEST(ProxyDump, AVirtualServerOfIpvs) {
  netlink::FoundServer server;
  server.server.address = {6, Ip("10.96.0.1"), 443};
  netlink::FoundDestination one, leaving;
  one.destination = {.ip = Ip("10.1.0.1"), .port = 8443, .weight = 1};
  one.active = 3;
  leaving.destination = {.ip = Ip("10.1.0.2"), .port = 8443, .weight = 0};
  leaving.active = 1;
  EXPECT_EQ(ToTable({{DumpServer(server, {one, leaving}), DumpServer(server, {})}}),
            "MODE   PROTOCOL   ADDRESS         FROM         LEADS TO\n"
            "ipvs   TCP        10.96.0.1:443   everywhere   10.1.0.1:8443 (3 open), 10.1.0.2:8443 (drains, 1 "
            "open)\n"
            "ipvs   TCP        10.96.0.1:443   everywhere   nobody\n");
}

}  // namespace
}  // namespace keelson::ctl

#include "cni/agent/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keelson::cni::agent {
namespace {

using ::testing::HasSubstr;

TEST(Config, Lists) {
  EXPECT_EQ(ParseCidrs("10.244.1.7/16,fd00::/48")->size(), 2u);
  EXPECT_EQ((*ParseCidrs("10.244.1.7/16"))[0].ToString(), "10.244.0.0/16");
  EXPECT_TRUE(ParseCidrs("")->empty());
  EXPECT_FALSE(ParseCidrs("10.244.0.0"));
  auto peers = *ParseBgpPeers("10.0.0.254=64512,fd00::1=4200000000");
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_EQ(peers[1].as_number, 4200000000u);
  for (const char* bad : {"10.0.0.1", "10.0.0.1=", "10.0.0.1=0", "x=1", "10.0.0.1=1x"}) {
    EXPECT_FALSE(ParseBgpPeers(bad)) << bad;
  }
  EXPECT_EQ(ParseHostPort("[::1]:80")->host, "::1");
  EXPECT_EQ(ParseHostPort(":80")->host, "0.0.0.0");
  EXPECT_EQ(ParseHostPort("")->host, "");
  for (const char* bad : {"127.0.0.1", "localhost:80", "127.0.0.1:x", "127.0.0.1:70000"}) {
    EXPECT_FALSE(ParseHostPort(bad)) << bad;
  }
  EXPECT_EQ(*ParseMode("host-gw"), Mode::kHostGw);
  EXPECT_FALSE(ParseMode("ipip"));
  EXPECT_FALSE(ParseEncryption("tls"));
}

TEST(Config, WhatPoliciesAreFor) {
  const std::tuple<const char*, bool, bool> cases[] = {
      {"on", true, false}, {"off", false, false}, {"only", true, true}};
  for (const auto& [text, enforced, only] : cases) {
    Config config;
    ASSERT_TRUE(ParseNetworkPolicy(text, config)) << text;
    EXPECT_EQ(config.network_policy, enforced) << text;
    EXPECT_EQ(config.network_policy_only, only) << text;
  }
  Config config;
  EXPECT_FALSE(ParseNetworkPolicy("yes", config));
}

TEST(Config, WhatDoesNotGoTogether) {
  const struct {
    void (*change)(Config&);
    const char* message;
  } cases[] = {
      {[](Config& c) { c.mtu = 100; }, "--mtu"},
      {[](Config& c) { c.vxlan_id = 1 << 24; }, "--vxlan-id"},
      {[](Config& c) { c.bridge = "a-very-long-interface"; }, "--bridge"},
      {[](Config& c) { c.conf_name = "../x"; }, "--cni-conf-name"},
      {[](Config& c) { c.encryption = Encryption::kIpsec; }, "--ipsec-key-file"},
      {[](Config& c) {
         c.encryption = Encryption::kWireguard;
         c.mode = Mode::kVxlan;
       },
       "--encryption wireguard"},
      {[](Config& c) {
         c.policy_log_group = 7;
         c.network_policy = false;
       },
       "--network-policy-log-group"},
      {[](Config& c) {
         c.network_policy_only = true;
         c.encryption = Encryption::kWireguard;
       },
       "--network-policy=only"},
      {[](Config& c) { c.bgp.as_number = 1; }, "--bgp-bird-config"},
      {[](Config& c) { c.bgp.bird_config = "/x"; }, "--bgp-bird-socket"},
  };
  EXPECT_TRUE(Validate(Config{}));
  for (const auto& c : cases) {
    Config config;
    c.change(config);
    Result<> result = Validate(config);
    ASSERT_FALSE(result) << c.message;
    EXPECT_THAT(result.error().message(), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace keelson::cni::agent

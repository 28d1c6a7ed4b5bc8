#include "kubelet/node/addresses.h"

#include <gtest/gtest.h>

namespace keelson::kubelet {
namespace {

TEST(NodeIps, AreOneOrOneOfEachFamily) {
  using Ips = std::vector<std::string>;
  EXPECT_EQ(*ParseNodeIps(""), Ips());
  EXPECT_EQ(*ParseNodeIps("10.0.0.1"), Ips{"10.0.0.1"});
  EXPECT_EQ(*ParseNodeIps(" 10.0.0.1, fd00::1"), (Ips{"10.0.0.1", "fd00::1"}));
  EXPECT_EQ(*ParseNodeIps("10.0.0.1,example.com"), Ips{"10.0.0.1"}) << "what is no address is left out";
  EXPECT_EQ(*ParseNodeIps("::"), Ips{"::"});
  const struct {
    const char *flag, *error;
  } kCases[] = {
      {"10.0.0.1,10.0.0.2",
       "bad --node-ip \"10.0.0.1,10.0.0.2\": must contain either a single IP or a dual-stack pair of IPs"},
      {"10.0.0.1,fd00::1,fd00::2",
       "bad --node-ip \"10.0.0.1,fd00::1,fd00::2\": must contain either a single IP or a dual-stack pair of "
       "IPs"},
      {"0.0.0.0,fd00::1",
       "bad --node-ip \"0.0.0.0,fd00::1\": dual-stack node IP cannot include '0.0.0.0' or '::'"}};
  for (const auto& test : kCases) EXPECT_EQ(ParseNodeIps(test.flag).error().message(), test.error);
}

TEST(NodeIps, AreOfTheMachine) {
  const std::vector<std::string> own = {"127.0.0.1", "10.0.0.1", "fe80::1", "fd00:0::1"};
  EXPECT_TRUE(CheckNodeIp("10.0.0.1", own));
  EXPECT_TRUE(CheckNodeIp("fd00::1", own)) << "however it is written";
  const struct {
    const char *ip, *error;
  } kCases[] = {{"x", "nodeIP must be a valid IP address"},
                {"127.0.0.1", "nodeIP can't be loopback address"},
                {"::1", "nodeIP can't be loopback address"},
                {"224.0.0.5", "nodeIP can't be a multicast address"},
                {"ff02::1", "nodeIP can't be a multicast address"},
                {"169.254.1.1", "nodeIP can't be a link-local unicast address"},
                {"fe80::1", "nodeIP can't be a link-local unicast address"},
                {"0.0.0.0", "nodeIP can't be an all zeros address"},
                {"10.0.0.2", "node IP: \"10.0.0.2\" not found in the host's network interfaces"}};
  for (const auto& test : kCases) EXPECT_EQ(CheckNodeIp(test.ip, own).error().message(), test.error);
}

TEST(NodeIps, ComeFromTheFlagOrTheName) {
  using Ips = std::vector<std::string>;
  EXPECT_EQ(ChooseNodeIps({"10.0.0.1", "fd00::1"}, "host"), (Ips{"10.0.0.1", "fd00::1"}));
  EXPECT_EQ(ChooseNodeIps({}, "10.9.9.9"), Ips{"10.9.9.9"});
  EXPECT_EQ(ChooseNodeIps({"0.0.0.0"}, "10.9.9.9"), Ips{"10.9.9.9"});
}

}  // namespace
}  // namespace keelson::kubelet

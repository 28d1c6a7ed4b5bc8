#include "cni/host-local/host_local.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "cni/host-local/store.h"
#include "cni/lib/json.h"
#include "lib/base/file.h"

namespace keelson::cni {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HostLocalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/keelson-ipam-XXXXXX";
    dir_ = ::mkdtemp(pattern);
  }
  void TearDown() override { (void)RemoveTree(dir_); }

  Reply Call(const std::string& command, const std::string& id, const std::string& ipam,
             const std::string& args = "", const std::string& more = "") {
    Environment e = {{"CNI_COMMAND", command}, {"CNI_CONTAINERID", id}, {"CNI_NETNS", "/x"},
                     {"CNI_IFNAME", "eth0"},   {"CNI_PATH", "/"},       {"CNI_ARGS", args}};
    std::string config =
        R"({"cniVersion":"1.1.0","name":"net","type":"bridge","ipam":{"type":"host-local","dataDir":")" +
        dir_ + "\"," + ipam + "}" + more + "}";
    return RunPlugin(HostLocalPlugin(), e, config);
  }
  // The addresses of a successful ADD, or the error's message.
  std::vector<std::string> Add(const std::string& id, const std::string& ipam, const std::string& args = "") {
    Reply reply = Call("ADD", id, ipam, args);
    auto json = ParseJson(reply.output, "reply");
    if (reply.exit_code != 0) return {std::string((*json)["msg"].as_string())};
    std::vector<std::string> out;
    for (auto& ip : (*json)["ips"].as_array()) out.emplace_back(ip.as_object()["address"].as_string());
    return out;
  }
  std::string dir_;
};

constexpr char kSmall[] = R"("ranges":[[{"subnet":"10.1.0.0/29"}]])";

TEST_F(HostLocalTest, GoesRoundTheRangeAndRefusesWhenItIsFull) {
  EXPECT_THAT(Add("a", kSmall), ElementsAre("10.1.0.2/29"));
  EXPECT_THAT(Add("b", kSmall), ElementsAre("10.1.0.3/29"));
  EXPECT_EQ(Call("DEL", "a", kSmall).exit_code, 0);
  EXPECT_THAT(Add("c", kSmall), ElementsAre("10.1.0.4/29"));
  EXPECT_THAT(Add("d", kSmall), ElementsAre("10.1.0.5/29"));
  EXPECT_THAT(Add("e", kSmall), ElementsAre("10.1.0.6/29"));
  EXPECT_THAT(Add("f", kSmall), ElementsAre("10.1.0.2/29"));
  EXPECT_THAT(
      Add("g", kSmall),
      ElementsAre(
          "failed to allocate for range 0: no IP addresses available in range set: 10.1.0.1-10.1.0.6"));
}

TEST_F(HostLocalTest, TheSameContainerGetsTheSameAddressAndDelIsIdempotent) {
  EXPECT_THAT(Add("a", kSmall), ElementsAre("10.1.0.2/29"));
  EXPECT_THAT(Add("a", kSmall), ElementsAre("10.1.0.2/29"));
  EXPECT_EQ(Call("CHECK", "a", kSmall, "", R"(,"prevResult":{})").exit_code, 0);
  EXPECT_EQ(*ReadFile(dir_ + "/net/10.1.0.2"), "a\r\neth0");
  EXPECT_EQ(*ReadFile(dir_ + "/net/last_reserved_ip.0"), "10.1.0.2");
  EXPECT_EQ(Call("DEL", "a", kSmall).exit_code, 0);
  EXPECT_EQ(Call("DEL", "a", kSmall).exit_code, 0);
  EXPECT_FALSE(PathExists(dir_ + "/net/10.1.0.2"));
  EXPECT_EQ(Call("CHECK", "a", kSmall, "", R"(,"prevResult":{})").exit_code, 1);
}

TEST_F(HostLocalTest, TakesOneAddressOfEachRangeSet) {
  std::string dual = R"("ranges":[[{"subnet":"10.1.0.0/24","rangeStart":"10.1.0.10","rangeEnd":"10.1.0.10"},
      {"subnet":"10.2.0.0/24","rangeStart":"10.2.0.20","gateway":"10.2.0.254"}],[{"subnet":"fd00:1::/64"}]],
      "routes":[{"dst":"0.0.0.0/0"}])";
  EXPECT_THAT(Add("a", dual), ElementsAre("10.1.0.10/24", "fd00:1::2/64"));
  EXPECT_THAT(Add("b", dual), ElementsAre("10.2.0.20/24", "fd00:1::3/64"));
  Reply reply = Call("ADD", "b", dual);
  EXPECT_THAT(reply.output, HasSubstr(R"("gateway":"10.2.0.254")"));
  EXPECT_THAT(reply.output, HasSubstr(R"("routes":[{"dst":"0.0.0.0/0"}])"));
}

TEST_F(HostLocalTest, GivesRequestedAddressesOrNone) {
  EXPECT_THAT(Add("a", kSmall, "IP=10.1.0.5"), ElementsAre("10.1.0.5/29"));
  EXPECT_THAT(Add("b", kSmall, "IP=10.1.0.5"), ElementsAre(HasSubstr("not available")));
  EXPECT_THAT(Add("b", kSmall, "IP=10.9.0.5"), ElementsAre("failed to allocate all requested IPs: 10.9.0.5"));
  EXPECT_THAT(Add("b", kSmall, "IP=10.1.0.1"), ElementsAre(HasSubstr("gateway")));
  EXPECT_THAT(*ListDir(dir_ + "/net"), ElementsAre("10.1.0.5", "last_reserved_ip.0", "lock", "owner@a@eth0"));
}

TEST_F(HostLocalTest, RefusesBadRanges) {
  for (const char* ipam : {R"("x":1)", R"("ranges":[])", R"("ranges":[[]])", R"("subnet":"10.1.0.1/24")",
                           R"("subnet":"10.1.0.0/31")", R"("subnet":"10.1.0.0/24","gateway":"10.2.0.1")",
                           R"("subnet":"10.1.0.0/24","rangeStart":"10.1.0.9","rangeEnd":"10.1.0.8")",
                           R"("subnet":"10.1.0.0/24","ranges":[[{"subnet":"10.1.0.0/25"}]])",
                           R"("ranges":[[{"subnet":"10.1.0.0/24"},{"subnet":"fd00::/64"}]])"}) {
    Reply reply = Call("ADD", "a", ipam);
    EXPECT_EQ(reply.exit_code, 1) << ipam;
    EXPECT_THAT(reply.output, HasSubstr(R"("code":7)")) << ipam;
  }
}

TEST_F(HostLocalTest, CollectsWhatIsNotValid) {
  Add("a", kSmall);
  Add("b", kSmall);
  EXPECT_EQ(
      Call("GC", "", kSmall, "", R"(,"cni.dev/valid-attachments":[{"containerID":"b","ifname":"eth0"}])")
          .exit_code,
      0);
  EXPECT_FALSE(PathExists(dir_ + "/net/10.1.0.2"));
  EXPECT_TRUE(PathExists(dir_ + "/net/10.1.0.3"));
}

TEST_F(HostLocalTest, AnEmptyReservationCountsAsFree) {
  ASSERT_TRUE(MakeDirs(dir_ + "/net"));
  ASSERT_TRUE(WriteFile(dir_ + "/net/10.1.0.2", ""));
  EXPECT_THAT(Add("a", kSmall), ElementsAre("10.1.0.2/29"));
}

TEST_F(HostLocalTest, TheReferencePluginsEntriesAreUnderstood) {
  ASSERT_TRUE(MakeDirs(dir_ + "/net"));
  ASSERT_TRUE(WriteFile(dir_ + "/net/10.1.0.2", "old\r\neth0"));
  ASSERT_TRUE(WriteFile(dir_ + "/net/10.1.0.3", "older"));  // from before interfaces were written
  ASSERT_TRUE(WriteFile(dir_ + "/net/last_reserved_ip.0", "10.1.0.3"));
  EXPECT_THAT(Add("a", kSmall), ElementsAre("10.1.0.4/29"));
  EXPECT_EQ(Call("CHECK", "old", kSmall, "", R"(,"prevResult":{})").exit_code, 0);
  EXPECT_EQ(Call("DEL", "old", kSmall).exit_code, 0);
  EXPECT_EQ(Call("DEL", "older", kSmall).exit_code, 0);
  EXPECT_THAT(*ListDir(dir_ + "/net"), ElementsAre("10.1.0.4", "last_reserved_ip.0", "lock", "owner@a@eth0"));
}

TEST_F(HostLocalTest, WhatAKilledPluginLeavesIsNoHindrance) {
  ASSERT_TRUE(MakeDirs(dir_ + "/net"));
  ASSERT_TRUE(WriteFile(dir_ + "/net/.new", "half"));
  ASSERT_TRUE(WriteFile(dir_ + "/net/owner@a@eth0", "10.1.0.2\n10.1.0.3\nnonsense"));
  ASSERT_TRUE(WriteFile(dir_ + "/net/owner@gone@eth0", ""));
  ASSERT_TRUE(WriteFile(dir_ + "/net/last_reserved_ip.0", "10.1"));
  ASSERT_TRUE(WriteFile(dir_ + "/net/10.1.0.3", "b\r\neth0"));  // not a's, whatever a's file says
  EXPECT_THAT(Add("a", kSmall), ElementsAre("10.1.0.2/29"));
  EXPECT_EQ(Call("DEL", "a", kSmall).exit_code, 0);
  EXPECT_TRUE(PathExists(dir_ + "/net/10.1.0.3"));
  EXPECT_EQ(
      Call("GC", "", kSmall, "", R"(,"cni.dev/valid-attachments":[{"containerID":"b","ifname":"eth0"}])")
          .exit_code,
      0);
  EXPECT_THAT(*ListDir(dir_ + "/net"), ElementsAre("10.1.0.3", "last_reserved_ip.0", "lock"));
}

TEST_F(HostLocalTest, TheRuntimesRangesComeFirst) {
  Reply reply = Call("ADD", "a", kSmall, "", R"(,"runtimeConfig":{"ipRanges":[[{"subnet":"10.5.0.0/24"}]]})");
  EXPECT_THAT(reply.output, HasSubstr("10.5.0.2/24"));
  EXPECT_THAT(reply.output, HasSubstr("10.1.0.2/29"));
  EXPECT_LT(reply.output.find("10.5.0.2"), reply.output.find("10.1.0.2"));
}

TEST_F(HostLocalTest, ResolvConfIsReadForAddOnly) {
  std::string path = dir_ + "/resolv.conf";
  ASSERT_TRUE(
      WriteFile(path, "# x\nnameserver 10.0.0.10\nsearch a b\nsearch c\noptions ndots:5\ndomain d\n"));
  std::string ipam = std::string(kSmall) + R"(,"resolvConf":")" + path + "\"";
  EXPECT_THAT(
      Call("ADD", "a", ipam).output,
      HasSubstr(R"("dns":{"nameservers":["10.0.0.10"],"domain":"d","search":["c"],"options":["ndots:5"]})"));
  ASSERT_TRUE(RemoveFile(path));
  EXPECT_THAT(Call("ADD", "b", ipam).output, HasSubstr(R"("code":5)"));
  EXPECT_EQ(Call("DEL", "a", ipam).exit_code, 0);
}

TEST_F(HostLocalTest, ErrorsAreTheReferencePluginsWords) {
  std::string two = R"("ranges":[[{"subnet":"10.1.0.0/30"},{"subnet":"10.2.0.0/30"}]])";
  Add("a", two);
  Add("b", two);
  Reply full = Call("ADD", "c", two);
  EXPECT_THAT(full.output, HasSubstr(R"("code":999)"));
  EXPECT_THAT(full.output,
              HasSubstr("failed to allocate for range 0: no IP addresses available in range set: "
                        "10.1.0.1-10.1.0.2,10.2.0.1-10.2.0.2"));
  EXPECT_THAT(
      Add("c", two, "IP=10.1.0.2"),
      ElementsAre(
          "failed to allocate for range 0: requested IP address 10.1.0.2 is not available in range set "
          "10.1.0.1-10.1.0.2,10.2.0.1-10.2.0.2"));
  EXPECT_THAT(Add("c", two, "IP=10.1.0.1"),
              ElementsAre("failed to allocate for range 0: requested ip 10.1.0.1 is subnet's gateway"));
}

TEST_F(HostLocalTest, NearlyFullRangesAreSearchedToTheEnd) {
  std::string ipam = R"("ranges":[[{"subnet":"10.1.0.0/23"}]])";
  ASSERT_TRUE(MakeDirs(dir_ + "/net"));
  for (int i = 2; i < 510; ++i) {
    std::string address = IpAddress::Parse("10.1.0.0")->Plus(i).ToString();
    if (i == 400) continue;
    ASSERT_TRUE(WriteFile(dir_ + "/net/" + address, "x\r\neth0"));
  }
  EXPECT_THAT(Add("a", ipam), ElementsAre("10.1.1.144/23"));
  EXPECT_THAT(Add("b", ipam), ElementsAre("10.1.1.254/23"));
  EXPECT_THAT(Add("c", ipam), ElementsAre(HasSubstr("no IP addresses available")));
}

TEST_F(HostLocalTest, ManyAtOnceGetDifferentAddresses) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this, i] {
      for (int j = 0; j < 20; ++j) {
        Reply reply =
            Call("ADD", "c" + std::to_string(i) + "-" + std::to_string(j), R"("subnet":"10.1.0.0/24")");
        EXPECT_EQ(reply.exit_code, 0) << reply.output;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  auto store = Store::Open(dir_ + "/net");
  ASSERT_TRUE(store);
  EXPECT_EQ(ListDir(dir_ + "/net")->size(), 2 * 160u + 2u);  // lock and last_reserved_ip.0
}

}  // namespace
}  // namespace keelson::cni

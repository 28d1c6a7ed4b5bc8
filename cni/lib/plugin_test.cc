#include "cni/lib/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cni/lib/json.h"

namespace keelson::cni {
namespace {

using ::testing::HasSubstr;

AddResult SampleResult() {
  AddResult result;
  result.interfaces = {{.name = "cni0", .mac = "0a:00:00:00:00:01", .mtu = 1400},
                       {.name = "eth0", .mac = "0a:58:0a:01:00:02", .sandbox = "/run/netns/x", .mtu = 1400}};
  result.ips = {
      {.address = *IpPrefix::Parse("10.1.0.2/24"), .gateway = *IpAddress::Parse("10.1.0.1"), .interface = 1},
      {.address = *IpPrefix::Parse("fd00::2/64"), .interface = 1}};
  result.routes = {
      {.destination = *IpPrefix::Parse("0.0.0.0/0"), .gateway = *IpAddress::Parse("10.1.0.1"), .mtu = 1300}};
  result.dns.nameservers = {"10.0.0.10"};
  return result;
}

Plugin Echo() {
  return {.about = "echo",
          .add = [](const Request&) -> Outcome<AddResult> { return SampleResult(); },
          .del = [](const Request&) -> Outcome<> {
            return CniError{kTryAgainLater, "later", "why"};
          },
          .check = [](const Request&) -> Outcome<> { return {}; },
          .gc = [](const Request& r) -> Outcome<> {
            return CniError{kInternalFailure, std::to_string(r.valid_attachments.size()), ""};
          }};
}

Environment Variables(const std::string& command) {
  return {{"CNI_COMMAND", command},
          {"CNI_CONTAINERID", "c1"},
          {"CNI_NETNS", "/run/netns/x"},
          {"CNI_IFNAME", "eth0"},
          {"CNI_PATH", "/opt/cni/bin"}};
}

std::string Config(const std::string& version, const std::string& more = "") {
  return R"({"cniVersion":")" + version + R"(","name":"net","type":"echo")" + more + "}";
}

boost::json::object Parse(const std::string& text) {
  auto parsed = ParseJson(text, "reply");
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : boost::json::object();
}

int CodeOfReply(const Reply& reply) {
  EXPECT_EQ(reply.exit_code, 1) << reply.output;
  return static_cast<int>(Parse(reply.output)["code"].as_int64());
}

TEST(Plugin, AnswersAddInTheVersionOfTheConfig) {
  struct {
    const char* version;
    bool ip_version, mtu;
  } cases[] = {
      {"0.3.1", true, false}, {"0.4.0", true, false}, {"1.0.0", false, false}, {"1.1.0", false, true}};
  for (const auto& c : cases) {
    Reply reply = RunPlugin(Echo(), Variables("ADD"), Config(c.version));
    ASSERT_EQ(reply.exit_code, 0) << reply.output;
    auto json = Parse(reply.output);
    EXPECT_EQ(json["cniVersion"].as_string(), c.version);
    auto& ip = json["ips"].as_array()[0].as_object();
    EXPECT_EQ(ip.contains("version"), c.ip_version);
    EXPECT_EQ(ip["address"].as_string(), "10.1.0.2/24");
    EXPECT_EQ(json["interfaces"].as_array()[1].as_object().contains("mtu"), c.mtu);
    EXPECT_EQ(json["routes"].as_array()[0].as_object().contains("mtu"), c.mtu);
    auto parsed = ParseResult(json);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->ips.size(), 2u);
    EXPECT_EQ(parsed->ips[0].interface, 1);
    EXPECT_EQ(parsed->dns.nameservers, SampleResult().dns.nameservers);
  }
}

TEST(Plugin, ErrorsCarryTheSpecsCodes) {
  auto without = [](const std::string& command, const char* name) {
    Environment e = Variables(command);
    e.erase(name);
    return e;
  };
  auto with = [](const std::string& command, const char* name, const char* value) {
    Environment e = Variables(command);
    e[name] = value;
    return e;
  };
  EXPECT_EQ(CodeOfReply(RunPlugin(Echo(), {}, "{}")), kInvalidEnvironment);
  EXPECT_EQ(CodeOfReply(RunPlugin(Echo(), Variables("FLY"), "{}")), kInvalidEnvironment);
  EXPECT_EQ(CodeOfReply(RunPlugin(Echo(), without("ADD", "CNI_NETNS"), Config("1.0.0"))),
            kInvalidEnvironment);
  EXPECT_EQ(CodeOfReply(RunPlugin(Echo(), without("DEL", "CNI_CONTAINERID"), Config("1.0.0"))),
            kInvalidEnvironment);
  EXPECT_EQ(CodeOfReply(RunPlugin(Echo(), with("ADD", "CNI_CONTAINERID", "a/b"), Config("1.0.0"))),
            kInvalidEnvironment);
  EXPECT_EQ(
      CodeOfReply(RunPlugin(Echo(), with("ADD", "CNI_IFNAME", "averyveryverylongname"), Config("1.0.0"))),
      kInvalidEnvironment);
  EXPECT_EQ(CodeOfReply(RunPlugin(Echo(), with("ADD", "CNI_ARGS", "novalue"), Config("1.0.0"))),
            kInvalidEnvironment);
  EXPECT_EQ(CodeOfReply(RunPlugin(Echo(), Variables("ADD"), "{")), kDecodingFailure);
  EXPECT_EQ(CodeOfReply(RunPlugin(Echo(), Variables("ADD"), R"({"cniVersion":7})")), kDecodingFailure);
  EXPECT_EQ(CodeOfReply(RunPlugin(Echo(), Variables("ADD"), Config("2.0.0"))), kIncompatibleVersion);
  EXPECT_EQ(CodeOfReply(RunPlugin(Echo(), Variables("ADD"), R"({"cniVersion":"1.0.0","type":"echo"})")),
            kInvalidConfig);
  EXPECT_EQ(CodeOfReply(RunPlugin(Echo(), Variables("CHECK"), Config("1.0.0"))), kInvalidConfig);
  EXPECT_EQ(CodeOfReply(RunPlugin(Echo(), Variables("CHECK"), Config("0.3.1", R"(,"prevResult":{})"))),
            kIncompatibleVersion);
  EXPECT_EQ(CodeOfReply(RunPlugin(Echo(), Variables("GC"), Config("1.0.0"))), kIncompatibleVersion);
  Reply reply = RunPlugin(Echo(), Variables("DEL"), Config("0.4.0"));
  EXPECT_EQ(reply.output, R"({"cniVersion":"0.4.0","code":11,"msg":"later","details":"why"})");
}

TEST(Plugin, SaysVersionsAndKnowsWhatToKeep) {
  Reply version = RunPlugin(Echo(), {{"CNI_COMMAND", "VERSION"}}, R"({"cniVersion":"1.0.0"})");
  EXPECT_EQ(version.output,
            R"({"cniVersion":"1.0.0","supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]})");
  Reply gc = RunPlugin(
      Echo(), {{"CNI_COMMAND", "GC"}, {"CNI_PATH", "/"}},
      Config(
          "1.1.0",
          R"(,"cni.dev/valid-attachments":[{"containerID":"a","ifname":"eth0"},{"containerID":"b","ifname":"eth0"}])"));
  EXPECT_THAT(gc.output, HasSubstr(R"("msg":"2")"));
  EXPECT_EQ(RunPlugin(Echo(), {{"CNI_COMMAND", "STATUS"}, {"CNI_PATH", "/"}}, Config("1.1.0")).exit_code, 0);
}

}  // namespace
}  // namespace keelson::cni

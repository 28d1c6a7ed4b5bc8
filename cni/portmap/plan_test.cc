#include "cni/portmap/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cni/lib/json.h"
#include "cni/lib/label.h"
#include "lib/nft/text.h"

namespace keelson::cni {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Outcome<PortmapConfig> Read(const std::string& fields) {
  Request request;
  request.config = *ParseJson("{" + fields + "}", "test");
  return ReadPortmapConfig(request);
}

std::string Mappings(const std::string& list) { return R"("runtimeConfig":{"portMappings":[)" + list + "]}"; }

std::vector<std::string> Texts(const std::string& fields) {
  ContainerAddresses addresses{.v4 = *IpAddress::Parse("10.1.0.7"), .v6 = *IpAddress::Parse("fd00::7")};
  auto config = Read(fields);
  EXPECT_TRUE(config) << config.error().message;
  std::vector<std::string> out;
  for (const PlannedElement& item : PlanElements(*config, addresses, "net/a/eth0")) {
    out.push_back(item.set.name + " " + nft::ToText(item.set, item.element));
  }
  return out;
}

TEST(PortmapPlan, OneElementAFamilyAndMapping) {
  EXPECT_THAT(Texts(Mappings(R"({"hostPort":8080,"containerPort":80})")),
              ElementsAre("ports4 tcp . 8080 : 10.1.0.7 . 80 comment \"net/a/eth0\"",
                          "ports6 tcp . 8080 : fd00::7 . 80 comment \"net/a/eth0\""));
  EXPECT_THAT(Texts(Mappings(R"({"hostPort":53,"containerPort":53,"protocol":"UDP","hostIP":"192.0.2.1"},
                        {"hostPort":7,"containerPort":8,"protocol":"sctp","hostIP":"::"})")),
              ElementsAre("addressed-ports4 192.0.2.1 . udp . 53 : 10.1.0.7 . 53 comment \"net/a/eth0\"",
                          "ports6 sctp . 7 : fd00::7 . 8 comment \"net/a/eth0\""));
}

TEST(PortmapPlan, ElementsAreReadBack) {
  ContainerAddresses addresses{.v4 = *IpAddress::Parse("10.1.0.7"), .v6 = *IpAddress::Parse("fd00::7")};
  auto config = Read(Mappings(R"({"hostPort":53,"containerPort":5353,"protocol":"udp","hostIP":"192.0.2.1"},
                                 {"hostPort":53,"containerPort":5353,"protocol":"udp"})"));
  auto planned = PlanElements(*config, addresses, "x");
  ASSERT_EQ(planned.size(), 3u);
  for (const PlannedElement& item : planned) {
    auto port = ParseElement(item.set, item.element);
    ASSERT_TRUE(port);
    EXPECT_EQ(port->protocol, 17);
    EXPECT_EQ(port->host_port, 53);
    EXPECT_EQ(port->container_port, 5353);
    EXPECT_TRUE(port->container == *addresses.v4 || port->container == *addresses.v6);
  }
}

TEST(PortmapPlan, OtherSettingsHaveOtherChains) {
  auto usual = Read(""), bit = Read(R"("markMasqBit":5)"), plain = Read(R"("snat":false)");
  auto conditions =
      Read(R"("conditionsV4":["!","-d","192.0.2.0/24","-i","eth1"],"conditionsV6":["ip6 saddr fd01::/64"])");
  ASSERT_TRUE(conditions) << conditions.error().message;
  EXPECT_EQ(HostPortsChain(*usual), "hostports");
  std::set<std::string> names = {HostPortsChain(*usual), HostPortsChain(*bit), HostPortsChain(*plain),
                                 HostPortsChain(*conditions)};
  EXPECT_EQ(names.size(), 4u);
  nft::Transaction t(PortmapTable());
  MakeChains(t, *conditions);
  std::string text = nft::ToText(t);
  EXPECT_THAT(
      text,
      HasSubstr("r0 = ip daddr; r0 = r0 & 0xffffff00 ^ 0x00000000; r0 != 0xc0000200; r0 = meta iifname"));
  EXPECT_THAT(text, HasSubstr("r0 = ip6 saddr"));
  nft::Transaction without(PortmapTable());
  MakeChains(without, *plain);
  EXPECT_THAT(nft::ToText(without), ::testing::Not(HasSubstr("masquerade")));
}

TEST(PortmapConfig, RefusesWithACodeWhatItCannotDo) {
  struct {
    const char* fields;
    int code;
    const char* message;
  } cases[] = {
      {R"("markMasqBit":32)", kInvalidConfig, "MasqMarkBit must be between 0 and 31"},
      {R"("markMasqBit":-1)", kInvalidConfig, "MasqMarkBit must be between 0 and 31"},
      {R"("markMasqBit":"x")", kDecodingFailure, "markMasqBit"},
      {R"("externalSetMarkChain":"KUBE-MARK-MASQ")", kUnsupportedField, "externalSetMarkChain"},
      {R"("conditionsV4":["-m","set"])", kUnsupportedField, "unsupported condition: -m"},
      {R"("conditionsV4":["-d"])", kInvalidConfig, "ends early"},
      {R"("conditionsV4":["!"])", kUnsupportedField, "unsupported condition"},
      {R"("conditionsV4":["-d","fd00::/64"])", kInvalidConfig, "other address family"},
      {R"("conditionsV6":["-s","nonsense"])", kInvalidConfig, "nonsense"},
      {R"("runtimeConfig":{"portMappings":[{"hostPort":0,"containerPort":80}]})", kInvalidConfig,
       "Invalid host port number: 0"},
      {R"("runtimeConfig":{"portMappings":[{"hostPort":80,"containerPort":65536}]})", kInvalidConfig,
       "Invalid container port number: 65536"},
      {R"("runtimeConfig":{"portMappings":[{"hostPort":80,"containerPort":80,"protocol":"icmp"}]})",
       kInvalidConfig, "unsupported protocol"},
      {R"("runtimeConfig":{"portMappings":[{"hostPort":80,"containerPort":80,"hostIP":"x"}]})",
       kInvalidConfig, "x"},
      {R"("runtimeConfig":{"portMappings":[7]})", kDecodingFailure, "portMappings"},
      {R"("runtimeConfig":7)", kDecodingFailure, "runtimeConfig"},
  };
  for (const auto& c : cases) {
    auto config = Read(c.fields);
    ASSERT_FALSE(config) << c.fields;
    EXPECT_EQ(config.error().code, c.code) << c.fields;
    EXPECT_THAT(config.error().message, HasSubstr(c.message));
  }
}

TEST(PortmapConfig, FieldsMayBeSpeltAsContainerdDoes) {
  auto config =
      Read(Mappings(R"({"HostPort":8081,"ContainerPort":80,"Protocol":"udp","HostIP":"10.0.0.1"})"));
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->mappings.size(), 1u);
  EXPECT_EQ(config->mappings[0].host_port, 8081);
  EXPECT_EQ(config->mappings[0].container_port, 80);
}

TEST(PortmapConfig, TakesTheContainersOwnAddresses) {
  AddResult result;
  result.interfaces = {
      {.name = "eth0"}, {.name = "eth0", .sandbox = "/x"}, {.name = "eth1", .sandbox = "/x"}};
  for (const auto& [address, interface] : {std::pair("10.0.0.1/24", 0), std::pair("10.0.0.2/24", 2),
                                           std::pair("10.0.0.3/24", 1), std::pair("10.0.0.4/24", 1)}) {
    result.ips.push_back({.address = *IpPrefix::Parse(address), .interface = interface});
  }
  result.ips.push_back({.address = *IpPrefix::Parse("fd00::5/64")});
  auto found = FindAddresses(result, "eth0");
  EXPECT_EQ(found.v4->ToString(), "10.0.0.3");
  EXPECT_EQ(found.v6->ToString(), "fd00::5");
}

TEST(Label, TellsAttachmentsApartAndStaysShort) {
  std::string longer(200, 'x');
  std::set<std::string> labels;
  for (const std::string& network : {std::string("net"), longer, longer + "y"}) {
    for (const std::string& id : {std::string("a"), longer, longer + "y"}) {
      for (const char* ifname : {"eth0", "abcdefghijklmno"}) {
        std::string label = LabelOf(network, {id, ifname});
        EXPECT_LE(label.size(), 120u);
        labels.insert(label);
      }
    }
  }
  EXPECT_EQ(labels.size(), 18u);
  Request gc;
  gc.network = "net";
  gc.valid_attachments = {{"a", "eth0"}};
  StaleLabels stale(gc);
  EXPECT_FALSE(stale.Contains(LabelOf("net", {"a", "eth0"})));
  EXPECT_TRUE(stale.Contains(LabelOf("net", {"a", "eth1"})));
  EXPECT_FALSE(stale.Contains(LabelOf("other", {"b", "eth0"})));
  EXPECT_FALSE(stale.Contains(""));
}

}  // namespace
}  // namespace keelson::cni

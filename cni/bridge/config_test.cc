#include "cni/bridge/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cni/lib/json.h"

namespace keelson::cni {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Outcome<BridgeConfig> Read(const std::string& fields, const std::string& mac_arg = "") {
  Request request;
  request.config = *ParseJson("{" + fields + "}", "test");
  if (!mac_arg.empty()) request.args["MAC"] = mac_arg;
  return ReadBridgeConfig(request);
}

TEST(BridgeConfig, HasTheReferencePluginsDefaults) {
  auto config = Read("");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->bridge, "cni0");
  EXPECT_FALSE(config->is_gateway || config->is_default_gateway || config->masquerade || config->hairpin);
  EXPECT_TRUE(config->preserve_default_vlan);
  EXPECT_FALSE(config->FiltersVlans());
  EXPECT_TRUE(Read(R"("isDefaultGateway":true)")->is_gateway);
}

TEST(BridgeConfig, VlansAreOneOrATrunk) {
  EXPECT_EQ(Read(R"("vlan":100)")->vlan, 100);
  EXPECT_THAT(Read(R"("vlanTrunk":[{"id":7},{"minID":5,"maxID":8},{"id":100}])")->trunk,
              ElementsAre(5, 6, 7, 8, 100));
  EXPECT_FALSE(Read(R"("vlanTrunk":[])")->FiltersVlans());
}

TEST(BridgeConfig, TheRuntimesWishesWin) {
  const char* runtime =
      R"("runtimeConfig":{"mac":"0a:00:00:00:00:03","dns":{"servers":["9.9.9.9"],"searches":["a"]}})";
  const char* args = R"("args":{"cni":{"mac":"0a:00:00:00:00:02"}})";
  EXPECT_EQ(Read("", "0a:00:00:00:00:01")->mac->ToString(), "0a:00:00:00:00:01");
  EXPECT_EQ(Read(args, "0a:00:00:00:00:01")->mac->ToString(), "0a:00:00:00:00:02");
  auto all = Read(std::string(args) + "," + runtime + R"(,"dns":{"nameservers":["1.1.1.1"],"domain":"b"})",
                  "0a:00:00:00:00:01");
  EXPECT_EQ(all->mac->ToString(), "0a:00:00:00:00:03");
  EXPECT_THAT(all->dns.nameservers, ElementsAre("9.9.9.9"));
  EXPECT_THAT(all->dns.search, ElementsAre("a"));
  EXPECT_EQ(all->dns.domain, "");
  EXPECT_EQ(Read(R"("dns":{"domain":"b"})")->dns.domain, "b");
}

TEST(BridgeConfig, RefusesWithACodeWhatItCannotDo) {
  struct {
    const char* fields;
    int code;
    const char* message;
  } cases[] = {
      {R"("vlan":4095)", kInvalidConfig, "invalid VLAN ID 4095 (must be between 0 and 4094)"},
      {R"("vlan":-1)", kInvalidConfig, "invalid VLAN ID -1"},
      {R"("vlan":1,"vlanTrunk":[{"id":7}])", kInvalidConfig,
       "cannot set vlan and vlanTrunk at the same time"},
      {R"("vlanTrunk":[{"id":0}])", kInvalidConfig, "incorrect trunk id parameter"},
      {R"("vlanTrunk":[{"minID":7}])", kInvalidConfig, "maxID is missing"},
      {R"("vlanTrunk":[{"maxID":7}])", kInvalidConfig, "minID is missing"},
      {R"("vlanTrunk":[{"minID":8,"maxID":7}])", kInvalidConfig, "minID is greater than maxID"},
      {R"("vlanTrunk":[{"minID":8,"maxID":5000}])", kInvalidConfig, "incorrect trunk maxID parameter"},
      {R"("vlanTrunk":[7])", kDecodingFailure, "vlanTrunk"},
      {R"("promiscMode":true,"hairpinMode":true)", kInvalidConfig, "hairpin mode and promiscuous mode"},
      {R"("disableContainerInterface":true,"ipam":{"type":"host-local"})", kInvalidConfig, "cannot use IPAM"},
      {R"("enabledad":true)", kUnsupportedField, "enabledad"},
      {R"("mtu":-1)", kInvalidConfig, "invalid MTU"},
      {R"("mtu":99999999999)", kDecodingFailure, "mtu"},
      {R"("bridge":7)", kDecodingFailure, "bridge"},
      {R"("ipam":[])", kDecodingFailure, "ipam"},
      {R"("runtimeConfig":{"mac":"0a:00"})", kInvalidConfig, "invalid MAC address: 0a:00"},
      {R"("runtimeConfig":{"dns":{"servers":"x"}})", kDecodingFailure, "servers"},
  };
  for (const auto& c : cases) {
    auto config = Read(c.fields);
    ASSERT_FALSE(config) << c.fields;
    EXPECT_EQ(config.error().code, c.code) << c.fields;
    EXPECT_THAT(config.error().message, HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace keelson::cni

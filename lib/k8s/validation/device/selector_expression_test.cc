#include "lib/k8s/validation/device/selector_expression.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "lib/api/codec/codec.h"

namespace keelson::k8s {
namespace {

// "true", "false" or the error, for a device of driver dra.example.com.
std::string Match(const std::string& expression, const std::string& device) {
  api::resource::v1::Device parsed;
  EXPECT_TRUE(api::DecodeJson(device, parsed)) << device;
  const auto program = CompileStoredDeviceSelector(expression);
  if (!program) return program.error().message();
  const Result<bool> matches = DeviceMatches(**program, "dra.example.com", parsed);
  return matches ? fmt::format("{}", *matches) : matches.error().message();
}

constexpr char kDevice[] = R"({"name":"d","attributes":{"size":{"int":3},"ok":{"bool":true},
    "model":{"string":"a100"},"driver":{"version":"1.10.0"},"other.com/size":{"int":5}},
    "capacity":{"memory":{"value":"2Gi"},"other.com/memory":{"value":"1Gi"}}})";

TEST(DeviceSelector, ReadsDriverAttributesAndCapacity) {
  const std::pair<const char*, const char*> cases[] = {
      {"true", "true"},
      {"device.driver == 'dra.example.com'", "true"},
      {"device.attributes['dra.example.com'].size == 3", "true"},
      {"device.attributes['other.com'].size == 5", "true"},
      {"device.attributes['dra.example.com'].ok", "true"},
      {"device.attributes['dra.example.com'].model.startsWith('b')", "false"},
      {"device.attributes['dra.example.com'].driver.isGreaterThan(semver('1.9.3'))", "true"},
      {"device.capacity['dra.example.com'].memory.compareTo(quantity('2Gi')) == 0", "true"},
      {"device.capacity['other.com'].memory.isLessThan(quantity('1Gi'))", "false"},
      {"cel.bind(d, device.attributes['dra.example.com'], d.ok && d.size > 2)", "true"},
      {"device.allowMultipleAllocations", "false"},
      // A domain that the device does not have reads as an empty map.
      {"has(device.attributes['nothing.com'].size)", "false"},
      {"'nothing.com' in device.attributes", "false"},
      {"'other.com' in device.attributes", "true"},
      {"device.attributes['nothing.com'].size == 1", "no such key: size"},
      {"device.attributes['dra.example.com'].model",
       "CEL result of type string could not be converted to bool"},
      {"device.driver", "must evaluate to bool or the unknown type, not string"},
  };
  for (const auto& [expression, result] : cases) EXPECT_EQ(Match(expression, kDevice), result) << expression;
  EXPECT_EQ(Match("device.allowMultipleAllocations", R"({"name":"d","allowMultipleAllocations":true})"),
            "true");
}

TEST(DeviceSelector, ADeviceThatCannotBeReadMatchesNothing) {
  EXPECT_EQ(Match("true", R"({"name":"d","attributes":{"a":{"version":"x"}}})")
                .rfind("attribute a: parse semantic version: ", 0),
            0u);
  EXPECT_EQ(Match("true", R"({"name":"d","attributes":{"a":{}}})"),
            "attribute a: unsupported attribute value");
}

TEST(DeviceSelector, CostsAreLimitedAtRunTime) {
  std::string expensive = "true";
  for (const char* name : {"z4", "z3", "z2", "z1", "y", "x"}) {
    expensive = fmt::format("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all({}, {})", name, expensive);
  }
  EXPECT_EQ(Match(expensive, kDevice), "operation cancelled: actual cost limit exceeded");
}

}  // namespace
}  // namespace keelson::k8s

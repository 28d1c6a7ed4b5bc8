// resource.k8s.io: claims, their status, templates and slices, and the claim for a pod's extended
// resources.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "lib/cel/program.h"
#include "lib/k8s/testing/rules.h"
#include "lib/k8s/validation/device/selector_expression.h"

namespace keelson::k8s {
namespace {

constexpr char kV1[] = "resource.k8s.io/v1";

std::string Slice(const std::string& devices) {
  return R"({"metadata":{"name":"s"},"spec":{"driver":"d.io","nodeName":"n",)"
         R"("pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[)" +
         devices + "]}}";
}
// A shareable device with a capacity of 10 and this policy.
std::string Policy(const std::string& policy, const std::string& rest = "") {
  return Slice(
      R"({"name":"a","allowMultipleAllocations":true,"capacity":{"memory":{"value":"10","requestPolicy":{)" +
      policy + "}}}" + rest + "}");
}
std::string AtPolicy(const std::string& rest) {
  return "spec.devices[0].capacity[memory].requestPolicy" + rest;
}

TEST(DeviceRules, SelectorsAreCompiled) {
  auto selector = [](const std::string& expression) {
    return R"({"metadata":{"name":"c"},"spec":{"selectors":[{"cel":{"expression":")" + expression +
           R"("}}]}})";
  };
  const std::string at = "spec.selectors[0].cel.expression: Invalid value: ";
  ExpectErrors(
      kV1, "DeviceClass",
      {{selector("device.driver == 'a' && device.attributes['a'].model.startsWith('x')"), {}},
       {selector("cel.bind(a, device.attributes['a'], a.healthy)"), {}},
       {selector("device.capacity['a'].memory.compareTo(quantity('1Gi')) >= 0"), {}},
       {selector("device.driver"),
        {at + "\"device.driver\": must evaluate to bool or the unknown type, not string"}},
       {selector("device.vendor == 'a'"),
        {at + "\"device.vendor == 'a'\": compilation failed: ERROR: <input>:1:7: undefined field 'vendor'\n"
              " | device.vendor == 'a'\n | ......^"}}});
}

// The costs are those of upstream's test (k8s.io/dynamic-resource-allocation/cel, compile_test.go).
TEST(DeviceRules, SelectorsHaveCosts) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"true", 0},
      {R"(device.attributes["no-such-domain"].noSuchAttr.isGreaterThan(quantity("0")))", 6},
      {R"(device.attributes["no-such-domain"]["noSuchAttr"].isGreaterThan(quantity("0")))", 6},
      {R"("dra.example.com" in device.attributes)", 3},
      {R"(device.driver == "")", 2},
      {R"(device.driver == "dra.example.com")", 4},
      {R"(cel.bind(dra, device.attributes["dra.example.com"], dra.name))", 15},
      {R"(device.attributes["dra.example.com"].name > 0)", 5},
      {R"(device.attributes["dra.example.com"].name == "fish")", 5},
      {R"(device.attributes["dra.example.com"].name.exists(x, x > 0))", 5 + 6 * 64},
      {R"(device.attributes["dra.example.com"].names.all(x, x != ""))", 5 + 4 * 64},
      {R"(1 in device.attributes["dra.example.com"].names)", 4 + 64},
      {R"(device.attributes["a"].name.isGreaterThan(semver("v0.0.1", true)) && isSemver("v1.0.0", true))", 7},
      {R"(!("name" in device.capacity["a"]) || device.capacity["a"].name.isGreaterThan(quantity("1Ki")))",
       11},
      {R"(device.attributes.exists_one(x, x == "dra.example.com"))", 164},
      {R"(device.attributes["dra.example.com"].exists_one(x, x == "services"))", 133},
      {R"(device.attributes["dra.example.com"].services.split("example").size() >= 2)", 19},
      {R"(device.attributes["dra.example.com"].services.matches("[^a]?sym"))", 18},
      {R"(device.capacity["dra.example.com"].exists_one(x, x == "memory"))", 133},
      {"device.allowMultipleAllocations", 2},
      {"device.allowMultipleAllocations == true", 3},
      {"true == device.allowMultipleAllocations", 3},
      {"device.allowMultipleAllocations != false", 3},
      {"device.allowMultipleAllocations == device.allowMultipleAllocations", 5},
      {"!device.allowMultipleAllocations", 3},
      {"device.allowMultipleAllocations in [true, false]", 14},
      {"device.allowMultipleAllocations && device.allowMultipleAllocations == true", 5},
  };
  for (const auto& [expression, cost] : cases) {
    const auto program = CompileDeviceSelector(expression);
    ASSERT_TRUE(program) << program.error().message();
    EXPECT_EQ((*program)->estimate().max, cost) << expression;
  }

  std::string expensive = "int('1'.find('[0-9]*')) < 100";
  for (const char* name : {"z5", "z4", "z3", "z2", "z", "y", "x"}) {
    expensive = fmt::format("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all({}, {})", name, expensive);
  }
  const std::string class_with =
      R"({{"metadata":{{"name":"c"}},"spec":{{"selectors":[{{"cel":{{"expression":"{}"}}}}]}}}})";
  ExpectErrors(kV1, "DeviceClass",
               {{fmt::format(fmt::runtime(class_with), expensive),
                 {"spec.selectors[0].cel.expression: Forbidden: too complex, exceeds cost limit"}}});
}

TEST(DeviceRules, CapacityRequestPolicies) {
  ExpectErrors(
      kV1, "ResourceSlice",
      {
          {Policy(R"("default":"1")"), {}},
          {Policy(R"("default":"2","validValues":["1","2","10"])"), {}},
          {Policy(R"("default":"2","validRange":{"min":"2","max":"8","step":"2"})"), {}},
          {Policy(R"("default":"2","validRange":{"min":"1"})"), {}},
          {Policy(R"("validValues":["1"],"validRange":{"min":"1"})"),
           {AtPolicy(": Forbidden: exactly one policy can be specified, cannot specify \"validValues\" and "
                     "\"validRange\" at the same time")}},
          {Policy(R"("validValues":["1"])"),
           {AtPolicy(".default: Required value: required when validValues is defined")}},
          {Policy(R"("validRange":{"min":"1"})"),
           {AtPolicy(".default: Required value: required when validRange is defined")}},
          {Policy(R"("default":"3","validValues":["2","1","1","11"])"),
           {AtPolicy(".validValues[1]: Invalid value: \"1\": values must be sorted in ascending order"),
            AtPolicy(".validValues[3]: Invalid value: \"11\": option is larger than capacity value: 10"),
            AtPolicy(".validValues[2]: Duplicate value: \"1\""),
            AtPolicy(".validValues: Invalid value: \"3\": default value is not valid according to the "
                     "requestPolicy")}},
          {Policy(R"("default":"1","validValues":["1","2","3","4","5","6","7","8","9","10","10"])"),
           {AtPolicy(".validValues: Too many: 11: must have at most 10 items"),
            AtPolicy(".validValues: Invalid value: \"1\": default value is not valid according to the "
                     "requestPolicy")}},
          {Policy(R"("default":"1","validRange":{"max":"2"})"),
           {AtPolicy(".validRange.min: Required value: required when validRange is defined")}},
          {Policy(R"("default":"1","validRange":{"min":"12","max":"11"})"),
           {AtPolicy(".validRange.min: Invalid value: \"12\": min is larger than capacity value: 10"),
            AtPolicy(".validRange.min: Invalid value: \"1\": default is less than min: 12"),
            AtPolicy(".validRange.max: Invalid value: \"12\": min is larger than max: 11"),
            AtPolicy(".validRange.max: Invalid value: \"11\": max is larger than capacity value: 10")}},
          {Policy(R"("default":"9","validRange":{"min":"1","max":"8","step":"3"})"),
           {AtPolicy(".validRange.max: Invalid value: \"9\": default is more than max: 8"),
            AtPolicy(".validRange.step: Invalid value: \"9\": value is not a multiple of a given step (3) "
                     "from (1)"),
            AtPolicy(".validRange.step: Invalid value: \"8\": value is not a multiple of a given step (3) "
                     "from (1)")}},
          {Policy(R"("default":"2","validRange":{"min":"2","step":"9"})"),
           {AtPolicy(
               ".validRange.step: Invalid value: \"9\": one step 11 is larger than capacity value: 10")}},
          // A step of zero cannot divide anything.
          {Policy(R"("default":"2","validRange":{"min":"2","step":"0"})"),
           {AtPolicy(".validRange.step: Invalid value: \"0\": must be greater than zero")}},
          {Slice(R"({"name":"a","capacity":{"memory":{"value":"10","requestPolicy":{"default":"1"}}}})"),
           {AtPolicy(": Forbidden: allowMultipleAllocations must be true")}},
      });
}

TEST(DeviceRules, WhatASliceHadStaysAllowed) {
  const std::string bad = R"("default":"9","validValues":["1"])";
  const std::string taint =
      R"(,"taints":[{"key":"","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"}])";
  const std::string why = AtPolicy(
      ".validValues: Invalid value: \"9\": default value is not valid according to the requestPolicy");
  ExpectUpdateErrors(kV1, "ResourceSlice", "",
                     {{Policy(bad), Policy(bad, R"(,"attributes":{"x":{"int":1}})"), {}},
                      {Policy(bad, taint), Policy(bad, taint + R"(,"attributes":{"x":{"int":1}})"), {}},
                      {Policy(R"("default":"1")"), Policy(bad), {why}}},
                     false);
}

TEST(DeviceRules, Slices) {
  std::string attributes, devices;
  for (int i = 0; i < 7; ++i) {
    attributes += fmt::format(R"({}"a{}":{{"ints":[1,2,3,4,5,6,7]}})", i ? "," : "", i);
  }
  for (int i = 0; i < 65; ++i) {
    devices += fmt::format(R"({}{{"name":"d{}","attributes":{{"a":{{"ints":[1]}}}}}})", i ? "," : "", i);
  }
  std::string counters;
  for (int i = 0; i < 33; ++i) counters += fmt::format(R"({}"c{}":{{"value":"1"}})", i ? "," : "", i);
  ExpectErrors(
      kV1, "ResourceSlice",
      {
          {Slice(R"({"name":"a","attributes":{)" + attributes + "}}"),
           {"spec.devices[0]: Invalid value: 49: the total number of attribute values must not exceed 48"}},
          // Too many devices: only that is reported. Devices with lists have a lower limit.
          {Slice(devices), {"spec.devices: Too many: 65: must have at most 64 items"}},
          {Slice(R"({"name":"a","consumesCounters":[{"counterSet":"s","counters":{)" + counters + "}}]}"),
           {"spec.devices[0].consumesCounters[0].counters: Too many: 33: must have at most 32 items"}},
          {Slice(R"({"name":"a","bindingConditions":["x"],"bindingFailureConditions":["x"]})"),
           {"spec.devices[0].bindingFailureConditions[0]: Invalid value: \"x\": bindingFailureConditions "
            "must "
            "not overlap with bindingConditions"}},
          {Slice(R"({"name":"a","bindingConditions":["x"]})"),
           {"spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are "
            "required to use bindingConditions"}},
      });
}

TEST(DeviceRules, TemplatesHaveLabelsAndAnnotationsOnly) {
  const auto of = [](const std::string& metadata) {
    return R"({"metadata":{"name":"t","namespace":"default"},"spec":{"metadata":{)" + metadata +
           R"(},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}}})";
  };
  ExpectErrors(
      kV1, "ResourceClaimTemplate",
      {{of(R"("labels":{"a":"b"},"annotations":{"c":"d"})"), {}},
       {of(R"("name":"n","uid":"u","finalizers":["a/b"])"),
        {"spec.metadata.name: Forbidden: cannot be set", "spec.metadata.uID: Forbidden: cannot be set",
         "spec.metadata.finalizers: Forbidden: cannot be set"}}});
}

constexpr char kShare[] = "0f3c1e9a-5b7d-4c62-8a10-9d2e6f4b7c81";

std::string Claim(const std::string& status) {
  return R"({"metadata":{"name":"c","namespace":"default"},"spec":{"devices":{"requests":[)"
         R"({"name":"r","exactly":{"deviceClassName":"c"}}]}},"status":{)" +
         status + "}}";
}
std::string Allocated(const std::string& share, const std::string& devices = "") {
  return Claim(
      R"("allocation":{"devices":{"results":[{"request":"r","driver":"d.io","pool":"p","device":"a")" +
      (share.empty() ? "" : R"(,"shareID":")" + share + "\"") + "}]}}" +
      (devices.empty() ? "" : R"(,"devices":[)" + devices + "]"));
}
std::string Status(const std::string& rest) {
  return R"({"driver":"d.io","pool":"p","device":"a")" + rest + "}";
}

TEST(DeviceRules, ClaimStatuses) {
  std::string conditions, ips;
  for (int i = 0; i < 9; ++i) {
    conditions += fmt::format(R"({}{{"type":"T{}","status":"True","reason":"R","message":"",)"
                              R"("lastTransitionTime":"2026-01-01T00:00:00Z"}})",
                              i ? "," : "", i);
  }
  for (int i = 0; i < 17; ++i) ips += fmt::format(R"({}"10.0.0.{}/24")", i ? "," : "", i);
  const std::string none = Claim("");
  ExpectUpdateErrors(
      kV1, "ResourceClaim", "status",
      {
          {none, Allocated(kShare, Status(fmt::format(R"(,"shareID":"{}")", kShare))), {}},
          {none,
           Allocated("x"),
           {"status.allocation.devices.results[0].shareID: Invalid value: \"x\": error validating uid: "
            "invalid "
            "UUID length: 1"}},
          {none,
           Allocated("0F3c1e9a-5b7d-4c62-8a10-9d2e6f4b7c81"),
           {"status.allocation.devices.results[0].shareID: Invalid value: "
            "\"0F3c1e9a-5b7d-4c62-8a10-9d2e6f4b7c81\": uid must be in RFC 4122 normalized form, "
            "`xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"}},
          {none,
           Allocated("", Status(fmt::format(R"(,"shareID":"{}")", kShare))),
           {fmt::format(
               "status.devices[0]: Invalid value: \"d.io/p/a/{}\": must be an allocated device in the "
               "claim",
               kShare)}},
          {none,
           Allocated("", Status(R"(,"conditions":[)" + conditions + "]")),
           {"status.devices[0].conditions: Too many: 9: must have at most 8 items"}},
          {none,
           Allocated("", Status(R"(,"data":[1])")),
           {"status.devices[0].data: Invalid value: \"<value omitted>\": must be a valid JSON object"}},
          {none,
           Allocated("",
                     Status(R"(,"networkData":{"interfaceName":")" + std::string(257, 'a') +
                            R"(","hardwareAddress":")" + std::string(129, 'b') +
                            R"(","ips":["300.9.8.0/24","2001:db8:0::1/64","10.9.8.7/24","10.9.8.7/24"]})")),
           {"status.devices[0].networkData.interfaceName: Too long: may not be more than 256 bytes",
            "status.devices[0].networkData.hardwareAddress: Too long: may not be more than 128 bytes",
            "status.devices[0].networkData.ips[0]: Invalid value: \"300.9.8.0/24\": must be a valid address "
            "in "
            "CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)",
            "status.devices[0].networkData.ips[1]: Invalid value: \"2001:db8:0::1/64\": must be in canonical "
            "form (\"2001:db8::1/64\")",
            "status.devices[0].networkData.ips[3]: Duplicate value: \"10.9.8.7/24\""}},
          {none,
           Allocated("", Status(R"(,"networkData":{"ips":[)" + ips + "]}")),
           {"status.devices[0].networkData.ips: Too many: 17: must have at most 16 items"}},
      });
}

TEST(DeviceRules, ClaimsOfExtendedResources) {
  const auto pod = [](const std::string& claim) {
    return Pod(R"("containers":[{"name":"c","image":"i","resources":{"requests":{"example.com/gpu":"1"},)"
               R"("limits":{"example.com/gpu":"1"}}}])",
               "", claim.empty() ? "" : R"("extendedResourceClaimStatus":{)" + claim + "}");
  };
  const auto mapping = [](const char* container, const char* resource, const char* request) {
    return fmt::format(R"({{"containerName":"{}","resourceName":"{}","requestName":"{}"}})", container,
                       resource, request);
  };
  const std::string good = mapping("c", "example.com/gpu", "r0");
  constexpr char kAt[] = "status.extendedResourceClaimStatus";
  ExpectUpdateErrors(
      "v1", "Pod", "status",
      {
          {pod(""),
           pod(R"("resourceClaimName":"p-x","requestMappings":[)" + good + "," +
               mapping("c", "example.com/gpu", "r1") + "]"),
           {}},
          {pod(""),
           pod(R"("resourceClaimName":"P","requestMappings":[])"),
           {fmt::format(
                "{}.resourceClaimName: Invalid value: \"P\": a lowercase RFC 1123 subdomain must consist "
                "of lower case alphanumeric characters, '-' or '.', and must start and end with an "
                "alphanumeric character (e.g. 'example.com', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                kAt),
            fmt::format("{}.requestMappings: Required value: at least one request mapping is required",
                        kAt)}},
          {pod(""),
           pod(R"("resourceClaimName":"p","requestMappings":[)" + mapping("d", "example.com/gpu", "r0") +
               "," + mapping("c", "cpu", "r0") + "," + mapping("c", "example.com/other", "r0") + "," + good +
               "," + good + "]"),
           {fmt::format(
                "{}.requestMappings[0].containerName: Invalid value: \"d\": must match the name of an "
                "entry in `spec.initContainers.name` or `spec.containers.name`",
                kAt),
            fmt::format(
                "{}.requestMappings[1].resourceName: Invalid value: \"cpu\": must be a valid extended "
                "resource name",
                kAt),
            fmt::format(
                "{}.requestMappings[2].resourceName: Invalid value: \"example.com/other\": must match "
                "one of the container's resource requests",
                kAt),
            fmt::format("{}.requestMappings[4]: Duplicate value: \"c/example.com/gpu/r0\"", kAt)}},
      });
}

}  // namespace
}  // namespace keelson::k8s

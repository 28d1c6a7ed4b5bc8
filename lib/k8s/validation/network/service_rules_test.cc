// Services, ServiceCIDRs and IPAddresses, with upstream's messages.
#include "lib/k8s/validation/network/service_rules.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"
#include "lib/api/scheme.h"
#include "lib/k8s/defaulting/defaulting.h"
#include "lib/k8s/validation/validation.h"
#include "lib/k8s/validation_settings.h"

namespace keelson::k8s {
namespace {

using Lines = std::vector<std::string>;

std::unique_ptr<api::Message> Parse(const api::ResourceInfo& info, const std::string& json) {
  std::unique_ptr<api::Message> object = api::NewObject(info.descriptor());
  const Result<> decoded = api::DecodeJson(json, *object);
  EXPECT_TRUE(decoded) << json << ": " << (decoded ? "" : decoded.error().message());
  SetDefaults(*object);
  return object;
}

Lines Print(const FieldErrors& errors) {
  Lines out;
  for (const FieldError& error : errors) out.push_back(error.ToString());
  return out;
}

// A Service with this spec and, unless `spec` has ports, one port.
std::string Service(const std::string& spec, const std::string& meta = "", const std::string& status = "") {
  const std::string port = spec.find("\"ports\"") == std::string::npos ? R"("ports":[{"port":80}])" : "";
  return R"({"metadata":{"name":"s","namespace":"default","resourceVersion":"1")" + meta + R"(},"spec":{)" +
         spec + (spec.empty() || port.empty() ? "" : ",") + port + "}" +
         (status.empty() ? "" : R"(,"status":)" + status) + "}";
}

const api::ResourceInfo& Services() { return api::ResourceOf<corev1::Service>(); }

struct NewCase {
  std::string json;
  Lines errors;
};
class NewServiceTest : public testing::TestWithParam<NewCase> {};
TEST_P(NewServiceTest, SaysWhatIsWrong) {
  EXPECT_EQ(Print(Validate(*Parse(Services(), GetParam().json))), GetParam().errors) << GetParam().json;
}

constexpr char kOnlyBalanced[] = "Forbidden: may only be used when `type` is 'LoadBalancer'";
constexpr char kCname[] = R"("type":"ExternalName","externalName":"a.b.c")";

INSTANTIATE_TEST_SUITE_P(
    Types, NewServiceTest,
    testing::Values(
        NewCase{Service(""), {}}, NewCase{Service(kCname), {}},
        NewCase{Service(R"("ports":[])"), {"spec.ports: Required value"}},
        NewCase{Service(R"("clusterIP":"None","clusterIPs":["None"],"ports":[])"), {}},
        NewCase{
            Service(R"("type":"Nothing")"),
            {"spec.type: Unsupported value: \"Nothing\": supported values: \"ClusterIP\", \"ExternalName\", "
             "\"LoadBalancer\", \"NodePort\""}},
        NewCase{
            Service(R"("type":"NodePort","clusterIP":"None","clusterIPs":["None"])"),
            {"spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"}},
        NewCase{Service(R"("type":"LoadBalancer","clusterIP":"None","clusterIPs":["None"])"),
                {"spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for LoadBalancer "
                 "services"}},
        NewCase{Service(R"("type":"ExternalName")"), {"spec.externalName: Required value"}},
        NewCase{Service(std::string(kCname) +
                        R"(,"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ipFamilies":["IPv4"],)"
                        R"("ipFamilyPolicy":"SingleStack")"),
                {"spec.clusterIPs: Forbidden: may not be set for ExternalName services",
                 "spec.ipFamilies: Forbidden: may not be set for ExternalName services",
                 "spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services"}},
        NewCase{
            Service("", R"(,"annotations":{"service.kubernetes.io/topology-aware-hints":"Auto",)"
                        R"("service.kubernetes.io/topology-mode":"Disabled"})"),
            {"metadata.annotations[service.kubernetes.io/topology-mode]: Invalid value: \"Disabled\": must "
             "match annotations[service.kubernetes.io/topology-aware-hints] when both are specified"}}));

INSTANTIATE_TEST_SUITE_P(
    Ports, NewServiceTest,
    testing::Values(
        NewCase{Service(R"("ports":[{"port":80},{"port":81,"name":"b"}])"),
                {"spec.ports[0].name: Required value"}},
        NewCase{Service(R"("ports":[{"port":80,"name":"a"},{"port":81,"name":"a"}])"),
                {"spec.ports[1].name: Duplicate value: \"a\""}},
        NewCase{
            Service(R"("ports":[{"port":80,"name":"a"},{"port":80,"name":"b"}])"),
            {R"(spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,)"
             R"("TargetPort":0,"NodePort":0})"}},
        NewCase{Service(R"("ports":[{"port":80,"name":"a"},{"port":80,"name":"b","protocol":"UDP"}])"), {}},
        NewCase{Service(R"("ports":[{"port":70000}])"),
                {"spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive",
                 "spec.ports[0].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive"}},
        NewCase{Service(R"("ports":[{"port":80,"nodePort":30000}])"),
                {"spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"}},
        NewCase{Service(R"("type":"NodePort","ports":[{"port":80,"name":"a","nodePort":30000},)"
                        R"({"port":81,"name":"b","nodePort":30000}])"),
                {"spec.ports[1].nodePort: Duplicate value: 30000"}}));

INSTANTIATE_TEST_SUITE_P(
    Traffic, NewServiceTest,
    testing::Values(
        NewCase{
            Service(
                R"("sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":0}})"),
            {"spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 "
             "and "
             "less than 86400"}},
        NewCase{Service(R"("externalTrafficPolicy":"Local")"),
                {"spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for "
                 "externally-accessible "
                 "services"}},
        NewCase{Service(R"("type":"NodePort","externalTrafficPolicy":"Some")"),
                {"spec.externalTrafficPolicy: Unsupported value: \"Some\": supported values: \"Cluster\", "
                 "\"Local\""}},
        NewCase{Service(R"("type":"LoadBalancer","externalTrafficPolicy":"Local")"),
                {"spec.healthCheckNodePort: Required value"}},
        NewCase{Service(R"("type":"NodePort","healthCheckNodePort":32000)"),
                {"spec.healthCheckNodePort: Invalid value: 32000: may only be set when `type` is "
                 "'LoadBalancer' and "
                 "`externalTrafficPolicy` is 'Local'"}},
        NewCase{Service(R"("internalTrafficPolicy":"Some")"),
                {"spec.internalTrafficPolicy: Unsupported value: \"Some\": supported values: \"Cluster\", "
                 "\"Local\""}},
        NewCase{Service(R"("trafficDistribution":"Far")"),
                {"spec.trafficDistribution: Unsupported value: \"Far\": supported values: \"PreferClose\", "
                 "\"PreferSameZone\", \"PreferSameNode\""}},
        NewCase{Service(R"("loadBalancerClass":"a","allocateLoadBalancerNodePorts":true,)"
                        R"("loadBalancerSourceRanges":["10.0.0.0/8"])"),
                {std::string("spec.LoadBalancerSourceRanges: ") + kOnlyBalanced,
                 std::string("spec.allocateLoadBalancerNodePorts: ") + kOnlyBalanced,
                 std::string("spec.loadBalancerClass: ") + kOnlyBalanced}},
        NewCase{
            Service(R"("type":"LoadBalancer","loadBalancerSourceRanges":[" 10.0.0.0/8 ","10.0.0.1/8","x"])"),
            {"spec.LoadBalancerSourceRanges[1]: Invalid value: \"10.0.0.1/8\": must not have bits set beyond "
             "the "
             "prefix length",
             "spec.LoadBalancerSourceRanges[2]: Invalid value: \"x\": must be a valid CIDR value, (e.g. "
             "10.9.8.0/24 or 2001:db8::/64)"}},
        NewCase{Service(R"("externalIPs":["127.0.0.1","010.0.0.1","::ffff:10.0.0.1","0.0.0.0","10.0.0.9"])"),
                {"spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range "
                 "(127.0.0.0/8, "
                 "::1/128)",
                 "spec.externalIPs[1]: Invalid value: \"010.0.0.1\": must not have leading 0s",
                 "spec.externalIPs[2]: Invalid value: \"::ffff:10.0.0.1\": must not be an IPv4-mapped IPv6 "
                 "address",
                 "spec.externalIPs[3]: Invalid value: \"0.0.0.0\": may not be unspecified (0.0.0.0)"}}));

INSTANTIATE_TEST_SUITE_P(
    Addresses, NewServiceTest,
    testing::Values(
        NewCase{Service(R"("clusterIP":"10.0.0.1","clusterIPs":["10.0.0.2"])"),
                {"spec.clusterIPs: Invalid value: [\"10.0.0.2\"]: first value must match `clusterIP`"}},
        NewCase{Service(R"("clusterIP":"10.0.0.1")"), {"spec.clusterIPs: Required value"}},
        NewCase{Service(R"("clusterIPs":["10.0.0.2"])"),
                {"spec.clusterIPs: Invalid value: [\"10.0.0.2\"]: must be empty when `clusterIP` is not "
                 "specified"}},
        NewCase{Service(R"("clusterIP":"x","clusterIPs":["x"])"),
                {"spec.clusterIPs[0]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or "
                 "2001:db8::ffff)"}},
        NewCase{Service(R"("clusterIP":"None","clusterIPs":["None","10.0.0.1"])"),
                {"spec.clusterIPs: Invalid value: [\"None\",\"10.0.0.1\"]: 'None' must be the first and only "
                 "value"}},
        NewCase{Service(R"("clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","10.0.0.2"])"),
                {"spec.clusterIPs: Invalid value: [\"10.0.0.1\",\"10.0.0.2\"]: may specify no more than one "
                 "IP for "
                 "each IP family"}},
        NewCase{
            Service(R"("clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","fd00::1","fd00::2"])"),
            {"spec.clusterIPs: Invalid value: [\"10.0.0.1\",\"fd00::1\",\"fd00::2\"]: may only hold up to 2 "
             "values"}},
        NewCase{Service(R"("clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ipFamilies":["IPv6"])"),
                {"spec.clusterIPs[0]: Invalid value: \"10.0.0.1\": expected an IPv6 value as indicated by "
                 "`ipFamilies[0]`"}},
        NewCase{Service(R"("ipFamilies":["IPv4","IPv4","IPv5"],"ipFamilyPolicy":"Any")"),
                {"spec.ipFamilies[1]: Duplicate value: \"IPv4\"",
                 "spec.ipFamilies[2]: Unsupported value: \"IPv5\": supported values: \"IPv4\", \"IPv6\"",
                 "spec.ipFamilyPolicy: Unsupported value: \"Any\": supported values: \"PreferDualStack\", "
                 "\"RequireDualStack\", \"SingleStack\""}}));

struct UpdateCase {
  std::string before, after;
  Lines errors;
};
class UpdatedServiceTest : public testing::TestWithParam<UpdateCase> {};
TEST_P(UpdatedServiceTest, SaysWhatIsWrong) {
  const UpdateCase& c = GetParam();
  EXPECT_EQ(Print(ValidateUpdate(*Parse(Services(), c.after), *Parse(Services(), c.before))), c.errors)
      << c.after;
}

constexpr char kOneIp[] =
    R"("clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack")";
constexpr char kTwoIps[] =
    R"("clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","fd00::1"],"ipFamilies":["IPv4","IPv6"],)"
    R"("ipFamilyPolicy":"PreferDualStack")";

INSTANTIATE_TEST_SUITE_P(
    All, UpdatedServiceTest,
    testing::Values(
        UpdateCase{Service(kOneIp), Service(kOneIp), {}}, UpdateCase{Service(kOneIp), Service(kTwoIps), {}},
        UpdateCase{Service(kTwoIps), Service(kOneIp), {}},
        UpdateCase{Service(kOneIp),
                   Service(R"("clusterIP":"10.0.0.2","clusterIPs":["10.0.0.2"],)"
                           R"("ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack")"),
                   {"spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set"}},
        UpdateCase{Service(kOneIp),
                   Service(R"("ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack")"),
                   {"spec.clusterIPs[0]: Invalid value: null: primary clusterIP can not be unset"}},
        UpdateCase{
            Service(kTwoIps),
            Service(R"("clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],)"
                    R"("ipFamilies":["IPv4"],"ipFamilyPolicy":"PreferDualStack")"),
            {"spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when "
             "releasing the secondary clusterIP",
             "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when "
             "releasing the secondary ipFamily"}},
        UpdateCase{Service(std::string(kOneIp) + R"(,"type":"LoadBalancer","loadBalancerClass":"a")"),
                   Service(std::string(kOneIp) + R"(,"type":"LoadBalancer")"),
                   {"spec.loadBalancerClass: Invalid value: \"null\": may not change once set"}},
        UpdateCase{Service(std::string(kOneIp) + R"(,"type":"LoadBalancer")"),
                   Service(std::string(kOneIp) + R"(,"type":"LoadBalancer","loadBalancerClass":"a")"),
                   {"spec.loadBalancerClass: Invalid value: \"a\": may not change once set"}},
        UpdateCase{Service(std::string(kOneIp) + R"(,"type":"LoadBalancer","externalTrafficPolicy":"Local",)"
                                                 R"("healthCheckNodePort":32000)"),
                   Service(std::string(kOneIp) + R"(,"type":"LoadBalancer","externalTrafficPolicy":"Local",)"
                                                 R"("healthCheckNodePort":32001)"),
                   {"spec.healthCheckNodePort: Forbidden: field is immutable"}},
        // Values stored under laxer rules may stay.
        UpdateCase{Service(std::string(kOneIp) + R"(,"externalIPs":["192.168.000.001"])"),
                   Service(std::string(kOneIp) + R"(,"externalIPs":["192.168.000.001"])"),
                   {}}));

class ServiceStatusTest : public testing::TestWithParam<NewCase> {};
TEST_P(ServiceStatusTest, SaysWhatIsWrong) {
  auto object = Parse(Services(), GetParam().json);
  EXPECT_EQ(Print(ValidateStatusUpdate(*object, *Parse(Services(), Service(kOneIp)))), GetParam().errors);
}
constexpr char kBalanced[] = R"("type":"LoadBalancer")";
INSTANTIATE_TEST_SUITE_P(
    All, ServiceStatusTest,
    testing::Values(
        NewCase{Service(kBalanced, "", R"({"loadBalancer":{"ingress":[{"ip":"203.0.113.1"}]}})"), {}},
        NewCase{
            Service("", "", R"({"loadBalancer":{"ingress":[{"ip":"203.0.113.1"}]}})"),
            {"status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"}},
        NewCase{Service(kBalanced, "",
                        R"({"loadBalancer":{"ingress":[{"ip":"x","ipMode":"Any"},{"hostname":"1.2.3.4"},)"
                        R"({"ipMode":"VIP"}]}})"),
                {"status.loadBalancer.ingress[0].ip: Invalid value: \"x\": must be a valid IP address, (e.g. "
                 "10.9.8.7 "
                 "or 2001:db8::ffff)",
                 "status.loadBalancer.ingress[0].ipMode: Unsupported value: \"Any\": supported values: "
                 "\"Proxy\", "
                 "\"VIP\"",
                 "status.loadBalancer.ingress[1].hostname: Invalid value: \"1.2.3.4\": must be a DNS name, "
                 "not an IP "
                 "address",
                 "status.loadBalancer.ingress[2].ipMode: Forbidden: may not be specified when `ip` is not "
                 "set"}}));

struct RangeCase {
  const char* resource;
  std::string name, spec;
  Lines errors;
};
class RangeTest : public testing::TestWithParam<RangeCase> {};
TEST_P(RangeTest, SaysWhatIsWrong) {
  const RangeCase& c = GetParam();
  const api::ResourceInfo& info = *api::FindResource("networking.k8s.io", "v1", c.resource);
  EXPECT_EQ(
      Print(Validate(*Parse(info, R"({"metadata":{"name":")" + c.name + R"("},"spec":)" + c.spec + "}"))),
      c.errors);
}
INSTANTIATE_TEST_SUITE_P(
    All, RangeTest,
    testing::Values(
        RangeCase{"servicecidrs", "a", R"({"cidrs":["10.0.0.0/24","fd00::/112"]})", {}},
        RangeCase{"servicecidrs", "a", "{}", {"spec.cidrs: Required value: at least one CIDR required"}},
        RangeCase{"servicecidrs",
                  "a",
                  R"({"cidrs":["10.0.0.0/24","10.0.1.0/24"]})",
                  {"spec.cidrs: Invalid value: [\"10.0.0.0/24\",\"10.0.1.0/24\"]: may specify no more "
                   "than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"}},
        RangeCase{"servicecidrs",
                  "a",
                  R"({"cidrs":["10.0.0.1/24"]})",
                  {"spec.cidrs[0]: Invalid value: \"10.0.0.1/24\": must not have bits set beyond the prefix "
                   "length"}},
        RangeCase{"ipaddresses",
                  "10.0.0.1",
                  R"({"parentRef":{"resource":"services","name":"a","namespace":"b"}})",
                  {}},
        RangeCase{"ipaddresses", "fd00::1", R"({"parentRef":{"resource":"services","name":"a"}})", {}},
        RangeCase{"ipaddresses",
                  "10.0.0.256",
                  R"({"parentRef":{"resource":"services","name":"a"}})",
                  {"metadata.name: Invalid value: \"10.0.0.256\": must be a valid IP address, (e.g. 10.9.8.7 "
                   "or 2001:db8::ffff)"}},
        RangeCase{"ipaddresses",
                  "fd00:0::1",
                  R"({"parentRef":{"resource":"services","name":"a"}})",
                  {"metadata.name: Invalid value: \"fd00:0::1\": must be in canonical form (\"fd00::1\")"}},
        RangeCase{"ipaddresses", "10.0.0.1", "{}", {"spec.parentRef: Required value"}},
        RangeCase{"ipaddresses",
                  "10.0.0.1",
                  R"({"parentRef":{}})",
                  {"spec.parentRef.resource: Required value", "spec.parentRef.name: Required value"}}));

TEST(ServiceNameTest, MayBeginWithADigitUnlessTheGateIsOff) {
  const auto said = [](const std::string& name) {
    std::unique_ptr<api::Message> service = Parse(Services(), Service(""));
    static_cast<corev1::Service&>(*service).mutable_metadata()->set_name(name);
    return Print(Validate(*service));
  };
  const auto rule = [](const std::string& name, const char* form) {
    return Lines{"metadata.name: Invalid value: \"" + name + "\": a " + form};
  };
  constexpr char kStrict[] =
      "DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
      "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
      "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
  constexpr char kRelaxed[] =
      "lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
      "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
      "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
  EXPECT_EQ(said("s1"), Lines());
  EXPECT_EQ(said("1s"), Lines());
  EXPECT_EQ(said("-s"), rule("-s", kRelaxed));
  const ScopedValidationSettings settings({.relaxed_service_names = false});
  EXPECT_EQ(said("s1"), Lines());
  EXPECT_EQ(said("1s"), rule("1s", kStrict));
}

TEST(ServiceCidrTest, MayOnlyBecomeDualStack) {
  const api::ResourceInfo& info = *api::FindResource("networking.k8s.io", "v1", "servicecidrs");
  auto make = [&](const char* cidrs) {
    return Parse(info, R"({"metadata":{"name":"a","resourceVersion":"1"},"spec":{"cidrs":)" +
                           std::string(cidrs) + "}}");
  };
  auto old = make(R"(["10.0.0.0/24"])");
  EXPECT_EQ(Print(ValidateUpdate(*make(R"(["10.0.0.0/24","fd00::/112"])"), *old)), Lines{});
  EXPECT_EQ(Print(ValidateUpdate(*make(R"(["10.0.1.0/24"])"), *old)),
            Lines{"spec.cidrs[0]: Invalid value: \"10.0.1.0/24\": field is immutable"});
  EXPECT_EQ(Print(ValidateUpdate(*make("[]"), *old)),
            Lines{"spec.cidrs: Invalid value: null: field is immutable"});
}

TEST(ServiceWarningsTest, NamesWhatIsIgnored) {
  auto warnings = [](const std::string& spec, const std::string& meta = "") {
    return ServiceWarnings(static_cast<const corev1::Service&>(*Parse(Services(), Service(spec, meta))));
  };
  EXPECT_EQ(warnings(kOneIp), Lines{});
  EXPECT_EQ(warnings(R"("clusterIP":"None","clusterIPs":["None"],"sessionAffinity":"ClientIP",)"
                     R"("loadBalancerIP":"10.0.0.1")"),
            (Lines{"spec.loadBalancerIP is ignored for headless services",
                   "spec.SessionAffinity is ignored for headless services"}));
  EXPECT_EQ(warnings(R"("externalName":"a")"),
            Lines{"spec.externalName is ignored when spec.type is not \"ExternalName\""});
  EXPECT_EQ(
      warnings(R"("clusterIP":"2001:db8:0:0::2","clusterIPs":["2001:db8:0:0::2"])"),
      Lines{"spec.clusterIPs[0]: IPv6 address \"2001:db8:0:0::2\" should be in RFC 5952 canonical format "
            "(\"2001:db8::2\")"});
  EXPECT_EQ(warnings(kOneIp, R"(,"annotations":{"service.kubernetes.io/topology-aware-hints":"Auto"})"),
            Lines{"annotation service.kubernetes.io/topology-aware-hints is deprecated, please use "
                  "service.kubernetes.io/topology-mode instead"});
}

}  // namespace
}  // namespace keelson::k8s

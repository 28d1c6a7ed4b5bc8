// The IP families of a Service: chosen, kept and changed.
#include "controlplane/registry/service_families.h"

#include "controlplane/registry/testing/fixture.h"

namespace keelson::registry {
namespace {

using corev1::ServiceSpec;

struct FamilyCase {
  std::string spec, old;  // JSON; old empty: a new Service
  std::vector<std::string> cluster;
  std::string policy;
  std::vector<std::string> families;
  std::string error;
};

ServiceSpec ParseSpec(const std::string& json) {
  corev1::Service service;
  EXPECT_TRUE(api::DecodeJson(R"({"spec":)" + json + "}", service)) << json;
  return service.spec();
}

class FamiliesTest : public testing::TestWithParam<FamilyCase> {};
TEST_P(FamiliesTest, AreChosen) {
  const FamilyCase& c = GetParam();
  ServiceSpec spec = ParseSpec(c.spec), old;
  if (!c.old.empty()) old = ParseSpec(c.old);
  k8s::FieldErrors errors = ChooseFamilies(spec, c.old.empty() ? nullptr : &old, c.cluster);
  EXPECT_EQ(errors.empty() ? "" : errors[0].ToString(), c.error) << c.spec;
  if (!c.error.empty()) return;
  EXPECT_EQ(spec.ip_family_policy(), c.policy) << c.spec;
  EXPECT_EQ(std::vector<std::string>(spec.ip_families().begin(), spec.ip_families().end()), c.families)
      << c.spec;
}

const std::vector<std::string> kOne = {"IPv4"}, kTwo = {"IPv4", "IPv6"}, kSix = {"IPv6", "IPv4"};
constexpr char kSelects[] = R"({"type":"ClusterIP","selector":{"a":"b"})";

INSTANTIATE_TEST_SUITE_P(
    New, FamiliesTest,
    testing::Values(
        FamilyCase{std::string(kSelects) + "}", "", kOne, "SingleStack", {"IPv4"}, ""},
        FamilyCase{std::string(kSelects) + "}", "", kTwo, "SingleStack", {"IPv4"}, ""},
        FamilyCase{std::string(kSelects) + "}", "", kSix, "SingleStack", {"IPv6"}, ""},
        FamilyCase{R"({"type":"ExternalName"})", "", kTwo, "", {}, ""},
        FamilyCase{std::string(kSelects) + R"(,"ipFamilyPolicy":"PreferDualStack"})",
                   "",
                   kOne,
                   "PreferDualStack",
                   {"IPv4"},
                   ""},
        FamilyCase{std::string(kSelects) + R"(,"ipFamilyPolicy":"PreferDualStack","ipFamilies":["IPv6"]})",
                   "",
                   kTwo,
                   "PreferDualStack",
                   {"IPv6", "IPv4"},
                   ""},
        FamilyCase{std::string(kSelects) + R"(,"ipFamilyPolicy":"RequireDualStack"})",
                   "",
                   kTwo,
                   "RequireDualStack",
                   {"IPv4", "IPv6"},
                   ""},
        FamilyCase{
            std::string(kSelects) + R"(,"ipFamilyPolicy":"RequireDualStack"})",
            "",
            kOne,
            "",
            {},
            "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for "
            "dual-stack services"},
        FamilyCase{std::string(kSelects) + R"(,"ipFamilies":["IPv6"]})",
                   "",
                   kOne,
                   "",
                   {},
                   "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster"},
        FamilyCase{std::string(kSelects) + R"(,"ipFamilies":["IPv4","IPv6"]})",
                   "",
                   kTwo,
                   "",
                   {},
                   "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or "
                   "'PreferDualStack' when multiple IP families are specified"},
        FamilyCase{std::string(kSelects) + R"(,"clusterIP":"fd00::1","clusterIPs":["fd00::1"]})",
                   "",
                   kTwo,
                   "SingleStack",
                   {"IPv6"},
                   ""},
        FamilyCase{
            std::string(kSelects) + R"(,"clusterIP":"fd00::1","clusterIPs":["fd00::1"]})",
            "",
            kOne,
            "",
            {},
            "spec.clusterIPs[0]: Invalid value: [\"fd00::1\"]: IPv6 is not configured on this cluster"},
        FamilyCase{std::string(kSelects) + R"(,"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","fd00::1"]})",
                   "",
                   kTwo,
                   "",
                   {},
                   "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or "
                   "'PreferDualStack' when multiple cluster IPs are specified"},
        // Headless: with a selector like any other; without one dual stack everywhere.
        FamilyCase{std::string(kSelects) + R"(,"clusterIP":"None","clusterIPs":["None"]})",
                   "",
                   kOne,
                   "SingleStack",
                   {"IPv4"},
                   ""},
        FamilyCase{R"({"type":"ClusterIP","clusterIP":"None","clusterIPs":["None"]})",
                   "",
                   kOne,
                   "RequireDualStack",
                   {"IPv4", "IPv6"},
                   ""},
        FamilyCase{
            R"({"type":"ClusterIP","clusterIP":"None","clusterIPs":["None"],"ipFamilyPolicy":"SingleStack",)"
            R"("ipFamilies":["IPv6"]})",
            "",
            kOne,
            "SingleStack",
            {"IPv6"},
            ""}));

constexpr char kWasOne[] =
    R"({"type":"ClusterIP","selector":{"a":"b"},"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],)"
    R"("ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack"})";
constexpr char kWasTwo[] =
    R"({"type":"ClusterIP","selector":{"a":"b"},"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","fd00::1"],)"
    R"("ipFamilies":["IPv4","IPv6"],"ipFamilyPolicy":"PreferDualStack"})";
std::string TwoWith(const std::string& policy, const std::string& ips, const std::string& families) {
  return std::string(kSelects) + R"(,"clusterIP":"10.0.0.1","clusterIPs":)" + ips + R"(,"ipFamilies":)" +
         families + R"(,"ipFamilyPolicy":")" + policy + "\"}";
}
constexpr char kBothIps[] = R"(["10.0.0.1","fd00::1"])", kBothFamilies[] = R"(["IPv4","IPv6"])";

INSTANTIATE_TEST_SUITE_P(
    Changed, FamiliesTest,
    testing::Values(
        FamilyCase{kWasOne, kWasOne, kTwo, "SingleStack", {"IPv4"}, ""},
        FamilyCase{std::string(kSelects) + R"(,"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"]})",
                   kWasOne,
                   kTwo,
                   "SingleStack",
                   {"IPv4"},
                   ""},
        FamilyCase{TwoWith("PreferDualStack", R"(["10.0.0.1"])", R"(["IPv4"])"),
                   kWasOne,
                   kTwo,
                   "PreferDualStack",
                   {"IPv4", "IPv6"},
                   ""},
        // The policy alone is enough to return to one family.
        FamilyCase{
            TwoWith("SingleStack", kBothIps, kBothFamilies), kWasTwo, kTwo, "SingleStack", {"IPv4"}, ""},
        FamilyCase{
            TwoWith("PreferDualStack", R"(["10.0.0.1"])", kBothFamilies),
            kWasTwo,
            kTwo,
            "",
            {},
            "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be 'SingleStack' to release the "
            "secondary cluster IP"},
        FamilyCase{
            TwoWith("PreferDualStack", kBothIps, R"(["IPv4"])"),
            kWasTwo,
            kTwo,
            "",
            {},
            "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be 'SingleStack' to release the "
            "secondary IP family"},
        // A cluster that becomes single stack does not change existing Services.
        FamilyCase{kWasTwo, kWasTwo, kOne, "PreferDualStack", {"IPv4", "IPv6"}, ""}));

}  // namespace
}  // namespace keelson::registry

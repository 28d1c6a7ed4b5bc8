#include "controlplane/apiserver/admission/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/apiserver/admission/plugins.h"

namespace keelson::apiserver {
namespace {

using testing::HasSubstr;

std::string Problem(const std::vector<std::string>& enable, const std::vector<std::string>& disable) {
  Result<AdmissionConfig> config = ReadAdmissionConfig(enable, disable, "");
  return config ? "" : config.error().message();
}

TEST(AdmissionConfig, NamesOfPlugins) {
  EXPECT_EQ(Problem({}, {}), "");
  EXPECT_EQ(Problem({"AlwaysPullImages", "NodeRestriction"}, {"PodSecurity", "MutatingAdmissionWebhook"}),
            "");
  EXPECT_EQ(Problem({"Nonsense"}, {}), "enable-admission-plugins plugin \"Nonsense\" is unknown");
  EXPECT_EQ(Problem({}, {"Nonsense"}), "disable-admission-plugins plugin \"Nonsense\" is unknown");
  EXPECT_EQ(Problem({"ImagePolicyWebhook"}, {}),
            "enable-admission-plugins plugin \"ImagePolicyWebhook\" is not built into this server");
  EXPECT_EQ(Problem({"Priority"}, {"Priority"}),
            "[Priority] in enable-admission-plugins and disable-admission-plugins overlapped");
  EXPECT_EQ(Problem({"EventRateLimit"}, {}), "EventRateLimit: limits: Invalid value: must not be empty");
}

constexpr const char* kHead = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";

TEST(AdmissionConfig, SettingsOfPlugins) {
  AdmissionConfig config;
  Result<> parsed = ParseAdmissionConfiguration(std::string(kHead) + R"(
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline, enforce-version: v1.30, warn: restricted}
    exemptions: {usernames: [alice], namespaces: [kube-system], runtimeClasses: [vm]}
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits: [{type: Namespace, qps: 50, burst: 100}]
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - resource: pods
      matchScopes: [{scopeName: PriorityClass, operator: In, values: [high]}]
)",
                                                ".", config);
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(config.pod_security.enforce.level, "baseline");
  EXPECT_EQ(config.pod_security.enforce.version, "v1.30");
  EXPECT_EQ(config.pod_security.audit.level, "privileged");
  EXPECT_TRUE(config.pod_security.exempt_runtime_classes.count("vm"));
  ASSERT_EQ(config.event_rate_limit.limits.size(), 1U);
  EXPECT_EQ(config.event_rate_limit.limits[0].cache_size, 4096);
  ASSERT_EQ(config.resource_quota.limited.size(), 1U);
  EXPECT_EQ(config.resource_quota.limited[0].match_scopes[0].values[0], "high");
}

TEST(AdmissionConfig, BadSettings) {
  struct Case {
    const char *yaml, *says;
  } cases[] = {
      {"plugins: 3", "plugins: must be a list"},
      {"pluggins: []", "unknown field \"pluggins\""},
      {"plugins: [{name: Priority, configuration: {}}]", "takes no configuration"},
      {"plugins: [{name: PodSecurity, configuration: {kind: X, apiVersion: y}}]",
       "no kind \"X\" is registered"},
      {"plugins: [{name: PodSecurity, configuration: {kind: PodSecurityConfiguration, "
       "apiVersion: pod-security.admission.config.k8s.io/v1, defaults: {enforce: none}}}]",
       "must be one of privileged, baseline, restricted"},
      {"plugins: [{name: PodSecurity, configuration: {kind: PodSecurityConfiguration, "
       "apiVersion: pod-security.admission.config.k8s.io/v1, defaults: {enforce-version: '1.30'}}}]",
       "enforce-version: Invalid value: \"1.30\": must be \"latest\" or \"v1.x\""},
      {"plugins: [{name: PodSecurity, configuration: {kind: PodSecurityConfiguration, "
       "apiVersion: pod-security.admission.config.k8s.io/v1, exemptions: {users: [a]}}}]",
       "exemptions.users\""},
      {"plugins: [{name: EventRateLimit, configuration: {kind: Configuration, "
       "apiVersion: eventratelimit.admission.k8s.io/v1alpha1, limits: [{type: Node, qps: 1, burst: 1}]}}]",
       "Unsupported value: \"Node\""},
  };
  for (const Case& one : cases) {
    AdmissionConfig config;
    Result<> parsed = ParseAdmissionConfiguration(std::string(kHead) + one.yaml, ".", config);
    ASSERT_FALSE(parsed) << one.yaml;
    EXPECT_THAT(parsed.error().message(), HasSubstr(one.says)) << one.yaml;
  }
}

// Upstream's plugins in execution order. Plugins that upstream enables by default and that are missing here
// are listed in docs/differences.md, as is NodeRestriction.
struct KnownPlugin {
  const char* name;
  bool on;
  bool built = true;
};
constexpr KnownPlugin kPlugins[] = {
    {"AlwaysAdmit", false, false},
    {"NamespaceAutoProvision", false, false},
    {"NamespaceLifecycle", true},
    {"NamespaceExists", false, false},
    {"LimitPodHardAntiAffinityTopology", false, false},
    {"LimitRanger", true},
    {"ServiceAccount", true},
    {"NodeRestriction", false},
    {"TaintNodesByCondition", true},
    {"AlwaysPullImages", false},
    {"ImagePolicyWebhook", false, false},
    {"PodSecurity", true},
    {"PodNodeSelector", false, false},
    {"Priority", true},
    {"DefaultTolerationSeconds", true},
    {"PodTolerationRestriction", false, false},
    {"EventRateLimit", false},
    {"ExtendedResourceToleration", false},
    {"DefaultStorageClass", true},
    {"StorageObjectInUseProtection", true},
    {"PodGroupProtection", true, false},
    {"OwnerReferencesPermissionEnforcement", false},
    {"PersistentVolumeClaimResize", true},
    {"RuntimeClass", true},
    {"CertificateApproval", true},
    {"CertificateSigning", true},
    {"ClusterTrustBundleAttest", true, false},
    {"CertificateSubjectRestriction", true},
    {"DefaultIngressClass", true},
    {"DenyServiceExternalIPs", false},
    {"PodTopologyLabels", true},
    {"PodGroupWorkloadExists", true, false},
    {"NodeDeclaredFeatureValidator", true},
    {"JobValidation", true, false},
    {"PodResizeValidator", true},
    {"MutatingAdmissionPolicy", true},
    {"MutatingAdmissionWebhook", true},
    {"ValidatingAdmissionPolicy", true},
    {"ValidatingAdmissionWebhook", true},
    {"ResourceQuota", true},
    {"AlwaysDeny", false, false},
};

TEST(AdmissionConfig, PluginsAreUpstreamsInUpstreamsOrder) {
  std::vector<std::string_view> built;
  for (const KnownPlugin& plugin : kPlugins) {
    const std::string name = plugin.name;
    if (plugin.built) built.push_back(plugin.name);
    EXPECT_EQ(IsForeignPlugin(name), !plugin.built) << name;
    // Each may be disabled; only implemented ones may be enabled.
    EXPECT_TRUE(ReadAdmissionConfig({}, {name}, "")) << name;
    if (name == "EventRateLimit") continue;  // needs a configuration
    Result<AdmissionConfig> enabled = ReadAdmissionConfig({name}, {}, "");
    EXPECT_EQ(static_cast<bool>(enabled), plugin.built) << name;
    if (!enabled) {
      EXPECT_THAT(enabled.error().message(), HasSubstr("is not built into this server")) << name;
    }
    if (plugin.built) {
      EXPECT_EQ(RunsByDefault(name), plugin.on || name == "NodeRestriction") << name;
    }
  }
  EXPECT_EQ(AdmissionPluginNames(), built);
  const AdmissionConfig defaults;
  EXPECT_EQ(defaults.not_ready_toleration_seconds, 300);
  EXPECT_EQ(defaults.unreachable_toleration_seconds, 300);
}

}  // namespace
}  // namespace keelson::apiserver

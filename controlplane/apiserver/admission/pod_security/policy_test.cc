#include "controlplane/apiserver/admission/pod_security/policy.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"

namespace keelson::apiserver::pod_security {
namespace {

constexpr int kLatest = LevelVersion::kLatest;

std::string Judge(Level level, int minor, const std::string& pod_json) {
  corev1::Pod pod;
  Result<> parsed = api::DecodeJson(pod_json, pod);
  EXPECT_TRUE(parsed) << pod_json;
  return Details(Evaluate({level, minor}, pod.metadata(), pod.spec()));
}

// A pod with this in its spec, its only container and its metadata.
std::string PodOf(const std::string& spec, const std::string& container = "", const std::string& meta = "") {
  return R"({"metadata":{)" + meta + R"(},"spec":{"containers":[{"name":"c")" + container + "}]" + spec +
         "}}";
}

TEST(PodSecurityPolicy, Baseline) {
  struct Case {
    int minor;
    std::string pod, says;
  };
  const std::string sysctl =
      R"(,"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_keepalive_time","value":"1"}]})";
  const std::string unmasked = R"(,"securityContext":{"procMount":"Unmasked"})";
  const std::string engine = R"(,"securityContext":{"seLinuxOptions":{"type":"container_engine_t"}})";
  const Case cases[] = {
      {kLatest, PodOf(""), ""},
      {kLatest, PodOf(R"(,"hostNetwork":true,"hostPID":true)"),
       "host namespaces (hostNetwork=true, hostPID=true)"},
      {kLatest, PodOf(R"(,"volumes":[{"name":"v","hostPath":{"path":"/"}}])"),
       "hostPath volumes (volume \"v\")"},
      {kLatest,
       PodOf("", R"(,"ports":[{"containerPort":80,"hostPort":80},{"containerPort":81,"hostPort":81}])"),
       "hostPort (container \"c\" uses hostPorts 80, 81)"},
      {kLatest, PodOf("", R"(,"securityContext":{"privileged":true})"),
       "privileged (container \"c\" must not set securityContext.privileged=true)"},
      {kLatest, PodOf("", R"(,"securityContext":{"capabilities":{"add":["NET_ADMIN","CHOWN"]}})"),
       "non-default capabilities (container \"c\" must not include \"NET_ADMIN\" in "
       "securityContext.capabilities.add)"},
      {kLatest, PodOf(R"(,"securityContext":{"appArmorProfile":{"type":"Unconfined"}})"),
       "forbidden AppArmor profile (pod must not set AppArmor profile type to \"Unconfined\")"},
      {kLatest,
       PodOf("", "", R"("annotations":{"container.apparmor.security.beta.kubernetes.io/c":"unconfined"})"),
       "forbidden AppArmor profile (annotation "
       "container.apparmor.security.beta.kubernetes.io/c=\"unconfined\" "
       "must not set AppArmor profile type to \"unconfined\")"},
      {kLatest, PodOf("", R"(,"livenessProbe":{"httpGet":{"host":"10.0.0.1","port":80}})"),
       "probe or lifecycle host (container \"c\" uses probe or lifecycle host \"10.0.0.1\")"},
      {33, PodOf("", R"(,"livenessProbe":{"httpGet":{"host":"10.0.0.1","port":80}})"), ""},
      {kLatest, PodOf("", unmasked),
       "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")"},
      {kLatest, PodOf(R"(,"hostUsers":false)", unmasked), ""},
      {34, PodOf(R"(,"hostUsers":false)", unmasked),
       "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")"},
      {kLatest, PodOf(engine), ""},
      {30, PodOf(engine),
       "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"container_engine_t\")"},
      {kLatest, PodOf("", R"(,"securityContext":{"seLinuxOptions":{"user":"u","role":"r"}})"),
       "seLinuxOptions (container \"c\" set forbidden securityContext.seLinuxOptions: user may not be set; "
       "role "
       "may not be set)"},
      {kLatest, PodOf(R"(,"securityContext":{"seccompProfile":{"type":"Unconfined"}})"),
       "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")"},
      {18, PodOf("", "", R"("annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined"})"),
       "seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod=\"unconfined\")"},
      {kLatest, PodOf(sysctl), ""},
      {28, PodOf(sysctl), "forbidden sysctl (net.ipv4.tcp_keepalive_time)"},
      {kLatest, PodOf(R"(,"securityContext":{"windowsOptions":{"hostProcess":true}})"),
       "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(Judge(Level::kBaseline, one.minor, one.pod), one.says) << one.pod;
    EXPECT_EQ(Judge(Level::kPrivileged, one.minor, one.pod), "");
  }
}

constexpr const char* kGood = R"(,"securityContext":{"allowPrivilegeEscalation":false,"runAsNonRoot":true,
    "capabilities":{"drop":["ALL"]},"seccompProfile":{"type":"RuntimeDefault"}})";

TEST(PodSecurityPolicy, Restricted) {
  struct Case {
    int minor;
    std::string pod, says;
  };
  const std::string windows = R"(,"os":{"name":"windows"},"securityContext":{"runAsNonRoot":true})";
  const Case cases[] = {
      {kLatest, PodOf("", kGood), ""},
      {kLatest, PodOf(""),
       "allowPrivilegeEscalation != false (container \"c\" must set "
       "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" must set "
       "securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \"c\" must set "
       "securityContext.runAsNonRoot=true), seccompProfile (pod or container \"c\" must set "
       "securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"},
      {7, PodOf(""),
       "runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true)"},
      {kLatest, PodOf(windows), ""},
      {24, PodOf(windows),
       "allowPrivilegeEscalation != false (container \"c\" must set "
       "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" must set "
       "securityContext.capabilities.drop=[\"ALL\"]), seccompProfile (pod or container \"c\" must set "
       "securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"},
      // Instead of the baseline's hostPath check.
      {kLatest,
       PodOf(R"(,"volumes":[{"name":"v","hostPath":{"path":"/"}},{"name":"e","emptyDir":{}}])", kGood),
       "restricted volume types (volume \"v\" uses restricted volume type \"hostPath\")"},
      {kLatest, PodOf(R"(,"volumes":[{"name":"v"},{"name":"w","nfs":{"server":"s","path":"/"}}])", kGood),
       "restricted volume types (volumes \"v\", \"w\" use restricted volume types \"nfs\", \"unknown\")"},
      // Whatever the version.
      {25, PodOf(R"(,"volumes":[{"name":"v","image":{"reference":"r"}}])", kGood), ""},
      {kLatest, PodOf(R"(,"volumes":[{"name":"v","image":{"reference":"r"}}])", kGood), ""},
      {kLatest, PodOf(R"(,"securityContext":{"runAsUser":0})", kGood),
       "runAsUser=0 (pod must not set runAsUser=0)"},
      {kLatest, PodOf(R"(,"hostUsers":false,"securityContext":{"runAsUser":0})", kGood), ""},
      {22, PodOf(R"(,"securityContext":{"runAsUser":0})", kGood), ""},
      {kLatest, PodOf(R"(,"securityContext":{"runAsNonRoot":false})", kGood),
       "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)"},
      {kLatest, PodOf(R"(,"securityContext":{"seccompProfile":{"type":"Unconfined"}})", kGood),
       "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")"},
  };
  for (const Case& one : cases) EXPECT_EQ(Judge(Level::kRestricted, one.minor, one.pod), one.says) << one.pod;
}

TEST(PodSecurityPolicy, EveryContainerCounts) {
  EXPECT_EQ(Judge(Level::kBaseline, kLatest,
                  R"({"spec":{"initContainers":[{"name":"i","securityContext":{"privileged":true}}],
                      "containers":[{"name":"c"}],
                      "ephemeralContainers":[{"name":"e","securityContext":{"privileged":true}}]}})"),
            "privileged (containers \"i\", \"e\" must not set securityContext.privileged=true)");
}

TEST(PodSecurityPolicy, LabelsOfNamespaces) {
  struct Case {
    Labels labels;  // without their prefix
    std::string says, errors;
  } cases[] = {
      {{}, "privileged:latest privileged:latest privileged:latest", ""},
      {{{"enforce", "baseline"}}, "baseline:latest privileged:latest baseline:latest", ""},
      {{{"enforce", "baseline"}, {"enforce-version", "v1.22"}},
       "baseline:v1.22 privileged:latest baseline:v1.22",
       ""},
      {{{"enforce", "baseline"}, {"warn-version", "v1.23"}},
       "baseline:latest privileged:latest baseline:v1.23",
       ""},
      {{{"enforce", "baseline"}, {"warn", "privileged"}},
       "baseline:latest privileged:latest privileged:latest",
       ""},
      {{{"audit", "restricted"}}, "privileged:latest restricted:latest privileged:latest", ""},
      {{{"enforce", "none"}},
       "restricted:latest privileged:latest privileged:latest",
       "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"none\": must be one of "
       "privileged, "
       "baseline, restricted"},
      {{{"warn", "none"}},
       "privileged:latest privileged:latest privileged:latest",
       "metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: \"none\": must be one of "
       "privileged, "
       "baseline, restricted"},
      {{{"enforce-version", "v1.01"}},
       "privileged:latest privileged:latest privileged:latest",
       "metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: \"v1.01\": must be "
       "\"latest\" "
       "or \"v1.x\""},
  };
  for (const Case& one : cases) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : one.labels) {
      keys.push_back("pod-security.kubernetes.io/" + std::string(key));
    }
    Labels labels;
    for (size_t i = 0; i < keys.size(); ++i) labels.emplace_back(keys[i], one.labels[i].second);
    k8s::FieldErrors errors;
    const Policy policy = PolicyOf(labels, {}, &errors);
    EXPECT_EQ(policy.enforce.ToString() + " " + policy.audit.ToString() + " " + policy.warn.ToString(),
              one.says);
    EXPECT_EQ(errors.empty() ? "" : errors.front().ToString(), one.errors);
  }
}

}  // namespace
}  // namespace keelson::apiserver::pod_security

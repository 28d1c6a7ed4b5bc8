// Built-in admission through kubectl, against the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <future>

#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

using testing::HasSubstr;

class Admission : public ClusterTest {
 protected:
  // kubectl's error message.
  std::string Refused(const std::vector<std::string>& arguments, const std::string& input = "") {
    Output output = Run(arguments, input);
    EXPECT_NE(output.code, 0) << output.out;
    return output.err;
  }
  static std::string Pod(const std::string& name, const std::string& container = "",
                         const std::string& spec = "") {
    return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
           R"("},"spec":{"containers":[{"name":"c","image":"i")" + container + "}]" + spec + "}}";
  }
  void Apply(const std::string& object) { Kubectl({"create", "-f", "-"}, object); }
  std::string Get(const std::string& what, const std::string& path) {
    return Kubectl({"get", what, "-o", "jsonpath={" + path + "}"});
  }
  // Polls until the controller has counted the objects.
  void AwaitQuota(const std::string& name, const std::string& resource, const std::string& used) {
    Output wait = Run(
        {"wait", "quota/" + name, "--timeout=30s", "--for=jsonpath={.status.used." + resource + "}=" + used});
    ASSERT_EQ(wait.code, 0) << wait.err;
  }
};

TEST_F(Admission, LimitRangesFillInAndBound) {
  Apply(R"({"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"l"},"spec":{"limits":[
      {"type":"Container","min":{"cpu":"100m"},"max":{"cpu":"1","memory":"1Gi"},
       "default":{"cpu":"500m","memory":"256Mi"},"defaultRequest":{"cpu":"200m"}},
      {"type":"PersistentVolumeClaim","max":{"storage":"1Gi"}}]}})");
  Apply(Pod("plain"));
  EXPECT_EQ(Get("pod/plain", ".spec.containers[0].resources.requests.cpu"), "200m");
  EXPECT_EQ(Get("pod/plain", ".spec.containers[0].resources.limits.memory"), "256Mi");
  EXPECT_EQ(Get("pod/plain", ".metadata.annotations.kubernetes\\.io/limit-ranger"),
            "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c");
  EXPECT_THAT(
      Refused({"create", "-f", "-"}, Pod("small", R"(,"resources":{"requests":{"cpu":"50m"}})")),
      HasSubstr("pods \"small\" is forbidden: minimum cpu usage per Container is 100m, but request is "
                "50m"));
  EXPECT_THAT(
      Refused({"create", "-f", "-"}, Pod("large", R"(,"resources":{"limits":{"cpu":"2","memory":"2Gi"}})")),
      HasSubstr("pods \"large\" is forbidden: [maximum cpu usage per Container is 1, but limit is 2, "
                "maximum memory usage per Container is 1Gi, but limit is 2Gi]"));
  EXPECT_THAT(Refused({"create", "-f", "-"},
                      R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"p"},"spec":{
                          "accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"2Gi"}}}})"),
              HasSubstr("maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"));
}

TEST_F(Admission, QuotasAreChargedAndGivenBack) {
  Kubectl({"create", "quota", "q", "--hard=pods=2,requests.cpu=1,configmaps=2,count/deployments.apps=1"});
  AwaitQuota("q", "pods", "0");
  const std::string cpu = R"(,"resources":{"requests":{"cpu":"400m"}})";
  EXPECT_THAT(Refused({"create", "-f", "-"}, Pod("silent")),
              HasSubstr("pods \"silent\" is forbidden: failed quota: q: must specify requests.cpu for: c"));
  Apply(Pod("a", cpu));
  Apply(Pod("b", cpu));
  EXPECT_EQ(Get("quota/q", ".status.used.requests\\.cpu"), "800m");
  EXPECT_THAT(
      Refused({"create", "-f", "-"}, Pod("c", cpu)),
      HasSubstr("pods \"c\" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=400m, used: "
                "pods=2,requests.cpu=800m, limited: pods=2,requests.cpu=1"));
  Kubectl({"delete", "pod", "b", "--force", "--grace-period=0"});
  AwaitQuota("q", "pods", "1");
  Kubectl({"create", "-f", "-", "--dry-run=server"}, Pod("d", cpu));
  EXPECT_EQ(Get("quota/q", ".status.used.pods"), "1");
  Apply(Pod("d", cpu));
  EXPECT_EQ(Get("quota/q", ".status.used.pods"), "2");
}

TEST_F(Admission, NoTwoGetTheSameRest) {
  Kubectl({"create", "quota", "q", "--hard=count/secrets=5"});
  AwaitQuota("q", "count/secrets", "0");
  std::vector<std::future<int>> creates;
  for (int i = 0; i < 12; ++i) {
    creates.push_back(std::async(std::launch::async, [this, i] {
      return Run({"create", "secret", "generic", "s" + std::to_string(i)}).code;
    }));
  }
  int made = 0;
  for (auto& create : creates) made += create.get() == 0;
  EXPECT_EQ(made, 5);
  EXPECT_EQ(Get("quota/q", ".status.used.count/secrets"), "5");
}

TEST_F(Admission, QuotaScopesChoosePods) {
  Apply(R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"best"},
            "spec":{"hard":{"pods":"0"},"scopes":["BestEffort"]}})");
  AwaitQuota("best", "pods", "0");
  EXPECT_THAT(Refused({"create", "-f", "-"}, Pod("best")), HasSubstr("exceeded quota: best"));
  Apply(Pod("burst", R"(,"resources":{"requests":{"cpu":"1m"}})"));
}

TEST_F(Admission, PodSecurityRefusesAndWarns) {
  Apply(Pod("before", "", R"(,"hostNetwork":true)"));
  Output label = cluster_->Kubectl({"label", "ns", ns_, "pod-security.kubernetes.io/enforce=baseline"});
  EXPECT_EQ(label.code, 0);
  EXPECT_THAT(label.err, HasSubstr("Warning: existing pods in namespace \"" + ns_ +
                                   "\" violate the new PodSecurity enforce level \"baseline:latest\""));
  EXPECT_THAT(label.err, HasSubstr("Warning: before: host namespaces"));
  EXPECT_THAT(
      Refused({"create", "-f", "-"}, Pod("bad", R"(,"securityContext":{"privileged":true})")),
      HasSubstr("pods \"bad\" is forbidden: violates PodSecurity \"baseline:latest\": privileged (container "
                "\"c\" must not set securityContext.privileged=true)"));
  ASSERT_EQ(
      cluster_->Kubectl({"label", "--overwrite", "ns", ns_, "pod-security.kubernetes.io/enforce=restricted"})
          .code,
      0);
  EXPECT_THAT(
      Refused({"create", "-f", "-"}, Pod("plain")),
      HasSubstr(
          "violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false (container \"c\" "
          "must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "
          "\"c\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or "
          "container \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "
          "\"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"));
  Apply(Pod("good", R"(,"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},
                        "runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}})"));
  Output deployment = Run({"create", "deployment", "d", "--image=i"});
  EXPECT_EQ(deployment.code, 0);
  EXPECT_THAT(deployment.err, HasSubstr("Warning: would violate PodSecurity \"restricted:latest\": "
                                        "allowPrivilegeEscalation != false"));
  Output nonsense =
      cluster_->Kubectl({"label", "--overwrite", "ns", ns_, "pod-security.kubernetes.io/enforce=none"});
  EXPECT_THAT(nonsense.err, HasSubstr("metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "
                                      "\"none\": must be one of privileged, baseline, restricted"));
}

TEST_F(Admission, ClassesFillIn) {
  auto make = [&](const std::string& object) {
    Output made = cluster_->Kubectl({"apply", "-f", "-"}, object);
    ASSERT_EQ(made.code, 0) << made.err;
  };
  make(R"({"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"gold","annotations":
           {"storageclass.kubernetes.io/is-default-class":"true"}},"provisioner":"example.com/p"})");
  make(R"({"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"sandbox"},"handler":"h",
           "overhead":{"podFixed":{"cpu":"10m"}},"scheduling":{"nodeSelector":{"a":"b"}}})");
  Apply(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"p"},"spec":{
            "accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})");
  EXPECT_EQ(Get("pvc/p", ".spec.storageClassName"), "gold");
  EXPECT_EQ(Get("pvc/p", ".metadata.finalizers[0]"), "kubernetes.io/pvc-protection");
  Apply(Pod("p", "", R"(,"runtimeClassName":"sandbox")"));
  EXPECT_EQ(Get("pod/p", ".spec.overhead.cpu"), "10m");
  EXPECT_EQ(Get("pod/p", ".spec.nodeSelector.a"), "b");
  EXPECT_THAT(Refused({"create", "-f", "-"}, Pod("q", "", R"(,"runtimeClassName":"none")")),
              HasSubstr("pod rejected: RuntimeClass \"none\" not found"));
  // Nothing uses it: the controller lets it go.
  Kubectl({"delete", "pvc", "p", "--timeout=30s"});
}

TEST_F(Admission, OneDefaultPriorityAndOwnSecretsOnly) {
  ASSERT_EQ(cluster_->Kubectl({"create", "priorityclass", "usual", "--value=5", "--global-default"}).code, 0);
  EXPECT_THAT(cluster_->Kubectl({"create", "priorityclass", "other", "--value=6", "--global-default"}).err,
              HasSubstr("PriorityClass usual is already marked as default. Only one default can exist"));
  Apply(Pod("p"));
  EXPECT_EQ(Get("pod/p", ".spec.priorityClassName"), "usual");
  ASSERT_EQ(cluster_->Kubectl({"delete", "priorityclass", "usual"}).code, 0);
  Kubectl({"annotate", "sa", "default", "kubernetes.io/enforce-mountable-secrets=true"});
  EXPECT_THAT(
      Refused({"create", "-f", "-"},
              Pod("q", "", R"(,"volumes":[{"name":"v","secret":{"secretName":"s"}}])")),
      HasSubstr("volume with secret.secretName=\"s\" is not allowed because service account default does "
                "not reference that secret"));
}

// A separate server with other plugins and settings.
TEST(AdmissionFlags, ChooseAndConfigurePlugins) {
  if (std::string missing = TestCluster::Missing(); !missing.empty()) GTEST_SKIP() << missing;
  const std::string file = testing::TempDir() + "/admission-" + std::to_string(getpid()) + ".yaml";
  std::ofstream(file) << R"(apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline}
    exemptions: {namespaces: [free]}
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources: [{resource: services, matchContains: [loadbalancers]}]
)";
  TestCluster cluster({"--admission-control-config-file", file, "--enable-admission-plugins",
                       "AlwaysPullImages", "--disable-admission-plugins",
                       "DefaultTolerationSeconds,ServiceAccount"});
  const std::string pod =
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"hostNetwork":true,
      "containers":[{"name":"c","image":"i","imagePullPolicy":"Never"}]}})";
  ASSERT_EQ(cluster.Kubectl({"create", "ns", "free"}).code, 0);
  EXPECT_THAT(cluster.Kubectl({"create", "-f", "-"}, pod).err,
              HasSubstr("violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"));
  ASSERT_EQ(cluster.Kubectl({"-n", "free", "create", "-f", "-"}, pod).code, 0);
  Output made = cluster.Kubectl({"-n", "free", "get", "pod", "p", "-o",
                                 "jsonpath={.spec.containers[0].imagePullPolicy} {.spec.tolerations}"});
  EXPECT_EQ(made.out, "Always ");
  EXPECT_THAT(cluster.Kubectl({"create", "service", "loadbalancer", "s", "--tcp=80"}).err,
              HasSubstr("insufficient quota to consume: services.loadbalancers"));
  EXPECT_THAT(cluster.Kubectl({"label", "ns", "free", "pod-security.kubernetes.io/enforce=restricted"}).err,
              HasSubstr("namespace \"free\" is exempt from Pod Security, and the policy "
                        "(enforce=restricted:latest) will be ignored"));
  std::remove(file.c_str());
}

}  // namespace
}  // namespace keelson::apiserver

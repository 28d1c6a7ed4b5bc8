// Controllers at work on custom resources: with the API server in one process, and as a process of their own with the
// permissions of their accounts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/apiserver/cluster_test.h"
#include "tests/controlplane/roles.h"

namespace keelson::controlplane {
namespace {

using apiserver::ClusterTest;
using ::testing::HasSubstr;
using ::testing::Not;

// Two versions, and the subresource scale.
std::string Definition(const std::string& plural, const std::string& kind) {
  return fmt::format(R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {0}.work.example.com}}
spec:
  group: work.example.com
  scope: Namespaced
  names: {{plural: {0}, kind: {1}}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {{}}
      scale: {{specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}}
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
  - name: v1beta1
    served: true
    storage: false
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
)",
                     plural, kind);
}

// `owner`: "APIVERSION KIND NAME UID", or empty.
std::string Object(const std::string& kind, const std::string& name, const std::string& owner = "",
                   const std::string& spec = "{replicas: 1}", bool block = false) {
  std::string references;
  if (!owner.empty()) {
    std::vector<std::string> words;
    for (size_t at = 0; at < owner.size();) {
      const size_t end = std::min(owner.find(' ', at), owner.size());
      words.push_back(owner.substr(at, end - at));
      at = end + 1;
    }
    references = fmt::format(
        ", ownerReferences: [{{apiVersion: {}, kind: {}, name: {}, uid: {}, blockOwnerDeletion: {}}}]",
        words.at(0), words.at(1), words.at(2), words.at(3), block);
  }
  const std::string body = kind == "ConfigMap" ? "data: {}" : "spec: " + spec;
  return fmt::format("apiVersion: {}\nkind: {}\nmetadata: {{name: {}{}}}\n{}\n",
                     kind == "ConfigMap" ? "v1" : "work.example.com/v1", kind, name, references, body);
}

// A policy on that resource, and another expression on Deployments. No binding puts it into force.
std::string Policy(const std::string& name, const std::string& plural) {
  return fmt::format(R"(
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {0}}}
spec:
  matchConstraints:
    resourceRules:
    - {{operations: [CREATE], apiGroups: [work.example.com], apiVersions: [v1], resources: [{1}]}}
    - {{operations: [CREATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments]}}
  validations:
  - expression: object.metadata.name != 'x'
  - expression: object.size > 1
)",
                     name, plural);
}

class CustomResourceControllers : public ClusterTest {
 protected:
  // Each test has its own definition.
  void Define(const std::string& plural, const std::string& kind) {
    Kubectl({"create", "-f", "-"}, Definition(plural, kind));
    Kubectl({"wait", "--for=condition=Established", "crd/" + plural + ".work.example.com", "--timeout=10s"});
  }
  // Creates the object, and returns what its dependents call it, in that version.
  std::string Create(const std::string& kind, const std::string& name, const std::string& owner = "",
                     const std::string& version = "work.example.com/v1", bool block = false) {
    Kubectl({"create", "-f", "-"}, Object(kind, name, owner, "{replicas: 1}", block));
    return version + " " + kind + " " + name + " " +
           Kubectl({"get", kind, name, "-o", "jsonpath={.metadata.uid}"});
  }
  void AwaitGone(const std::string& what) { Kubectl({"wait", "--for=delete", what, "--timeout=30s"}); }
  void AwaitField(const std::string& what, const std::string& path, const std::string& value) {
    Kubectl({"wait", "--for=jsonpath={" + path + "}=" + value, what, "--timeout=60s"});
  }
};

TEST_F(CustomResourceControllers, DeletionCascades) {
  Define("widgets", "Widget");
  // Custom owners in either version, of custom and built-in objects.
  const std::string owner = Create("Widget", "owner");
  const std::string child = Create("Widget", "child", owner, "work.example.com/v1beta1");
  const std::string map = Create("ConfigMap", "map", child, "v1");
  Create("Widget", "last", map);  // and the other way
  Create("Widget", "unrelated");
  Kubectl({"delete", "widget", "owner", "--cascade=background"});
  for (const char* what : {"widget/child", "configmap/map", "widget/last"}) AwaitGone(what);
  EXPECT_THAT(Kubectl({"get", "widgets"}), HasSubstr("unrelated"));
}

TEST_F(CustomResourceControllers, DeletionInTheForegroundWaits) {
  Define("gears", "Gear");
  const std::string owner = Create("Gear", "owner");
  Create("Gear", "child", owner, "work.example.com/v1", true);
  Kubectl({"patch", "gear", "child", "--type=merge", "-p",
           R"({"metadata":{"finalizers":["example.com/hold"]}})"});
  Kubectl({"delete", "gear", "owner", "--cascade=foreground", "--wait=false"});
  AwaitField("gear/child", ".metadata.deletionGracePeriodSeconds", "0");
  EXPECT_THAT(Kubectl({"get", "gear", "owner", "-o", "jsonpath={.metadata.finalizers}"}),
              HasSubstr("foregroundDeletion"));
  Kubectl({"patch", "gear", "child", "--type=merge", "-p", R"({"metadata":{"finalizers":null}})"});
  AwaitGone("gear/owner");
}

TEST_F(CustomResourceControllers, DependentsAreOrphaned) {
  Define("orphans", "Orphan");
  const std::string owner = Create("Orphan", "owner");
  Create("Orphan", "child", owner);
  Kubectl({"delete", "orphan", "owner", "--cascade=orphan"});
  AwaitGone("orphan/owner");
  EXPECT_EQ(Kubectl({"get", "orphan", "child", "-o", "jsonpath={.metadata.ownerReferences}"}), "");
}

TEST_F(CustomResourceControllers, DefinitionsComeAndGo) {
  for (int round = 0; round < 2; ++round) {
    Define("tides", "Tide");
    const std::string owner = Create("Tide", "owner");
    Create("Tide", "child", owner);
    Kubectl({"delete", "tide", "owner", "--cascade=background"});
    AwaitGone("tide/child");
    Create("Tide", "left");
    Kubectl({"delete", "crd", "tides.work.example.com", "--timeout=30s"});
  }
  EXPECT_THAT(cluster_->Log(), Not(HasSubstr("Listing a discovered resource failed")));
}

TEST_F(CustomResourceControllers, NamespacesTakeTheirObjectsAlong) {
  Define("tenants", "Tenant");
  const std::string doomed = ns_ + "-doomed";
  Kubectl({"create", "ns", doomed});
  for (const std::string& ns : {doomed, ns_}) {
    cluster_->Kubectl({"-n", ns, "create", "-f", "-"}, Object("Tenant", "t"));
  }
  cluster_->Kubectl({"-n", doomed, "patch", "tenant", "t", "--type=merge", "-p",
                     R"({"metadata":{"finalizers":["example.com/hold"]}})"});
  Kubectl({"delete", "ns", doomed, "--wait=false"});
  const std::string says = R"(.status.conditions[?(@.type=="NamespaceContentRemaining")].message)";
  AwaitField("ns/" + doomed, says,
             "Some resources are remaining: tenants.work.example.com has 1 resource instances");
  cluster_->Kubectl(
      {"-n", doomed, "patch", "tenant", "t", "--type=merge", "-p", R"({"metadata":{"finalizers":null}})"});
  AwaitGone("ns/" + doomed);
  EXPECT_EQ(Kubectl({"get", "tenants", "-A", "-o", "jsonpath={.items[*].metadata.namespace}"}), ns_);
}

TEST_F(CustomResourceControllers, QuotasCount) {
  Define("chips", "Chip");
  const std::string used = R"(.status.used.count/chips\.work\.example\.com)";
  Create("Chip", "early");
  Kubectl({"create", "quota", "q", "--hard=count/chips.work.example.com=2"});
  AwaitField("quota/q", used, "1");
  Create("Chip", "second");
  EXPECT_EQ(Kubectl({"get", "quota", "q", "-o", "jsonpath={" + used + "}"}), "2");
  EXPECT_THAT(Run({"create", "-f", "-"}, Object("Chip", "third")).err,
              HasSubstr("exceeded quota: q, requested: count/chips.work.example.com=1, used: "
                        "count/chips.work.example.com=2, limited: count/chips.work.example.com=2"));
  Kubectl({"delete", "chip", "early"});
  AwaitField("quota/q", used, "1");
  Create("Chip", "third");
}

TEST_F(CustomResourceControllers, ScaleIsReadAndWritten) {
  Define("farms", "Farm");
  const std::string farm = Create("Farm", "f");
  Kubectl({"create", "-f", "-"}, R"(
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: f}
spec:
  scaleTargetRef: {apiVersion: work.example.com/v1, kind: Farm, name: f}
  minReplicas: 3
  maxReplicas: 5
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
)");
  AwaitField("farm/f", ".spec.replicas", "3");

  const std::string uid = farm.substr(farm.rfind(' ') + 1);
  Kubectl({"create", "-f", "-"}, fmt::format(R"(
apiVersion: v1
kind: Pod
metadata:
  name: p
  labels: {{app: farm}}
  ownerReferences: [{{apiVersion: work.example.com/v1, kind: Farm, name: f, uid: {}, controller: true}}]
spec: {{containers: [{{name: main, image: example}}]}}
)",
                                             uid));
  Kubectl({"create", "pdb", "b", "--selector=app=farm", "--max-unavailable=1"});
  AwaitField("pdb/b", ".status.expectedPods", "3");
}

// Against the schemas that the server publishes of built-in and custom kinds.
TEST_F(CustomResourceControllers, PoliciesAreTypeChecked) {
  Define("locks", "Lock");
  Kubectl({"create", "-f", "-"}, Policy(ns_, "locks"));
  AwaitField("validatingadmissionpolicy/" + ns_, ".status.observedGeneration", "1");
  const std::string warnings = Kubectl({"get", "validatingadmissionpolicy", ns_, "-o",
                                        "jsonpath={range .status.typeChecking.expressionWarnings[*]}"
                                        "{.fieldRef}: {.warning}{end}"});
  EXPECT_EQ(warnings,
            "spec.validations[1].expression: apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field "
            "'size'\n | object.size > 1\n | ......^\n\nwork.example.com/v1, Kind=Lock: ERROR: <input>:1:7: "
            "undefined field 'size'\n | object.size > 1\n | ......^\n");
  Kubectl({"delete", "validatingadmissionpolicy", ns_});
}

using CustomResourceRoles = Roles;

// Over HTTPS, with the roles that a stock cluster gives to each controller.
TEST_F(CustomResourceRoles, ControllersOfTheirOwn) {
  const std::unique_ptr<Process> controllers = StartControllers("controllers");
  Kubectl({"create", "ns", "work"});
  Kubectl({"create", "-f", "-"}, Definition("widgets", "Widget"));
  Kubectl({"wait", "--for=condition=Established", "crd/widgets.work.example.com", "--timeout=10s"});
  Kubectl({"-n", "work", "create", "quota", "q", "--hard=count/widgets.work.example.com=2"});
  const std::string used = R"({.status.used.count/widgets\.work\.example\.com})";
  EXPECT_TRUE(Eventually([&] { return Field("quota/q", used, "work") == "0"; }));
  Kubectl({"-n", "work", "create", "-f", "-"}, Object("Widget", "owner"));
  const std::string uid = Field("widget/owner", "{.metadata.uid}", "work");
  Kubectl({"-n", "work", "create", "-f", "-"},
          Object("Widget", "child", "work.example.com/v1 Widget owner " + uid));
  EXPECT_EQ(Field("quota/q", used, "work"), "2");
  Kubectl({"-n", "work", "delete", "widget", "owner", "--cascade=background"});
  Kubectl({"-n", "work", "wait", "--for=delete", "widget/child", "--timeout=30s"});
  EXPECT_TRUE(Eventually([&] { return Field("quota/q", used, "work") == "0"; }));
  Kubectl({"create", "-f", "-"}, Policy("work", "widgets"));
  EXPECT_TRUE(Eventually(
      [&] { return Field("validatingadmissionpolicy/work", "{.status.observedGeneration}") == "1"; }));
  EXPECT_THAT(Field("validatingadmissionpolicy/work", "{.status.typeChecking}"), HasSubstr("Kind=Widget"));
  Kubectl({"-n", "work", "create", "-f", "-"}, Object("Widget", "left"));
  Kubectl({"delete", "ns", "work", "--timeout=60s"});
  EXPECT_THAT(controllers->Log(), Not(HasSubstr("forbidden")));
}

}  // namespace
}  // namespace keelson::controlplane

// Storage version migrations through the real program: of a custom resource whose storage version changes, also when the
// program is killed meanwhile, and of a built-in one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <fmt/format.h>

#include "tests/apiserver/cluster_test.h"

namespace keelson::controlplane {
namespace {

using apiserver::ClusterTest;
using ::testing::HasSubstr;

constexpr char kDefinition[] = "crd/widgets.move.example.com";

class StorageMigration : public ClusterTest {
 protected:
  static void SetUpTestSuite() {
    Start({"--feature-gates=StorageVersionMigrator=true",
           "--runtime-config=storagemigration.k8s.io/v1beta1=true"});
  }
  void TearDown() override {
    if (missing_.empty()) cluster_->Kubectl({"delete", kDefinition, "--ignore-not-found", "--timeout=60s"});
  }

  // A definition of two versions, the first of which is stored.
  void Define() {
    Kubectl({"create", "-f", "-"}, R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.move.example.com}
spec:
  group: move.example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
)");
    Kubectl({"wait", "--for=condition=Established", kDefinition, "--timeout=30s"});
  }
  void Create(int count) {
    std::string all;
    for (int i = 0; i < count; ++i) {
      all += fmt::format(
          "---\napiVersion: move.example.com/v1\nkind: Widget\nmetadata: {{name: w{}}}\nspec: {{size: {}}}\n",
          i, i);
    }
    Kubectl({"create", "-f", "-"}, all);
  }
  void StoreTheOther() {
    Kubectl({"patch", kDefinition, "--type=json", "-p",
             R"([{"op":"replace","path":"/spec/versions/0/storage","value":false},
                 {"op":"replace","path":"/spec/versions/1/storage","value":true}])"});
  }
  std::string Stored() { return Kubectl({"get", kDefinition, "-o", "jsonpath={.status.storedVersions}"}); }
  void Migrate(const std::string& name, const std::string& group, const std::string& resource) {
    Kubectl(
        {"create", "-f", "-"},
        fmt::format(
            "apiVersion: storagemigration.k8s.io/v1beta1\nkind: StorageVersionMigration\nmetadata: {{name: "
            "{}}}\nspec: {{resource: {{group: \"{}\", resource: {}}}}}\n",
            name, group, resource));
  }
  void AwaitSuccess(const std::string& name) {
    Kubectl({"wait", "--for=condition=Succeeded", "storageversionmigration/" + name, "--timeout=120s"});
  }
  // The version that objects were stored in before is no longer needed.
  void DropTheFirst() {
    Kubectl({"wait", R"(--for=jsonpath={.status.storedVersions[*]}=v1)", kDefinition, "--timeout=60s"});
    EXPECT_EQ(Stored(), R"(["v1"])");
    Kubectl({"patch", kDefinition, "--type=json", "-p", R"([{"op":"remove","path":"/spec/versions/0"}])"});
    EXPECT_EQ(Kubectl({"get", "widgets", "w1", "-o", "jsonpath={.apiVersion} {.spec.size}"}),
              "move.example.com/v1 1");
  }
};

TEST_F(StorageMigration, OfACustomResource) {
  Define();
  Create(5);
  StoreTheOther();
  EXPECT_EQ(Stored(), R"(["v1beta1","v1"])");
  // Before, the version cannot go.
  EXPECT_THAT(
      Run({"patch", kDefinition, "--type=json", "-p", R"([{"op":"remove","path":"/spec/versions/0"}])"}).err,
      HasSubstr("status.storedVersions"));
  Migrate("widgets", "move.example.com", "widgets");
  AwaitSuccess("widgets");
  DropTheFirst();
  EXPECT_EQ(Kubectl({"get", kDefinition, "-o",
                     R"(jsonpath={.status.conditions[?(@.type=="StorageMigrating")].reason})"}),
            "MigrationSucceeded");
  EXPECT_THAT(Kubectl({"get", "storageversionmigrations"}), HasSubstr("widgets.move.example.com"));
}

TEST_F(StorageMigration, GoesOnAfterAKill) {
  Define();
  Create(100);
  StoreTheOther();
  Migrate("killed", "move.example.com", "widgets");
  kill(cluster_->pid(), SIGKILL);
  cluster_->Stop();
  cluster_->Start();
  AwaitSuccess("killed");
  DropTheFirst();
}

TEST_F(StorageMigration, OfABuiltInResource) {
  Kubectl({"create", "configmap", "kept", "--from-literal=a=b"});
  const std::string before =
      Kubectl({"get", "configmap", "kept", "-o", "jsonpath={.metadata.resourceVersion}"});
  Migrate("maps", "", "configmaps");
  AwaitSuccess("maps");
  // It is stored as today already.
  EXPECT_EQ(Kubectl({"get", "configmap", "kept", "-o", "jsonpath={.metadata.resourceVersion}"}), before);
  Kubectl({"wait", "--for=jsonpath={.status.conditions[*].type}=Succeeded", "storageversionmigration/maps",
           "--timeout=60s"});
}

}  // namespace
}  // namespace keelson::controlplane

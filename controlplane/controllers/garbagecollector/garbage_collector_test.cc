#include "controlplane/controllers/garbagecollector/garbage_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using Names = std::set<std::string>;

class GarbageCollectorTest : public ::testing::Test {
 protected:
  corev1::ConfigMap Make(const std::string& name, const std::vector<corev1::ConfigMap>& owners = {}) {
    corev1::ConfigMap map;
    map.mutable_metadata()->set_name(name);
    map.mutable_metadata()->set_namespace_("default");
    for (const corev1::ConfigMap& owner : owners) {
      auto& reference = *map.mutable_metadata()->add_owner_references();
      reference = api::ControllerRef(owner);
      reference.clear_controller();
    }
    Result<corev1::ConfigMap> created = cluster_.api.Create(map);
    EXPECT_TRUE(created) << created.error().message();
    return *created;
  }
  void Delete(const std::string& name, const char* policy) {
    ASSERT_TRUE(cluster_.api.Delete<corev1::ConfigMap>("default", name, {.propagation_policy = policy}));
    cluster_.Drain({&collector_});
  }
  void Start() {
    cluster_.Start();
    cluster_.Drain({&collector_});
  }
  Names Left() {
    Names names;
    for (const auto& map : cluster_.List<corev1::ConfigMap>()) names.insert(map.metadata().name());
    return names;
  }

  TestCluster cluster_;
  GarbageCollector& collector_ = cluster_.Make<GarbageCollector>();
};

TEST_F(GarbageCollectorTest, BackgroundDeletionReachesAllGenerations) {
  auto root = Make("root");
  auto child = Make("child", {root});
  Make("grandchild", {child});
  Make("unrelated");
  Start();
  EXPECT_EQ(Left().size(), 4u);
  Delete("root", "Background");
  EXPECT_EQ(Left(), Names{"unrelated"});
  EXPECT_TRUE(cluster_.errors.empty());
}

TEST_F(GarbageCollectorTest, OneLivingOwnerIsEnough) {
  auto a = Make("a"), b = Make("b");
  Make("child", {a, b});
  Start();
  Delete("a", "Background");
  EXPECT_EQ(Left(), (Names{"b", "child"}));
  auto child = cluster_.Get<corev1::ConfigMap>("default", "child");
  ASSERT_EQ(child.metadata().owner_references_size(), 1);
  EXPECT_EQ(child.metadata().owner_references(0).name(), "b");
  Delete("b", "Background");
  EXPECT_EQ(Left(), Names{});
}

TEST_F(GarbageCollectorTest, OwnerGoneBeforeTheStartIsNoticed) {
  auto root = Make("root");
  Make("child", {root});
  ASSERT_TRUE(cluster_.api.Delete<corev1::ConfigMap>("default", "root"));
  Make("root");  // the same name is not the same object
  Start();
  EXPECT_EQ(Left(), Names{"root"});
}

TEST_F(GarbageCollectorTest, ForegroundDeletesDependentsFirst) {
  auto root = Make("root");
  auto child = Make("child", {root});
  Make("grandchild", {child});
  Start();
  // A finalizer holds the grandchild: so child and root wait.
  auto held = cluster_.Get<corev1::ConfigMap>("default", "grandchild");
  held.mutable_metadata()->add_finalizers("example.com/hold");
  ASSERT_TRUE(cluster_.api.Update(held));
  Delete("root", "Foreground");
  EXPECT_EQ(Left(), (Names{"root", "child", "grandchild"}));
  for (const char* name : {"root", "child", "grandchild"}) {
    EXPECT_TRUE(cluster_.Get<corev1::ConfigMap>("default", name).metadata().has_deletion_timestamp()) << name;
  }
  held = cluster_.Get<corev1::ConfigMap>("default", "grandchild");
  held.mutable_metadata()->clear_finalizers();
  ASSERT_TRUE(cluster_.api.Update(held));
  cluster_.Drain({&collector_});
  EXPECT_EQ(Left(), Names{});
}

TEST_F(GarbageCollectorTest, CirclesAreOpened) {
  for (const char* policy : {"Background", "Foreground"}) {
    auto a = Make("a"), b = Make("b", {a}), c = Make("c", {b});
    *a.mutable_metadata()->add_owner_references() = api::ControllerRef(c);
    ASSERT_TRUE(cluster_.api.Update(a));
    if (policy == std::string("Background")) Start();
    cluster_.Drain({&collector_});
    EXPECT_EQ(Left().size(), 3u);
    Delete("a", policy);
    EXPECT_EQ(Left(), Names{}) << policy;
  }
  EXPECT_TRUE(cluster_.errors.empty());
}

TEST_F(GarbageCollectorTest, AnOwnerThatStaysOutweighsOneThatWaits) {
  auto waits = Make("waits"), stays = Make("stays");
  Make("both", {waits, stays});
  Make("one", {waits});
  Start();
  Delete("waits", "Foreground");
  EXPECT_EQ(Left(), (Names{"both", "stays"}));
  ASSERT_EQ(cluster_.Get<corev1::ConfigMap>("default", "both").metadata().owner_references_size(), 1);
}

TEST_F(GarbageCollectorTest, OwnersWhereTheyCannotBe) {
  auto other = Make("owner");
  other.mutable_metadata()->set_namespace_("other");
  other.mutable_metadata()->clear_uid();
  other.mutable_metadata()->clear_resource_version();
  Result<corev1::ConfigMap> elsewhere = cluster_.api.Create(other);
  ASSERT_TRUE(elsewhere);
  Make("child", {*elsewhere});  // "owner" is here too, and is not that one
  // A cluster-scoped object with a namespaced owner is invalid, and is left alone.
  corev1::Node node = NodeNamed("n1");
  *node.mutable_metadata()->add_owner_references() = api::ControllerRef(*elsewhere);
  ASSERT_TRUE(cluster_.api.Create(node));
  Start();
  EXPECT_EQ(Left(), (Names{"owner"}));
  EXPECT_EQ(cluster_.List<corev1::ConfigMap>("other").size(), 1u);
  EXPECT_EQ(cluster_.List<corev1::Node>().size(), 1u);
  const std::string uid = elsewhere->metadata().uid();
  EXPECT_THAT(cluster_.Events(),
              ::testing::ElementsAre(
                  "OwnerRefInvalidNamespace: ownerRef [v1/ConfigMap, namespace: , name: owner, uid: " + uid +
                      "] does not exist in namespace \"\"",
                  "OwnerRefInvalidNamespace: ownerRef [v1/ConfigMap, namespace: default, name: "
                  "owner, uid: " +
                      uid + "] does not exist in namespace \"default\""));
}

TEST_F(GarbageCollectorTest, AbsentOwnersAreAskedForOnce) {
  auto root = Make("root");
  for (int i = 0; i < 5; ++i) Make("child" + std::to_string(i), {root});
  ASSERT_TRUE(cluster_.api.Delete<corev1::ConfigMap>("default", "root"));
  int asked = 0;
  cluster_.fake->SetInterceptor([&](const client::ApiRequest& request) {
    asked += request.method == "GET" && request.target.ends_with("/configmaps/root");
    return std::nullopt;
  });
  Start();
  EXPECT_EQ(Left(), Names{});
  EXPECT_EQ(asked, 1);
}

TEST_F(GarbageCollectorTest, OrphanCutsTheTies) {
  auto root = Make("root");
  Make("child", {root});
  Start();
  Delete("root", "Orphan");
  EXPECT_EQ(Left(), Names{"child"});
  EXPECT_EQ(cluster_.Get<corev1::ConfigMap>("default", "child").metadata().owner_references_size(), 0);
}

TEST_F(GarbageCollectorTest, UnknownKindsOfOwnersAreTrusted) {
  corev1::ConfigMap map;
  map.mutable_metadata()->set_name("child");
  map.mutable_metadata()->set_namespace_("default");
  auto& owner = *map.mutable_metadata()->add_owner_references();
  owner.set_api_version("example.com/v1");
  owner.set_kind("Widget");
  owner.set_name("w");
  owner.set_uid("u");
  ASSERT_TRUE(cluster_.api.Create(map));
  Start();
  EXPECT_EQ(Left(), Names{"child"});
}

TEST_F(GarbageCollectorTest, DifferentKindsAndNodesAsOwners) {
  corev1::Node node = cluster_.fake->Put(NodeNamed("n1"));
  corev1::Pod pod = PodNamed("mirror");
  *pod.mutable_metadata()->add_owner_references() = api::ControllerRef(node);
  ASSERT_TRUE(cluster_.api.Create(pod));
  Start();
  EXPECT_EQ(cluster_.List<corev1::Pod>().size(), 1u);
  ASSERT_TRUE(cluster_.api.Delete<corev1::Node>("", "n1"));
  cluster_.Drain({&collector_});
  EXPECT_TRUE(cluster_.List<corev1::Pod>().empty());
}

}  // namespace
}  // namespace keelson::controllers

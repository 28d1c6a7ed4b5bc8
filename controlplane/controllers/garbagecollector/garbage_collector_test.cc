#include "controlplane/controllers/garbagecollector/garbage_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"
#include "lib/client/metadata_client.h"

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
  GarbageCollector& collector_ = cluster_.Make<GarbageCollector>(cluster_.discovered());
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

class CustomOwnersTest : public GarbageCollectorTest {
 protected:
  CustomOwnersTest() { cluster_.ServeCustom(kWidgets); }

  static metav1::OwnerReference RefTo(const metav1::ObjectMeta& owner, const std::string& version = "v1") {
    metav1::OwnerReference reference;
    reference.set_api_version("example.com/" + version);
    reference.set_kind("Widget");
    reference.set_name(owner.name());
    reference.set_uid(owner.uid());
    reference.set_block_owner_deletion(true);
    return reference;
  }
  metav1::ObjectMeta Widget(const std::string& name, const std::vector<metav1::OwnerReference>& owners = {},
                            const std::string& finalizer = "") {
    metav1::ObjectMeta meta;
    meta.set_name(name);
    meta.set_namespace_("default");
    if (!finalizer.empty()) meta.add_finalizers(finalizer);
    for (const auto& owner : owners) *meta.add_owner_references() = owner;
    return cluster_.fake->PutCustom("example.com", "widgets", meta);
  }
  corev1::ConfigMap MapOf(const std::string& name, const std::vector<metav1::OwnerReference>& owners) {
    corev1::ConfigMap map;
    map.mutable_metadata()->set_name(name);
    map.mutable_metadata()->set_namespace_("default");
    for (const auto& owner : owners) *map.mutable_metadata()->add_owner_references() = owner;
    return *cluster_.api.Create(map);
  }
  const api::ResourceInfo& Row() {
    return *cluster_.discovered().discovered()->FindKind("example.com", "v1", "Widget");
  }
  void DeleteWidget(const std::string& name, const char* policy) {
    Result<> deleted =
        client::MetadataClient(cluster_.api).Delete(Row(), "default", name, {.propagation_policy = policy});
    ASSERT_TRUE(deleted) << deleted.error().message();
    cluster_.Drain({&collector_});
  }
  Names Widgets() {
    Names names;
    const auto left = client::MetadataClient(cluster_.api).List(Row(), "");
    for (const metav1::ObjectMeta& meta : *left) names.insert(meta.name());
    return names;
  }

  const client::FakeApi::Custom kWidgets{"example.com", "widgets", "Widget", true, {"v1", "v1alpha1"}};
};

TEST_F(CustomOwnersTest, CascadesThroughAllKinds) {
  const auto root = Widget("root");
  const auto child = Widget("child", {RefTo(root)});
  const auto map = MapOf("map", {RefTo(child)});
  auto last = RefTo(root);
  last.set_api_version("v1");
  last.set_kind("ConfigMap");
  last.set_name("map");
  last.set_uid(map.metadata().uid());
  Widget("last", {last});
  Widget("unrelated");
  Start();
  EXPECT_EQ(Widgets().size(), 4u);
  DeleteWidget("root", "Background");
  EXPECT_EQ(Widgets(), Names{"unrelated"});
  EXPECT_EQ(Left(), Names{});
  EXPECT_TRUE(cluster_.errors.empty());
}

TEST_F(CustomOwnersTest, OwnersInAnotherVersion) {
  const auto root = Widget("root");
  MapOf("child", {RefTo(root, "v1alpha1")});
  MapOf("stays", {RefTo(root, "v9")});  // not served: nothing is known
  Start();
  EXPECT_EQ(Left(), (Names{"child", "stays"}));
  DeleteWidget("root", "Background");
  EXPECT_EQ(Left(), Names{"stays"});
  // As soon as the version is there, the owner is known to be gone.
  auto more = kWidgets;
  more.versions.push_back("v9");
  cluster_.ServeCustom(more);
  cluster_.Drain({&collector_});
  EXPECT_EQ(Left(), Names{});
}

TEST_F(CustomOwnersTest, OneLivingOwnerIsEnough) {
  const auto a = Widget("a"), b = Widget("b");
  Widget("child", {RefTo(a), RefTo(b)});
  Start();
  DeleteWidget("a", "Background");
  EXPECT_EQ(Widgets(), (Names{"b", "child"}));
  const auto child = client::MetadataClient(cluster_.api).Get(Row(), "default", "child");
  ASSERT_EQ(child->owner_references_size(), 1);
  EXPECT_EQ(child->owner_references(0).name(), "b");
  EXPECT_TRUE(child->owner_references(0).block_owner_deletion());
}

TEST_F(CustomOwnersTest, ForegroundWaitsForCustomDependents) {
  const auto root = Widget("root");
  Widget("child", {RefTo(root)}, "example.com/hold");
  Start();
  DeleteWidget("root", "Foreground");
  EXPECT_EQ(Widgets(), (Names{"root", "child"}));
  ASSERT_TRUE(client::MetadataClient(cluster_.api)
                  .Patch(Row(), "default", "child", client::PatchType::kMerge,
                         R"({"metadata":{"finalizers":null}})"));
  cluster_.Drain({&collector_});
  EXPECT_EQ(Widgets(), Names{});
}

TEST_F(CustomOwnersTest, CirclesAreOpened) {
  auto a = Widget("a");
  *a.add_owner_references() = RefTo(Widget("b", {RefTo(a)}));
  cluster_.fake->PutCustom("example.com", "widgets", a);
  Start();
  EXPECT_EQ(Widgets().size(), 2u);
  DeleteWidget("a", "Foreground");
  EXPECT_EQ(Widgets(), Names{});
}

TEST_F(CustomOwnersTest, OrphanCutsTheTies) {
  const auto root = Widget("root"), other = Widget("other");
  Widget("child", {RefTo(root), RefTo(other)});
  MapOf("map", {RefTo(root)});
  Start();
  DeleteWidget("root", "Orphan");
  EXPECT_EQ(Widgets(), (Names{"child", "other"}));
  EXPECT_EQ(Left(), Names{"map"});
  EXPECT_EQ(client::MetadataClient(cluster_.api).Get(Row(), "default", "child")->owner_references_size(), 1);
  EXPECT_EQ(cluster_.Get<corev1::ConfigMap>("default", "map").metadata().owner_references_size(), 0);
}

TEST_F(CustomOwnersTest, KindsThatComeLaterAndGo) {
  Start();
  const client::FakeApi::Custom gadgets{"example.com", "gadgets", "Gadget", true, {"v1"}};
  metav1::OwnerReference absent;
  absent.set_api_version("example.com/v1");
  absent.set_kind("Gadget");
  absent.set_name("g");
  absent.set_uid("u");
  MapOf("early", {absent});
  cluster_.Drain({&collector_});
  EXPECT_EQ(Left(), Names{"early"});
  cluster_.ServeCustom(gadgets);
  cluster_.Drain({&collector_});
  EXPECT_EQ(Left(), Names{}) << "there are gadgets now, but not this one";

  metav1::ObjectMeta meta;
  meta.set_name("g");
  meta.set_namespace_("default");
  const auto gadget = cluster_.fake->PutCustom("example.com", "gadgets", meta);
  absent.set_uid(gadget.uid());
  MapOf("child", {absent});
  cluster_.Drain({&collector_});
  EXPECT_EQ(Left(), Names{"child"});
  auto none = gadgets;
  none.versions.clear();
  cluster_.ServeCustom(none);
  cluster_.Drain({&collector_});
  EXPECT_EQ(Left(), Names{"child"}) << "nothing can be said of a kind that is not served";
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

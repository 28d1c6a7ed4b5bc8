#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/namespaces/namespace_controller.h"
#include "controlplane/controllers/namespaces/root_ca_publisher.h"
#include "controlplane/controllers/namespaces/service_account_controller.h"
#include "controlplane/controllers/testing/cluster.h"
#include "lib/client/metadata_client.h"

namespace keelson::controllers {
namespace {

using ::testing::HasSubstr;

void CreateNamespace(TestCluster& cluster, const std::string& name) {
  corev1::Namespace ns;
  ns.mutable_metadata()->set_name(name);
  ASSERT_TRUE(cluster.api.Create(ns));
}

class NamespaceTest : public ::testing::Test {
 protected:
  TestCluster cluster_;
  NamespaceController& controller_ = cluster_.Make<NamespaceController>(cluster_.discovered());
};

TEST_F(NamespaceTest, DeletesContentThenItself) {
  CreateNamespace(cluster_, "team");
  for (const char* ns : {"team", "default"}) {
    corev1::ConfigMap map;
    map.mutable_metadata()->set_namespace_(ns);
    map.mutable_metadata()->set_name("m");
    ASSERT_TRUE(cluster_.api.Create(map));
    corev1::Secret secret;
    *secret.mutable_metadata() = map.metadata();
    ASSERT_TRUE(cluster_.api.Create(secret));
  }
  cluster_.Start();
  ASSERT_TRUE(cluster_.api.Delete<corev1::Namespace>("", "team"));
  cluster_.Drain({&controller_});
  EXPECT_FALSE(cluster_.api.Get<corev1::Namespace>("", "team"));
  EXPECT_EQ(cluster_.List<corev1::ConfigMap>().size(), 1u);
  EXPECT_EQ(cluster_.List<corev1::Secret>().size(), 1u);
  EXPECT_TRUE(cluster_.errors.empty());
}

metav1::ObjectMeta MetaOf(const std::string& ns, const std::string& name) {
  metav1::ObjectMeta meta;
  meta.set_namespace_(ns);
  meta.set_name(name);
  return meta;
}

TEST_F(NamespaceTest, CustomObjectsGoToo) {
  CreateNamespace(cluster_, "team");
  cluster_.ServeCustom({"example.com", "widgets", "Widget", true, {"v1"}});
  cluster_.ServeCustom({"example.com", "planets", "Planet", false, {"v1"}});
  metav1::ObjectMeta held = MetaOf("team", "held");
  held.add_finalizers("example.com/hold");
  cluster_.fake->PutCustom("example.com", "widgets", held);
  cluster_.fake->PutCustom("example.com", "widgets", MetaOf("team", "w"));
  cluster_.fake->PutCustom("example.com", "widgets", MetaOf("other", "w"));
  cluster_.fake->PutCustom("example.com", "planets", MetaOf("", "p"));
  cluster_.Start();
  ASSERT_TRUE(cluster_.api.Delete<corev1::Namespace>("", "team"));
  cluster_.Drain({&controller_});
  const auto ns = cluster_.Get<corev1::Namespace>("", "team");
  std::map<std::string, std::string> messages;
  for (const auto& condition : ns.status().conditions()) messages[condition.type()] = condition.message();
  EXPECT_EQ(messages["NamespaceContentRemaining"],
            "Some resources are remaining: widgets.example.com has 1 resource instances");
  EXPECT_EQ(messages["NamespaceDeletionDiscoveryFailure"], "All resources successfully discovered");

  // The event of the last deletion continues the work.
  const auto found = cluster_.discovered().discovered();
  const client::MetadataClient metadata(cluster_.api);
  const api::ResourceInfo& widgets = *found->FindKind("example.com", "v1", "Widget");
  ASSERT_TRUE(metadata.Patch(widgets, "team", "held", client::PatchType::kMerge,
                             R"({"metadata":{"finalizers":null}})"));
  cluster_.Drain({&controller_});
  EXPECT_FALSE(cluster_.api.Get<corev1::Namespace>("", "team"));
  EXPECT_EQ(metadata.List(widgets, "")->size(), 1u);
  EXPECT_EQ(metadata.List(*found->FindKind("example.com", "v1", "Planet"), "")->size(), 1u);
}

TEST_F(NamespaceTest, AFailureOfDiscoveryHoldsTheNamespace) {
  CreateNamespace(cluster_, "team");
  corev1::ConfigMap map;
  *map.mutable_metadata() = MetaOf("team", "m");
  ASSERT_TRUE(cluster_.api.Create(map));
  cluster_.Start();
  cluster_.fake->SetInterceptor([](const client::ApiRequest& request)
                                    -> std::optional<Result<client::ApiResponse>> {
    if (request.target != "/apis") return std::nullopt;
    return Result<client::ApiResponse>(client::ApiResponse{
        200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        R"({"items":[{"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1beta1","freshness":"Stale"}]},
                {"metadata":{"name":"a.io"},"versions":[{"version":"v1","resources":[{"resource":"as"}]}]}]})"});
  });
  ASSERT_TRUE(cluster_.api.Delete<corev1::Namespace>("", "team"));
  cluster_.Drain({&controller_});
  EXPECT_TRUE(cluster_.List<corev1::ConfigMap>("team").empty()) << "what is known goes";
  const auto ns = cluster_.Get<corev1::Namespace>("", "team");
  bool told = false;
  for (const auto& condition : ns.status().conditions()) {
    if (condition.type() != "NamespaceDeletionDiscoveryFailure") continue;
    told = true;
    EXPECT_EQ(condition.status(), "True");
    EXPECT_EQ(condition.reason(), "DiscoveryFailed");
    EXPECT_EQ(
        condition.message(),
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
        "metrics.k8s.io/v1beta1: stale GroupVersion discovery: metrics.k8s.io/v1beta1");
  }
  EXPECT_TRUE(told);
  cluster_.fake->SetInterceptor(nullptr);
  cluster_.Advance(std::chrono::minutes(1), {&controller_});
  EXPECT_FALSE(cluster_.api.Get<corev1::Namespace>("", "team"));
}

TEST_F(NamespaceTest, WaitsForPodsAndSaysSo) {
  CreateNamespace(cluster_, "team");
  corev1::Pod pod = PodNamed("slow", {}, "n1");
  pod.mutable_metadata()->set_namespace_("team");
  pod.mutable_metadata()->add_finalizers("example.com/hold");
  ASSERT_TRUE(cluster_.api.Create(pod));
  corev1::ConfigMap map;
  map.mutable_metadata()->set_namespace_("team");
  map.mutable_metadata()->set_name("m");
  ASSERT_TRUE(cluster_.api.Create(map));
  cluster_.Start();
  ASSERT_TRUE(cluster_.api.Delete<corev1::Namespace>("", "team"));
  cluster_.Drain({&controller_});
  EXPECT_EQ(cluster_.List<corev1::ConfigMap>("team").size(), 1u);  // what pods may need stays with them
  auto ns = cluster_.Get<corev1::Namespace>("", "team");
  EXPECT_EQ(ns.status().phase(), "Terminating");
  std::map<std::string, std::string> conditions;
  for (const auto& c : ns.status().conditions()) conditions[c.type()] = c.status() + " " + c.message();
  EXPECT_EQ(conditions["NamespaceContentRemaining"],
            "True Some resources are remaining: pods. has 1 resource instances");
  EXPECT_THAT(conditions["NamespaceFinalizersRemaining"],
              HasSubstr("example.com/hold in 1 resource instances"));
  EXPECT_THAT(conditions["NamespaceDeletionContentFailure"], HasSubstr("False"));

  auto held = cluster_.Get<corev1::Pod>("team", "slow");
  held.mutable_metadata()->clear_finalizers();
  ASSERT_TRUE(cluster_.api.Update(held));
  ASSERT_TRUE(cluster_.api.Delete<corev1::Pod>("team", "slow", {.grace_period_seconds = 0}));
  cluster_.Drain({&controller_});  // the pod's going is enough; no time has passed
  EXPECT_FALSE(cluster_.api.Get<corev1::Namespace>("", "team"));
}

TEST(NamespaceConditionsTest, Wording) {
  NamespaceController::Content content;
  corev1::NamespaceStatus status;
  const WallTime now{std::chrono::seconds(1'800'000'000)};
  auto conditions = [&] {
    std::vector<std::string> out;
    for (const auto& c : status.conditions()) {
      out.push_back(c.type() + " " + c.status() + " " + c.reason() + ": " + c.message());
    }
    return out;
  };
  SetDeletionConditions(content, now, status);
  EXPECT_THAT(
      conditions(),
      ::testing::ElementsAre(
          "NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully "
          "discovered",
          "NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types "
          "successfully parsed",
          "NamespaceDeletionContentFailure False ContentDeleted: All content successfully deleted, may be "
          "waiting on finalization",
          "NamespaceContentRemaining False ContentRemoved: All content successfully removed",
          "NamespaceFinalizersRemaining False ContentHasNoFinalizers: All content-preserving finalizers "
          "finished"));
  content.failures = {"a: x", "b: y"};
  content.remaining = {{"pods.", 2}, {"deployments.apps", 1}};
  content.finalizers = {{"example.com/b", 1}, {"example.com/a", 3}};
  SetDeletionConditions(content, now + std::chrono::seconds(5), status);
  EXPECT_THAT(std::vector(status.conditions().begin() + 2, status.conditions().end()),
              ::testing::Each(::testing::ResultOf(
                  [](const auto& c) { return c.last_transition_time().seconds(); }, 1'800'000'005)));
  const std::vector<std::string> all = conditions();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(
      all[2],
      "NamespaceDeletionContentFailure True ContentDeletionFailed: Failed to delete all resource types, 2 "
      "remaining: a: x, b: y");
  EXPECT_EQ(all[3],
            "NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: "
            "deployments.apps has 1 resource instances, pods. has 2 resource instances");
  EXPECT_EQ(all[4],
            "NamespaceFinalizersRemaining True SomeFinalizersRemain: Some content in the namespace has "
            "finalizers remaining: example.com/a in 3 resource instances, example.com/b in 1 resource "
            "instances");
}

TEST_F(NamespaceTest, FailuresAreReportedAndRetried) {
  CreateNamespace(cluster_, "team");
  corev1::ConfigMap map;
  map.mutable_metadata()->set_namespace_("team");
  map.mutable_metadata()->set_name("m");
  ASSERT_TRUE(cluster_.api.Create(map));
  auto refuse = std::make_shared<std::atomic<bool>>(true);  // asked for as long as the cluster lives
  cluster_.fake->SetInterceptor(
      [refuse](const client::ApiRequest& r) -> std::optional<Result<client::ApiResponse>> {
        if (*refuse && r.method == "DELETE" && r.target.find("configmaps") != std::string::npos) {
          return client::FakeApi::Refuse(Error(Code::kInternal, "broken webhook"));
        }
        return std::nullopt;
      });
  cluster_.Start();
  ASSERT_TRUE(cluster_.api.Delete<corev1::Namespace>("", "team"));
  cluster_.Drain({&controller_});
  EXPECT_FALSE(cluster_.errors.empty());
  auto ns = cluster_.Get<corev1::Namespace>("", "team");
  bool reported = false;
  for (const auto& c : ns.status().conditions()) reported |= c.reason() == "ContentDeletionFailed";
  EXPECT_TRUE(reported);
  *refuse = false;
  cluster_.Advance(std::chrono::seconds(1), {&controller_});
  EXPECT_FALSE(cluster_.api.Get<corev1::Namespace>("", "team"));
}

TEST(ServiceAccountTest, EveryActiveNamespaceHasDefault) {
  TestCluster cluster;
  ServiceAccountController& controller = cluster.Make<ServiceAccountController>();
  CreateNamespace(cluster, "team");
  CreateNamespace(cluster, "leaving");
  ASSERT_TRUE(cluster.api.Delete<corev1::Namespace>("", "leaving"));
  cluster.Start();
  cluster.Drain({&controller});
  EXPECT_TRUE(cluster.api.Get<corev1::ServiceAccount>("team", "default"));
  EXPECT_FALSE(cluster.api.Get<corev1::ServiceAccount>("leaving", "default"));
  ASSERT_TRUE(cluster.api.Delete<corev1::ServiceAccount>("team", "default"));
  cluster.Drain({&controller});
  EXPECT_TRUE(cluster.api.Get<corev1::ServiceAccount>("team", "default"));
  CreateNamespace(cluster, "late");
  cluster.Drain({&controller});
  EXPECT_TRUE(cluster.api.Get<corev1::ServiceAccount>("late", "default"));
}

TEST(RootCaPublisherTest, PublishesAndRepairs) {
  TestCluster cluster;
  RootCaPublisher& publisher = cluster.Make<RootCaPublisher>("PEM");
  CreateNamespace(cluster, "team");
  cluster.Start();
  cluster.Drain({&publisher});
  auto map = cluster.Get<corev1::ConfigMap>("team", "kube-root-ca.crt");
  EXPECT_EQ(map.data().at("ca.crt"), "PEM");
  EXPECT_FALSE(map.metadata().annotations().at("kubernetes.io/description").empty());
  (*map.mutable_data())["ca.crt"] = "forged";
  (*map.mutable_data())["more"] = "x";
  ASSERT_TRUE(cluster.api.Update(map));
  cluster.Drain({&publisher});
  map = cluster.Get<corev1::ConfigMap>("team", "kube-root-ca.crt");
  EXPECT_EQ(map.data().at("ca.crt"), "PEM");
  EXPECT_EQ(map.data().size(), 1u);
  ASSERT_TRUE(cluster.api.Delete<corev1::ConfigMap>("team", "kube-root-ca.crt"));
  cluster.Drain({&publisher});
  EXPECT_TRUE(cluster.api.Get<corev1::ConfigMap>("team", "kube-root-ca.crt"));
}

}  // namespace
}  // namespace keelson::controllers

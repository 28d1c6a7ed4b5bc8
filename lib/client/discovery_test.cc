#include "lib/client/discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/api/types.h"
#include "lib/client/metadata_client.h"
#include "lib/client/testing/fake_api.h"

namespace keelson::client {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Names(const std::vector<const api::ResourceInfo*>& rows) {
  std::vector<std::string> out;
  for (const api::ResourceInfo* row : rows) {
    out.push_back(row->GroupResource() + "/" + std::string(row->version));
  }
  return out;
}

class DiscoveryTest : public ::testing::Test {
 protected:
  // Answers discovery from documents by path instead of the fake's own.
  void Serve(std::map<std::string, ApiResponse> documents) {
    fake_->SetInterceptor(
        [documents = std::move(documents)](const ApiRequest& request) -> std::optional<Result<ApiResponse>> {
          auto found = documents.find(request.target);
          if (found == documents.end()) return std::nullopt;
          return Result<ApiResponse>(found->second);
        });
  }
  std::shared_ptr<FakeApi> fake_ = std::make_shared<FakeApi>();
  RestClient api_{fake_};
};

TEST_F(DiscoveryTest, AggregatedDocuments) {
  fake_->Serve({"example.com", "widgets", "Widget", true, {"v2", "v1"}});
  fake_->Serve({"example.com", "planets", "Planet", false, {"v1"}});
  Result<DiscoveredResources> found = Discover(api_, {});
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_TRUE(found->failures.empty());
  EXPECT_THAT(Names(found->Unknown({"list", "watch"})),
              ElementsAre("widgets.example.com/v2", "planets.example.com/v1"));
  EXPECT_TRUE(found->Unknown({"list", "fly"}).empty());
  EXPECT_EQ(found->FindKind("apps", "v1", "Deployment"), &api::ResourceOf<appsv1::Deployment>());
  EXPECT_EQ(found->FindKind("example.com", "v3", "Widget"), nullptr);
  const api::ResourceInfo* old = found->FindKind("example.com", "v1", "Widget");
  ASSERT_TRUE(old);
  EXPECT_TRUE(old->namespaced);
  EXPECT_EQ(old->prototype().GetDescriptor(), metav1::PartialObjectMetadata::descriptor());
  EXPECT_FALSE(found->FindKind("example.com", "v1", "Planet")->namespaced);
  EXPECT_EQ(Discover(api_, {})->FindKind("example.com", "v1", "Widget"), old) << "rows are shared";
}

TEST_F(DiscoveryTest, StaleVersionsAreFailures) {
  Serve(
      {{"/apis",
        {200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
         R"({"items":[{"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1beta1","freshness":"Stale"}]},
               {"metadata":{"name":"a.io"},"versions":[{"version":"v1","resources":[
                 {"resource":"as","responseKind":{"kind":"A"},"scope":"Cluster","verbs":["get"]}]}]}]})"}}});
  Result<DiscoveredResources> found = Discover(api_, {});
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_THAT(Names(found->resources), ElementsAre("as.a.io/v1"));
  EXPECT_TRUE(found->HasFailed("metrics.k8s.io"));
  EXPECT_FALSE(found->HasFailed("a.io"));
  EXPECT_EQ(found->FailureMessage(),
            "unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: stale GroupVersion "
            "discovery: metrics.k8s.io/v1beta1");
}

TEST_F(DiscoveryTest, ServersWithoutAggregationAreAskedGroupByGroup) {
  const std::string json = "application/json";
  Serve({{"/apis",
          {200, json,
           R"({"groups":[{"name":"a.io","versions":[{"version":"v1"},{"version":"v2"},{"version":"v3"}],
               "preferredVersion":{"version":"v2"}}]})"}},
         {"/apis/a.io/v1",
          {200, json,
           R"({"resources":[{"name":"as","kind":"A","namespaced":true,"verbs":["get","list"]},
               {"name":"as/status","kind":"A","namespaced":true,"verbs":["get"]}]})"}},
         {"/apis/a.io/v2",
          {200, json, R"({"resources":[{"name":"as","kind":"A","namespaced":true,"verbs":["get"]}]})"}},
         {"/apis/a.io/v3", {503, "text/plain", "service unavailable"}}});
  Result<DiscoveredResources> found = Discover(api_, {});
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_THAT(Names(found->resources), ElementsAre("as.a.io/v2", "as.a.io/v1"));
  EXPECT_THAT(Names(found->Unknown({"list"})), ElementsAre("as.a.io/v1"));
  EXPECT_EQ(found->FailureMessage(),
            "unable to retrieve the complete list of server APIs: a.io/v3: service unavailable");
}

TEST_F(DiscoveryTest, NothingIsAnError) {
  Serve({{"/apis", {200, "application/json", R"({"groups":[]})"}}});
  EXPECT_EQ(Discover(api_, {}).error().message(), "unable to discover any resources");
  Serve({{"/apis", {403, "application/json", R"({"kind":"Status","message":"no","code":403})"}}});
  EXPECT_TRUE(Discover(api_, {}).error().Is(Code::kForbidden));
  Serve({{"/apis", {200, "application/json", "{"}}});
  EXPECT_FALSE(Discover(api_, {}));
}

TEST_F(DiscoveryTest, MetadataOfBuiltInAndCustomObjects) {
  fake_->Serve({"example.com", "widgets", "Widget", true, {"v1"}});
  metav1::ObjectMeta meta;
  meta.set_name("w");
  meta.set_namespace_("default");
  meta.add_finalizers("example.com/hold");
  const metav1::ObjectMeta stored = fake_->PutCustom("example.com", "widgets", meta);
  corev1::ConfigMap map;
  map.mutable_metadata()->set_name("m");
  map.mutable_metadata()->set_namespace_("default");
  (*map.mutable_data())["key"] = "value";
  ASSERT_TRUE(api_.Create(map));

  const MetadataClient client(api_);
  const api::ResourceInfo& widgets = *Discover(api_, {})->FindKind("example.com", "v1", "Widget");
  const api::ResourceInfo& maps = api::ResourceOf<corev1::ConfigMap>();
  EXPECT_EQ(client.Get(widgets, "default", "w")->uid(), stored.uid());
  EXPECT_EQ(client.Get(maps, "default", "m")->name(), "m");
  EXPECT_TRUE(client.Get(widgets, "default", "x").error().Is(Code::kNotFound));
  EXPECT_EQ(client.List(widgets, "default")->size(), 1u);
  EXPECT_EQ(client.List(widgets, "other")->size(), 0u);
  Result<metav1::ObjectMeta> patched =
      client.Patch(widgets, "default", "w", PatchType::kMerge, R"({"metadata":{"finalizers":null}})");
  ASSERT_TRUE(patched) << patched.error().message();
  EXPECT_EQ(patched->finalizers_size(), 0);
  EXPECT_TRUE(client.Delete(widgets, "default", "w", {.uid = "another"}).error().Is(Code::kConflict));
  EXPECT_TRUE(client.Delete(widgets, "default", "w", {.uid = stored.uid()}));
  EXPECT_TRUE(client.Delete(maps, "default", "m", {.propagation_policy = "Background"}));
  EXPECT_TRUE(client.List(widgets, "")->empty());
  EXPECT_TRUE(api_.List<corev1::ConfigMap>()->empty());
}

}  // namespace
}  // namespace keelson::client

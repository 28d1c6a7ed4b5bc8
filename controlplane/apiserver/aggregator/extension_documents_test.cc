// What extension API servers say of themselves, in the forms that they say it.
#include "controlplane/apiserver/aggregator/extension_documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"

namespace keelson::apiserver {
namespace {

ApiServiceEntry Wardle() {
  ApiServiceEntry out;
  out.name = "v1alpha1.wardle.example.com";
  out.group = "wardle.example.com";
  out.version = "v1alpha1";
  return out;
}

TEST(ExtensionDocuments, OneGroupVersionOfAggregatedDiscovery) {
  const std::string text = R"({"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
      {"metadata":{"name":"other.example.com"},"versions":[{"version":"v1alpha1","resources":[{"resource":"no"}]}]},
      {"metadata":{"name":"wardle.example.com"},"versions":[
        {"version":"v1beta1","resources":[{"resource":"no"}]},
        {"version":"v1alpha1","freshness":"Stale","resources":[{"resource":"flunders","scope":"Namespaced"}]}]}]})";
  Result<discoveryapi::APIVersionDiscovery> found = FromAggregated(text, Wardle());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->freshness(), "Current");
  ASSERT_EQ(found->resources_size(), 1);
  EXPECT_EQ(found->resources(0).resource(), "flunders");
  // A server that says nothing of the group version has no resources of it.
  found = FromAggregated(R"({"items":[]})", Wardle());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->version(), "v1alpha1");
  EXPECT_EQ(found->resources_size(), 0);
  EXPECT_FALSE(FromAggregated("<html>", Wardle()));
}

TEST(ExtensionDocuments, ResourceListsBecomeTheSame) {
  const std::string text = R"({"groupVersion":"wardle.example.com/v1alpha1","resources":[
      {"name":"fischers","singularName":"fischer","namespaced":false,"kind":"Fischer","verbs":["get"]},
      {"name":"flunders","singularName":"flunder","namespaced":true,"kind":"Flunder","verbs":["get","list"],
       "shortNames":["fl"],"categories":["all"]},
      {"name":"flunders/scale","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get"]}]})";
  Result<discoveryapi::APIVersionDiscovery> found = FromResourceList(text, Wardle());
  ASSERT_TRUE(found);
  discoveryapi::APIVersionDiscovery wanted;
  ASSERT_TRUE(api::DecodeJson(R"({"version":"v1alpha1","freshness":"Current","resources":[
      {"resource":"fischers","scope":"Cluster","singularResource":"fischer","verbs":["get"],
       "responseKind":{"group":"wardle.example.com","version":"v1alpha1","kind":"Fischer"}},
      {"resource":"flunders","scope":"Namespaced","singularResource":"flunder","verbs":["get","list"],
       "responseKind":{"group":"wardle.example.com","version":"v1alpha1","kind":"Flunder"},
       "shortNames":["fl"],"categories":["all"],
       "subresources":[{"subresource":"scale","verbs":["get"],
         "responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"}}]}]})",
                              wanted));
  EXPECT_EQ(api::EncodeJson(*found), api::EncodeJson(wanted));
}

TEST(ExtensionDocuments, OpenApiStaysWithinItsGroupVersion) {
  const auto url = [](const std::string& path, const std::string& to) {
    return OpenApiUrlOf(R"({"paths":{")" + path + R"(":{"serverRelativeURL":")" + to + R"("}}})", Wardle());
  };
  const std::string path = "apis/wardle.example.com/v1alpha1";
  EXPECT_EQ(url(path, "/openapi/v3/" + path + "?hash=A1"), "/openapi/v3/" + path + "?hash=A1");
  EXPECT_EQ(url(path, "/openapi/v3/" + path), "/openapi/v3/" + path);
  EXPECT_EQ(url(path, "https://elsewhere.example.com/"), "");
  EXPECT_EQ(url(path, "/openapi/v3/api/v1?hash=A1"), "");
  EXPECT_EQ(url("apis/other.example.com/v1", "/openapi/v3/apis/other.example.com/v1"), "");
  EXPECT_EQ(OpenApiUrlOf("<html>", Wardle()), "");
  EXPECT_EQ(OpenApiUrlOf(R"({"paths":[]})", Wardle()), "");
}

}  // namespace
}  // namespace keelson::apiserver

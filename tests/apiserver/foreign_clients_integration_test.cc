// Requests as other clients send them, over the network, against the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

class ForeignClients : public ClusterTest {
 protected:
  http::ClientResponse Do(const std::string& method, const std::string& target, const std::string& body = "",
                          const std::string& user = "admin", const http::Headers& more = {}) {
    http::ClientRequest request;
    request.method = method;
    request.target = target;
    request.headers = more;
    if (!body.empty()) request.headers.Set("Content-Type", "application/json");
    request.body = body;
    return cluster_->Do(request, user);
  }
  static std::string Text(const http::ClientResponse& response, const char* pointer) {
    boost::system::error_code error;
    const json::value body = json::parse(response.body, error);
    const json::value* found = error ? nullptr : body.find_pointer(pointer, error);
    return found && found->is_string() ? std::string(found->as_string()) : "";
  }
};

TEST_F(ForeignClients, TheVersionSaysWhatWasBuilt) {
  http::ClientResponse version = Do("GET", "/version");
  EXPECT_EQ(Text(version, "/gitVersion"), "v1.36.2");
  EXPECT_THAT(Text(version, "/gitCommit"), MatchesRegex("([0-9a-f]{40})?"));
  EXPECT_THAT(Text(version, "/gitTreeState"), MatchesRegex("clean|dirty|archive"));
  EXPECT_THAT(Text(version, "/buildDate"),
              MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"));
}

TEST_F(ForeignClients, EveryReplyCanBeFoundInTheAudit) {
  struct Case {
    const char *method, *target;
    int status;
    http::Headers headers = {};
  };
  Kubectl({"run", "logged", "--image=example"});
  Kubectl({"create", "service", "externalname", "elsewhere", "--external-name=none.invalid"});
  const std::string log = "/api/v1/namespaces/" + ns_ + "/pods/logged/log",
                    proxied = "/api/v1/namespaces/" + ns_ + "/services/elsewhere/proxy/";
  const http::Headers aggregated = {
      {"Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}};
  const Case cases[] = {{"GET", "/version", 200},
                        {"GET", "/api", 200},
                        {"GET", "/apis", 200},
                        {"GET", "/apis", 200, aggregated},
                        {"GET", "/apis/apps/v1", 200},
                        {"GET", "/openapi/v2", 200},
                        {"GET", "/openapi/v3", 200},
                        {"GET", "/openapi/v3/api/v1", 200},
                        {"GET", "/openapi/v2", 406, {{"Accept", "image/png"}}},
                        {"GET", "/openid/v1/jwks", 200},
                        {"GET", "/readyz", 200},
                        {"GET", "/metrics", 200},
                        {"GET", "/api", 401, {{"Authorization", "Bearer nonsense"}}},
                        {"GET", "/api/v1/pods", 403, {{"Impersonate-User", "nobody"}}},
                        {"GET", log.c_str(), 200},
                        {"GET", proxied.c_str(), 503},
                        {"PUT", "/api/v1/pods", 405},
                        {"DELETE", "/api/v1/pods", 405},
                        {"POST", "/api/v1/namespaces/default/pods/x", 405},
                        {"PATCH", "/api/v1/nodes", 405},
                        {"GET", "/api/v1/nothing", 404},
                        {"GET", "/nothing", 404},
                        {"POST", "/version", 405},
                        {"PUT", "/apis", 405},
                        {"TRACE", "/api/v1/pods", 405},
                        {"BREW", "/api/v1/pods", 405}};
  for (const Case& one : cases) {
    const bool token = one.headers.Has("Authorization");
    http::ClientResponse response = Do(one.method, one.target, "", token ? "" : "admin", one.headers);
    EXPECT_EQ(response.status, one.status) << one.method << " " << one.target;
    ASSERT_EQ(response.headers.All("Audit-Id").size(), 1u) << one.method << " " << one.target;
    EXPECT_THAT(std::string(response.headers.Get("Audit-Id")), MatchesRegex("[0-9a-f-]{36}")) << one.target;
  }
}

TEST_F(ForeignClients, VersionsOfNothingAreNoMatter) {
  const std::string path = "/api/v1/namespaces/" + ns_ + "/configmaps";
  auto body = [](const std::string& version) {
    return R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m","resourceVersion":")" + version +
           R"("}})";
  };
  http::ClientResponse dry = Do("POST", path + "?dryRun=All", body("17"));
  EXPECT_EQ(dry.status, 201) << dry.body;
  EXPECT_EQ(Text(dry, "/metadata/resourceVersion"), "17");
  http::ClientResponse refused = Do("POST", path, body("17"));
  EXPECT_EQ(refused.status, 500);
  EXPECT_EQ(Text(refused, "/message"), "resourceVersion should not be set on objects to be created");
  EXPECT_EQ(Text(refused, "/reason"), "") << "clients print one that is there";
  http::ClientResponse made = Do("POST", path, body("0"));
  EXPECT_EQ(made.status, 201) << made.body;
  EXPECT_NE(Text(made, "/metadata/resourceVersion"), "0");
}

TEST_F(ForeignClients, DeletingPastReadErrorsNeedsLeave) {
  Kubectl({"create", "configmap", "m"});
  cluster_->AddUser("editor", {});
  Kubectl({"create", "rolebinding", "editor", "--clusterrole=edit", "--user=editor"});
  const std::string path = "/api/v1/namespaces/" + ns_ + "/configmaps/m";
  const std::string options = R"({"ignoreStoreReadErrorWithClusterBreakingPotential":true})";
  http::ClientResponse refused = Do("DELETE", path, options, "editor");
  EXPECT_EQ(refused.status, 403) << refused.body;
  EXPECT_THAT(
      Text(refused, "/message"),
      StartsWith("configmaps \"m\" is forbidden: not permitted to do \"unsafe-delete-ignore-read-errors\""));
  for (const std::string& target : {path, path + "?ignoreStoreReadErrorWithClusterBreakingPotential=true"}) {
    http::ClientResponse readable = Do("DELETE", target, target == path ? options : "");
    EXPECT_EQ(readable.status, 422) << readable.body;
    EXPECT_THAT(Text(readable, "/message"), HasSubstr("is exclusively used to delete corrupt object(s)"));
  }
  EXPECT_EQ(Do("DELETE", path, "", "editor").status, 200);
}

TEST_F(ForeignClients, TypesThatNobodyMakesAreNotAcceptable) {
  http::ClientResponse refused =
      Do("GET", "/api/v1/namespaces/" + ns_, "", "admin", {{"Accept", "text/html"}});
  EXPECT_EQ(refused.status, 406);
  EXPECT_EQ(Text(refused, "/message"),
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf");
  EXPECT_EQ(Text(refused, "/reason"), "NotAcceptable");
}

}  // namespace
}  // namespace keelson::apiserver

#include "controlplane/apiserver/request/request_info.h"

#include <gtest/gtest.h>

namespace keelson::apiserver {
namespace {

struct Case {
  const char *method, *path, *query;
  const char *verb, *group, *version, *ns, *resource, *subresource, *name;
};

constexpr Case kResources[] = {
    {"GET", "/api/v1/namespaces", "", "list", "", "v1", "", "namespaces", "", ""},
    {"GET", "/api/v1/namespaces/other", "", "get", "", "v1", "other", "namespaces", "", "other"},
    {"PUT", "/api/v1/namespaces/other/finalize", "", "update", "", "v1", "other", "namespaces", "finalize",
     "other"},
    {"PATCH", "/api/v1/namespaces/other/status", "", "patch", "", "v1", "other", "namespaces", "status",
     "other"},
    {"GET", "/api/v1/namespaces/other/pods", "", "list", "", "v1", "other", "pods", "", ""},
    {"HEAD", "/api/v1/namespaces/other/pods/foo", "", "get", "", "v1", "other", "pods", "", "foo"},
    {"GET", "/api/v1/pods", "watch=true", "watch", "", "v1", "", "pods", "", ""},
    {"GET", "/api/v1/pods", "watch=1&labelSelector=a", "watch", "", "v1", "", "pods", "", ""},
    {"GET", "/api/v1/pods", "watch=false", "list", "", "v1", "", "pods", "", ""},
    {"GET", "/api/v1/watch/namespaces/other/pods", "", "watch", "", "v1", "other", "pods", "", ""},
    {"POST", "/api/v1/namespaces/other/pods", "", "create", "", "v1", "other", "pods", "", ""},
    {"DELETE", "/api/v1/namespaces/other/pods", "", "deletecollection", "", "v1", "other", "pods", "", ""},
    {"DELETE", "/api/v1/namespaces/other/pods/foo", "", "delete", "", "v1", "other", "pods", "", "foo"},
    {"POST", "/api/v1/namespaces/other/pods/foo/binding", "", "create", "", "v1", "other", "pods", "binding",
     "foo"},
    {"GET", "/apis/apps/v1/namespaces/a/deployments/web/scale", "", "get", "apps", "v1", "a", "deployments",
     "scale", "web"},
    {"GET", "/apis/apps/v1/deployments", "", "list", "apps", "v1", "", "deployments", "", ""},
    {"GET", "/api/v1/nodes/n1/proxy/stats/summary", "", "get", "", "v1", "", "nodes", "proxy", "n1"},
    {"GET", "/api/v1/nodes", "fieldSelector=metadata.name%3Dn1&watch=1", "watch", "", "v1", "", "nodes", "",
     "n1"},
    {"GET", "/api/v1/nodes", "fieldSelector=metadata.name%3Dn1,spec.x%3Dy", "list", "", "v1", "", "nodes", "",
     "n1"},
    {"GET", "/api/v1/nodes", "fieldSelector=metadata.name%21%3Dn1", "list", "", "v1", "", "nodes", "", ""},
    {"GET", "/api/v1/nodes", "fieldSelector=metadata.name%3Da/b", "list", "", "v1", "", "nodes", "", ""},
    {"GET", "/api/v1/nodes", "watch", "watch", "", "v1", "", "nodes", "", ""},
    {"GET", "/api/v1/nodes", "watch=False", "list", "", "v1", "", "nodes", "", ""},
    {"GET", "/api/v1/nodes", "watch=anything", "watch", "", "v1", "", "nodes", "", ""},
};

TEST(RequestInfo, Resources) {
  for (const Case& c : kResources) {
    SCOPED_TRACE(std::string(c.method) + " " + c.path + "?" + c.query);
    RequestInfo info = ParseRequestInfo(c.method, c.path, http::Query::Parse(c.query));
    EXPECT_TRUE(info.is_resource);
    EXPECT_EQ(info.verb, c.verb);
    EXPECT_EQ(info.group, c.group);
    EXPECT_EQ(info.version, c.version);
    EXPECT_EQ(info.ns, c.ns);
    EXPECT_EQ(info.resource, c.resource);
    EXPECT_EQ(info.subresource, c.subresource);
    EXPECT_EQ(info.name, c.name);
  }
}

TEST(RequestInfo, NonResources) {
  for (const char* path : {"/", "", "/healthz", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1",
                           "/openapi/v3/apis/apps/v1", "/version/", "//"}) {
    RequestInfo info = ParseRequestInfo("GET", path, {});
    EXPECT_FALSE(info.is_resource) << path;
    EXPECT_EQ(info.verb, "get");
    EXPECT_EQ(info.path, path);
  }
}

TEST(RequestInfo, ProxyPath) {
  auto path = [](const char* text) { return ParseRequestInfo("GET", text, {}).proxy_path; };
  EXPECT_EQ(path("/api/v1/nodes/n1/proxy"), "");
  EXPECT_EQ(path("/api/v1/nodes/n1/proxy/"), "/");
  EXPECT_EQ(path("/api/v1/nodes/n1/proxy/logs/"), "/logs/");
  EXPECT_EQ(path("/api/v1/namespaces/a/services/web:80/proxy/x/y"), "/x/y");
}

}  // namespace
}  // namespace keelson::apiserver

#include "lib/api/openapi/openapi.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "lib/api/types.h"
#include "lib/api/wire.h"
#include "lib/base/version.h"

namespace keelson::api {
namespace {

namespace json = boost::json;

json::value Parse(const std::string& text) {
  json::parse_options options;
  options.max_depth = 100;
  return json::parse(text, {}, options);
}

// Every reference in the document must have its target.
void CheckRefs(const json::value& value, const json::object& definitions, const std::string& prefix) {
  if (const json::array* list = value.if_array()) {
    for (const json::value& item : *list) CheckRefs(item, definitions, prefix);
  }
  const json::object* object = value.if_object();
  if (!object) return;
  for (const auto& member : *object) {
    if (member.key() == "$ref" && member.value().is_string()) {
      std::string ref(member.value().as_string().c_str());
      ASSERT_EQ(ref.substr(0, prefix.size()), prefix);
      ASSERT_TRUE(definitions.contains(ref.substr(prefix.size()))) << ref;
    } else {
      CheckRefs(member.value(), definitions, prefix);
    }
  }
}

const json::value& At(const json::value& value, std::initializer_list<const char*> path) {
  const json::value* at = &value;
  for (const char* name : path) at = &at->at(name);
  return *at;
}

TEST(OpenApi, NamesAsUpstream) {
  EXPECT_EQ(OpenApiName(appsv1::Deployment::descriptor()), "io.k8s.api.apps.v1.Deployment");
  EXPECT_EQ(OpenApiName(metav1::ObjectMeta::descriptor()), "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
  EXPECT_EQ(OpenApiName(Quantity::descriptor()), "io.k8s.apimachinery.pkg.api.resource.Quantity");
  EXPECT_EQ(OpenApiName(intstr::IntOrString::descriptor()),
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString");
}

TEST(OpenApi, VersionThreeDocumentsAreWhole) {
  std::vector<std::string> paths = OpenApiV3Paths();
  for (const char* document : {"api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "version",
                               "openid/v1/jwks", ".well-known/openid-configuration"}) {
    EXPECT_EQ(std::count(paths.begin(), paths.end(), document), 1) << document;
  }
  std::set<std::string_view> groups;
  std::set<std::pair<std::string_view, std::string_view>> served;
  for (const ResourceInfo& info : Resources()) {
    served.emplace(info.group, info.version);
    groups.insert(info.group);
  }
  // In addition to group versions: each named group, `api`, `apis`, the version and two for the token
  // issuer.
  EXPECT_EQ(paths.size(), served.size() + groups.size() - 1 + 5);
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    json::value document = Parse(OpenApiV3Json(path));
    CheckRefs(document, At(document, {"components", "schemas"}).as_object(), "#/components/schemas/");
    EXPECT_TRUE(At(document, {"components", "securitySchemes"}).as_object().contains("BearerToken"));
    EXPECT_FALSE(At(document, {"paths"}).as_object().empty());
  }
  EXPECT_EQ(OpenApiV3Json("apis/nope/v1"), "");
  EXPECT_EQ(OpenApiV3Json("apis/apps/"), "");
  EXPECT_EQ(OpenApiV3Json(""), "");
}

TEST(OpenApi, VersionThreeInProtobufHasTheSameSchemas) {
  json::value document = Parse(OpenApiV3Json("apis/batch/v1"));
  std::string bytes = OpenApiV3Protobuf("apis/batch/v1");
  std::set<std::string> schemas, paths;
  // Document{openapi = 1, paths = 4{path = 1{name = 1}}, components = 5{schemas = 1{1{name = 1}}}}
  auto each = [](std::string_view within, uint32_t field, const auto& visit) {
    const char *p = within.data(), *end = p + within.size();
    wire::Record record;
    while (p < end) {
      ASSERT_TRUE(wire::ReadRecord(p, end, record));
      if (record.field == field) visit(record.bytes);
    }
  };
  auto names = [&each](std::string_view within, std::set<std::string>& out) {
    each(within, 1,
         [&](std::string_view entry) { each(entry, 1, [&](std::string_view name) { out.emplace(name); }); });
  };
  each(bytes, 1, [](std::string_view version) { EXPECT_EQ(version, "3.0.0"); });
  each(bytes, 4, [&](std::string_view all) { names(all, paths); });
  each(bytes, 5, [&](std::string_view components) {
    each(components, 1, [&](std::string_view all) { names(all, schemas); });
  });
  EXPECT_EQ(schemas.size(), At(document, {"components", "schemas"}).as_object().size());
  EXPECT_EQ(schemas.count("io.k8s.api.batch.v1.Job"), 1U);
  EXPECT_EQ(paths.size(), At(document, {"paths"}).as_object().size());
  EXPECT_EQ(OpenApiV3Protobuf("apis/nope/v1"), "");
}

TEST(OpenApi, WhatKubectlLooksFor) {
  json::value document = Parse(OpenApiV3Json("apis/apps/v1"));
  const json::value& patch =
      At(document, {"paths", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}", "patch"});
  EXPECT_EQ(json::serialize(patch.at("x-kubernetes-group-version-kind")),
            R"({"group":"apps","kind":"Deployment","version":"v1"})");
  EXPECT_EQ(patch.at("operationId"), "patchAppsV1NamespacedDeployment");
  bool validates = false;
  for (const json::value& parameter : patch.at("parameters").as_array()) {
    validates = validates || parameter.at("name") == "fieldValidation";
    EXPECT_NE(parameter.at("description"), "") << json::serialize(parameter);
  }
  EXPECT_TRUE(validates);
  EXPECT_TRUE(At(document, {"paths"}).as_object().contains("/apis/apps/v1/deployments"));
  const json::value& schemas = At(document, {"components", "schemas"});
  const json::value& deployment = schemas.at("io.k8s.api.apps.v1.Deployment");
  EXPECT_EQ(json::serialize(deployment.at("x-kubernetes-group-version-kind")),
            R"([{"group":"apps","kind":"Deployment","version":"v1"}])");
  EXPECT_TRUE(deployment.at("properties").as_object().contains("apiVersion"));
  const json::value& spec = schemas.at("io.k8s.api.apps.v1.DeploymentSpec");
  EXPECT_EQ(json::serialize(spec.at("required")), R"(["selector","template"])");
  EXPECT_EQ(
      json::serialize(At(spec, {"properties", "strategy"})),
      R"({"allOf":[{"$ref":"#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}],"description":"How old pods are replaced by new ones.","default":{},"x-kubernetes-patch-strategy":"retainKeys"})");
  const json::value& containers = At(schemas, {"io.k8s.api.core.v1.PodSpec", "properties", "containers"});
  EXPECT_EQ(containers.at("x-kubernetes-patch-merge-key"), "name");
  EXPECT_EQ(containers.at("x-kubernetes-patch-strategy"), "merge");
  EXPECT_EQ(containers.at("x-kubernetes-list-type"), "map");
  EXPECT_TRUE(At(schemas, {"io.k8s.api.core.v1.Volume", "properties"}).as_object().contains("emptyDir"));
  EXPECT_EQ(
      json::serialize(schemas.at("io.k8s.apimachinery.pkg.util.intstr.IntOrString")),
      R"({"format":"int-or-string","oneOf":[{"type":"integer"},{"type":"string"}],"description":"A whole number, or a text such as a name or percentage."})");
  EXPECT_EQ(spec.at("description"), "Desired state of a Deployment.");
  EXPECT_EQ(At(spec, {"properties", "replicas", "description"}), "How many pods are wanted; 1 by default.");
  EXPECT_NE(At(deployment, {"properties", "apiVersion", "description"}), "");
  EXPECT_EQ(patch.at("description"), "Change parts of the Deployment.");
}

// Operations by method and path, with what client generators read: ids, actions and replies.
TEST(OpenApi, Operations) {
  struct Case {
    const char *document, *path, *method, *id, *action;
    const char* reply;  // the schema of reply 200, without its prefix; empty: text
  };
  constexpr const char* kPods = "/api/v1/namespaces/{namespace}/pods";
  constexpr const char* kPod = "/api/v1/namespaces/{namespace}/pods/{name}";
  const Case kCases[] = {
      {"api/v1", kPods, "get", "listCoreV1NamespacedPod", "list", "io.k8s.api.core.v1.PodList"},
      {"api/v1", kPods, "delete", "deleteCoreV1CollectionNamespacedPod", "deletecollection",
       "io.k8s.apimachinery.pkg.apis.meta.v1.Status"},
      {"api/v1", kPod, "delete", "deleteCoreV1NamespacedPod", "delete", "io.k8s.api.core.v1.Pod"},
      {"api/v1", "/api/v1/nodes/{name}", "delete", "deleteCoreV1Node", "delete",
       "io.k8s.apimachinery.pkg.apis.meta.v1.Status"},
      {"api/v1", "/api/v1/nodes", "delete", "deleteCoreV1CollectionNode", "deletecollection",
       "io.k8s.apimachinery.pkg.apis.meta.v1.Status"},
      {"api/v1", "/api/v1/namespaces/{namespace}/pods/{name}/log", "get", "readCoreV1NamespacedPodLog", "get",
       ""},
      {"api/v1", "/api/v1/namespaces/{namespace}/pods/{name}/exec", "post",
       "connectCoreV1PostNamespacedPodExec", "connect", ""},
      {"api/v1", "/api/v1/namespaces/{namespace}/pods/{name}/portforward", "get",
       "connectCoreV1GetNamespacedPodPortforward", "connect", ""},
      {"api/v1", "/api/v1/namespaces/{namespace}/services/{name}/proxy", "head",
       "connectCoreV1HeadNamespacedServiceProxy", "connect", ""},
      {"api/v1", "/api/v1/nodes/{name}/proxy/{path}", "options", "connectCoreV1OptionsNodeProxyWithPath",
       "connect", ""},
      {"api/v1", "/api/v1/namespaces/{namespace}/pods/{name}/eviction", "post",
       "createCoreV1NamespacedPodEviction", "post", "io.k8s.api.policy.v1.Eviction"},
      {"api/v1", "/api/v1/watch/namespaces/{namespace}/pods", "get", "watchCoreV1NamespacedPodList",
       "watchlist", "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"},
      {"api/v1", "/api/v1/watch/namespaces/{namespace}/pods/{name}", "get", "watchCoreV1NamespacedPod",
       "watch", "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"},
      {"api/v1", "/api/v1/watch/pods", "get", "watchCoreV1PodListForAllNamespaces", "watchlist",
       "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"},
      {"api/v1", "/api/v1/", "get", "getCoreV1APIResources", "",
       "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList"},
      {"apis/rbac.authorization.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}", "patch",
       "patchRbacAuthorizationV1ClusterRole", "patch", "io.k8s.api.rbac.v1.ClusterRole"},
      {"apis/storage.k8s.io/v1", "/apis/storage.k8s.io/v1/storageclasses/{name}", "delete",
       "deleteStorageV1StorageClass", "delete", "io.k8s.api.storage.v1.StorageClass"},
      {"apis/apps/v1", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale", "put",
       "replaceAppsV1NamespacedDeploymentScale", "put", "io.k8s.api.autoscaling.v1.Scale"},
      {"apis/apps", "/apis/apps/", "get", "getAppsAPIGroup", "",
       "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup"},
      {"apis", "/apis/", "get", "getAPIVersions", "", "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList"},
      {"api", "/api/", "get", "getCoreAPIVersions", "", "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions"},
      {"version", "/version/", "get", "getCodeVersion", "", "io.k8s.apimachinery.pkg.version.Info"},
      {"openid/v1/jwks", "/openid/v1/jwks/", "get", "getServiceAccountIssuerOpenIDKeyset", "", ""},
  };
  const json::value v2 = Parse(OpenApiV2Json());
  std::map<std::string, json::value> documents;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.id);
    auto [document, made] = documents.try_emplace(c.document);
    if (made) document->second = Parse(OpenApiV3Json(c.document));
    for (const json::value* form : {&v2, static_cast<const json::value*>(&document->second)}) {
      const json::value& operation = At(*form, {"paths", c.path, c.method});
      EXPECT_EQ(operation.at("operationId"), c.id);
      const json::value* action = operation.as_object().if_contains("x-kubernetes-action");
      EXPECT_EQ(action ? std::string(action->as_string()) : "", c.action);
      bool three = form != &v2;
      const json::value& reply = At(operation, {"responses", "200"});
      const json::value& schema =
          three ? reply.at("content").as_object().begin()->value().at("schema") : reply.at("schema");
      if (*c.reply == 0) {
        EXPECT_EQ(json::serialize(schema), R"({"type":"string"})");
      } else {
        EXPECT_EQ(schema.at("$ref").as_string(),
                  std::string(three ? "#/components/schemas/" : "#/definitions/") + c.reply);
      }
    }
  }
}

// Each operation has a unique id, a tag and, in version 2, a scheme and media types.
TEST(OpenApi, OperationsAreComplete) {
  json::value document = Parse(OpenApiV2Json());
  EXPECT_EQ(json::serialize(document.at("security")), R"([{"BearerToken":[]}])");
  EXPECT_EQ(At(document, {"securityDefinitions", "BearerToken", "type"}), "apiKey");
  std::set<std::string> ids;
  for (const auto& path : document.at("paths").as_object()) {
    for (const auto& member : path.value().as_object()) {
      if (member.key() == "parameters") continue;
      const json::object& operation = member.value().as_object();
      std::string id(operation.at("operationId").as_string());
      SCOPED_TRACE(id);
      EXPECT_TRUE(ids.insert(id).second);
      for (const char* list : {"tags", "schemes", "produces"}) {
        ASSERT_TRUE(operation.contains(list));
        EXPECT_FALSE(operation.at(list).as_array().empty());
      }
      EXPECT_TRUE(operation.at("responses").as_object().contains("401"));
    }
  }
  EXPECT_EQ(At(document, {"paths", "/apis/rbac.authorization.k8s.io/v1/roles", "get", "tags"}),
            json::array{"rbacAuthorization_v1"});
}

// The parameter names of a path, for all operations or one.
std::string Names(const json::value& item) {
  std::string out;
  const json::value* list = item.as_object().if_contains("parameters");
  if (!list) return out;
  for (const json::value& parameter : list->as_array()) {
    out += (out.empty() ? "" : " ") + std::string(parameter.at("name").as_string());
    if (parameter.at("in") == "path") out += "!";
  }
  return out;
}

TEST(OpenApi, Parameters) {
  struct Case {
    const char *path, *method, *shared, *own;
  };
  constexpr Case kCases[] = {
      {"/api/v1/namespaces/{namespace}/pods/{name}/log", "get",
       "container follow insecureSkipTLSVerifyBackend limitBytes name! namespace! pretty previous "
       "sinceSeconds "
       "stream tailLines timestamps",
       ""},
      {"/api/v1/namespaces/{namespace}/pods/{name}/exec", "get",
       "command container name! namespace! stderr stdin stdout tty", ""},
      {"/api/v1/namespaces/{namespace}/pods/{name}/attach", "post",
       "container name! namespace! stderr stdin stdout tty", ""},
      {"/api/v1/namespaces/{namespace}/pods/{name}/portforward", "get", "name! namespace! ports", ""},
      {"/api/v1/nodes/{name}/proxy/{path}", "get", "name! path! path", ""},
      {"/api/v1/nodes", "delete", "pretty",
       "continue dryRun fieldSelector gracePeriodSeconds ignoreStoreReadErrorWithClusterBreakingPotential "
       "labelSelector limit orphanDependents propagationPolicy resourceVersion resourceVersionMatch "
       "sendInitialEvents shardSelector timeoutSeconds"},
      {"/api/v1/nodes", "get", "pretty",
       "allowWatchBookmarks continue fieldSelector labelSelector limit resourceVersion resourceVersionMatch "
       "sendInitialEvents shardSelector timeoutSeconds watch"},
      {"/api/v1/watch/nodes/{name}", "get",
       "allowWatchBookmarks continue fieldSelector labelSelector limit name! pretty resourceVersion "
       "resourceVersionMatch sendInitialEvents shardSelector timeoutSeconds watch",
       ""},
      {"/api/v1/namespaces/{namespace}/pods/{name}", "patch", "name! namespace! pretty",
       "dryRun fieldManager fieldValidation force"},
      {"/api/v1/namespaces/{namespace}/bindings", "post",
       "dryRun fieldManager fieldValidation namespace! pretty", ""},
  };
  json::value document = Parse(OpenApiV3Json("api/v1"));
  for (const Case& c : kCases) {
    const json::value& item = At(document, {"paths", c.path});
    EXPECT_EQ(Names(item), c.shared) << c.path;
    EXPECT_EQ(Names(item.at(c.method)), c.own) << c.method << " " << c.path;
  }
}

// Go's zeros are defaults where a value cannot be absent; version 2 has none.
TEST(OpenApi, DefaultsUnionsAndEnums) {
  const json::value core = Parse(OpenApiV3Json("api/v1"));
  const json::value& schemas = At(core, {"components", "schemas"});
  auto of = [&](const char* type, const char* field) -> const json::value& {
    return At(schemas, {type, "properties", field});
  };
  EXPECT_EQ(of("io.k8s.api.core.v1.Container", "name").at("default"), "");
  EXPECT_EQ(of("io.k8s.api.core.v1.ContainerPort", "containerPort").at("default"), 0);
  EXPECT_EQ(of("io.k8s.api.core.v1.ContainerPort", "protocol").at("default"), "TCP");
  EXPECT_EQ(json::serialize(of("io.k8s.api.core.v1.Pod", "spec").at("default")), "{}");
  EXPECT_EQ(json::serialize(of("io.k8s.api.core.v1.PodSpec", "containers").at("items").at("default")), "{}");
  EXPECT_EQ(of("io.k8s.api.core.v1.Container", "args").at("items").at("default"), "");
  EXPECT_EQ(of("io.k8s.api.core.v1.PodSpec", "nodeSelector").at("additionalProperties").at("default"), "");
  const auto& meta = At(schemas, {"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "properties"});
  EXPECT_FALSE(meta.at("creationTimestamp").as_object().contains("default"));
  EXPECT_FALSE(of("io.k8s.api.core.v1.PodSpec", "hostNetwork").as_object().contains("default"));
  EXPECT_FALSE(
      of("io.k8s.api.core.v1.Secret", "data").at("additionalProperties").as_object().contains("default"));
  EXPECT_EQ(
      json::serialize(schemas.at("io.k8s.api.core.v1.SeccompProfile").at("x-kubernetes-unions")),
      R"([{"discriminator":"type","fields-to-discriminateBy":{"localhostProfile":"LocalhostProfile"}}])");
  const json::value flow = Parse(OpenApiV3Json("apis/flowcontrol.apiserver.k8s.io/v1"));
  EXPECT_EQ(
      json::serialize(
          At(flow, {"components", "schemas", "io.k8s.api.flowcontrol.v1.Subject", "x-kubernetes-unions"})),
      R"([{"discriminator":"kind","fields-to-discriminateBy":{"group":"Group","serviceAccount":"ServiceAccount","user":"User"}}])");

  const json::value two = Parse(OpenApiV2Json());
  EXPECT_EQ(json::serialize(two.at("definitions")).find("\"default\":\"\""), std::string::npos);
  struct Enum {
    const char *type, *field, *values;
  };
  constexpr Enum kEnums[] = {
      {"io.k8s.api.networking.v1.HTTPIngressPath", "pathType",
       R"(["Exact","ImplementationSpecific","Prefix"])"},
      {"io.k8s.api.discovery.v1.EndpointSlice", "addressType", R"(["FQDN","IPv4","IPv6"])"},
      {"io.k8s.api.scheduling.v1.PriorityClass", "preemptionPolicy", R"(["Never","PreemptLowerPriority"])"},
      {"io.k8s.api.resource.v1.ExactDeviceRequest", "allocationMode", R"(["All","ExactCount"])"},
      {"io.k8s.api.resource.v1.DeviceSubRequest", "allocationMode", R"(["All","ExactCount"])"},
  };
  for (const Enum& c : kEnums) {
    EXPECT_EQ(json::serialize(At(two, {"definitions", c.type, "properties", c.field, "enum"})), c.values);
  }
}

TEST(OpenApi, VersionTwo) {
  json::value document = Parse(OpenApiV2Json());
  EXPECT_EQ(document.at("swagger"), "2.0");
  EXPECT_EQ(At(document, {"info", "version"}).as_string(), kGitVersion);
  const json::object& definitions = document.at("definitions").as_object();
  CheckRefs(document, definitions, "#/definitions/");
  EXPECT_TRUE(definitions.contains("io.k8s.api.core.v1.Pod"));
  EXPECT_EQ(json::serialize(At(document, {"definitions", "io.k8s.apimachinery.pkg.api.resource.Quantity"})),
            R"({"type":"string","description":"A number with a unit, such as 500m, 1.5, 64Mi or 2G."})");
  EXPECT_EQ(json::serialize(At(document, {"definitions", "io.k8s.api.core.v1.Pod", "properties", "spec"})),
            R"({"$ref":"#/definitions/io.k8s.api.core.v1.PodSpec","description":"What to run and where."})");
  EXPECT_EQ(At(document, {"paths", "/api/v1/pods", "get", "operationId"}), "listCoreV1PodForAllNamespaces");
  EXPECT_EQ(At(document, {"paths", "/api/v1/nodes/{name}/status", "put", "operationId"}),
            "replaceCoreV1NodeStatus");
}

TEST(OpenApi, GnosticFormHasTheSameContents) {
  json::value document = Parse(OpenApiV2Json());
  std::string bytes = OpenApiV2Protobuf();
  size_t paths = 0, definitions = 0;
  wire::Record record, entry;
  for (const char *p = bytes.data(), *end = p + bytes.size(); p < end;) {
    ASSERT_TRUE(wire::ReadRecord(p, end, record));
    if (record.field != 8 && record.field != 9) continue;
    for (const char *q = record.bytes.data(), *stop = q + record.bytes.size(); q < stop;) {
      ASSERT_TRUE(wire::ReadRecord(q, stop, entry));
      ++(record.field == 8 ? paths : definitions);
      wire::Record name;
      const char* inner = entry.bytes.data();
      ASSERT_TRUE(wire::ReadRecord(inner, inner + entry.bytes.size(), name));
      const json::object& section = document.at(record.field == 8 ? "paths" : "definitions").as_object();
      EXPECT_TRUE(section.contains(json::string_view(name.bytes.data(), name.bytes.size())));
    }
  }
  EXPECT_EQ(paths, document.at("paths").as_object().size());
  EXPECT_EQ(definitions, document.at("definitions").as_object().size());
}

}  // namespace
}  // namespace keelson::api

#include "lib/api/openapi.h"

#include <set>

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "lib/api/types.h"
#include "lib/api/wire.h"

namespace keelson::api {
namespace {

namespace json = boost::json;

json::value Parse(const std::string& text) {
  json::parse_options options;
  options.max_depth = 100;
  return json::parse(text, {}, options);
}

// All references in the document name something that is there.
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
  EXPECT_EQ(paths.front(), "api/v1");
  EXPECT_EQ(std::count(paths.begin(), paths.end(), "apis/apps/v1"), 1);
  std::set<std::pair<std::string_view, std::string_view>> served;
  for (const ResourceInfo& info : Resources()) served.emplace(info.group, info.version);
  EXPECT_EQ(paths.size(), served.size());
  for (const auto& [group, version] : served) {
    SCOPED_TRACE(std::string(group) + "/" + std::string(version));
    json::value document = Parse(OpenApiV3Json(group, version));
    CheckRefs(document, At(document, {"components", "schemas"}).as_object(), "#/components/schemas/");
  }
  EXPECT_EQ(OpenApiV3Json("nope", "v1"), "");
}

TEST(OpenApi, VersionThreeInProtobufHasTheSameSchemas) {
  json::value document = Parse(OpenApiV3Json("batch", "v1"));
  std::string bytes = OpenApiV3Protobuf("batch", "v1");
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
  EXPECT_EQ(OpenApiV3Protobuf("nope", "v1"), "");
}

TEST(OpenApi, WhatKubectlLooksFor) {
  json::value document = Parse(OpenApiV3Json("apps", "v1"));
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
      R"({"allOf":[{"$ref":"#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}],"description":"How old pods are replaced by new ones.","x-kubernetes-patch-strategy":"retainKeys"})");
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

TEST(OpenApi, VersionTwo) {
  json::value document = Parse(OpenApiV2Json());
  EXPECT_EQ(document.at("swagger"), "2.0");
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

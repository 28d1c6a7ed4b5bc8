#include "lib/api/openapi/custom.h"

#include <bit>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "lib/api/wire.h"

namespace keelson::api {
namespace {

namespace json = boost::json;

constexpr const char* kPrefix = "#/definitions/";
constexpr const char* kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.";

OpenApiCustomResource CronTabs(bool namespaced = true) {
  return {"stable.example.com",
          "v1",
          "crontabs",
          "CronTab",
          namespaced,
          true,
          true,
          {{"com.example.stable.v1.CronTab", R"({"type":"object","properties":{"spec":{"type":"object"}}})"},
           {"com.example.stable.v1.CronTabList", R"({"type":"object"})"}}};
}

json::object Paths(const OpenApiCustomResource& resource, OpenApiVersion version) {
  return json::parse("{" + CustomOpenApiJson(resource, version).paths + "}").as_object();
}

std::string Text(const json::value& value) { return std::string(value.as_string()); }

// "name name ...", for those of the operation; those that all operations share are in `item`.
std::string Parameters(const json::object& item) {
  std::string out;
  if (const json::value* list = item.if_contains("parameters")) {
    for (const json::value& one : list->as_array()) out += (out.empty() ? "" : " ") + Text(one.at("name"));
  }
  return out;
}

// The reference in a reply or a body, without its prefix.
std::string Referred(const json::value& schema) {
  const std::string reference = Text(schema.at("$ref"));
  EXPECT_EQ(reference.substr(0, std::string(kPrefix).size()), kPrefix);
  return reference.substr(std::string(kPrefix).size());
}

TEST(CustomOpenApi, OperationsAreThoseOfUpstream) {
  struct Case {
    const char *path, *method, *id, *action;
    std::string body, reply;
    const char *codes, *shared, *own;
  };
  const std::string kind = "com.example.stable.v1.CronTab", list = kind + "List", none;
  const std::string status = std::string(kMeta) + "Status", patch = std::string(kMeta) + "Patch";
  const std::string options = std::string(kMeta) + "DeleteOptions", scale = "io.k8s.api.autoscaling.v1.Scale";
  const char* lists =
      "allowWatchBookmarks continue fieldSelector labelSelector limit resourceVersion resourceVersionMatch "
      "sendInitialEvents shardSelector timeoutSeconds watch";
  const char* writes = "body dryRun fieldManager fieldValidation";
  const std::string all =
      std::string("allowWatchBookmarks continue fieldSelector labelSelector limit pretty ") +
      "resourceVersion resourceVersionMatch sendInitialEvents shardSelector timeoutSeconds watch";
  const char* own_delete =
      "body dryRun gracePeriodSeconds ignoreStoreReadErrorWithClusterBreakingPotential orphanDependents "
      "propagationPolicy";
  constexpr const char *kAll = "/apis/stable.example.com/v1/crontabs",
                       *kSome = "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs",
                       *kOne = "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}",
                       *kStatus = "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/status",
                       *kScale = "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/scale";
  const Case kCases[] = {
      {kAll, "get", "listStableExampleComV1CronTabForAllNamespaces", "list", none, list, "200 401",
       all.c_str(), ""},
      {kSome, "get", "listStableExampleComV1NamespacedCronTab", "list", none, list, "200 401",
       "namespace pretty", lists},
      {kSome, "post", "createStableExampleComV1NamespacedCronTab", "post", kind, kind, "200 201 202 401",
       "namespace pretty", writes},
      {kSome, "delete", "deleteStableExampleComV1CollectionNamespacedCronTab", "deletecollection", none,
       status, "200 401", "namespace pretty", lists},
      {kOne, "get", "readStableExampleComV1NamespacedCronTab", "get", none, kind, "200 401",
       "name namespace pretty", "resourceVersion"},
      {kOne, "put", "replaceStableExampleComV1NamespacedCronTab", "put", kind, kind, "200 201 401",
       "name namespace pretty", writes},
      {kOne, "patch", "patchStableExampleComV1NamespacedCronTab", "patch", patch, kind, "200 401",
       "name namespace pretty", "body dryRun fieldManager fieldValidation force"},
      {kOne, "delete", "deleteStableExampleComV1NamespacedCronTab", "delete", options, status, "200 202 401",
       "name namespace pretty", own_delete},
      {kStatus, "get", "readStableExampleComV1NamespacedCronTabStatus", "get", none, kind, "200 401",
       "name namespace pretty", "resourceVersion"},
      {kStatus, "put", "replaceStableExampleComV1NamespacedCronTabStatus", "put", kind, kind, "200 201 401",
       "name namespace pretty", writes},
      {kScale, "put", "replaceStableExampleComV1NamespacedCronTabScale", "put", scale, scale, "200 201 401",
       "name namespace pretty", writes},
      {kScale, "patch", "patchStableExampleComV1NamespacedCronTabScale", "patch", patch, scale, "200 401",
       "name namespace pretty", "body dryRun fieldManager fieldValidation force"},
  };
  const json::object paths = Paths(CronTabs(), OpenApiVersion::kV2);
  EXPECT_EQ(paths.size(), 5U);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.id);
    const json::object& item = paths.at(c.path).as_object();
    const json::object& operation = item.at(c.method).as_object();
    EXPECT_EQ(operation.at("operationId"), c.id);
    EXPECT_EQ(operation.at("x-kubernetes-action"), c.action);
    EXPECT_EQ(json::serialize(operation.at("x-kubernetes-group-version-kind")),
              R"({"group":"stable.example.com","kind":"CronTab","version":"v1"})");
    EXPECT_EQ(operation.at("tags"), json::array{"stableExampleCom_v1"});
    EXPECT_EQ(operation.at("schemes"), json::array{"https"});
    EXPECT_EQ(json::serialize(operation.at("produces")), R"(["application/json","application/yaml"])");
    EXPECT_EQ(
        json::serialize(operation.at("consumes")),
        std::string(c.method) == "patch"
            ? R"(["application/json-patch+json","application/merge-patch+json","application/apply-patch+yaml"])"
            : R"(["application/json","application/yaml"])");
    EXPECT_EQ(Parameters(item), c.shared);
    EXPECT_EQ(Parameters(operation), c.own);
    EXPECT_EQ(Referred(operation.at("responses").at("200").at("schema")), c.reply);
    std::set<std::string> codes;
    for (const auto& code : operation.at("responses").as_object()) codes.emplace(code.key());
    std::string listed;
    for (const std::string& code : codes) listed += (listed.empty() ? "" : " ") + code;
    EXPECT_EQ(listed, c.codes);
    std::string body;
    if (const json::value* list_of = operation.if_contains("parameters")) {
      const json::value& first = list_of->as_array().at(0);
      if (first.at("in") == "body") body = Referred(first.at("schema"));
    }
    EXPECT_EQ(body, c.body);
  }
}

TEST(CustomOpenApi, ClustersHaveNoNamespaces) {
  OpenApiCustomResource resource = CronTabs(false);
  resource.has_status = resource.has_scale = false;
  const json::object paths = Paths(resource, OpenApiVersion::kV3);
  EXPECT_EQ(paths.size(), 2U);
  const json::value& item = paths.at("/apis/stable.example.com/v1/crontabs");
  EXPECT_EQ(item.at("get").at("operationId"), "listStableExampleComV1CronTab");
  EXPECT_EQ(item.at("delete").at("operationId"), "deleteStableExampleComV1CollectionCronTab");
  EXPECT_TRUE(paths.contains("/apis/stable.example.com/v1/crontabs/{name}"));
}

TEST(CustomOpenApi, BodiesOfVersionThreeHaveTheMediaTypes) {
  const json::object paths = Paths(CronTabs(), OpenApiVersion::kV3);
  const json::value& item = paths.at("/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}");
  EXPECT_EQ(
      json::serialize(item.at("patch").at("requestBody")),
      R"({"content":{"application/json-patch+json":{"schema":{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Patch"}},)"
      R"("application/merge-patch+json":{"schema":{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Patch"}},)"
      R"("application/apply-patch+yaml":{"schema":{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Patch"}}},"required":true})");
  EXPECT_EQ(
      json::serialize(item.at("get").at("responses").at("200")),
      R"({"content":{"application/json":{"schema":{"$ref":"#/components/schemas/com.example.stable.v1.CronTab"}},)"
      R"("application/yaml":{"schema":{"$ref":"#/components/schemas/com.example.stable.v1.CronTab"}}},"description":"OK"})");
  EXPECT_FALSE(item.at("delete").at("requestBody").as_object().contains("required"));
}

// What references in a fragment refer to is in the document that takes it.
void CheckReferences(const json::value& value, const json::object& schemas, const std::string& prefix) {
  if (const json::array* list = value.if_array()) {
    for (const json::value& one : *list) CheckReferences(one, schemas, prefix);
  }
  if (!value.is_object()) return;
  for (const auto& member : value.get_object()) {
    if (member.key() == "$ref" && member.value().is_string()) {
      ASSERT_TRUE(schemas.contains(Text(member.value()).substr(prefix.size()))) << member.value();
    }
    CheckReferences(member.value(), schemas, prefix);
  }
}

TEST(CustomOpenApi, FitsIntoDocuments) {
  const OpenApiFragment v3 = CustomOpenApiJson(CronTabs(), OpenApiVersion::kV3);
  for (const char* name : {"apis/stable.example.com/v1", "apis/storage.k8s.io/v1"}) {
    SCOPED_TRACE(name);
    const OpenApiParts parts = OpenApiV3PartsForCustom(name, true);
    const json::value document = json::parse(parts.head + (parts.has_paths ? "," : "") + v3.paths +
                                             parts.middle + "," + v3.schemas + parts.tail);
    const json::object& schemas = document.at("components").at("schemas").as_object();
    EXPECT_TRUE(schemas.contains("com.example.stable.v1.CronTab"));
    CheckReferences(document, schemas, "#/components/schemas/");
    EXPECT_EQ(parts.has_paths, name == std::string("apis/storage.k8s.io/v1"));
    EXPECT_EQ(document.at("info").at("title"), parts.has_paths ? "Kubernetes" : "Kubernetes CRD Swagger");
  }
  EXPECT_EQ(OpenApiV3PartsForCustom("apis/a.example.com/v1", false).Joined().find("v1.Scale"),
            std::string::npos);
  const OpenApiFragment v2 = CustomOpenApiJson(CronTabs(), OpenApiVersion::kV2);
  const OpenApiParts parts = OpenApiV2Parts();
  const json::value document =
      json::parse(parts.head + "," + v2.paths + parts.middle + "," + v2.schemas + parts.tail);
  CheckReferences(document, document.at("definitions").as_object(), kPrefix);
}

// The records of a message, by number of the field.
std::multimap<uint32_t, wire::Record> Records(std::string_view bytes) {
  std::multimap<uint32_t, wire::Record> out;
  for (const char *p = bytes.data(), *end = p + bytes.size(); p < end;) {
    wire::Record record;
    if (!wire::ReadRecord(p, end, record)) {
      ADD_FAILURE() << "malformed";
      break;
    }
    out.emplace(record.field, record);
  }
  return out;
}
std::string_view Bytes(std::string_view message, uint32_t field) {
  const auto records = Records(message);
  const auto found = records.find(field);
  return found == records.end() ? std::string_view() : found->second.bytes;
}
uint64_t Number(std::string_view message, uint32_t field) {
  const auto records = Records(message);
  const auto found = records.find(field);
  return found == records.end() ? 0 : found->second.number;
}
double Double(std::string_view message, uint32_t field) {
  return std::bit_cast<double>(Number(message, field));
}

constexpr const char* kLimits =
    R"({"type":"object","title":"T","properties":{"a":{"pattern":"^a$","maxLength":3,"minLength":1,"maximum":1.5,"minimum":-2,)"
    R"("exclusiveMaximum":true,"exclusiveMinimum":true,"multipleOf":0.5,"maxItems":4,"minItems":2,"uniqueItems":true,"maxProperties":6,"minProperties":5}},)"
    R"("additionalProperties":false,"not":{"required":["b"]},"x-kubernetes-preserve-unknown-fields":true})";

TEST(CustomOpenApi, ProtobufHasEveryLimit) {
  struct Numbers {
    OpenApiVersion version;
    uint32_t all, path, all_schemas, properties, title, pattern, max_length, maximum, minimum,
        exclusive_maximum, exclusive_minimum, multiple_of, min_items, unique_items, max_properties,
        additional, extension;
  };
  constexpr Numbers kNumbers[] = {
      {OpenApiVersion::kV2, 8, 2, 9, 25, 3, 13, 11, 7, 9, 8, 10, 6, 15, 16, 17, 21, 31},
      {OpenApiVersion::kV3, 4, 1, 5, 31, 9, 17, 15, 11, 13, 12, 14, 10, 19, 20, 21, 32, 36}};
  OpenApiCustomResource resource = CronTabs();
  resource.schemas[0].second = kLimits;
  for (const Numbers& n : kNumbers) {
    const std::string bytes = CustomOpenApiProtobuf(resource, n.version);
    EXPECT_EQ(Records(Bytes(bytes, n.all)).count(n.path), 5U);
    std::string_view schemas = Bytes(bytes, n.all_schemas);
    if (n.version == OpenApiVersion::kV3) schemas = Bytes(schemas, 1);
    EXPECT_EQ(Records(schemas).count(1), 2U);
    std::string_view schema;
    for (const auto& [field, entry] : Records(schemas)) {
      if (Bytes(entry.bytes, 1) == "com.example.stable.v1.CronTab") schema = Bytes(entry.bytes, 2);
    }
    const auto plain = [&](std::string_view value) {
      return n.version == OpenApiVersion::kV3 ? Bytes(value, 1) : value;  // SchemaOrReference
    };
    schema = plain(schema);
    EXPECT_EQ(Bytes(schema, n.title), "T");
    EXPECT_EQ(Records(Bytes(schema, n.additional)).count(2), 1U) << "additionalProperties: false";
    EXPECT_EQ(Bytes(Bytes(schema, n.extension), 1), "x-kubernetes-preserve-unknown-fields");
    const std::string_view a = plain(Bytes(Bytes(Bytes(schema, n.properties), 1), 2));
    EXPECT_EQ(Bytes(a, n.pattern), "^a$");
    EXPECT_EQ(Number(a, n.max_length), 3U);
    EXPECT_EQ(Double(a, n.maximum), 1.5);
    EXPECT_EQ(Double(a, n.minimum), -2);
    EXPECT_EQ(Double(a, n.multiple_of), 0.5);
    EXPECT_EQ(Number(a, n.exclusive_maximum), 1U);
    EXPECT_EQ(Number(a, n.exclusive_minimum), 1U);
    EXPECT_EQ(Number(a, n.min_items), 2U);
    EXPECT_EQ(Number(a, n.unique_items), 1U);
    EXPECT_EQ(Number(a, n.max_properties), 6U);
    if (n.version == OpenApiVersion::kV3) {
      EXPECT_EQ(Bytes(Bytes(schema, 29), 23), "b") << "not";
    }
  }
}

// Schemas may nest a hundred parts deep.
TEST(CustomOpenApi, DeepSchemas) {
  std::string deep = R"({"type":"string"})";
  for (int i = 0; i < 100; ++i) deep = R"({"type":"object","properties":{"a":)" + deep + "}}";
  OpenApiCustomResource resource = CronTabs();
  resource.schemas[0].second = deep;
  for (OpenApiVersion version : {OpenApiVersion::kV2, OpenApiVersion::kV3}) {
    EXPECT_GT(CustomOpenApiProtobuf(resource, version).size(), 1000U);
  }
}

}  // namespace
}  // namespace keelson::api

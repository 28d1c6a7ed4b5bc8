// Server-side apply of custom resources: the shapes of structural schemas.
#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>

#include "lib/base/text.h"
#include "lib/k8s/schema/structural_schema.h"
#include "lib/k8s/testing/schemas.h"

namespace keelson::k8s {
namespace {

using testing::CompileSchema;
using testing::Tree;

constexpr char kSchema[] = R"({"type":"object","properties":{"spec":{"type":"object","properties":{
  "replicas":{"type":"integer"},"name":{"type":"string"},"port":{"x-kubernetes-int-or-string":true},
  "args":{"type":"array","items":{"type":"string"}},
  "tags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
  "ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port","protocol"],
    "items":{"type":"object","properties":{"port":{"type":"integer"},"protocol":{"type":"string","default":"TCP"},"name":{"type":"string"}}}},
  "selector":{"type":"object","x-kubernetes-map-type":"atomic","additionalProperties":{"type":"string"}},
  "labels":{"type":"object","additionalProperties":{"type":"string"}},
  "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
  "any":{"x-kubernetes-preserve-unknown-fields":true},
  "empty":{"type":"object"},
  "pod":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}}})";

struct Case {
  const char *object, *fields;
};

const Case kCases[] = {
    {R"({"apiVersion":"x/v1","kind":"X","metadata":{"name":"n","labels":{"a":"b"},"finalizers":["f"]}})",
     R"({"f:apiVersion":{},"f:kind":{},"f:metadata":{"f:finalizers":{"v:\"f\"":{}},"f:labels":{"f:a":{}},"f:name":{}}})"},
    {R"({"spec":{"replicas":1,"name":"n","port":"http","args":["a"],"tags":["t"]}})",
     R"({"f:spec":{"f:args":{},"f:name":{},"f:port":{},"f:replicas":{},"f:tags":{"v:\"t\"":{}}}})"},
    {R"({"spec":{"ports":[{"port":80,"name":"http"}]}})",
     R"({"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}})"},
    {R"({"spec":{"selector":{"a":"b"},"labels":{"a":"b"}}})",
     R"({"f:spec":{"f:labels":{"f:a":{}},"f:selector":{}}})"},
    {R"({"spec":{"free":{"a":{"b":[1,2]}},"any":{"x":1},"empty":{"y":1}}})",
     R"({"f:spec":{"f:any":{"f:x":{}},"f:empty":{"f:y":{}},"f:free":{"f:a":{".":{},"f:b":{}}}}})"},
    {R"({"spec":{"any":[1]}})", R"({"f:spec":{"f:any":{}}})"},
    {R"({"spec":{"pod":{"kind":"Pod","metadata":{"labels":{"a":"b"}},"spec":{"x":{"y":1}}}}})",
     R"({"f:spec":{"f:pod":{"f:kind":{},"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{".":{},"f:x":{".":{},"f:y":{}}}}}})"},
};

TEST(Shape, TellsTheFieldsOfObjects) {
  const auto schema = CompileSchema(kSchema);
  for (const Case& one : kCases) {
    const boost::json::value object = Tree(one.object);
    EXPECT_EQ(Join(api::CheckShape(schema->shape(), object, false), "; "), "") << one.object;
    EXPECT_EQ(api::FieldsOf(schema->shape(), object).ToJson(), one.fields) << one.object;
  }
}

TEST(Shape, RefusesWhatItDoesNotKnow) {
  const auto schema = CompileSchema(kSchema);
  const std::pair<const char*, const char*> cases[] = {
      {R"({"spec":{"foo":1}})", ".spec.foo: field not declared in schema"},
      {R"({"spec":{"replicas":"1"}})", ".spec.replicas: expected numeric (int or float), got string"},
      {R"({"spec":{"tags":["a","a"]}})", ".spec.tags: duplicate entries for key [=\"a\"]"},
  };
  for (const auto& [object, problem] : cases) {
    EXPECT_EQ(Join(api::CheckShape(schema->shape(), Tree(object), false), "; "), problem);
  }
}

TEST(Shape, MergesWhatHasNoSchemaFieldByField) {
  const auto schema = CompileSchema(kSchema);
  const auto merge = [&](const char* live, const char* config) {
    return boost::json::serialize(api::MergeShaped(schema->shape(), Tree(live), Tree(config)));
  };
  EXPECT_EQ(merge(R"({"spec":{"free":{"a":{"b":1},"l":[1]}}})", R"({"spec":{"free":{"a":{"c":2},"l":[2]}}})"),
            R"({"spec":{"free":{"a":{"b":1,"c":2},"l":[2]}}})");
  EXPECT_EQ(merge(R"({"spec":{"any":{"a":1}}})", R"({"spec":{"any":"text"}})"), R"({"spec":{"any":"text"}})");
  EXPECT_EQ(merge(R"({"spec":{"any":[1]}})", R"({"spec":{"any":{"a":1}}})"), R"({"spec":{"any":{"a":1}}})");
}

TEST(Shape, ComparesWhatChangesItsType) {
  const auto schema = CompileSchema(kSchema);
  const api::Comparison changes =
      api::CompareJson(schema->shape(), Tree(R"({"spec":{"any":{"a":1}}})"), Tree(R"({"spec":{"any":5}})"));
  EXPECT_EQ(changes.modified.ToJson(), R"({"f:spec":{"f:any":{}}})");
  EXPECT_TRUE(changes.added.Empty());
}

}  // namespace
}  // namespace keelson::k8s

#include "lib/api/apply/typed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/codec/codec.h"
#include "lib/api/testing/random_object.h"

namespace keelson::api {
namespace {

namespace json = boost::json;

template <typename T>
T Decoded(std::string_view text) {
  T object;
  Result<> done = DecodeJson(text, object);
  EXPECT_TRUE(done) << text << ": " << (done ? "" : done.error().message());
  return object;
}

// added, modified, removed
std::string Print(const Comparison& c) {
  return fmt::format("+{} ~{} -{}", c.added.ToJson(), c.modified.ToJson(), c.removed.ToJson());
}

template <typename T>
std::string Compared(std::string_view before, std::string_view after) {
  const Shape& shape = ShapeOf(T::descriptor());
  T a = Decoded<T>(before), b = Decoded<T>(after);
  Comparison out;
  EXPECT_TRUE(CompareWire(shape, EncodeRaw(a), EncodeRaw(b), out));
  // Both implementations must agree.
  Comparison from_json = CompareJson(shape, json::parse(EncodeJson(a)), json::parse(EncodeJson(b)));
  EXPECT_EQ(Print(out), Print(from_json)) << before << " -> " << after;
  return Print(out);
}

TEST(TypedTest, WhatACreateAdds) {
  EXPECT_EQ(
      Compared<corev1::ConfigMap>("{}", R"({"metadata":{"name":"a","labels":{"x":"y"}},"data":{"k":"v"}})"),
      R"(+{"f:data":{".":{},"f:k":{}},"f:metadata":{"f:labels":{".":{},"f:x":{}},"f:name":{}}} ~{} -{})");
  // `containers` was null before, and a new item's own lists are absent.
  EXPECT_EQ(
      Compared<corev1::Pod>(
          "{}",
          R"({"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80,"protocol":"TCP"}]}]}})"),
      R"(+{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},)"
      R"("f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},)"
      R"("f:protocol":{}}},"f:resources":{}}}}} ~{} -{})");
}

TEST(TypedTest, Differences) {
  EXPECT_EQ(
      Compared<corev1::ConfigMap>(R"({"data":{"a":"1","b":"2"}})", R"({"data":{"a":"1","b":"3","c":"4"}})"),
      R"(+{"f:data":{"f:c":{}}} ~{"f:data":{"f:b":{}}} -{})");
  EXPECT_EQ(Compared<corev1::ConfigMap>(R"({"data":{"a":"1"}})", "{}"),
            R"(+{} ~{} -{"f:data":{".":{},"f:a":{}}})");
  // Atomic: a selector, a list without keys, node selectors.
  EXPECT_EQ(Compared<appsv1::Deployment>(R"({"spec":{"selector":{"matchLabels":{"a":"1"}}}})",
                                         R"({"spec":{"selector":{"matchLabels":{"a":"2","b":"1"}}}})"),
            R"(+{} ~{"f:spec":{"f:selector":{}}} -{})");
  EXPECT_EQ(
      Compared<corev1::Pod>(
          R"({"spec":{"nodeSelector":{"a":"1"},"containers":[{"name":"c","args":["x"]}]}})",
          R"({"spec":{"nodeSelector":{"b":"1"},"containers":[{"name":"c","args":["y"]}]}})"),
      R"(+{} ~{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:args":{}}},"f:nodeSelector":{}}} -{})");
  // Sets, and pointers to zero.
  EXPECT_EQ(Compared<appsv1::Deployment>(R"({"metadata":{"finalizers":["a","b"]}})",
                                         R"({"metadata":{"finalizers":["b","c"]},"spec":{"replicas":0}})"),
            R"(+{"f:metadata":{"f:finalizers":{"v:\"c\"":{}}},"f:spec":{"f:replicas":{}}} ~{} )"
            R"(-{"f:metadata":{"f:finalizers":{"v:\"a\"":{}}}})");
  // Order does not matter in a list with keys.
  EXPECT_EQ(Compared<corev1::Pod>(R"({"spec":{"containers":[{"name":"a"},{"name":"b","image":"1"}]}})",
                                  R"({"spec":{"containers":[{"name":"b","image":"2"},{"name":"a"}]}})"),
            R"(+{} ~{"f:spec":{"f:containers":{"k:{\"name\":\"b\"}":{"f:image":{}}}}} -{})");
  // Inlined fields belong to their parent.
  EXPECT_EQ(
      Compared<corev1::Pod>(R"({"spec":{"containers":[],"volumes":[{"name":"v","emptyDir":{}}]}})",
                            R"({"spec":{"containers":[],"volumes":[{"name":"v","hostPath":{"path":"/"}}]}})"),
      R"(+{"f:spec":{"f:volumes":{"k:{\"name\":\"v\"}":{"f:hostPath":{".":{},"f:path":{}}}}}} ~{} )"
      R"(-{"f:spec":{"f:volumes":{"k:{\"name\":\"v\"}":{"f:emptyDir":{}}}}})");
}

TEST(TypedTest, ItemsThatAreThereTwice) {
  const char* one = R"({"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"}]}]}})";
  const char* two =
      R"({"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}]}})";
  const char* other =
      R"({"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"3"},{"name":"A","value":"2"}]}]}})";
  const std::string head =
      R"({"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:env":{"k:{\"name\":\"A\"}":)";
  EXPECT_EQ(Compared<corev1::Pod>(two, other), "+{} ~" + head + "{}}}}}} -{}");
  EXPECT_EQ(Compared<corev1::Pod>(two, two), "+{} ~{} -{}");
  EXPECT_EQ(Compared<corev1::Pod>(one, two),
            "+" + head + "{}}}}}} ~{} -" + head + R"({".":{},"f:name":{},"f:value":{}}}}}}})");
}

TEST(TypedTest, BothWaysAgreeOnRandomObjects) {
  std::mt19937 random(7);
  for (const ResourceInfo& info : Resources()) {
    if (info.etcd_prefix.empty()) continue;
    const Shape& shape = ShapeOf(info.descriptor());
    for (int i = 0; i < 3; ++i) {
      std::unique_ptr<Message> a = NewObject(info.descriptor()), b = NewObject(info.descriptor());
      FillRandom(*a, random);
      b->CopyFrom(*a);
      if (i > 0) FillRandom(*b, random);
      Comparison wire;
      Comparison unused;  // random items may lack their keys
      if (!CompareWire(shape, "", EncodeRaw(*a), unused)) continue;
      if (!CompareWire(shape, EncodeRaw(*a), EncodeRaw(*b), wire)) continue;
      json::value x = json::parse(EncodeJson(*a)), y = json::parse(EncodeJson(*b));
      EXPECT_EQ(Print(wire), Print(CompareJson(shape, x, y))) << info.resource;
      if (i == 0) {
        EXPECT_TRUE(wire.Empty()) << info.resource;
      }
      EXPECT_EQ(CheckShape(shape, x, true), std::vector<std::string>()) << info.resource;
      if (!CheckShape(shape, x, false).empty()) continue;
      EXPECT_EQ(Print(CompareJson(shape, x, MergeShaped(shape, x, x))), "+{} ~{} -{}") << info.resource;
    }
  }
}

std::vector<std::string> Checked(std::string_view config, bool allow_duplicates = false) {
  return CheckShape(ShapeOf(appsv1::Deployment::descriptor()),
                    json::parse(json::string_view(config.data(), config.size())), allow_duplicates);
}

TEST(TypedTest, WhatMayNotStandInAConfiguration) {
  struct {
    const char *config, *problem;
  } cases[] = {
      {R"({"spec":{"foo":1}})", ".spec.foo: field not declared in schema"},
      {R"({"spec":{"replicas":"3"}})", ".spec.replicas: expected numeric (int or float), got string"},
      {R"({"metadata":{"labels":{"a":1}}})",
       ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:1}"},
      {R"({"spec":{"paused":"yes"}})", ".spec.paused: expected boolean, got &{yes}"},
      {R"({"spec":{"template":[]}})", ".spec.template: expected map, got &{[]}"},
      {R"({"spec":{"template":{"spec":{"containers":{"a":"b"}}}}})",
       ".spec.template.spec.containers: expected list, got &{map[a:b]}"},
      {R"({"status":{"conditions":[{"type":"A"},"x"]}})",
       ".status.conditions: element 1: associative list with keys may not have non-map elements"},
      {R"({"spec":{"template":{"spec":{"containers":[{"name":"c","x":1}]}}}})",
       ".spec.template.spec.containers[name=\"c\"].x: field not declared in schema"},
      {R"({"spec":{"template":{"spec":{"containers":[{"name":"c"},{"name":"c"}]}}}})",
       ".spec.template.spec.containers: duplicate entries for key [name=\"c\"]"},
      {R"({"spec":{"template":{"spec":{"tolerations":[{"key":1}]}}}})",
       ".spec.template.spec.tolerations[0].key: expected string, got &value.valueUnstructured{Value:1}"},
  };
  for (const auto& one : cases) EXPECT_EQ(Checked(one.config), std::vector<std::string>{one.problem});
  EXPECT_EQ(
      Checked(
          R"({"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"containers":)"
          R"([{"name":"c","ports":[{"containerPort":80}],"resources":{"limits":{"cpu":1,"x":"2"}}}]}}}})"),
      std::vector<std::string>());
  EXPECT_TRUE(
      Checked(R"({"spec":{"template":{"spec":{"containers":[{"name":"c"},{"name":"c"}]}}}})", true).empty());
}

std::string Merged(std::string_view live, std::string_view config) {
  auto parse = [](std::string_view text) { return json::parse(json::string_view(text.data(), text.size())); };
  return json::serialize(MergeShaped(ShapeOf(corev1::PodSpec::descriptor()), parse(live), parse(config)));
}

TEST(TypedTest, Merges) {
  struct {
    const char *live, *config, *want;
  } cases[] = {
      {R"({"nodeName":"a","hostname":"h"})", R"({"nodeName":"b"})", R"({"nodeName":"b","hostname":"h"})"},
      {R"({"nodeSelector":{"a":"1"}})", R"({"nodeSelector":{"b":"2"}})", R"({"nodeSelector":{"b":"2"}})"},
      {R"({"containers":[{"name":"a","image":"1"},{"name":"b"}]})",
       R"({"containers":[{"name":"a","image":"2"}]})",
       R"({"containers":[{"name":"a","image":"2"},{"name":"b"}]})"},
      // The configuration's order wins; other items stay in front of what followed them.
      {R"({"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]})",
       R"({"containers":[{"name":"c"},{"name":"a"}]})",
       R"({"containers":[{"name":"b"},{"name":"c"},{"name":"a"}]})"},
      {R"({"containers":[{"name":"a"},{"name":"c"}]})", R"({"containers":[{"name":"b"},{"name":"c"}]})",
       R"({"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]})"},
      {R"({"containers":null})", R"({"containers":[{"name":"b"}]})", R"({"containers":[{"name":"b"}]})"},
      {R"({"hostname":"h"})", R"({"hostname":null})", R"({"hostname":null})"},
      {R"({"securityContext":{"runAsUser":1}})", R"({"securityContext":{}})",
       R"({"securityContext":{"runAsUser":1}})"},
      {R"({})", R"({"securityContext":{}})", R"({"securityContext":{}})"},
  };
  for (const auto& one : cases) EXPECT_EQ(Merged(one.live, one.config), one.want) << one.config;
}

TEST(TypedTest, FieldsOfAConfiguration) {
  const Shape& shape = ShapeOf(appsv1::Deployment::descriptor());
  EXPECT_EQ(
      FieldsOf(shape,
               json::parse(R"({"kind":"Deployment","metadata":{"labels":{"a":"b"},"annotations":{}},)"
                           R"("spec":{"replicas":null,"selector":{"matchLabels":{"a":"b"}},"template":)"
                           R"({"spec":{"containers":[{"name":"c","ports":[{"containerPort":80}]}]}}}})"))
          .ToJson(),
      R"({"f:kind":{},"f:metadata":{"f:annotations":{},"f:labels":{"f:a":{}}},"f:spec":{"f:replicas":{},)"
      R"("f:selector":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{},)"
      R"("f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}})");
}

TEST(TypedTest, RemovesAndExtracts) {
  const Shape& shape = ShapeOf(corev1::PodSpec::descriptor());
  json::value spec = json::parse(
      R"({"hostname":"h","nodeName":"n","containers":[{"name":"a","image":"1"},{"name":"b","image":"2"}]})");
  FieldSet set = *FieldSet::FromJson(
      R"({"f:hostname":{},"f:containers":{"k:{\"name\":\"a\"}":{"f:image":{}},"k:{\"name\":\"b\"}":{}}})");
  EXPECT_EQ(json::serialize(RemoveFields(shape, spec, set)),
            R"({"nodeName":"n","containers":[{"name":"a"}]})");
  EXPECT_EQ(json::serialize(ExtractFields(shape, spec, set)),
            R"({"hostname":"h","containers":[{"image":"1"},{"name":"b","image":"2"}]})");
  EXPECT_EQ(
      WithNamedFields(shape, *FieldSet::FromJson(R"({"f:securityContext":{"f:runAsUser":{}}})")).ToJson(),
      R"({"f:securityContext":{".":{},"f:runAsUser":{}}})");
}

}  // namespace
}  // namespace keelson::api

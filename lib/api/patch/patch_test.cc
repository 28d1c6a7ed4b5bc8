#include "lib/api/patch/patch.h"

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/types.h"

namespace keelson::api {
namespace {

namespace json = boost::json;

std::string Text(const json::value& value) { return json::serialize(value); }

struct Case {
  const char *document, *patch, *want;  // want: the result, or "!" and a part of the error
};

template <typename Apply>
void Check(const Case& c, Apply apply) {
  SCOPED_TRACE(std::string(c.document) + " <- " + c.patch);
  Result<json::value> got = apply(json::parse(c.document), json::parse(c.patch));
  if (c.want[0] == '!') {
    ASSERT_FALSE(got) << Text(*got);
    EXPECT_NE(got.error().message().find(c.want + 1), std::string::npos) << got.error().message();
  } else {
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(Text(*got), Text(json::parse(c.want)));
  }
}

TEST(JsonPatch, Operations) {
  static constexpr Case kCases[] = {
      {R"({"a":1})", R"([{"op":"add","path":"/b","value":{"c":2}}])", R"({"a":1,"b":{"c":2}})"},
      {R"({"a":[1,3]})", R"([{"op":"add","path":"/a/1","value":2},{"op":"add","path":"/a/-","value":4}])",
       R"({"a":[1,2,3,4]})"},
      {R"({"a":[1]})", R"([{"op":"add","path":"/a/5","value":2}])", "!invalid index"},
      {R"({"a":1})", R"([{"op":"add","path":"/x/y","value":2}])", "!missing path"},
      {R"({"a":1,"b":2})", R"([{"op":"remove","path":"/a"}])", R"({"b":2})"},
      {R"({"a":[1,2]})", R"([{"op":"remove","path":"/a/0"}])", R"({"a":[2]})"},
      {R"({"a":1})", R"([{"op":"remove","path":"/x"}])", "!nonexistent key"},
      {R"({"a":1})", R"([{"op":"replace","path":"/a","value":[]}])", R"({"a":[]})"},
      {R"({"a":1})", R"([{"op":"replace","path":"/x","value":1}])", "!missing key"},
      {R"({"a":1})", R"([{"op":"replace","path":"","value":{"z":0}}])", R"({"z":0})"},
      {R"({"a~b":{"c/d":1}})", R"([{"op":"replace","path":"/a~0b/c~1d","value":2}])", R"({"a~b":{"c/d":2}})"},
      {R"({"a":{"b":1}})", R"([{"op":"move","from":"/a/b","path":"/c"}])", R"({"a":{},"c":1})"},
      {R"({"a":{"b":1}})", R"([{"op":"move","from":"/a","path":"/a/b"}])", "!into itself"},
      {R"({"a":{"b":1}})", R"([{"op":"copy","from":"/a","path":"/c"}])", R"({"a":{"b":1},"c":{"b":1}})"},
      {R"({"a":1})", R"([{"op":"test","path":"/a","value":1},{"op":"add","path":"/b","value":2}])",
       R"({"a":1,"b":2})"},
      {R"({"a":1})", R"([{"op":"test","path":"/a","value":2}])", "!test failed"},
      {R"({"a":1})", R"([{"op":"jump","path":"/a"}])", "!Unexpected kind"},
      {R"({"a":1})", R"({"op":"add"})", "!not an array"},
      {R"({"a":1})", R"([{"op":"add","path":"a","value":1}])", "!does not start with /"},
  };
  for (const Case& c : kCases) {
    Check(c, [](auto document, const auto& patch) { return ApplyJsonPatch(document, patch); });
  }
  EXPECT_EQ(ApplyJsonPatch(json::parse("{}"), json::parse(R"([{"op":"test","path":"/a","value":2}])"))
                .error()
                .code(),
            Code::kInvalid);
  json::array many(10'001, json::parse(R"({"op":"add","path":"/a","value":1})"));
  EXPECT_EQ(ApplyJsonPatch(json::parse("{}"), many).error().code(), Code::kTooLarge);
}

TEST(MergePatch, Rfc7386) {
  static constexpr Case kCases[] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", R"({})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
      {R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
  };
  for (const Case& c : kCases) {
    Check(c, [](auto document, const auto& patch) {
      return Result<json::value>(ApplyMergePatch(document, patch));
    });
  }
}

void CheckStrategic(const Case& c, const Descriptor* type) {
  Check(c, [&](auto document, const auto& patch) {
    return ApplyStrategicMergePatch(document, patch, TypeViewOf(type));
  });
}

TEST(StrategicMergePatch, PodSpec) {
  static constexpr Case kCases[] = {
      // Lists merge by key; so do the fields of their items.
      {R"({"containers":[{"name":"a","image":"x","env":[{"name":"E","value":"1"}]},{"name":"b","image":"y"}]})",
       R"({"containers":[{"name":"b","image":"z"},{"name":"a","env":[{"name":"F","value":"2"}]}]})",
       R"({"containers":[{"name":"b","image":"z"},{"name":"a","image":"x","env":[{"name":"F","value":"2"},{"name":"E","value":"1"}]}]})"},
      {R"({"containers":[{"name":"a"},{"name":"b"}]})", R"({"containers":[{"name":"c","image":"n"}]})",
       R"({"containers":[{"name":"c","image":"n"},{"name":"a"},{"name":"b"}]})"},
      {R"({"containers":[{"name":"a"},{"name":"b"}]})", R"({"containers":[{"name":"a","$patch":"delete"}]})",
       R"({"containers":[{"name":"b"}]})"},
      {R"({"containers":[{"name":"a"},{"name":"b"}]})",
       R"({"containers":[{"$patch":"replace"},{"name":"c"}]})", R"({"containers":[{"name":"c"}]})"},
      {R"({"containers":[{"name":"a","command":["x","y"]}]})",
       R"({"containers":[{"name":"a","command":["z"]}]})",
       R"({"containers":[{"name":"a","command":["z"]}]})"},
      {R"({"containers":[{"name":"a","ports":[{"containerPort":80,"name":"p"}]}]})",
       R"({"containers":[{"name":"a","ports":[{"containerPort":80,"protocol":"TCP"},{"containerPort":81}]}]})",
       R"({"containers":[{"name":"a","ports":[{"containerPort":80,"name":"p","protocol":"TCP"},{"containerPort":81}]}]})"},
      {R"({"containers":[{"name":"a"}]})", R"({"containers":[{"image":"a"}]})",
       "!does not contain declared merge key: name"},
      // In the patch's order.
      {R"({"containers":[{"name":"a"},{"name":"b"},{"name":"s"}]})",
       R"({"$setElementOrder/containers":[{"name":"b"},{"name":"n"},{"name":"a"}],"containers":[{"name":"n","image":"i"}]})",
       R"({"containers":[{"name":"b"},{"name":"n","image":"i"},{"name":"a"},{"name":"s"}]})"},
      {R"({"containers":[{"name":"a"},{"name":"b"}]})",
       R"({"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]})",
       R"({"containers":[{"name":"b"},{"name":"a"}]})"},
      // Volumes are one-of types: kubectl lists the keys to retain.
      {R"({"volumes":[{"name":"v","emptyDir":{}}]})",
       R"({"volumes":[{"name":"v","$retainKeys":["name","hostPath"],"hostPath":{"path":"/x"}}]})",
       R"({"volumes":[{"name":"v","hostPath":{"path":"/x"}}]})"},
      {R"({"volumes":[]})", R"({"volumes":[{"$retainKeys":["name"],"name":"v","emptyDir":{"medium":null}}]})",
       R"({"volumes":[{"name":"v","emptyDir":{}}]})"},
      {R"({"volumes":[{"name":"v"}]})", R"({"volumes":[{"name":"v","$retainKeys":["name"],"emptyDir":{}}]})",
       "!rejected our request"},
      // Maps merge; null removes; a field without a strategy is replaced.
      {R"({"nodeSelector":{"a":"1","b":"2"}})", R"({"nodeSelector":{"b":null,"c":"3"}})",
       R"({"nodeSelector":{"a":"1","c":"3"}})"},
      {R"({"nodeSelector":{"a":"1"}})", R"({"nodeSelector":{"$patch":"replace","c":"3"}})",
       R"({"nodeSelector":{"c":"3"}})"},
      {R"({"nodeSelector":{"a":"1"}})", R"({"nodeSelector":{"$patch":"delete"}})", R"({"nodeSelector":{}})"},
      {R"({"tolerations":[{"key":"a"}]})", R"({"tolerations":[{"key":"b"}]})",
       R"({"tolerations":[{"key":"b"}]})"},
      {R"({"hostNetwork":true})", R"({"hostNetwork":null,"nodeName":"n","dnsPolicy":null})",
       R"({"nodeName":"n"})"},
      {R"({})", R"({"$patch":"jump"})", "!unknown patch type"},
      {R"({})", R"([])", "!invalid JSON document"},
  };
  for (const Case& c : kCases) CheckStrategic(c, corev1::PodSpec::descriptor());
}

// What kubectl 1.32 sends for an apply that changes a container, adds one, drops one, and changes a
// volume's source and the strategy.
TEST(StrategicMergePatch, WhatKubectlApplySends) {
  CheckStrategic(
      {R"({"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}},"template":{"spec":{)"
       R"("containers":[{"name":"a","image":"a"},{"name":"b","image":"b","imagePullPolicy":"Always"}],)"
       R"("volumes":[{"name":"v","emptyDir":{}}]}}}})",
       R"({"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"},"template":{"spec":{)"
       R"("$setElementOrder/containers":[{"name":"b"},{"name":"c"}],"$setElementOrder/volumes":[{"name":"v"}],)"
       R"("containers":[{"image":"b2","name":"b"},{"image":"c","name":"c"},{"$patch":"delete","name":"a"}],)"
       R"("volumes":[{"$retainKeys":["hostPath","name"],"emptyDir":null,"hostPath":{"path":"/x"},"name":"v"}]}}}})",
       R"({"spec":{"strategy":{"type":"Recreate"},"template":{"spec":{)"
       R"("containers":[{"name":"b","image":"b2","imagePullPolicy":"Always"},{"image":"c","name":"c"}],)"
       R"("volumes":[{"name":"v","hostPath":{"path":"/x"}}]}}}})"},
      appsv1::Deployment::descriptor());
}

TEST(StrategicMergePatch, OtherTypes) {
  CheckStrategic({R"({"metadata":{"finalizers":["a","b","c"]}})",
                  R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["b"],"finalizers":["d"],)"
                  R"("$setElementOrder/finalizers":["a","d","c"]}})",
                  R"({"metadata":{"finalizers":["a","d","c"]}})"},
                 corev1::Pod::descriptor());
  CheckStrategic({R"({"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}})",
                  R"({"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}})",
                  R"({"spec":{"strategy":{"type":"Recreate"}}})"},
                 appsv1::Deployment::descriptor());
  CheckStrategic(
      {R"({"spec":{"ports":[{"port":80,"nodePort":30000},{"port":443}]}})",
       R"({"spec":{"ports":[{"port":80,"targetPort":8080}],"$setElementOrder/ports":[{"port":80},{"port":443}]}})",
       R"({"spec":{"ports":[{"port":80,"nodePort":30000,"targetPort":8080},{"port":443}]}})"},
      corev1::Service::descriptor());
  CheckStrategic(
      {R"({"status":{"conditions":[{"type":"Ready","status":"True","reason":"x"},{"type":"Other","status":"True"}]}})",
       R"({"status":{"conditions":[{"type":"Ready","status":"False"}]}})",
       R"({"status":{"conditions":[{"type":"Ready","status":"False","reason":"x"},{"type":"Other","status":"True"}]}})"},
      corev1::Node::descriptor());
  CheckStrategic(
      {R"({"data":{"a":{"x":1}}})", R"({"data":{"a":{"y":[1],"x":null}}})", R"({"data":{"a":{"y":[1]}}})"},
      appsv1::ControllerRevision::descriptor());
}

}  // namespace
}  // namespace keelson::api

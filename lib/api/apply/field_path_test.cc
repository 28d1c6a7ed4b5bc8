#include "lib/api/apply/field_path.h"

#include <gtest/gtest.h>

namespace keelson::api {
namespace {

FieldSet Set(std::string_view json) {
  Result<FieldSet> set = FieldSet::FromJson(json);
  EXPECT_TRUE(set) << json << ": " << (set ? "" : set.error().message());
  return set ? *set : FieldSet();
}

std::vector<std::string> Paths(const FieldSet& set) {
  std::vector<std::string> paths;
  set.ForEach([&](const FieldPath& path) { paths.push_back(PrintPath(path)); });
  return paths;
}

TEST(FieldPathTest, ComesBackAsItWas) {
  for (const char* json : {
           R"({})",
           R"({"f:data":{}})",
           R"({"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:replicas":{}}})",
           R"({"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{},"f:name":{}}}}})",
           R"({"f:metadata":{"f:finalizers":{".":{},"v:\"a/b\"":{}}}})",
           R"({"f:a":{"i:0":{},"i:10":{}}})",
       }) {
    EXPECT_EQ(Set(json).ToJson(), json);
  }
}

TEST(FieldPathTest, PutsInOrderWhatIsNot) {
  struct {
    const char *json, *want;
  } cases[] = {
      {R"({"f:b":{},"f:a":{}})", R"({"f:a":{},"f:b":{}})"},
      {R"({"f:b":{"f:c":{}},"f:a":{},"f:b":{"f:d":{}}})", R"({"f:a":{},"f:b":{"f:c":{},"f:d":{}}})"},
      // Numbers sort by value, not by digits; a default protocol sorts after the port.
      {R"({"f:p":{"k:{\"port\":443}":{},"k:{\"port\":80}":{}}})",
       R"({"f:p":{"k:{\"port\":80}":{},"k:{\"port\":443}":{}}})"},
      {R"({"f:p":{"k:{\"protocol\":\"UDP\", \"port\":80}":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{}}})",
       R"({"f:p":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{},"k:{\"port\":80,\"protocol\":\"UDP\"}":{}}})"},
      // Fields sort before keys before values before indexes.
      {R"({"i:1":{},"v:1":{},"k:{\"a\":1}":{},"f:z":{}})",
       R"({"f:z":{},"k:{\"a\":1}":{},"v:1":{},"i:1":{}})"},
      {R"({"v:\"b\"":{},"v:10":{},"v:9":{},"v:true":{}})",
       R"({"v:9":{},"v:10":{},"v:\"b\"":{},"v:true":{}})"},
      // A step of an unknown kind, from a later version, is dropped.
      {R"({"x:new":{"f:a":{}},"f:a":{}})", R"({"f:a":{}})"},
      {R"({"f:a":{".":{}}})", R"({"f:a":{}})"},
  };
  for (const auto& one : cases) EXPECT_EQ(Set(one.json).ToJson(), one.want) << one.json;
}

TEST(FieldPathTest, RefusesWhatIsNone) {
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += R"({"f:a":)";
  for (const std::string& json :
       {std::string(), std::string("null"), std::string("[]"), std::string(R"({"f:a":1})"),
        std::string(R"({"a":{}})"), std::string(R"({"k:[]":{}})"), std::string(R"({"k:{":{}})"),
        std::string(R"({"i:x":{}})"), std::string(R"({"f:a":{}} x)"), std::string(R"({"f:a":{})"), deep}) {
    EXPECT_FALSE(FieldSet::FromJson(json)) << json;
  }
}

TEST(FieldPathTest, Prints) {
  FieldSet set =
      Set(R"({"f:metadata":{"f:finalizers":{"v:\"x\"":{}}},"f:spec":{".":{},"f:ports":{)"
          R"("k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}},"f:z":{}},"f:l":{"i:3":{}}})");
  EXPECT_EQ(Paths(set), (std::vector<std::string>{".spec", ".l[3]", ".metadata.finalizers[=\"x\"]", ".spec.z",
                                                  ".spec.ports[port=80,protocol=\"TCP\"]",
                                                  ".spec.ports[port=80,protocol=\"TCP\"].name"}));
  EXPECT_EQ(set.Size(), 6u);
  EXPECT_TRUE(set.Has(MakePath({"spec", "z"})));
  EXPECT_FALSE(set.Has(MakePath({"spec", "ports"})));
  EXPECT_FALSE(set.Has(MakePath({"metadata"})));
}

TEST(FieldPathTest, Algebra) {
  struct {
    const char *a, *b, *all, *difference, *trees, *common;
  } cases[] = {
      {R"({"f:a":{},"f:b":{}})", R"({"f:b":{},"f:c":{}})", R"({"f:a":{},"f:b":{},"f:c":{}})", R"({"f:a":{}})",
       R"({"f:a":{}})", R"({"f:b":{}})"},
      {R"({"f:a":{".":{},"f:x":{}}})", R"({"f:a":{}})", R"({"f:a":{".":{},"f:x":{}}})",
       R"({"f:a":{"f:x":{}}})", "{}", R"({"f:a":{}})"},
      {R"({"f:a":{}})", R"({"f:a":{"f:x":{}}})", R"({"f:a":{".":{},"f:x":{}}})", R"({"f:a":{}})",
       R"({"f:a":{}})", "{}"},
      {"{}", R"({"f:a":{}})", R"({"f:a":{}})", "{}", "{}", "{}"},
      {R"({"f:a":{}})", "{}", R"({"f:a":{}})", R"({"f:a":{}})", R"({"f:a":{}})", "{}"},
      {R"({"f:a":{"f:x":{},"f:y":{}},"f:c":{}})", R"({"f:a":{"f:x":{}},"f:b":{}})",
       R"({"f:a":{"f:x":{},"f:y":{}},"f:b":{},"f:c":{}})", R"({"f:a":{"f:y":{}},"f:c":{}})",
       R"({"f:a":{"f:y":{}},"f:c":{}})", R"({"f:a":{"f:x":{}}})"},
  };
  for (const auto& one : cases) {
    FieldSet a = Set(one.a), b = Set(one.b), all = a, difference = a, trees = a;
    all.UnionWith(b);
    EXPECT_EQ(all.ToJson(), one.all);
    EXPECT_EQ(difference.Subtract(b), std::string(one.difference) != one.a);
    EXPECT_EQ(difference.ToJson(), one.difference);
    trees.SubtractTrees(b);
    EXPECT_EQ(trees.ToJson(), one.trees);
    EXPECT_EQ(a.Intersection(b).ToJson(), one.common);
    EXPECT_EQ(a.Intersects(b), std::string(one.common) != "{}");
  }
}

TEST(FieldPathTest, InsertKeepsTheOrder) {
  FieldSet set;
  for (auto name : {"m", "a", "z", "m"}) set.Insert(MakePath({"spec", name}));
  set.Insert(MakePath({"spec"}));
  set.Insert({});
  EXPECT_EQ(set.ToJson(), R"({"f:spec":{".":{},"f:a":{},"f:m":{},"f:z":{}}})");
}

TEST(FieldPathTest, Filters) {
  const std::string containers = R"({"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{},)"
                                 R"("f:resources":{"f:limits":{}}}}},"f:status":{"f:phase":{}}})";
  FieldSet set = Set(containers);
  FieldFilter().Apply(set);
  EXPECT_EQ(set.ToJson(), containers);
  FieldFilter::Without(Set(R"({"f:spec":{}})")).Apply(set);
  EXPECT_EQ(set.ToJson(), R"({"f:status":{"f:phase":{}}})");
  set = Set(containers);
  FieldFilter::Only({{"f:spec", "f:containers", "*", "f:resources"}}).Apply(set);
  EXPECT_EQ(set.ToJson(), R"({"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},)"
                          R"("f:resources":{"f:limits":{}}}}}})");
}

}  // namespace
}  // namespace keelson::api

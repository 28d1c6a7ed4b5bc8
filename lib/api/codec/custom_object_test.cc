#include "lib/api/codec/custom_object.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/custom_object.pb.h"

namespace keelson::api {
namespace {

const GroupVersionKind kGvk{"example.com", "v1", "Foo"};

TEST(CustomObject, KeepsWhatNoSchemaNames) {
  custom::CustomObject object;
  DecodeReport report;
  TypeMeta type;
  ASSERT_TRUE(
      DecodeJson(R"({"spec": {"b": 1, "a": [1.5, null, "x"]}, "apiVersion":"example.com/v1","kind":"Foo",
      "metadata":{"name":"n","labels":{"l":"v"}}, "big": 9223372036854775807})",
                 object, &report, &type));
  EXPECT_EQ(report.problems, std::vector<std::string>());
  EXPECT_EQ(type.kind, "Foo");
  EXPECT_EQ(Meta(object).name(), "n");
  EXPECT_EQ(object.content(), R"({"spec":{"b":1,"a":[1.5,null,"x"]},"big":9223372036854775807})");
  const std::string json = EncodeJson(object, kGvk);
  EXPECT_EQ(json, R"({"kind":"Foo","apiVersion":"example.com/v1","metadata":{"name":"n",)"
                  R"("labels":{"l":"v"}},"spec":{"b":1,"a":[1.5,null,"x"]},"big":9223372036854775807})");
}

TEST(CustomObject, ContentIsCanonical) {
  custom::CustomObject object;
  ASSERT_TRUE(DecodeJson(R"({"spec":{"b":{"d":1.0,"c":"<é>"},"a":1e3}})", object));
  auto content = ContentOf(object);
  ASSERT_TRUE(content);
  SetContent(object, *content);
  EXPECT_EQ(object.content(), "{\"spec\":{\"a\":1000,\"b\":{\"c\":\"\\u003cé\\u003e\",\"d\":1}}}");
  SetContent(object, {});
  EXPECT_FALSE(object.has_content());
  EXPECT_TRUE(ContentOf(object)->empty());
}

TEST(CustomObject, TreesWithAndWithoutManagedFields) {
  custom::CustomObject object;
  ASSERT_TRUE(DecodeJson(R"({"metadata":{"name":"a","managedFields":[{"manager":"m","operation":"Apply"}]},
                             "spec":{"b":1,"a":[2]}})",
                         object));
  SetContent(object, *ContentOf(object));
  EXPECT_EQ(ContentText(object), R"({"spec":{"a":[2],"b":1}})");
  const GroupVersionKind gvk{"example.com", "v1", "Foo"};
  boost::json::object with = *TreeOf(object, gvk);
  EXPECT_TRUE(with.at("metadata").as_object().contains("managedFields"));
  with.at("metadata").as_object().erase("managedFields");
  EXPECT_EQ(CanonicalJson(*UnmanagedTreeOf(object, gvk)), CanonicalJson(with));
  object.mutable_metadata()->clear_managed_fields();
  EXPECT_EQ(CanonicalJson(*UnmanagedTreeOf(object, gvk)), CanonicalJson(with));
}

TEST(CustomObject, ReportsDuplicatesAtEveryDepth) {
  custom::CustomObject object;
  DecodeReport report;
  ASSERT_TRUE(
      DecodeJson(R"({"spec":{"a":1,"list":[{"x":1,"x":2}],"a":2},"metadata":{"nam":"x"},"spec":{"z":1}})",
                 object, &report));
  EXPECT_EQ(report.problems,
            (std::vector<std::string>{R"(duplicate field "spec.list[0].x")", R"(duplicate field "spec.a")",
                                      R"(unknown field "metadata.nam")", R"(duplicate field "spec")"}));
  auto content = ContentOf(object);
  ASSERT_TRUE(content);
  EXPECT_EQ(CanonicalJson(*content), R"({"spec":{"z":1}})");  // the last one counts
}

// Go's decoder does the same.
TEST(CustomObject, ReplacesBytesThatAreNotUtf8) {
  custom::CustomObject object;
  ASSERT_TRUE(DecodeJson("{\"spec\":{\"a\":\"x\xcd\xc3\xa9\"}}", object));
  auto content = ContentOf(object);
  ASSERT_TRUE(content);
  EXPECT_EQ(content->at("spec").at("a").as_string(), "x\xef\xbf\xbd\xc3\xa9");
  auto tree = ParseTree("[\"\xff\xfe\"]");
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->at(0).as_string(), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_FALSE(ParseTree("[\xff]"));
}

TEST(CustomObject, RefusesMalformedText) {
  custom::CustomObject object;
  EXPECT_FALSE(DecodeJson(R"({"spec":{"a":})", object));
  EXPECT_FALSE(DecodeJson(R"({"spec":)" + std::string(2000, '[') + std::string(2000, ']') + "}", object));
  EXPECT_FALSE(DecodeJson(R"({"metadata":{"labels":{"a":1}}})", object));
}

}  // namespace
}  // namespace keelson::api

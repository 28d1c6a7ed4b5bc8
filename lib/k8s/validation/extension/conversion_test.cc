#include "lib/k8s/validation/extension/conversion.h"

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>

namespace keelson::k8s {
namespace {

namespace json = boost::json;

metav1::ObjectMeta Original() {
  metav1::ObjectMeta meta;
  meta.set_name("a");
  meta.set_namespace_("ns");
  meta.set_uid("u");
  meta.set_resource_version("7");
  (*meta.mutable_labels())["x"] = "y";
  return meta;
}

json::object Parse(const std::string& text) { return json::parse(text).as_object(); }

std::string Same(const std::string& meta) {
  Result<> checked = ValidateConvertedObject(Original(), Parse(R"({"metadata":)" + meta + "}"));
  return checked ? "" : checked.error().message();
}

std::string Restored(const std::string& object) {
  json::object converted = Parse(object);
  Result<> restored = RestoreObjectMeta(Original(), converted);
  return restored ? "" : restored.error().message();
}

TEST(ConvertedObject, IsTheSameOne) {
  EXPECT_EQ(Same(R"({"name":"a","namespace":"ns","uid":"u"})"), "");
  EXPECT_EQ(Same(R"({"name":"b","namespace":"ns","uid":"u"})"), "must have the same name: a != b");
  EXPECT_EQ(Same(R"({"name":"a","namespace":"other","uid":"u"})"),
            "must have the same namespace: ns != other");
  EXPECT_EQ(Same(R"({"name":"a","namespace":"ns"})"), "must have the same UID: u != ");
  EXPECT_EQ(Same("3"), "must have the same name: a != ");
}

TEST(ConvertedObject, KeepsItsMetadataButLabelsAndAnnotations) {
  json::object converted =
      Parse(R"({"spec":1,"metadata":{"name":"a","resourceVersion":"9","finalizers":["f"],)"
            R"("annotations":{"k":"v"}}})");
  ASSERT_TRUE(RestoreObjectMeta(Original(), converted));
  const json::object& meta = converted.at("metadata").as_object();
  EXPECT_EQ(meta.at("resourceVersion").as_string(), "7");
  EXPECT_EQ(meta.at("uid").as_string(), "u");
  EXPECT_FALSE(meta.contains("finalizers"));
  EXPECT_FALSE(meta.contains("labels"));  // the webhook has taken them away
  EXPECT_EQ(meta.at("annotations").at("k").as_string(), "v");
  EXPECT_EQ(converted.at("spec").as_int64(), 1);
}

TEST(ConvertedObject, WrongMetadataIsNamed) {
  EXPECT_EQ(Restored("{}"), "missing metadata in converted object");
  EXPECT_EQ(Restored(R"({"metadata":null})"), "invalid metadata of type <nil> in converted object");
  EXPECT_EQ(Restored(R"({"metadata":[]})"), "invalid metadata of type []interface {} in converted object");
  EXPECT_EQ(Restored(R"({"metadata":{"labels":"x"}})"),
            "invalid metadata.labels of type string in converted object");
  EXPECT_EQ(Restored(R"({"metadata":{"annotations":{"a":1.5}}})"),
            "metadata.annotations[a] must be a string, but is float64 in converted object");
  EXPECT_EQ(Restored(R"({"metadata":{"labels":{"x":"y"}}})"), "");
  const std::string bad = Restored(R"({"metadata":{"labels":{"x":"a b"}}})");
  EXPECT_TRUE(bad.starts_with("metadata.labels: Invalid value: \"a b\": ")) << bad;
  EXPECT_TRUE(
      Restored(R"({"metadata":{"annotations":{"!":"", "?":""}}})").starts_with("[metadata.annotation: "));
}

}  // namespace
}  // namespace keelson::k8s

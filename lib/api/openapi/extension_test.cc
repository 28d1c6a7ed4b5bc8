#include "lib/api/openapi/extension.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/openapi/openapi.h"

namespace keelson::api {
namespace {

namespace json = boost::json;

constexpr char kPrefix[] = "/apis/wardle.example.com/v1";

// A document with one path below the prefix, and these definitions beside the kind.
std::string Document(const std::string& flunder, const std::string& more = "") {
  return fmt::format(R"({{"swagger":"2.0","paths":{{
    "/apis/wardle.example.com/v1/flunders":{{
      "get":{{"description":"list","produces":["application/json"],
        "responses":{{"200":{{"description":"OK","schema":{{"$ref":"#/definitions/com.example.Flunder"}}}}}}}},
      "parameters":[{{"$ref":"#/parameters/pretty-1"}}]}},
    "/apis/wardle.example.com/v10/others":{{"get":{{"responses":{{}}}}}},
    "/version":{{"get":{{"responses":{{}}}}}}}},
    "parameters":{{"pretty-1":{{"description":"d","in":"query","name":"pretty","type":"string","uniqueItems":true}}}},
    "definitions":{{"com.example.Flunder":{}{},"com.example.Unused":{{"type":"object"}}}}}})",
                     flunder, more);
}
constexpr char kFlunder[] =
    R"({"type":"object","properties":{"metadata":{"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
    "description":{"type":"string"}}})";

std::string Own(const std::string& name) {
  const json::value document = json::parse(OpenApiV2Json());
  return json::serialize(document.at("definitions").at(name));
}

std::string Cut(const std::string& document) {
  auto part = CutOpenApiV2(document, kPrefix);
  EXPECT_TRUE(part) << (part ? "" : part.error().message());
  return part ? *part : R"({"paths":{},"definitions":{}})";
}

json::object Members(const std::string& members) { return json::parse("{" + members + "}").as_object(); }

TEST(OpenApiExtension, CutsWhatAGroupVersionNeeds) {
  const json::value part = json::parse(Cut(Document(kFlunder)));
  ASSERT_EQ(part.at("paths").as_object().size(), 1u);
  const json::value& item = part.at("paths").at("/apis/wardle.example.com/v1/flunders");
  EXPECT_EQ(item.at("parameters").at(0).at("name").as_string(), "pretty");
  EXPECT_TRUE(part.at("definitions").as_object().contains("com.example.Flunder"));
  EXPECT_FALSE(part.at("definitions").as_object().contains("com.example.Unused"));
}

// Definitions that mean the same are shared, whatever their texts.
TEST(OpenApiExtension, SharesDefinitions) {
  const std::string meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
  json::value other = json::parse(Own(meta));
  other.as_object()["description"] = "in other words";
  const auto both = MergeOpenApiV2({Cut(Document(kFlunder, ",\"" + meta + "\":" + json::serialize(other)))});
  const json::object definitions = Members(both.json.schemas);
  EXPECT_TRUE(definitions.contains("com.example.Flunder"));
  EXPECT_FALSE(definitions.contains(meta));
  EXPECT_FALSE(definitions.contains(meta + "_v2"));
  EXPECT_EQ(Members(both.json.paths).size(), 1u);
  EXPECT_NE(both.protobuf.find("com.example.Flunder"), std::string::npos);
}

TEST(OpenApiExtension, RenamesOthers) {
  const std::string meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
  const auto one = MergeOpenApiV2({Cut(
      Document(kFlunder, ",\"" + meta + R"(":{"type":"object","properties":{"x":{"type":"string"}}})"))});
  const json::object definitions = Members(one.json.schemas);
  ASSERT_TRUE(definitions.contains(meta + "_v2"));
  EXPECT_EQ(definitions.at("com.example.Flunder").at("properties").at("metadata").at("$ref").as_string(),
            "#/definitions/" + meta + "_v2");
  EXPECT_EQ(definitions.at("com.example.Flunder").at("properties").at("description").at("type").as_string(),
            "string");

  // Two servers with the same name for different things, and with the same thing.
  const std::string second = Cut(Document(R"({"type":"object","properties":{"y":{"type":"string"}}})"));
  const auto two = MergeOpenApiV2({Cut(Document(kFlunder)), second, second});
  const json::object all = Members(two.json.schemas);
  EXPECT_TRUE(all.contains("com.example.Flunder"));
  EXPECT_TRUE(all.contains("com.example.Flunder_v2"));
  EXPECT_FALSE(all.contains("com.example.Flunder_v3"));
  EXPECT_EQ(Members(two.json.paths).size(), 1u);
}

TEST(OpenApiExtension, RefusesWhatIsNoDocument) {
  for (const std::string& text :
       {std::string("{"), std::string("[]"), Document(R"({"type":"object","properties":[]})"),
        Document(R"({"required":{}})")}) {
    EXPECT_FALSE(CutOpenApiV2(text, kPrefix)) << text;
  }
  EXPECT_EQ(Cut("{}"), R"({"paths":{},"definitions":{}})");
  // Parameters and definitions that refer to themselves.
  const std::string circles =
      R"({"paths":{"/apis/wardle.example.com/v1/a":{"parameters":[{"$ref":"#/parameters/p"}]}},
      "parameters":{"p":{"in":"body","name":"b","schema":{"$ref":"#/definitions/d"},"x-a":{"$ref":"#/parameters/p"}}},
      "definitions":{"d":{"properties":{"d":{"$ref":"#/definitions/d"},"gone":{"$ref":"#/definitions/gone"}}}}})";
  EXPECT_NE(Cut(circles).find("definitions/gone"), std::string::npos);
}

}  // namespace
}  // namespace keelson::api

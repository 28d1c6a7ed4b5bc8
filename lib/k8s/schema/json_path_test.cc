#include "lib/k8s/schema/json_path.h"

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/k8s/testing/schemas.h"

namespace keelson::k8s {
namespace {

using testing::Tree;

constexpr char kObject[] =
    R"({"apiVersion":"x/v1","metadata":{"name":"n","annotations":{"a.b/c":"dotted"},"creationTimestamp":"2026-01-01T00:00:00Z"},)"
    R"("spec":{"replicas":3,"ratio":1.5,"on":true,"list":["a","b","c"],"none":null,)"
    R"("ports":[{"name":"http","port":80},{"name":"https","port":443}]},)"
    R"("status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Synced","status":"False"}]}})";

struct Case {
  const char *path, *values;
};

const Case kCases[] = {
    {".spec.replicas", "3"},
    {".spec.missing.more", ""},
    {".spec.none", "<nil>"},
    {".spec.list[0]", "a"},
    {".spec.list[-1]", "c"},
    {".spec.list[-2:]", "b c"},
    {".spec.list[0:2]", "a b"},
    {".spec.list[::2]", "a c"},
    {".spec.list[*]", "a b c"},
    {".spec.list[0,2]", "a c"},
    {".spec.list[7]", ""},
    {".spec.replicas[0]", ""},
    {".spec.ports[*].name", "http https"},
    {".spec.ports[?(@.port==443)].name", "https"},
    {".spec.ports[?(@.port > 80)].name", "https"},
    {".spec.ports[?(@.port)].name", "http https"},
    {".spec.ports[?(@.missing==1)].name", ""},
    {".spec.ports[?(@.name>=\"http\")].port", "80 443"},
    {".status.conditions[?(@.type==\"Ready\")].status", "True"},
    {".status.conditions[?(@.type=='Synced')].status", "False"},
    {".status.conditions[?(@.type!=\"Ready\")].status", "False"},
    {".status.conditions[?(@.type==@.status)].type", ""},
    {"..port", "80 443"},
    {".metadata.annotations['a\\.b/c']", "dotted"},
    {".metadata.annotations.a\\.b/c", "dotted"},
    {"$.metadata.name", "n"},
    {".spec['replicas']", "3"},
    {".metadata.annotations.*", "dotted"},
    {".spec.ports[0]", "map[name:http port:80]"},
};

TEST(JsonPath, FindsValues) {
  const boost::json::value object = Tree(kObject);
  for (const Case& one : kCases) {
    const auto path = JsonPath::Parse(one.path);
    ASSERT_TRUE(path) << one.path << ": " << path.error().message();
    std::string found;
    for (const boost::json::value* value : path->Find(object)) {
      if (!found.empty()) found += ' ';
      found += GoText(*value);
    }
    EXPECT_EQ(found, one.values) << one.path;
  }
}

TEST(JsonPath, RefusesWhatIsNoPath) {
  const std::pair<const char*, const char*> cases[] = {
      {".spec.list[", "unterminated array"},
      {".spec.list[a]", "invalid array index a"},
      {".spec[?(@.a==1)", "unclosed array expect ]"},
      {".spec[?(@.a==1", "unterminated filter"},
      {"....a", "invalid multiple recursive descent"},
      {"spec", "unrecognized identifier spec"},
      {".spec#", ""},
      {".a}", "unrecognized character in action: U+007D '}'"},
  };
  for (const auto& [text, message] : cases) {
    const auto path = JsonPath::Parse(text);
    if (!*message) {
      EXPECT_TRUE(path) << text;
      continue;
    }
    ASSERT_FALSE(path) << text;
    EXPECT_EQ(path.error().message(), message) << text;
  }
  std::string deep = ".a";
  for (int i = 0; i < 100; ++i) deep = "[?(" + deep + ")]";
  EXPECT_FALSE(JsonPath::Parse(deep));
}

TEST(JsonPath, EndsWhenAPathMultipliesValues) {
  std::string text = "1";
  for (int i = 0; i < 200; ++i) text = R"({"a":)" + text + "}";
  boost::json::parse_options options;
  options.max_depth = 1000;
  const boost::json::value object = boost::json::parse(text, {}, options);
  EXPECT_TRUE(JsonPath::Parse("..a..a..a")->Find(object).empty());
}

struct CellCase {
  const char *path, *type, *cell;
};

const CellCase kCells[] = {
    {".spec.replicas", "integer", "3"},
    {".spec.ratio", "integer", "1"},
    {".spec.ratio", "number", "1.5E0"},
    {".spec.replicas", "number", "3E0"},
    {".spec.on", "boolean", "true"},
    {".spec.on", "string", "\"true\""},
    {".spec.replicas", "string", "\"3\""},
    {".spec.ports", "string", "\"[map[name:http port:80] map[name:https port:443]]\""},
    {".spec.missing", "string", "null"},
    {".spec.none", "integer", "null"},
    {".spec.on", "integer", "null"},
    {".metadata.creationTimestamp", "date", "\"60s\""},
    {".metadata.name", "date", "\"<invalid>\""},
};

TEST(PrinterCell, HasTheTypeOfTheColumn) {
  constexpr int64_t kAMinuteLater = 1767225660;
  const boost::json::value object = Tree(kObject);
  for (const CellCase& one : kCells) {
    EXPECT_EQ(
        boost::json::serialize(PrinterCell(*JsonPath::Parse(one.path), one.type, object, kAMinuteLater)),
        one.cell)
        << one.path << " " << one.type;
  }
}

}  // namespace
}  // namespace keelson::k8s

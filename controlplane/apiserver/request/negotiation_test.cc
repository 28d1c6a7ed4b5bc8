#include "controlplane/apiserver/request/negotiation.h"

#include <gtest/gtest.h>

#include "controlplane/apiserver/request/yaml.h"

namespace keelson::apiserver {
namespace {

http::ServerRequest Accepting(const char* accept) {
  http::ServerRequest request;
  if (*accept) request.headers.Set("Accept", accept);
  return request;
}

TEST(Negotiation, Output) {
  struct Case {
    const char* accept;
    Encoding encoding;
    As as;
  };
  constexpr Case kCases[] = {
      {"", Encoding::kJson, As::kObject},
      {"*/*", Encoding::kJson, As::kObject},
      {"application/yaml", Encoding::kYaml, As::kObject},
      {"application/vnd.kubernetes.protobuf, */*", Encoding::kProtobuf, As::kObject},
      {"application/json;q=0.5, application/vnd.kubernetes.protobuf", Encoding::kProtobuf, As::kObject},
      {"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Encoding::kJson, As::kTable},
      {"application/json;as=Table;v=v3;g=meta.k8s.io,application/json", Encoding::kJson, As::kObject},
      {"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
       Encoding::kProtobuf, As::kPartialMetadataList},
      {"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Encoding::kJson, As::kPartialMetadata},
      // Tables have no protobuf form: the next clause counts.
      {"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1;"
       "g=meta.k8s.io",
       Encoding::kJson, As::kTable},
      {"application/yaml;as=Table;v=v1beta1;g=meta.k8s.io", Encoding::kYaml, As::kTable},
      {"*/*;q=0.1, application/yaml;q=0.1", Encoding::kYaml, As::kObject},
      {"application/*", Encoding::kJson, As::kObject},
      {"*", Encoding::kJson, As::kObject},
      {"APPLICATION/JSON ; q=1", Encoding::kJson, As::kObject},
      {"application/yaml;q=0, application/json;q=0.001", Encoding::kJson, As::kObject},
      {"application/yaml;q=abc", Encoding::kYaml, As::kObject},
      {"application/json;stream=watch", Encoding::kJson, As::kObject},
      {",,;;,application/json", Encoding::kJson, As::kObject},
      {"text/html, application/json", Encoding::kJson, As::kObject},
  };
  for (const Case& c : kCases) {
    Result<Output> output = NegotiateOutput(Accepting(c.accept), Forms::kAll);
    ASSERT_TRUE(output) << c.accept;
    EXPECT_EQ(output->encoding, c.encoding) << c.accept;
    EXPECT_EQ(output->as, c.as) << c.accept;
  }
}

TEST(Negotiation, Refusals) {
  constexpr const char* kObjects =
      "only the following media types are accepted: application/json, application/yaml, "
      "application/vnd.kubernetes.protobuf";
  constexpr const char* kStreams =
      "only the following media types are accepted: application/json;stream=watch, "
      "application/vnd.kubernetes.protobuf;stream=watch";
  // As upstream's router words it, which knows types without their parameters.
  constexpr const char* kNoRoute =
      "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
      "application/vnd.kubernetes.protobuf";
  constexpr const char* kNoListRoute =
      "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
      "application/vnd.kubernetes.protobuf, application/json;stream=watch, "
      "application/vnd.kubernetes.protobuf;stream=watch";
  struct Case {
    const char* accept;
    Forms forms;
    const char* message;
    bool custom = false;
  };
  const std::string many(20000, ',');
  const Case kCases[] = {
      {"text/html", Forms::kAll, kNoRoute},
      {"application/json;q=0", Forms::kAll, kObjects},
      {"application/json;as=Table;v=v1;g=meta.k8s.io", Forms::kPlain, kObjects},
      {"application/json;as=Table;v=v1;g=meta.k8s.io", Forms::kNoTable, kObjects},
      {"application/json;as=Table;v=v1;g=other", Forms::kAll, kObjects},
      {"application/json;as=Nothing;v=v1;g=meta.k8s.io", Forms::kAll, kObjects},
      {"application/json;stream=other", Forms::kAll, kObjects},
      {"json", Forms::kAll, kNoRoute},
      {",", Forms::kAll, kNoRoute},
      {many.c_str(), Forms::kAll, kNoRoute},
      {"application/yaml", Forms::kWatch, kStreams},
      {"text/html", Forms::kWatch, kNoListRoute},
      {"text/html", Forms::kList, kNoListRoute},
      {"application/cbor", Forms::kAll, kNoRoute},
      {"application/cbor", Forms::kList, kNoListRoute},
      {"application/cbor", Forms::kList, kObjects, true},
  };
  for (const Case& c : kCases) {
    Result<Output> output = NegotiateOutput(Accepting(c.accept), c.forms, c.custom);
    ASSERT_FALSE(output) << c.accept;
    EXPECT_EQ(HttpStatus(output.error().code()), 406);
    EXPECT_EQ(output.error().message(), c.message) << c.accept;
  }
  http::ServerRequest request;
  request.headers.Set("Content-Type", "text/plain");
  Result<Encoding> body = BodyEncoding(request);
  ASSERT_FALSE(body);
  EXPECT_EQ(HttpStatus(body.error().code()), 415);
  request.headers.Set("Content-Type", "application/cbor");
  body = BodyEncoding(request);
  ASSERT_FALSE(body);
  EXPECT_EQ(HttpStatus(body.error().code()), 415);
  EXPECT_EQ(
      body.error().message(),
      "the body of the request was in an unknown format - accepted media types include: application/json, "
      "application/yaml, application/vnd.kubernetes.protobuf");
  request.headers.Set("Content-Type", "application/json; charset=utf-8");
  EXPECT_EQ(*BodyEncoding(request), Encoding::kJson);
}

TEST(Negotiation, Pretty) {
  struct Case {
    const char *query, *agent, *accept;
    bool pretty;
  };
  constexpr Case kCases[] = {
      {"", "kubectl/v1.36.0", "", false},   {"", "curl/7.88", "", true},
      {"", "Wget/1.21", "", true},          {"", "Mozilla/5.0 (X11)", "", true},
      {"pretty=1", "", "", true},           {"pretty=true", "", "", true},
      {"pretty=0", "curl/7.88", "", false}, {"pretty=x", "curl/7.88", "", false},
      {"pretty=", "curl/7.88", "", true},   {"", "", "application/json;pretty=1", true},
  };
  for (const Case& c : kCases) {
    http::ServerRequest request = Accepting(c.accept);
    request.query = http::Query::Parse(c.query);
    request.headers.Set("User-Agent", c.agent);
    EXPECT_EQ(NegotiateOutput(request, Forms::kAll)->pretty, c.pretty) << c.query << c.agent << c.accept;
  }
}

TEST(Negotiation, Gzip) {
  const std::pair<const char*, bool> kCases[] = {
      {"gzip", true}, {"deflate, gzip;q=0.5", true}, {"gzip;q=0", false}, {"identity", false}, {"", false}};
  for (const auto& [coding, gzip] : kCases) {
    http::ServerRequest request;
    request.headers.Set("Accept-Encoding", coding);
    EXPECT_EQ(PlainOutput(request).gzip, gzip) << coding;
  }
}

TEST(Negotiation, Warnings) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(WarningHeaders({"unknown field \"a\\b\"", "", "x", "x", "\xc3\xa4"}),
            (Texts{"299 - \"unknown field \\\"a\\\\b\\\"\"", "299 - \"x\"", "299 - \"\xc3\xa4\""}));
  // No header may hold these.
  EXPECT_EQ(WarningHeaders({"a\nb", "a\r\nSet-Cookie: x", std::string("a\0b", 3), "\xff", "\xc3", "\x7f"}),
            Texts{});
  // As much as 4096 characters go out as they are; more is cut and then left out.
  EXPECT_EQ(WarningHeaders({std::string(4096, 'a')})[0].size(), 4096 + 8U);
  Texts long_ones;
  for (int i = 0; i < 40; ++i) long_ones.push_back(std::to_string(i) + std::string(1000, 'x'));
  Texts shown = WarningHeaders(long_ones);
  ASSERT_EQ(shown.size(), 16U);
  for (const std::string& one : shown) EXPECT_EQ(one.size(), 256 + 8U);
}

TEST(Yaml, BecomesJson) {
  struct Case {
    const char *yaml, *json;
  };
  constexpr Case kCases[] = {
      {"a: 1\nb: [x, \"2\", 3.5, true, null]\n", R"({"a":1,"b":["x","2",3.5E0,true,null]})"},
      {"{\"a\": \"yes\"}", R"({"a":"yes"})"},
      {"a: yes\nb: 'no'\nc: off", R"({"a":true,"b":"no","c":false})"},
      {"mode: 0644\nhex: 0x10\nneg: -7", R"({"mode":420,"hex":16,"neg":-7})"},
      {"v: 1.2.3\nq: 100m\nd: 2026-01-01", R"({"v":"1.2.3","q":"100m","d":"2026-01-01"})"},
      {"a: &x {k: v}\nb: *x\n", R"({"a":{"k":"v"},"b":{"k":"v"}})"},
      {"a: &x {k: v, l: w}\nb: {<<: *x, k: own}\n", R"({"a":{"k":"v","l":"w"},"b":{"k":"own","l":"w"}})"},
      {"a: 09\nb: 1_000\nc: 0b101\nd: 0o17\ne: +3\nf: -0x1F\ng: 18446744073709551615",
       R"({"a":9E0,"b":1000,"c":5,"d":15,"e":3,"f":-31,"g":18446744073709551615})"},
      {"b: +\nc: .\nd: 1e\ne: 0x\nf: 12ab\ng: .5",
       R"({"b":"+","c":".","d":"1e","e":"0x","f":"12ab","g":5E-1})"},
      {"1: x\nyes: y\n'no': z", R"({"1":"x","true":"y","no":"z"})"},
      {"\"a\\x41\": \"\\u00e4\"", "{\"aA\":\"\xc3\xa4\"}"},
  };
  for (const Case& c : kCases) {
    Result<std::string> json = YamlToJson(c.yaml);
    ASSERT_TRUE(json) << c.yaml;
    EXPECT_EQ(*json, c.json);
  }
  EXPECT_FALSE(YamlToJson("a: [1"));
}

TEST(Yaml, RefusesWhatIsNoText) {
  const std::pair<std::string, const char*> kCases[] = {
      {"a: \xff", "invalid leading UTF-8 octet"},
      {"a: \xc3", "incomplete UTF-8 octet sequence"},
      {"a: \xc3x", "invalid trailing UTF-8 octet"},
      {"a: \xc0\x80", "invalid length of a UTF-8 sequence"},
      {"a: \xed\xa0\x80", "invalid Unicode character"},
      {std::string("a: \0", 4), "control characters are not allowed"},
      {"a: \x07", "control characters are not allowed"},
  };
  for (const auto& [yaml, problem] : kCases) {
    Result<std::string> json = YamlToJson(yaml);
    ASSERT_FALSE(json) << problem;
    EXPECT_EQ(json.error().message(), std::string("error converting YAML to JSON: yaml: ") + problem);
  }
}

TEST(Yaml, TellsOfRepeatedKeys) {
  std::vector<std::string> problems;
  EXPECT_EQ(*YamlToJson("a: 1\nb: {c: 1, c: 2}\na: 3\n", &problems), R"({"a":3,"b":{"c":2}})");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0],
            "yaml: unmarshal errors:\n  line 2: key \"c\" already set in map\n  line 3: key \"a\" already "
            "set in map");
}

TEST(Yaml, AliasesCannotGrowWithoutEnd) {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += (k ? "," : "") + last;
    bomb += "]\n";
  }
  Result<std::string> json = YamlToJson(bomb);
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().message(), "yaml: document contains excessive aliasing");
}

TEST(Yaml, IsWrittenAsPeopleExpectIt) {
  struct Case {
    const char *json, *yaml;
  };
  constexpr Case kCases[] = {
      {R"({"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"name":"c","args":["a",["b",1]]},{}],"x":[]}})",
       "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - args:\n    - a\n    - - b\n      - 1\n    name: "
       "c\n"
       "  - {}\n  x: []\n"},
      {R"({"a":null,"b":true,"c":-1,"d":1.5,"e":{},"f":""})",
       "a: null\nb: true\nc: -1\nd: 1.5\ne: {}\nf: \"\"\n"},
      {R"({"a":"true","b":"1.5","c":"0x1f","d":"2026-01-01T00:00:00Z","e":"~","f":"No","g":"1:30"})",
       "a: \"true\"\nb: \"1.5\"\nc: \"0x1f\"\nd: \"2026-01-01T00:00:00Z\"\ne: \"~\"\nf: \"No\"\ng: "
       "\"1:30\"\n"},
      {R"({"a":"x: y","b":"- x","c":"'q'","d":"a #b","e":"*","f":"x:","g":"a:b","h":"-x"})",
       "a: 'x: y'\nb: '- x'\nc: '''q'''\nd: 'a #b'\ne: '*'\nf: 'x:'\ng: a:b\nh: -x\n"},
      {R"({"a":"one\ntwo","b":"one\n\n  two\n","c":"x\n\n","d":" x\ny","e":"\n"})",
       "a: |-\n  one\n  two\nb: |\n  one\n\n    two\nc: |+\n  x\n\nd: \" x\\ny\"\ne: \"\\n\"\n"},
      {R"({"a":"\t\u0001\u007f","b":"\u00e4"})", "a: \"\\t\\x01\\x7f\"\nb: \u00e4\n"},
      {"[]", "[]\n"},
      {"\"x\"", "x\n"},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(JsonToYaml(c.json), c.yaml);
    // It parses back to the original value.
    EXPECT_EQ(JsonToYaml(*YamlToJson(JsonToYaml(c.json))), c.yaml);
  }
}

}  // namespace
}  // namespace keelson::apiserver

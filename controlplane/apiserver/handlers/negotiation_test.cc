#include "controlplane/apiserver/handlers/negotiation.h"

#include <gtest/gtest.h>

#include "controlplane/apiserver/handlers/yaml.h"

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
       Encoding::kProtobuf, As::kPartialMetadata},
      {"text/html, application/json", Encoding::kJson, As::kObject},
  };
  for (const Case& c : kCases) {
    Result<Output> output = NegotiateOutput(Accepting(c.accept), true);
    ASSERT_TRUE(output) << c.accept;
    EXPECT_EQ(output->encoding, c.encoding) << c.accept;
    EXPECT_EQ(output->as, c.as) << c.accept;
  }
}

TEST(Negotiation, Refusals) {
  Result<Output> output = NegotiateOutput(Accepting("text/html"), true);
  ASSERT_FALSE(output);
  EXPECT_EQ(HttpStatus(output.error().code()), 406);
  EXPECT_EQ(output.error().message(),
            "only the following media types are accepted: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf");
  http::ServerRequest request;
  request.headers.Set("Content-Type", "text/plain");
  Result<Encoding> body = BodyEncoding(request);
  ASSERT_FALSE(body);
  EXPECT_EQ(HttpStatus(body.error().code()), 415);
  request.headers.Set("Content-Type", "application/json; charset=utf-8");
  EXPECT_EQ(*BodyEncoding(request), Encoding::kJson);
}

TEST(Negotiation, Warning) {
  EXPECT_EQ(WarningHeader("unknown field \"a\\b\""), "299 - \"unknown field \\\"a\\\\b\\\"\"");
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
  };
  for (const Case& c : kCases) {
    Result<std::string> json = YamlToJson(c.yaml);
    ASSERT_TRUE(json) << c.yaml;
    EXPECT_EQ(*json, c.json);
  }
  EXPECT_FALSE(YamlToJson("a: [1"));
}

}  // namespace
}  // namespace keelson::apiserver

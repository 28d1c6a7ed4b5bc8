// OpenAPI of custom resources through the real program: what upstream's conformance tests CustomResourcePublishOpenAPI
// and OpenAPIV3 check, with the real kubectl and over HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr const char* kFoo =
    R"({"description":"Foo CRD for Testing","type":"object","properties":{)"
    R"("spec":{"type":"object","description":"Specification of Foo","properties":{"bars":{)"
    R"("description":"List of Bars and their specs.","type":"array","items":{"type":"object","required":["name"],"properties":{)"
    R"("name":{"description":"Name of Bar.","type":"string"},"age":{"description":"Age of Bar.","type":"string"},)"
    R"("feeling":{"type":"string","enum":["Great","Down"]},)"
    R"("bazs":{"description":"List of Bazs.","type":"array","items":{"type":"string"}}}}}}},)"
    R"("status":{"description":"Status of Foo","type":"object","properties":{"bars":{"type":"array","items":{"type":"object",)"
    R"("properties":{"available":{"type":"boolean"},"quxType":{"type":"string"}}}}}}}})";
constexpr const char* kPreserveRoot =
    R"({"description":"preserve-unknown-properties at root for Testing","x-kubernetes-preserve-unknown-fields":true,"type":"object",)"
    R"("properties":{"spec":{"type":"object","properties":{"dummy":{"type":"string"}}}}})";
constexpr const char* kPreserveNested =
    R"({"description":"preserve-unknown-properties in nested field for Testing","type":"object","properties":{)"
    R"("spec":{"description":"Specification of Waldo","type":"object","x-kubernetes-preserve-unknown-fields":true,)"
    R"("properties":{"dummy":{"description":"Dummy property.","type":"string"}}}}})";

struct Served {
  std::string name;
  bool served = true;
};

class CustomOpenApi : public ClusterTest {
 protected:
  // Each test has a group of its own.
  std::string Group() const { return ns_ + ".example.com"; }

  static std::string Definition(const std::string& group, const std::string& plural, const std::string& kind,
                                const std::vector<Served>& versions, const std::string& schema) {
    std::string list;
    for (const Served& version : versions) {
      list += fmt::format(R"({}{{"name":"{}","served":{},"storage":{},"schema":{{"openAPIV3Schema":{}}}}})",
                          list.empty() ? "" : ",", version.name, version.served, list.empty(), schema);
    }
    return fmt::format(
        R"({{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"{1}.{0}"}},)"
        R"("spec":{{"group":"{0}","scope":"Namespaced","names":{{"plural":"{1}","singular":"{3}","kind":"{2}"}},"versions":[{4}]}}}})",
        group, plural, kind, plural.substr(0, plural.size() - 1), list);
  }
  void Define(const std::string& plural, const std::string& kind, const std::vector<Served>& versions,
              const std::string& schema = kFoo) {
    Kubectl({"create", "-f", "-"}, Definition(Group(), plural, kind, versions, schema));
    Kubectl({"wait", "--for=condition=Established", "crd/" + plural + "." + Group(), "--timeout=10s"});
  }

  http::ClientResponse Get(const std::string& path, http::Headers headers = {}) {
    http::ClientRequest request;
    request.method = "GET";
    request.target = path;
    request.headers = std::move(headers);
    return cluster_->Do(request);
  }
  json::object Parsed(const std::string& path) {
    http::ClientResponse reply = Get(path);
    EXPECT_EQ(reply.status, 200) << path;
    json::parse_options options;
    options.max_depth = 100;
    return json::parse(reply.body, {}, options).as_object();
  }
  // The name of a kind in the documents.
  std::string Name(const std::string& version, const std::string& kind) const {
    return "com.example." + ns_ + "." + version + "." + kind;
  }
  // A definition of version 2 as upstream's tests compare it: without what the server adds. Null: it is not there.
  json::value Published(const std::string& version, const std::string& kind) {
    json::object document = Parsed("/openapi/v2");
    json::object& definitions = document.at("definitions").as_object();
    const std::string name = Name(version, kind);
    if (!definitions.contains(name)) return nullptr;
    json::object schema = definitions.at(name).as_object();
    schema.erase("x-kubernetes-group-version-kind");
    if (json::value* properties = schema.if_contains("properties")) {
      for (const char* added : {"apiVersion", "kind", "metadata"}) properties->as_object().erase(added);
    }
    return schema;
  }
  // The URL of a document of version 3; empty: it is not there.
  std::string Url(const std::string& version) {
    const json::object index = Parsed("/openapi/v3");
    const json::value* found = index.at("paths").as_object().if_contains("apis/" + Group() + "/" + version);
    return found ? std::string(found->at("serverRelativeURL").as_string()) : "";
  }
  // Other tests have the same kinds in their groups.
  std::vector<std::string> Explained(const std::string& what) const {
    return {"explain", what, "--api-version=" + Group() + "/v1"};
  }
  std::string Explain(const std::string& what) {
    std::string text;
    for (char c : Kubectl(Explained(what))) text += c == '\n' ? ' ' : c;
    return text;
  }
  void CreateAndApply(const std::string& plural, const std::string& object) {
    for (const char* verb : {"create", "apply"}) {
      Kubectl({verb, "-f", "-"}, object);
      Kubectl({"delete", plural + "." + Group(), "x"});
    }
  }
  std::string Object(const std::string& kind, const std::string& rest, const std::string& version = "v1") {
    return fmt::format(R"({{"kind":"{}","apiVersion":"{}/{}","metadata":{{"name":"x"}}{}}})", kind, Group(),
                       version, rest);
  }
};

TEST_F(CustomOpenApi, KubectlExplainsAndValidates) {
  Define("foos", "Foo", {{"v1"}});
  EXPECT_EQ(Published("v1", "Foo"), json::parse(kFoo));
  CreateAndApply("foos", Object("Foo", R"(,"spec":{"bars":[{"name":"test-bar"}]})"));
  EXPECT_THAT(Run({"create", "-f", "-"}, Object("Foo", R"(,"spec":{"foo":true})")).err,
              HasSubstr(R"(unknown field "spec.foo")"));
  EXPECT_THAT(Run({"apply", "-f", "-"}, Object("Foo", R"(,"spec":{"bars":[{"age":"10"}]})")).err,
              HasSubstr("spec.bars[0].name: Required value"));
  EXPECT_THAT(Explain("foos"),
              AllOf(HasSubstr("Foo CRD for Testing"),
                    MatchesRegex(".*FIELDS:.*apiVersion.*<string>.*APIVersion defines.*spec.*<Object>.*"
                                 "Specification of Foo.*")));
  EXPECT_THAT(
      Explain("foos.metadata"),
      MatchesRegex(".*DESCRIPTION:.*Standard object's metadata.*FIELDS:.*creationTimestamp.*<string>.*"
                   "CreationTimestamp is a timestamp.*"));
  EXPECT_THAT(Explain("foos.spec"), MatchesRegex(".*DESCRIPTION:.*Specification of Foo.*FIELDS:.*bars.*"
                                                 "<\\[\\]Object>.*List of Bars and their specs.*"));
  EXPECT_THAT(
      Explain("foos.spec.bars"),
      MatchesRegex(".*bars.*<\\[\\]Object>.*DESCRIPTION:.*List of Bars and their specs.*FIELDS:.*bazs.*"
                   "<\\[\\]string>.*List of Bazs.*name.*<string>.*Name of Bar.*"));
  EXPECT_THAT(Run(Explained("foos.spec.bars2")).err, HasSubstr(R"(field "bars2" does not exist)"));
  // Version 2 in protobuf.
  std::vector<std::string> v2 = Explained("foos.spec.bars");
  v2.emplace_back("--output=plaintext-openapiv2");
  EXPECT_THAT(Kubectl(v2), HasSubstr("Name of Bar."));
}

TEST_F(CustomOpenApi, UnknownFieldsAreLeftOpen) {
  Define("foos", "Foo", {{"v1"}}, R"({"type":"object","x-kubernetes-preserve-unknown-fields":true})");
  EXPECT_EQ(json::serialize(Published("v1", "Foo")), R"({"type":"object"})");
  CreateAndApply("foos", Object("Foo", R"(,"a":{"b":[{"c":"d"}]})"));
  EXPECT_THAT(Explain("foos"), MatchesRegex(".*DESCRIPTION:.*<empty>.*"));
  Define("roots", "Root", {{"v1"}}, kPreserveRoot);
  CreateAndApply("roots", Object("Root", R"(,"a":{"b":[{"c":"d"}]})"));
  EXPECT_THAT(Explain("roots"), MatchesRegex(".*KIND:.*Root.*"));
  Define("waldos", "Waldo", {{"v1"}}, kPreserveNested);
  CreateAndApply("waldos", Object("Waldo", R"(,"spec":{"a":null,"b":[{"c":"d"}]})"));
  EXPECT_THAT(Explain("waldos"),
              MatchesRegex(".*DESCRIPTION:.*preserve-unknown-properties in nested field for Testing.*"));
}

TEST_F(CustomOpenApi, DocumentsChangeWithTheDefinition) {
  EXPECT_EQ(Url("v1"), "");
  EXPECT_EQ(Get("/openapi/v3/apis/" + Group() + "/v1").status, 404);
  Define("foos", "Foo", {{"v1"}});
  const std::string url = Url("v1");
  http::ClientResponse reply = Get(url);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.Get("Cache-Control"), "public, immutable");
  const json::value document = json::parse(reply.body);
  EXPECT_EQ(document.at("openapi"), "3.0.0");
  EXPECT_EQ(document.at("components")
                .at("schemas")
                .at(Name("v1", "Foo"))
                .at("properties")
                .at("spec")
                .at("description"),
            "Specification of Foo");
  const std::string etag(Get("/openapi/v2").headers.Get("ETag"));
  EXPECT_EQ(Get("/openapi/v2", {{"If-None-Match", etag}}).status, 304);
  // Metadata of the definition is no part of the documents.
  Kubectl({"annotate", "crd", "foos." + Group(), "a=b"});
  EXPECT_EQ(Url("v1"), url);
  EXPECT_EQ(Get("/openapi/v2", {{"If-None-Match", etag}}).status, 304);
  Kubectl(
      {"patch", "crd", "foos." + Group(), "--type=json", "-p",
       R"([{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/extra","value":{"type":"integer","default":5}}])"});
  EXPECT_NE(Url("v1"), url);
  EXPECT_EQ(Get(url).status, 301);
  EXPECT_EQ(Get("/openapi/v2", {{"If-None-Match", etag}}).status, 200);
  EXPECT_EQ(json::serialize(Published("v1", "Foo").at("properties").at("extra")), R"({"type":"integer"})")
      << "version 2 has no defaults";
  EXPECT_EQ(json::serialize(json::parse(Get(Url("v1")).body)
                                .at("components")
                                .at("schemas")
                                .at(Name("v1", "Foo"))
                                .at("properties")
                                .at("extra")
                                .at("default")),
            "5");
}

TEST_F(CustomOpenApi, VersionsComeAndGo) {
  Define("foos", "Foo", {{"v2"}, {"v3"}, {"v1alpha1", false}});
  const json::value foo = json::parse(kFoo);
  EXPECT_EQ(Published("v2", "Foo"), foo);
  EXPECT_EQ(Published("v3", "Foo"), foo);
  EXPECT_EQ(Published("v1alpha1", "Foo"), nullptr);
  EXPECT_EQ(Url("v1alpha1"), "");
  // Renamed.
  Kubectl({"patch", "crd", "foos." + Group(), "--type=json", "-p",
           R"([{"op":"replace","path":"/spec/versions/1/name","value":"v4"}])"});
  EXPECT_EQ(Published("v4", "Foo"), foo);
  EXPECT_EQ(Published("v3", "Foo"), nullptr);
  EXPECT_EQ(Published("v2", "Foo"), foo);
  EXPECT_EQ(Url("v3"), "");
  // No longer served.
  Kubectl({"patch", "crd", "foos." + Group(), "--type=json", "-p",
           R"([{"op":"replace","path":"/spec/versions/1/served","value":false}])"});
  EXPECT_EQ(Published("v4", "Foo"), nullptr);
  EXPECT_EQ(Url("v4"), "");
  EXPECT_EQ(Published("v2", "Foo"), foo);
}

TEST_F(CustomOpenApi, DefinitionsOfOneGroup) {
  const json::value foo = json::parse(kFoo);
  Define("foos", "Foo", {{"v4"}, {"v6"}});
  Define("waldos", "Waldo", {{"v5"}, {"v6"}});
  EXPECT_EQ(Published("v4", "Foo"), foo);
  EXPECT_EQ(Published("v5", "Waldo"), foo);
  EXPECT_EQ(Published("v6", "Foo"), foo);
  EXPECT_EQ(Published("v6", "Waldo"), foo);
  const json::value shared = json::parse(Get(Url("v6")).body);
  for (const char* kind : {"Foo", "FooList", "Waldo", "WaldoList"}) {
    EXPECT_TRUE(shared.at("components").at("schemas").as_object().contains(Name("v6", kind))) << kind;
  }
  for (const char* plural : {"foos", "waldos"}) {
    EXPECT_TRUE(shared.at("paths").as_object().contains(
        fmt::format("/apis/{}/v6/namespaces/{{namespace}}/{}/{{name}}", Group(), plural)));
  }
  EXPECT_THAT(Get(Url("v4")).body, Not(HasSubstr("Waldo")));
  Kubectl({"delete", "crd", "foos." + Group()});
  EXPECT_EQ(Published("v6", "Foo"), nullptr);
  EXPECT_EQ(Published("v6", "Waldo"), foo);
  EXPECT_EQ(Url("v4"), "");
  EXPECT_THAT(Get(Url("v6")).body, Not(HasSubstr("FooList")));
}

TEST_F(CustomOpenApi, IsWithdrawnAtTheBeginningOfADeletion) {
  Define("foos", "Foo", {{"v1"}});
  Kubectl(
      {"create", "-f", "-"},
      fmt::format(
          R"({{"kind":"Foo","apiVersion":"{}/v1","metadata":{{"name":"held","finalizers":["example.com/hold"]}}}})",
          Group()));
  const std::string url = Url("v1");
  Kubectl({"delete", "crd", "foos." + Group(), "--wait=false"});
  EXPECT_EQ(Published("v1", "Foo"), nullptr);
  EXPECT_EQ(Url("v1"), "");
  EXPECT_EQ(Get(url).status, 404);
  Kubectl({"patch", "foos." + Group(), "held", "--type=merge", "-p", R"({"metadata":{"finalizers":null}})"});
  Kubectl({"wait", "--for=delete", "crd/foos." + Group(), "--timeout=20s"});
  Define("foos", "Foo", {{"v1"}});
  EXPECT_NE(Url("v1"), url) << "another definition";
  EXPECT_EQ(Published("v1", "Foo"), json::parse(kFoo));
}

}  // namespace
}  // namespace keelson::apiserver

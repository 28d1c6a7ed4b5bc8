// Custom resources through the real program, with the real kubectl and over HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;

// Two versions, both subresources, columns, a default and a selectable field.
std::string Definition(const std::string& plural, const std::string& kind, const std::string& extra = "") {
  return fmt::format(R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {0}.stable.example.com}}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {{plural: {0}, kind: {1}, shortNames: [s{0}], categories: [all]}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {{}}
      scale: {{specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}}
    additionalPrinterColumns:
    - {{name: Size, type: integer, jsonPath: .spec.replicas}}
    - {{name: Color, type: string, jsonPath: .spec.color, priority: 1}}
    selectableFields: [{{jsonPath: .spec.color}}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [color]
            properties:
              color: {{type: string, enum: [red, blue]}}
              replicas: {{type: integer, minimum: 0, default: 1}}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {{type: object, required: [name], properties: {{name: {{type: string}}, port: {{type: integer}}}}}}
          status:
            type: object
            properties: {{replicas: {{type: integer}}, selector: {{type: string}}}}
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
{2})",
                     plural, kind, extra);
}

std::string Object(const std::string& kind, const std::string& name, const std::string& spec,
                   const std::string& version = "v1") {
  return fmt::format("apiVersion: stable.example.com/{}\nkind: {}\nmetadata: {{name: {}}}\nspec: {}\n",
                     version, kind, name, spec);
}

class CustomResource : public ClusterTest {
 protected:
  // Each test has its own definition.
  void Define(const std::string& plural, const std::string& kind) {
    Kubectl({"create", "-f", "-"}, Definition(plural, kind));
    Kubectl(
        {"wait", "--for=condition=Established", "crd/" + plural + ".stable.example.com", "--timeout=10s"});
  }
  http::ClientResponse Do(const std::string& method, const std::string& path, const std::string& body = "",
                          const std::string& type = "application/json") {
    http::ClientRequest request;
    request.method = method;
    request.target = path;
    request.headers = {{"Accept", "application/json"}, {"Content-Type", type}, {"User-Agent", "tester/1.0"}};
    request.body = body;
    return cluster_->Do(request);
  }
  std::string Path(const std::string& plural, const std::string& rest = "",
                   const std::string& version = "v1") {
    return "/apis/stable.example.com/" + version + "/namespaces/" + ns_ + "/" + plural + rest;
  }
};

TEST_F(CustomResource, IsServedFromTheMomentThatItIsEstablished) {
  EXPECT_EQ(Do("GET", Path("widgets")).status, 404);
  Define("widgets", "Widget");
  EXPECT_EQ(Do("GET", Path("widgets")).status, 200);
  const std::string lists = Do("GET", "/apis/stable.example.com/v1").body;
  for (const char* name : {R"("name":"widgets")", R"("name":"widgets/status")", R"("name":"widgets/scale")",
                           R"("shortNames":["swidgets"])"}) {
    EXPECT_THAT(lists, HasSubstr(name));
  }
  Kubectl({"create", "-f", "-"}, Object("Widget", "a", "{color: red}"));
  EXPECT_THAT(Kubectl({"get", "swidgets"}), HasSubstr("NAME   SIZE\na      1"));
  EXPECT_THAT(Kubectl({"get", "widgets", "-o", "wide"}), HasSubstr("red"));
  EXPECT_THAT(Kubectl({"get", "all"}), HasSubstr("widget.stable.example.com/a"));
  const json::value object = json::parse(Kubectl({"get", "widget", "a", "-o", "json"}));
  EXPECT_EQ(object.at("spec").at("replicas"), 1);
  EXPECT_EQ(object.at("metadata").at("generation"), 1);
}

TEST_F(CustomResource, IsValidatedAndPruned) {
  Define("gears", "Gear");
  auto create = [&](const std::string& spec, int code) {
    Output output = Run({"create", "--validate=false", "-f", "-"}, Object("Gear", "g", spec));
    EXPECT_EQ(output.code, code) << output.err;
    return output.err;
  };
  EXPECT_THAT(create("{}", 1), HasSubstr("spec.color: Required value"));
  EXPECT_THAT(create("{color: green}", 1),
              HasSubstr(R"(spec.color: Unsupported value: "green": supported values: "red", "blue")"));
  EXPECT_THAT(
      create("{color: red, replicas: -1}", 1),
      HasSubstr(
          "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0"));
  EXPECT_THAT(create("{color: red, ports: [{name: a}, {name: a}]}", 1),
              HasSubstr(R"(spec.ports[1]: Duplicate value: {"name":"a"})"));
  const std::string body = R"({"apiVersion":"stable.example.com/v1","kind":"Gear","metadata":{"name":"g"},)"
                           R"("spec":{"color":"red","unknown":1}})";
  http::ClientResponse strict = Do("POST", Path("gears", "?fieldValidation=Strict"), body);
  EXPECT_EQ(strict.status, 400);
  EXPECT_THAT(strict.body, HasSubstr(R"(strict decoding error: unknown field \"spec.unknown\")"));
  strict = Do("POST", Path("gears", "?fieldValidation=Strict"),
              R"({"apiVersion":"stable.example.com/v1","kind":"Gear","metadata":{"name":"g","more":1},)"
              R"("spec":{"color":"red","color":"blue","unknown":1}})");
  EXPECT_THAT(strict.body, HasSubstr(R"(strict decoding error: duplicate field \"spec.color\", )"
                                     R"(unknown field \"metadata.more\", unknown field \"spec.unknown\")"));
  EXPECT_THAT(Do("POST", Path("gears"), R"({"metadata":{"name":"g"}})").body,
              HasSubstr(R"((must be of type Gear): Object 'Kind' is missing in '{\"metadata\":)"));
  EXPECT_THAT(Do("POST", Path("gears"), R"({"kind":"Gear","metadata":{"name":"g"}})").body,
              HasSubstr("the API version in the data () does not match the expected API version "
                        "(stable.example.com/v1)"));
  EXPECT_THAT(
      Do("POST", Path("gears"),
         R"({"apiVersion":"stable.example.com/v1","kind":"Gea","metadata":{"name":"g"}})")
          .body,
      HasSubstr(R"(Gear.stable.example.com \"g\" is invalid: kind: Invalid value: \"Gea\": must be Gear)"));
  http::ClientResponse warned = Do("POST", Path("gears", "?fieldValidation=Warn"), body);
  EXPECT_EQ(warned.status, 201);
  EXPECT_THAT(std::string(warned.headers.Get("Warning")), HasSubstr("unknown field"));
  EXPECT_THAT(warned.body, Not(HasSubstr("unknown")));
}

TEST_F(CustomResource, HasStatusAndScale) {
  Define("pumps", "Pump");
  Kubectl({"create", "-f", "-"}, Object("Pump", "p", "{color: red}"));
  // The main resource does not write status, and the status subresource nothing else.
  const char* merge = "application/merge-patch+json";
  EXPECT_THAT(Do("PATCH", Path("pumps", "/p"), R"({"status":{"replicas":5}})", merge).body,
              Not(HasSubstr("status\":{")));
  http::ClientResponse status =
      Do("PATCH", Path("pumps", "/p/status"),
         R"({"spec":{"color":"blue"},"status":{"replicas":5,"selector":"a=b"}})", merge);
  EXPECT_EQ(status.status, 200) << status.body;
  EXPECT_THAT(status.body, HasSubstr(R"("color":"red")"));
  EXPECT_THAT(status.body, HasSubstr(R"("generation":1)"));
  Kubectl({"scale", "pump/p", "--replicas=3"});
  const json::value scale = json::parse(Do("GET", Path("pumps", "/p/scale")).body);
  EXPECT_EQ(scale.at("kind"), "Scale");
  EXPECT_EQ(scale.at("spec").at("replicas"), 3);
  EXPECT_EQ(scale.at("status").at("replicas"), 5);
  EXPECT_EQ(scale.at("status").at("selector"), "a=b");
  EXPECT_EQ(json::parse(Kubectl({"get", "pump", "p", "-o", "json"})).at("metadata").at("generation"), 2);
  EXPECT_EQ(Do("PATCH", Path("pumps", "/p/scale"), "{}", "application/strategic-merge-patch+json").status,
            415);
  EXPECT_THAT(Do("PATCH", Path("pumps", "/p/scale"), R"({"spec":{"replicas":-1}})", merge).body,
              HasSubstr(R"(Pump.stable.example.com \"p\" is invalid)"));
}

TEST_F(CustomResource, IsPatchedAndApplied) {
  Define("valves", "Valve");
  Kubectl({"apply", "--server-side", "--field-manager=one", "-f", "-"},
          Object("Valve", "v", "{color: red, ports: [{name: a, port: 1}]}"));
  Output conflict = Run({"apply", "--server-side", "--field-manager=two", "-f", "-"},
                        Object("Valve", "v", "{color: blue, ports: [{name: b, port: 2}]}"));
  EXPECT_EQ(conflict.code, 1);
  EXPECT_THAT(conflict.err, HasSubstr(".spec.color"));
  EXPECT_THAT(conflict.err, Not(HasSubstr(".spec.ports")));
  Kubectl({"apply", "--server-side", "--field-manager=two", "-f", "-"},
          Object("Valve", "v", "{color: red, ports: [{name: b, port: 2}]}"));
  EXPECT_EQ(Kubectl({"get", "valve", "v", "-o", "jsonpath={.spec.ports[*].name}"}), "a b");
  Kubectl({"patch", "valve", "v", "--type=json", "-p", R"([{"op":"remove","path":"/spec/ports/0"}])"});
  EXPECT_EQ(Kubectl({"get", "valve", "v", "-o", "jsonpath={.spec.ports[*].name}"}), "b");
  http::ClientResponse strategic =
      Do("PATCH", Path("valves", "/v"), "{}", "application/strategic-merge-patch+json");
  EXPECT_EQ(strategic.status, 415);
  // Client-side apply falls back to merge patches.
  Kubectl({"apply", "-f", "-"}, Object("Valve", "w", "{color: red}"));
  Kubectl({"apply", "-f", "-"}, Object("Valve", "w", "{color: blue}"));
  EXPECT_EQ(Kubectl({"get", "valve", "w", "-o", "jsonpath={.spec.color}"}), "blue");
  // A write that changes nothing writes nothing, whatever the order of the members.
  const std::string version = Kubectl({"get", "valve", "w", "-o", "jsonpath={.metadata.resourceVersion}"});
  Kubectl({"patch", "valve", "w", "--type=merge", "-p", R"({"spec":{"replicas":1,"color":"blue"}})"});
  EXPECT_EQ(Kubectl({"get", "valve", "w", "-o", "jsonpath={.metadata.resourceVersion}"}), version);
}

TEST_F(CustomResource, IsSelectedByFieldsAndSeenInEveryVersion) {
  Define("lamps", "Lamp");
  Kubectl({"create", "-f", "-"}, Object("Lamp", "r", "{color: red}"));
  Kubectl({"create", "-f", "-"}, Object("Lamp", "b", "{color: blue}"));
  EXPECT_EQ(Kubectl({"get", "lamps", "--field-selector=spec.color=blue", "-o", "name"}),
            "lamp.stable.example.com/b\n");
  EXPECT_THAT(Run({"get", "lamps", "--field-selector=spec.size=1"}).err,
              HasSubstr("field label not supported: spec.size"));
  http::ClientResponse old = Do("GET", Path("lamps", "/r", "v1beta1"));
  EXPECT_EQ(old.status, 200);
  EXPECT_THAT(old.body, HasSubstr(R"("apiVersion":"stable.example.com/v1beta1")"));
  EXPECT_THAT(std::string(old.headers.Get("Warning")),
              HasSubstr("stable.example.com/v1beta1 Lamp is deprecated; use stable.example.com/v1 Lamp"));
  const json::value list = json::parse(Do("GET", Path("lamps", "?limit=1")).body);
  EXPECT_EQ(list.at("kind"), "LampList");
  EXPECT_EQ(list.at("items").at(0).at("kind"), "Lamp");
  EXPECT_EQ(list.at("metadata").at("remainingItemCount"), 1);
}

TEST_F(CustomResource, GoesWithItsDefinition) {
  Define("bolts", "Bolt");
  Kubectl({"create", "-f", "-"}, Object("Bolt", "x", "{color: red}"));
  Kubectl({"create", "-f", "-"},
          "apiVersion: stable.example.com/v1\nkind: Bolt\nmetadata: {name: held, finalizers: "
          "[example.com/hold]}\n"
          "spec: {color: red}\n");
  Kubectl({"delete", "crd", "bolts.stable.example.com", "--wait=false"});
  Kubectl({"wait", "--for=delete", "bolt/x", "--timeout=20s"});
  EXPECT_THAT(
      Kubectl({"get", "crd", "bolts.stable.example.com", "-o", "jsonpath={.status.conditions[*].reason}"}),
      HasSubstr("InstanceDeletionInProgress"));
  http::ClientResponse create = Do(
      "POST", Path("bolts"),
      R"({"apiVersion":"stable.example.com/v1","kind":"Bolt","metadata":{"name":"y"},"spec":{"color":"red"}})");
  EXPECT_EQ(create.status, 405);
  Kubectl({"patch", "bolt", "held", "--type=merge", "-p", R"({"metadata":{"finalizers":null}})"});
  Kubectl({"wait", "--for=delete", "crd/bolts.stable.example.com", "--timeout=20s"});
  EXPECT_EQ(Do("GET", Path("bolts")).status, 404);
  // It comes back empty.
  Define("bolts", "Bolt");
  EXPECT_EQ(json::parse(Do("GET", Path("bolts")).body).at("items").as_array().size(), 0u);
}

TEST_F(CustomResource, DoesNotTakeTheNameOfAnother) {
  Define("nuts", "Nut");
  Kubectl({"create", "-f", "-"}, Definition("nutz", "Nut"));
  Kubectl({"wait", "--for=condition=NamesAccepted=false", "crd/nutz.stable.example.com", "--timeout=10s"});
  EXPECT_THAT(
      Kubectl({"get", "crd", "nutz.stable.example.com", "-o", "jsonpath={.status.conditions[*].message}"}),
      HasSubstr(R"("NutList" is already in use)"));
  EXPECT_EQ(Do("GET", Path("nutz")).status, 404);
  Kubectl({"delete", "crd", "nuts.stable.example.com"});
  Kubectl({"wait", "--for=condition=Established", "crd/nutz.stable.example.com", "--timeout=10s"});
}

TEST_F(CustomResource, ObeysRules) {
  std::string definition = Definition("masts", "Mast");
  const std::string spec = "          spec:\n            type: object\n";
  definition.replace(definition.find(spec), spec.size(),
                     spec +
                         "            x-kubernetes-validations:\n"
                         "            - {rule: 'self.replicas <= 5', message: too many}\n"
                         "            - {rule: 'self.color == oldSelf.color', messageExpression: '\"was \" + "
                         "oldSelf.color'}\n");
  Kubectl({"create", "-f", "-"}, definition);
  Kubectl({"wait", "--for=condition=Established", "crd/masts.stable.example.com", "--timeout=10s"});
  EXPECT_THAT(Run({"create", "-f", "-"}, Object("Mast", "m", "{color: red, replicas: 6}")).err,
              HasSubstr("spec: Invalid value: \"object\": too many"));
  Kubectl({"create", "-f", "-"}, Object("Mast", "m", "{color: red, replicas: 5}"));
  EXPECT_THAT(Run({"patch", "mast", "m", "--type=merge", "-p", R"({"spec":{"color":"blue"}})"}).err,
              HasSubstr("was red"));
  definition.replace(definition.find("self.replicas <= 5"), 18, "self.replica <= 5 ");
  definition.replace(definition.find("masts.stable"), 5, "spars");
  EXPECT_THAT(Run({"create", "-f", "-"}, definition).err, HasSubstr("undefined field 'replica'"));
}

TEST_F(CustomResource, SurvivesARestart) {
  Define("keels", "Keel");
  Kubectl({"create", "-f", "-"}, Object("Keel", "k", "{color: red}"));
  ASSERT_EQ(cluster_->Stop(), 0);
  cluster_->Start();
  EXPECT_EQ(Kubectl({"get", "keel", "k", "-o", "jsonpath={.spec.replicas}"}), "1");
  Kubectl({"delete", "keel", "k"});
}

}  // namespace
}  // namespace keelson::apiserver

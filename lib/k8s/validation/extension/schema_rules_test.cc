// Defaults and CEL rules of custom resources' schemas, and objects within objects.
#include "lib/k8s/testing/rule_cases.h"
#include "lib/k8s/testing/schemas.h"
#include "lib/k8s/validation/extension/embedded.h"

namespace keelson::k8s {
namespace {

constexpr char kV1[] = "apiextensions.k8s.io/v1", kKind[] = "CustomResourceDefinition";

std::string Definition(const std::string& schema, const std::string& spec = "") {
  return R"({"metadata":{"name":"cats.example.com","resourceVersion":"1"},"spec":{"group":"example.com","scope":"Namespaced",)" +
         spec +
         R"("names":{"plural":"cats","kind":"Cat"},"versions":[{"name":"v1","served":true,"storage":true,)"
         R"("schema":{"openAPIV3Schema":)" +
         schema + R"(}}]},"status":{"storedVersions":["v1"]}})";
}

// A definition whose objects have the property p.
std::string Property(const std::string& schema) {
  return Definition(R"({"type":"object","properties":{"p":)" + schema + "}}");
}

struct Case {
  std::string schema;
  Lines errors;  // below the property
};

void Expect(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    Lines errors;
    for (const std::string& error : c.errors) {
      errors.push_back("spec.validation.openAPIV3Schema.properties[p]" + error);
    }
    EXPECT_EQ(PrintErrors(Validate(*ParseObject(kV1, kKind, Property(c.schema)))), errors) << c.schema;
  }
}

TEST(SchemaDefaults, AreValid) {
  Expect({
      {R"({"type":"integer","default":5})", {}},
      {R"({"type":"integer","default":"x"})",
       {".default: Invalid value: \"string\":  in body must be of type integer: \"string\""}},
      {R"({"type":"integer","default":1,"minimum":2})",
       {".default: Invalid value: 1:  in body should be greater than or equal to 2"}},
      {R"({"type":"object","default":{"a":1,"b":2},"properties":{"a":{"type":"string"}}})",
       {".default: Invalid value: {\"a\":1,\"b\":2}: must not have unknown fields",
        ".default.a: Invalid value: \"integer\": a in body must be of type string: \"integer\""}},
      {R"({"type":"array","items":{"type":"object","properties":{"a":{"type":"string","default":1}}}})",
       {".items.properties[a].default: Invalid value: \"integer\":  in body must be of type string: "
        "\"integer\""}},
      {R"({"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"default":{"kind":"Pod"}})",
       {".default.apiVersion: Required value: must not be empty"}},
      {R"({"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,)"
       R"("properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","default":"a/b"}}}}})",
       {".properties[metadata].properties[name].default: Invalid value: \"a/b\": must result in valid "
        "metadata: "
        "metadata.name: Invalid value: \"a/b\": may not contain '/'"}},
  });
}

TEST(SchemaRules, Compile) {
  const auto error = [](const std::string& rule, const std::string& detail) {
    return R"(.x-kubernetes-validations[0].rule: Invalid value: {"Rule":)" + rule +
           R"(,"Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: )" +
           detail;
  };
  Expect({
      {R"({"type":"integer","x-kubernetes-validations":[{"rule":"self > 0"}]})", {}},
      {R"({"type":"integer","x-kubernetes-validations":[{"rule":"self > "}]})",
       {error(R"("self > ")",
              "compilation failed: ERROR: <input>:1:8: Syntax error: mismatched input '<EOF>' expecting "
              "{'[', '{', '(', "
              "'.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, "
              "IDENTIFIER}\n | self "
              "> \n | .......^")}},
      {R"({"type":"integer","x-kubernetes-validations":[{"rule":"self + 1"}]})",
       {error(R"("self + 1")", "cel expression must evaluate to a bool")}},
      {R"({"type":"object","properties":{"a":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"self.b == 1"}]})",
       {error(R"("self.b == 1")",
              "compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b == 1\n | ....^")}},
      {R"({"type":"integer","x-kubernetes-validations":[{"rule":"self > 0","messageExpression":"1"}]})",
       {R"(.x-kubernetes-validations[0].messageExpression: Invalid value: {"Rule":"self > 0","Message":"","MessageExpression":"1","Reason":null,"FieldPath":"","OptionalOldSelf":null}: messageExpression must evaluate to a string)"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"true","fieldPath":".b"}]})",
       {".x-kubernetes-validations[0].fieldPath: Invalid value: \".b\": fieldPath must be a valid path"}},
      {R"({"type":"array","items":{"type":"integer","x-kubernetes-validations":[{"rule":"self == oldSelf"}]}})",
       {".items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used "
        "on the "
        "uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[p]"}},
      {R"({"type":"integer","x-kubernetes-validations":[{"rule":"self > 0","optionalOldSelf":true}]})",
       {".x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not "
        "used in "
        "rule"}},
      {R"r({"type":"integer","x-kubernetes-validations":[{"rule":"!oldSelf.hasValue() || self > oldSelf.value()","optionalOldSelf":true}]})r",
       {}},
      {R"({"type":"object","properties":{"__namespace__":{"type":"string"},"a-b":{"type":"string"},"namespace":{"type":"string"}},"x-kubernetes-validations":[{"rule":"self.a__dash__b == self.__namespace__"}]})",
       {}},
  });
}

TEST(SchemaRules, MayNotCostTooMuch) {
  const std::string rule = R"r("x-kubernetes-validations":[{"rule":"self.all(x, self.all(y, x == y))"}])r";
  const std::string small =
      R"({"type":"array","maxItems":10,"items":{"type":"string","maxLength":10},)" + rule + "}";
  const std::string large = R"({"type":"array","items":{"type":"string"},)" + rule + "}";
  constexpr char kAdvice[] =
      "exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, "
      "maxProperties, and "
      "maxLength where arrays, maps, and strings are declared)";
  EXPECT_EQ(PrintErrors(Validate(*ParseObject(kV1, kKind, Property(small)))), Lines());
  const std::string root = "spec.validation.openAPIV3Schema",
                    place = root + ".properties[p].x-kubernetes-validations[0].rule: Forbidden: ";
  EXPECT_EQ(
      PrintErrors(Validate(*ParseObject(kV1, kKind, Property(large)))),
      (Lines{place + "estimated rule cost " + kAdvice,
             place + "contributed to estimated rule & messageExpression cost total exceeding cost limit for "
                     "entire OpenAPIv3 schema",
             root +
                 ": Forbidden: x-kubernetes-validations estimated rule & messageExpression cost total for "
                 "entire OpenAPIv3 schema " +
                 kAdvice}));
  // A stored schema may stay.
  const auto stored = ParseObject(kV1, kKind, Property(large));
  EXPECT_EQ(PrintErrors(ValidateUpdate(*stored, *stored)).size(), 2u);
}

TEST(ConversionBundle, HoldsCertificates) {
  const auto with = [](const std::string& bundle) {
    return Definition(
        R"({"type":"object"})",
        R"("conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":)"
        R"({"url":"https://example.com","caBundle":")" +
            bundle + R"("}}},)");
  };
  const Lines problem = {
      "spec.conversion.webhookClientConfig.caBundle: Invalid value: \"eA==\": unable to load root "
      "certificates: unable to "
      "parse bytes as PEM block"};
  ExpectErrors({{kV1, kKind, with(""), {}}, {kV1, kKind, with("eA=="), problem}});
  ExpectChangeErrors(ValidateUpdate, {{kV1, kKind, with(""), with("eA=="), problem},
                                      {kV1, kKind, with("eA=="), with("eA=="), {}}});
}

TEST(EmbeddedObjects, AreObjects) {
  const auto schema = testing::CompileSchema(
      R"({"type":"object","properties":{"l":{"type":"array","items":{"type":"object","x-kubernetes-embedded-resource":true}}}})");
  const std::pair<const char*, const char*> cases[] = {
      {R"({"l":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"a":"b"}}}]})", ""},
      {R"({"l":[{}]})",
       "l[0].apiVersion: Required value: must not be empty\nl[0].kind: Required value: must not be empty\n"},
      {R"({"l":[{"apiVersion":"","kind":""}]})",
       "l[0].apiVersion: Invalid value: \"\": must not be empty\nl[0].kind: Invalid value: \"\": must not be "
       "empty\n"},
      {R"({"l":[{"apiVersion":"a/b/c","kind":"Pod"}]})",
       "l[0].apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c\n"},
      {R"({"l":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a/b"}}]})",
       "l[0].metadata.name: Invalid value: \"a/b\": may not contain '/'\n"},
  };
  for (const auto& [object, errors] : cases) {
    EXPECT_EQ(testing::Lines(ValidateEmbeddedObjects(*schema, testing::Tree(object))), errors) << object;
  }
}

}  // namespace
}  // namespace keelson::k8s

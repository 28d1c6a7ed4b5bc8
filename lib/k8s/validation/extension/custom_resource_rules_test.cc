// CustomResourceDefinitions and their schemas.
#include "lib/k8s/testing/rule_cases.h"

namespace keelson::k8s {
namespace {

constexpr char kV1[] = "apiextensions.k8s.io/v1", kKind[] = "CustomResourceDefinition";

// A definition with one version of this schema, plus `version` in that version and `spec` in the spec.
std::string Definition(const std::string& schema, const std::string& version = "",
                       const std::string& spec = "", const std::string& name = "cats.example.com") {
  return R"({"metadata":{"name":")" + name +
         R"(","resourceVersion":"1"},"spec":{"group":"example.com","scope":"Namespaced",)" + spec +
         R"("names":{"plural":"cats","kind":"Cat"},"versions":[{"name":"v1","served":true,"storage":true,)" +
         version + R"("schema":{"openAPIV3Schema":)" + schema + R"(}}]},"status":{"storedVersions":["v1"]}})";
}

struct SchemaCase {
  std::string schema;
  Lines errors;  // below spec.validation.openAPIV3Schema
};

// `errors` without the path of the schema.
void ExpectSchemaErrors(const std::vector<SchemaCase>& cases) {
  for (const SchemaCase& c : cases) {
    Lines errors;
    for (const std::string& error : c.errors) errors.push_back("spec.validation.openAPIV3Schema" + error);
    EXPECT_EQ(PrintErrors(Validate(*ParseObject(kV1, kKind, Definition(c.schema)))), errors) << c.schema;
  }
}

// A schema of an object with the property p.
std::string Property(const std::string& schema) {
  return R"({"type":"object","properties":{"p":)" + schema + "}}";
}

TEST(CustomResourceRules, Definitions) {
  constexpr char kObject[] = R"({"type":"object"})";
  ExpectErrors({
      {kV1, kKind, Definition(R"({"type":"object","properties":{"spec":{"type":"object"}}})"), {}},
      {kV1,
       kKind,
       Definition(kObject, "", "", "dogs.example.com"),
       {"metadata.name: Invalid value: \"dogs.example.com\": must be spec.names.plural+\".\"+spec.group"}},
      {kV1,
       kKind,
       R"({"metadata":{"name":"cats.example.com"},"spec":{"group":"example.com","scope":"Odd","names":{"plural":"cats","kind":"Cat"},)"
       R"("versions":[{"name":"v1","served":true,"storage":false}]},"status":{"storedVersions":["v2"]}})",
       {"spec.scope: Unsupported value: \"Odd\": supported values: \"Cluster\", \"Namespaced\"",
        "spec.versions[0].schema.openAPIV3Schema: Required value",
        "spec.versions: Invalid value: [{\"name\":\"v1\",\"served\":true,\"storage\":false}]: must have "
        "exactly one version marked as storage version",
        "status.storedVersions[0]: Invalid value: \"v2\": missing from spec.versions; v2 was previously a "
        "storage version, and must remain in spec.versions until a storage migration ensures no data remains "
        "persisted in v2 and removes v2 from status.storedVersions"}},
      {kV1,
       kKind,
       Definition(kObject,
                  R"("deprecationWarning":"","deprecated":true,"additionalPrinterColumns":[{"name":"a",)"
                  R"("type":"integer","format":"int32","jsonPath":".spec.a"},{"name":"b","type":"odd",)"
                  R"("format":"uuid","jsonPath":"spec.b"}],)"
                  R"("subresources":{"scale":{"specReplicasPath":".spec.replicas",)"
                  R"("statusReplicasPath":".spec.replicas","labelSelectorPath":".metadata.labels"}},)"),
       {"spec.versions[0].deprecationWarning: Invalid value: \"\": must not be an empty string",
        "spec.subresources.scale.statusReplicasPath: Invalid value: \".spec.replicas\": should be a json "
        "path under .status",
        "spec.subresources.scale.labelSelectorPath: Invalid value: \".metadata.labels\": should be a json "
        "path under either .spec or .status",
        "spec.additionalPrinterColumns[1].type: Invalid value: \"odd\": must be one of "
        "boolean,date,integer,number,string",
        "spec.additionalPrinterColumns[1].format: Invalid value: \"uuid\": must be one of "
        "byte,date,date-time,double,float,int32,int64,password",
        "spec.additionalPrinterColumns[1].JSONPath: Invalid value: \"spec.b\": must be a simple json path "
        "starting with ."}},
      {kV1,
       kKind,
       Definition(kObject, "",
                  R"("conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://a/b"},)"
                  R"("conversionReviewVersions":["v2","v2","v2"]}},)"),
       {"spec.conversion.conversionReviewVersions[1]: Invalid value: \"v2\": duplicate version",
        "spec.conversion.conversionReviewVersions[2]: Invalid value: \"v2\": duplicate version",
        "spec.conversion.conversionReviewVersions: Invalid value: [\"v2\",\"v2\",\"v2\"]: must include at "
        "least one of v1, v1beta1"}},
      {kV1,
       kKind,
       Definition(kObject, "", R"("preserveUnknownFields":true,)"),
       {"spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
        "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"}},
  });
}

TEST(CustomResourceRules, Updates) {
  const std::string no_types = Definition(Property(R"({"type":"odd"})"));
  const std::string sets =
      Definition(Property(R"({"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"}})"));
  ExpectChangeErrors(
      ValidateUpdate,
      {
          // What the stored definition already has may stay.
          {kV1, kKind, no_types, no_types, {}},
          {kV1, kKind, sets, sets, {}},
          {kV1,
           kKind,
           Definition(R"({"type":"object"})"),
           no_types,
           {"spec.validation.openAPIV3Schema.properties[p].type: Unsupported value: \"odd\": supported "
            "values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\""}},
      });
  ExpectChangeErrors(
      ValidateStatusUpdate,
      {{kV1,
        kKind,
        Definition(R"({"type":"object"})"),
        R"({"metadata":{"name":"cats.example.com","resourceVersion":"1"},"status":{"storedVersions":["v9"]}})",
        {}}});
}

TEST(CustomResourceRules, Types) {
  ExpectSchemaErrors({
      {R"({"type":"object","properties":{"a":{},"b":{"type":"array"},"c":{"type":"odd"},)"
       R"("d":{"type":"array","items":{}}}})",
       {".properties[a].type: Required value: must not be empty for specified object fields",
        ".properties[b].items: Required value: must be specified",
        ".properties[d].items.type: Required value: must not be empty for specified array items",
        ".properties[c].type: Unsupported value: \"odd\": supported values: \"array\", \"boolean\", "
        "\"integer\", \"number\", \"object\", \"string\""}},
      {R"({"type":"string","uniqueItems":true})",
       {".type: Invalid value: \"string\": must be object at the root",
        ".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes "
        "quadratic"}},
      {"{}", {".type: Required value: must not be empty at the root"}},
      {R"({"x-kubernetes-preserve-unknown-fields":true})", {}},
      {R"({"type":"object","nullable":true})", {".nullable: Forbidden: nullable cannot be true at the root"}},
      {Property(R"({"x-kubernetes-preserve-unknown-fields":false,"type":"object"})"),
       {".properties[p].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or "
        "undefined"}},
      {Property(R"({"type":"string","pattern":"a("})"),
       {".properties[p].pattern: Invalid value: \"a(\": must be a valid regular expression, but isn't: "
        "error parsing regexp: missing closing ): `a(`"}},
      {R"({"type":"object","$schema":"http://json-schema.org/schema#"})",
       {": Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported"}},
      {Property(R"({"type":"object","default":{},"properties":{"default":{"type":"string"}}})"), {}},
      {R"({"type":"object","properties":{"kind":{"type":"integer","default":1}}})",
       {".properties[kind].type: Invalid value: \"integer\": must be string",
        ".properties[kind].default: Forbidden: must not be set in top-level kind"}},
  });
}

TEST(CustomResourceRules, IntOrString) {
  constexpr char kBoth[] = R"("anyOf":[{"type":"integer"},{"type":"string"}])";
  const std::string whole = R"("x-kubernetes-int-or-string":true)";
  ExpectSchemaErrors({
      {Property("{" + whole + "," + kBoth + "}"), {}},
      {Property("{" + whole + R"(,"type":"string"})"), {}},
      {Property("{" + whole + R"(,"allOf":[{)" + kBoth + R"(},{"pattern":"^a"}]})"), {}},
      {Property("{" + whole + R"(,"anyOf":[{"type":"string"},{"type":"integer"}]})"),
       {".properties[p].anyOf[0].type: Forbidden: must be empty to be structural",
        ".properties[p].anyOf[1].type: Forbidden: must be empty to be structural"}},
      {Property("{" + whole + R"(,"x-kubernetes-preserve-unknown-fields":true})"),
       {".properties[p].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if "
        "x-kubernetes-int-or-string is true"}},
  });
}

TEST(CustomResourceRules, AdditionalProperties) {
  constexpr char kWith[] = R"({"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":)";
  ExpectSchemaErrors({
      {Property(R"({"type":"object","additionalProperties":{"type":"string"}})"), {}},
      {Property(R"({"type":"object","additionalProperties":false})"), {}},
      {Property(std::string(kWith) + "true}"), {}},
      {Property(std::string(kWith) + "false}"),
       {".properties[p].additionalProperties: Forbidden: additionalProperties and properties are mutual "
        "exclusive"}},
      {Property(std::string(kWith) + R"({"type":"string"}})"),
       {".properties[p].additionalProperties: Forbidden: additionalProperties and properties are mutual "
        "exclusive"}},
      {R"({"type":"object","additionalProperties":{"type":"string"}})",
       {".additionalProperties: Forbidden: must not be used at the root"}},
  });
}

// Logical operators may only constrain what the schema itself declares.
TEST(CustomResourceRules, Operators) {
  const auto bounded = [](const std::string& bound) {
    return R"({"type":"object","properties":{"a":{"type":"string"}},"anyOf":[)" + bound + "]}";
  };
  ExpectSchemaErrors({
      {bounded(R"({"required":["a"]},{"properties":{"a":{"maxLength":2}}})"), {}},
      {bounded(R"({"properties":{"b":{"maxLength":2}}})"),
       {".properties[b]: Required value: because it is defined in "
        "spec.validation.openAPIV3Schema.anyOf[0].properties[b]"}},
      {bounded(R"({"type":"object","description":"d","nullable":true,"default":{}})"),
       {".anyOf[0].default: Forbidden: must be undefined to be structural",
        ".anyOf[0].description: Forbidden: must be empty to be structural",
        ".anyOf[0].nullable: Forbidden: must be false to be structural",
        ".anyOf[0].type: Forbidden: must be empty to be structural"}},
  });
}

TEST(CustomResourceRules, ObjectFields) {
  const auto metadata = [](const std::string& schema) {
    return R"({"type":"object","properties":{"metadata":)" + schema + "}}";
  };
  constexpr char kOnlyNames[] =
      ".properties[metadata]: Forbidden: must not specify anything other than name and generateName, but "
      "metadata is implicitly specified";
  const auto embedded = [](const std::string& rest) {
    return Property(R"({"x-kubernetes-embedded-resource":true)" + rest + "}");
  };
  ExpectSchemaErrors({
      {metadata(R"({"type":"object"})"), {}},
      {metadata(R"({"type":"object","properties":{"name":{"type":"string","maxLength":9}}})"), {}},
      {metadata(R"({"type":"object","properties":{"labels":{"type":"object"}}})"), {kOnlyNames}},
      {metadata(R"({"type":"object","description":"d"})"), {kOnlyNames}},
      {embedded(R"(,"type":"object","x-kubernetes-preserve-unknown-fields":true)"), {}},
      {embedded(R"(,"type":"object")"),
       {".properties[p].properties: Required value: must not be empty if x-kubernetes-embedded-resource is "
        "true without x-kubernetes-preserve-unknown-fields"}},
      {embedded(R"(,"type":"string","x-kubernetes-preserve-unknown-fields":true)"),
       {".properties[p].type: Invalid value: \"string\": must be object if x-kubernetes-embedded-resource is "
        "true"}},
  });
}

TEST(CustomResourceRules, Lists) {
  const auto list = [](const std::string& type, const std::string& item, const std::string& rest = "") {
    return Property(R"({"type":"array","x-kubernetes-list-type":")" + type + R"(","items":)" + item + rest +
                    "}");
  };
  constexpr char kKeyed[] = R"({"type":"object","required":["a"],"properties":{"a":{"type":"string"}}})";
  ExpectSchemaErrors({
      {list("map", kKeyed, R"(,"x-kubernetes-list-map-keys":["a"])"), {}},
      {list("set", R"({"type":"object","x-kubernetes-map-type":"atomic"})"), {}},
      {list("set", R"({"type":"object"})"),
       {".properties[p].items.x-kubernetes-map-type: Invalid value: \"null\": must be atomic as item of a "
        "list with x-kubernetes-list-type=set"}},
      {list("odd", R"({"type":"string"})"),
       {".properties[p].x-kubernetes-list-type: Unsupported value: \"odd\": supported values: \"atomic\", "
        "\"set\", \"map\""}},
      {list("map",
            R"({"type":"object","nullable":true,"properties":{"a":{"type":"object"},)"
            R"("b":{"type":"string","nullable":true}}})",
            R"(,"x-kubernetes-list-map-keys":["a","b","c","c"])"),
       {".properties[p].items.properties[a].type: Invalid value: \"object\": must be a scalar type if parent "
        "array's x-kubernetes-list-type is map",
        ".properties[p].x-kubernetes-list-map-keys: Invalid value: [\"a\",\"b\",\"c\",\"c\"]: entries must "
        "all be names of item properties",
        ".properties[p].x-kubernetes-list-map-keys: Invalid value: [\"a\",\"b\",\"c\",\"c\"]: entries must "
        "all be names of item properties",
        ".properties[p].x-kubernetes-list-map-keys: Invalid value: [\"a\",\"b\",\"c\",\"c\"]: must not "
        "contain duplicate entries",
        ".properties[p].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map",
        ".properties[p].items.properties[a].default: Required value: this property is in "
        "x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ".properties[p].items.properties[b].default: Required value: this property is in "
        "x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ".properties[p].items.properties[b].nullable: Forbidden: this property is in "
        "x-kubernetes-list-map-keys, so it cannot be nullable"}},
      {Property(R"({"type":"string","x-kubernetes-map-type":"odd"})"),
       {".properties[p].type: Invalid value: \"string\": must be object if x-kubernetes-map-type is "
        "specified",
        ".properties[p].x-kubernetes-map-type: Unsupported value: \"odd\": supported values: \"atomic\", "
        "\"granular\""}},
  });
}

TEST(CustomResourceRules, Validations) {
  ExpectSchemaErrors({
      {Property(R"({"type":"string","x-kubernetes-validations":[{"rule":"self != ''","message":"m"}]})"), {}},
      {Property(R"({"type":"string","x-kubernetes-validations":[{"rule":" "},{"rule":"a","message":" "},)"
                R"({"rule":"a\nb"},{"rule":"a","reason":"Odd"}]})"),
       {".properties[p].x-kubernetes-validations[0].rule: Required value: rule is not specified",
        ".properties[p].x-kubernetes-validations[1].message: Invalid value: \" \": message must be "
        "non-empty if specified",
        ".properties[p].x-kubernetes-validations[2].message: Required value: message must be specified if "
        "rule contains line breaks",
        ".properties[p].x-kubernetes-validations[3].reason: Unsupported value: \"Odd\": supported values: "
        "\"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\""}},
  });
}

// A status subresource removes the status from the schema.
TEST(CustomResourceRules, StatusSubresource) {
  constexpr char kStatus[] = R"("subresources":{"status":{}},)";
  ExpectErrors({
      {kV1, kKind, Definition(R"({"type":"object","required":["spec"]})", kStatus), {}},
      {kV1,
       kKind,
       Definition(R"({"type":"object","maxProperties":2})", kStatus),
       {"spec.validation.openAPIV3Schema: Invalid value: {\"type\":\"object\",\"maxProperties\":2}: only "
        "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength "
        "MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs "
        "Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the "
        "status subresource is enabled"}},
  });
}

TEST(CustomResourceRules, SelectableFields) {
  constexpr char kSchema[] =
      R"({"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string"}}},)"
      R"("spec":{"type":"object","properties":{"color":{"type":"string"},"size":{"type":"integer"},)"
      R"("labels":{"type":"object","additionalProperties":{"type":"string"}}}}}})";
  const auto with = [&](const std::vector<std::string>& paths) {
    std::string fields;
    for (const std::string& path : paths) {
      fields += (fields.empty() ? "" : ",") + (R"({"jsonPath":")" + path + "\"}");
    }
    return Definition(kSchema, "\"selectableFields\":[" + fields + "],");
  };
  const auto error = [](int index, const std::string& what) {
    return "spec.selectableFields[" + std::to_string(index) + "].jsonPath: " + what;
  };
  std::vector<std::string> nine;
  for (int i = 0; i < 9; ++i) nine.push_back(".spec.labels.l" + std::to_string(i));
  const Lines too_many = {"spec.selectableFields: Too many: 9: must have at most 8 items"};
  ExpectErrors({
      {kV1, kKind, with({".spec.color", ".spec.size", ".spec.labels.a"}), {}},
      {kV1,
       kKind,
       with({".spec.none", ".metadata.name", ".spec", "spec.color", ".spec['color']", ".spec.", ".spec.color",
             ".spec.color", ""}),
       {error(0, "Invalid value: \".spec.none\": is an invalid path: does not refer to a valid field"),
        error(1, "Invalid value: \".metadata.name\": must not point to fields in metadata"),
        error(
            2,
            "Invalid value: \".spec\": must point to a field of type string, boolean or integer. Enum string "
            "fields and strings with formats are allowed."),
        error(3, "Invalid value: \"spec.color\": is an invalid path: expected [ or . but got: spec"),
        error(4, "Invalid value: \".spec['color']\": is an invalid path: array notation is not allowed"),
        error(5, "Invalid value: \".spec.\": is an invalid path: unexpected end of JSON path"),
        error(7, "Duplicate value: \".spec.color\""), error(8, "Required value")}},
      {kV1, kKind, with(nine), too_many},
  });
  ExpectChangeErrors(ValidateUpdate, {{kV1, kKind, with(nine), with(nine), {}},
                                      {kV1, kKind, with({".spec.color"}), with(nine), too_many}});
}

// The shape of the snapshot definitions, which close an object that declares no properties.
TEST(CustomResourceRules, SnapshotSchema) {
  ExpectSchemaErrors({
      {R"({"type":"object","required":["spec"],"properties":{"apiVersion":{"type":"string"},)"
       R"("kind":{"type":"string"},"spec":{"type":"object","properties":{"source":{"type":"object",)"
       R"("properties":{"persistentVolumeClaimName":{"type":"string"},)"
       R"("volumeSnapshotContentName":{"type":"string"}},)"
       R"("oneOf":[{"required":["persistentVolumeClaimName"]},{"required":["volumeSnapshotContentName"]}],)"
       R"("x-kubernetes-validations":[{"rule":"self == oldSelf","message":"immutable"}]},)"
       R"("parameters":{"type":"object","additionalProperties":false}}},)"
       R"("status":{"type":"object","properties":{"restoreSize":{"type":"string",)"
       R"("pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))$","x-kubernetes-int-or-string":true}}}}})",
       {}},
  });
}

}  // namespace
}  // namespace keelson::k8s

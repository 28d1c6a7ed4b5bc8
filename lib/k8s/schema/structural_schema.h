// Structural schemas of custom resources, compiled from the schema of a version of a CustomResourceDefinition,
// and what the API server does with objects by them. Objects are JSON trees.
//
// A request's object goes through these steps, as in apiextensions-apiserver:
//   read from a request or from etcd:  CoerceObject(), then DefaultObject()
//   before it is stored:               ValidateSchema(), ValidateEmbeddedObjects() of
//                                      lib/k8s/validation/extension/embedded.h, ValidateListTypes(), and the rules of
//                                      x-kubernetes-validations
//
// Sources: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/ and
// KEP-1147 (structural schemas), KEP-4008 (ratcheting).
//
// A compiled schema is compact: equal parts are stored once, texts for people are left out, and regular
// expressions and Shape are made on first use.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include "lib/api/apply/typed.h"
#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/base/error.h"
#include "lib/k8s/field_error.h"

namespace keelson::k8s {

struct SchemaNodes;  // nodes.h

// Immutable and thread safe.
class StructuralSchema {
 public:
  // `schema`: openAPIV3Schema of a version; it should have passed validation. kInvalid for parts that no
  // structural schema has ($ref, items that are a list, a pattern or a default that does not parse) and for a
  // schema that nests deeper than kMaxDepth or has more than kMaxNodes parts.
  static Result<std::shared_ptr<const StructuralSchema>> Compile(
      const api::apiextensions::v1::JSONSchemaProps& schema);
  ~StructuralSchema();
  StructuralSchema(const StructuralSchema&) = delete;
  StructuralSchema& operator=(const StructuralSchema&) = delete;

  // The schema as server-side apply sees it, with apiVersion, kind and the metadata of every object. Lives as
  // long as the schema.
  const api::Shape& shape() const;

  // Whether any part has a default value.
  bool has_defaults() const;
  // Whether any part has rules in x-kubernetes-validations.
  bool has_rules() const;
  // Approximate size in memory, without what is made on first use.
  size_t bytes() const;

  const SchemaNodes& nodes() const { return *nodes_; }

  static constexpr int kMaxDepth = 100;
  static constexpr size_t kMaxNodes = 100'000;

 private:
  explicit StructuralSchema(std::unique_ptr<SchemaNodes> nodes);

  const std::unique_ptr<SchemaNodes> nodes_;
};

// ---- reading ----

struct CoerceOptions {
  // Fields of metadata that have a wrong type are dropped instead of being an error: for objects from etcd.
  bool drop_invalid_metadata = false;
  // Unknown fields are kept: for spec.preserveUnknownFields of definitions from before v1.
  bool preserve_unknown_fields = false;
};

// Makes an object follow the schema: removes unknown fields and nulls that may not be there, and brings the
// metadata of the object and of embedded objects into its canonical form. Returns unknown fields in the words of
// strict field validation, `unknown field "spec.foo"`, in upstream's order. kBadRequest or kInvalid for metadata of
// a wrong type. `object` must be a JSON object; it must not nest deeper than kMaxObjectDepth.
Result<std::vector<std::string>> CoerceObject(const StructuralSchema& schema, boost::json::value& object,
                                              const CoerceOptions& options = {});

// Brings the metadata of an object into its canonical form, without the fields that have a wrong type. kBadRequest:
// the metadata is no object.
Result<> DropInvalidMetadata(boost::json::value& object);

// Sets fields that are absent, or null without being nullable, to their defaults.
void DefaultObject(const StructuralSchema& schema, boost::json::value& object);

// Objects may nest as deep as Go's parser allows, which would not fit on a thread's stack. The reader of a request
// has to refuse deeper ones.
inline constexpr int kMaxObjectDepth = 1000;

// ---- the steps of CoerceObject ----

// Removes fields that the schema does not know, but not from the metadata of the object or of embedded objects.
// Returns their paths (spec.foo, spec.list[0].bar), sorted.
std::vector<std::string> PruneObject(const StructuralSchema& schema, boost::json::value& object);
// Removes nulls that are neither nullable nor replaced by a default.
void PruneNulls(const StructuralSchema& schema, boost::json::value& object);

// ---- validation ----

// Checks types and values. With `old`, the stored object, parts that did not change since are not held against the
// schema where a part's old value can be told: members of objects, and items of lists with map keys.
FieldErrors ValidateSchema(const StructuralSchema& schema, const boost::json::value& object,
                           const boost::json::value* old = nullptr);
// Checks that items of sets and keys of map lists are unique; not when those of `old` were not.
FieldErrors ValidateListTypes(const StructuralSchema& schema, const boost::json::value& object,
                              const boost::json::value* old = nullptr);

}  // namespace keelson::k8s

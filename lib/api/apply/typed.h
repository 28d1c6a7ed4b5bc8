// Objects as server-side apply sees them: which parts are merged field by field, which lists item by item,
// and what is one value whose writers take turns. Upstream's structured-merge-diff has the rules.
//
// A Shape is the schema in that view. Those of built-in kinds come from their descriptors and annotations;
// a custom resource's can be made from its OpenAPI schema.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "lib/api/apply/field_path.h"
#include "lib/api/scheme.h"

namespace keelson::api {

struct MessageInfo;

struct Shape {
  enum class Kind {
    kScalar,
    kList,
    kMap,  // an object: named fields, free keys, or both
    kAny   // whatever it is, it is one value
  };
  enum class Scalar { kString, kNumber, kBool, kAny };
  struct Field {
    std::string_view name;
    const Shape* shape;
    int group = -1, index = -1;  // where the wire has it: see groups; -1: not there (apiVersion, kind)
  };
  struct Key {
    std::string_view name;
    std::string default_json;  // of items that lack it; empty: they do without
  };
  // Messages whose fields stand in this object: itself, and those that are inlined in an earlier one.
  struct Group {
    const MessageInfo* message;
    int parent = -1, index = -1;  // field `index` of group `parent`
  };

  static constexpr size_t kMaxGroups = 8;

  Kind kind = Kind::kAny;
  Scalar scalar = Scalar::kAny;
  bool atomic = false;             // list, map: one value
  bool set = false;                // list: items are told apart by their value; else by `keys`
  std::vector<Key> keys;           // sorted by name
  const Shape* element = nullptr;  // of a list's items, or of keys that are no named fields; null: none
  std::vector<Field> fields;       // sorted by name
  std::vector<Group> groups;       // of descriptors only

  const Field* Find(std::string_view name) const;
};

// Lives for ever; thread safe.
const Shape& ShapeOf(const Descriptor* descriptor);

// What differs between two objects. Also names lists and objects that came or went as a whole.
struct Comparison {
  FieldSet added, modified, removed;
  bool Empty() const { return added.Empty() && modified.Empty() && removed.Empty(); }
  void Filter(const FieldFilter& filter);
};

// ---- on wire bytes: fast enough for every write ----
// Objects as Go would print them: absent value-form fields count as their zeros where JSON has those. Both
// must be canonical (codec.h), with map keys in one order. False when a list's item has none of its keys, so
// that it cannot be told from others.
bool CompareWire(const Shape& shape, std::string_view old_object, std::string_view new_object,
                 Comparison& out);

// ---- on JSON documents ----
// Fields that the schema does not have, values of the wrong type, items without their keys or (unless
// allowed) with equal ones; in upstream's words: `.spec.foo: field not declared in schema`.
std::vector<std::string> CheckShape(const Shape& shape, const boost::json::value& value,
                                    bool allow_duplicates);
// The rest wants documents that have passed CheckShape().
FieldSet FieldsOf(const Shape& shape, const boost::json::value& value);
Comparison CompareJson(const Shape& shape, const boost::json::value& before, const boost::json::value& after);
// `config` over `live`: lists keep the order of `config` where it says one.
boost::json::value MergeShaped(const Shape& shape, const boost::json::value& live,
                               const boost::json::value& config);
boost::json::value RemoveFields(const Shape& shape, const boost::json::value& value, const FieldSet& fields);
boost::json::value ExtractFields(const Shape& shape, const boost::json::value& value, const FieldSet& fields);
// With every named field that has some of its own below: who sets spec.replicas has a part in spec.
FieldSet WithNamedFields(const Shape& shape, const FieldSet& fields);
// Numbers by their value, objects whatever the order of their keys.
bool SameJson(const boost::json::value& a, const boost::json::value& b);

}  // namespace keelson::api

// Objects in server-side apply's view: which parts merge field by field, which lists merge item by item,
// and which values change as a whole. The rules are those of upstream's structured-merge-diff.
//
// A Shape is a schema in that view. Shapes of built-in kinds come from their descriptors and annotations; a
// custom resource's can be made from its OpenAPI schema.
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
    kAny   // any type, merged as one value
  };
  enum class Scalar { kString, kNumber, kBool, kAny };
  struct Field {
    std::string_view name;
    const Shape* shape;
    int group = -1, index = -1;  // position on the wire, see groups; -1: not there (apiVersion, kind)
  };
  struct Key {
    std::string_view name;
    std::string default_json;  // for items without the key; empty: no default
  };
  // Messages that contribute fields to this object: its own, and those inlined in an earlier group.
  struct Group {
    const MessageInfo* message;
    int parent = -1, index = -1;  // field `index` of group `parent`
  };

  static constexpr size_t kMaxGroups = 8;

  Kind kind = Kind::kAny;
  Scalar scalar = Scalar::kAny;
  bool atomic = false;             // list or map that changes as a whole
  bool deduced = false;            // map: a value that is no object is fine, and changes as a whole
  bool set = false;                // list: items are identified by value; otherwise by `keys`
  std::vector<Key> keys;           // sorted by name
  const Shape* element = nullptr;  // shape of list items, or of values of free keys; null: none
  std::vector<Field> fields;       // sorted by name
  std::vector<Group> groups;       // for shapes of descriptors only

  const Field* Find(std::string_view name) const;
};

// Shapes live as long as the process. Thread safe.
const Shape& ShapeOf(const Descriptor* descriptor);

// The differences between two objects. Includes lists and objects that appeared or vanished as a whole.
struct Comparison {
  FieldSet added, modified, removed;
  bool Empty() const { return added.Empty() && modified.Empty() && removed.Empty(); }
  void Filter(const FieldFilter& filter);
};

// ---- on wire bytes: fast enough for every write ----
// Compares objects as Go would print them: absent value-form fields count as zeros where JSON has those.
// Both must be canonical (lib/api/codec/codec.h), with map keys in one order. False when a list item has
// none of its keys, so that it cannot be identified.
bool CompareWire(const Shape& shape, std::string_view old_object, std::string_view new_object,
                 Comparison& out);

// ---- on JSON documents ----
// Checks a document and returns the problems, in upstream's words (`.spec.foo: field not declared in
// schema`): unknown fields, wrong types, items without their keys and, unless `allow_duplicates`, items
// with equal keys.
std::vector<std::string> CheckShape(const Shape& shape, const boost::json::value& value,
                                    bool allow_duplicates);
// The functions below require documents that pass CheckShape().
FieldSet FieldsOf(const Shape& shape, const boost::json::value& value);
Comparison CompareJson(const Shape& shape, const boost::json::value& before, const boost::json::value& after);
// Merges `config` over `live`. Lists keep the order of `config`.
boost::json::value MergeShaped(const Shape& shape, const boost::json::value& live,
                               const boost::json::value& config);
boost::json::value RemoveFields(const Shape& shape, const boost::json::value& value, const FieldSet& fields);
boost::json::value ExtractFields(const Shape& shape, const boost::json::value& value, const FieldSet& fields);
// Adds every named field that has fields of the set below it: setting spec.replicas claims a part of spec.
FieldSet WithNamedFields(const Shape& shape, const FieldSet& fields);
// Compares numbers by value, and objects regardless of the order of their keys.
bool SameJson(const boost::json::value& a, const boost::json::value& b);

}  // namespace keelson::api

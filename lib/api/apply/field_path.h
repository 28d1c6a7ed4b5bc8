// Paths to the fields of an object, and sets of them: server-side apply's record of who manages which
// field, in the form of metadata.managedFields (FieldsV1).
//
// A step of a path is a string, spelled as in FieldsV1:
//
//   f:replicas           a field of an object, or a key of a map
//   k:{"name":"web"}     the list item with these keys; sorted by name, without white space
//   v:"finalizer"        the item with this value, in a list of scalars
//   i:0                  the item at this index
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"

namespace keelson::api {

using FieldPath = std::vector<std::string>;

std::string FieldStep(std::string_view name);
// `keys`: names and JSON values, sorted by name.
std::string KeyStep(const std::vector<std::pair<std::string_view, std::string>>& keys);
// `json`: the value as JSON.
std::string ValueStep(std::string_view json);
inline bool IsFieldStep(std::string_view step) { return step[0] == 'f'; }
inline std::string_view StepName(std::string_view step) { return step.substr(2); }  // of a field step

// The order of FieldsV1: fields, keys, values, indexes; numbers by value. Negative, zero or positive.
int CompareSteps(std::string_view a, std::string_view b);

// The form of messages: .spec.containers[name="web"].image, .metadata.finalizers[="x"].
std::string PrintStep(std::string_view step);
std::string PrintPath(const FieldPath& path);
// A path of plain fields: {"spec", "replicas"}.
FieldPath MakePath(std::initializer_list<std::string_view> names);

// A set of paths, stored as a tree with sorted branches. A path in the set does not imply the paths below
// it.
class FieldSet {
 public:
  struct Node;

  bool Empty() const { return nodes_.empty(); }
  size_t Size() const;
  bool Has(const FieldPath& path) const { return Has(path, 0); }
  void Insert(const FieldPath& path) { Insert(path, 0); }
  bool operator==(const FieldSet& other) const;

  void UnionWith(const FieldSet& other);
  // Removes the paths of `other`; false if none of them was in the set.
  bool Subtract(const FieldSet& other);
  // Removes the paths of `other` and everything below them; false if nothing was removed.
  bool SubtractTrees(const FieldSet& other);
  FieldSet Intersection(const FieldSet& other) const;
  // Whether any path is in both.
  bool Intersects(const FieldSet& other) const;
  // The subtree below one step, or null.
  const FieldSet* Below(std::string_view step) const;

  // Visits every path; at each level first the paths that end there, in upstream's order for conflicts.
  void ForEach(const std::function<void(const FieldPath&)>& each) const;

  // FieldsV1, and back. FromJson() drops steps of unknown kinds; kBadRequest for malformed text.
  void AppendJson(std::string& out) const;
  std::string ToJson() const;
  static Result<FieldSet> FromJson(std::string_view json);

  // For code that visits steps in order: adds a branch after the last one. Drops a branch that holds
  // nothing.
  void Append(std::string step, bool member, FieldSet below);
  // Restores the order after Append() in any order; no two branches may have the same step.
  void Sort();
  const std::vector<Node>& nodes() const { return nodes_; }
  std::vector<Node>& mutable_nodes() { return nodes_; }

 private:
  bool Has(const FieldPath& path, size_t at) const;
  void Insert(const FieldPath& path, size_t at);
  size_t LowerBound(std::string_view step) const;

  std::vector<Node> nodes_;  // each is a member or has something below
};

struct FieldSet::Node {
  std::string step;
  bool member = false;  // the path up to here is in the set
  FieldSet below;
  bool operator==(const Node& other) const {
    return member == other.member && step == other.step && below == other.below;
  }
};

// Limits the fields that a write may claim: fields that a resource's strategy drops have no owner.
class FieldFilter {
 public:
  FieldFilter() = default;  // allows everything
  static const FieldFilter& Everything();
  static FieldFilter Without(FieldSet fields);
  // Allows only what is on the way to, or below, one of these patterns; "*" stands for any step.
  static FieldFilter Only(std::vector<std::vector<std::string>> patterns);

  bool IsEverything() const { return excluded_.Empty() && patterns_.empty(); }
  void Apply(FieldSet& set) const;

 private:
  FieldSet excluded_;
  std::vector<std::vector<std::string>> patterns_;
};

}  // namespace keelson::api

// Paths to the fields of an object and sets of them: what server-side apply knows of who manages what, in
// the form that metadata.managedFields has them (FieldsV1).
//
// A step of a path is a string, as it stands in FieldsV1:
//
//   f:replicas           a field of an object, or a key of a map
//   k:{"name":"web"}     the item of a list that has these keys; sorted by name, without white space
//   v:"finalizer"        the item of a list of scalars that is this value
//   i:0                  the item at this place
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
// Names and JSON values, sorted by name.
std::string KeyStep(const std::vector<std::pair<std::string_view, std::string>>& keys);
std::string ValueStep(std::string_view json);
inline bool IsFieldStep(std::string_view step) { return step[0] == 'f'; }
inline std::string_view StepName(std::string_view step) { return step.substr(2); }  // of a field step

// The order of FieldsV1: fields, keys, values, places; numbers by value. Negative, zero or positive.
int CompareSteps(std::string_view a, std::string_view b);

// As messages show it: .spec.containers[name="web"].image, .metadata.finalizers[="x"].
std::string PrintStep(std::string_view step);
std::string PrintPath(const FieldPath& path);
// A path of fields only: {"spec", "replicas"}.
FieldPath MakePath(std::initializer_list<std::string_view> names);

// A set of paths, kept as a tree whose branches are sorted. A path that is in the set says nothing of the
// ones below it.
class FieldSet {
 public:
  struct Node;

  bool Empty() const { return nodes_.empty(); }
  size_t Size() const;
  bool Has(const FieldPath& path) const { return Has(path, 0); }
  void Insert(const FieldPath& path) { Insert(path, 0); }
  bool operator==(const FieldSet& other) const;

  void UnionWith(const FieldSet& other);
  // Takes away the paths of `other`; false if there were none of them.
  bool Subtract(const FieldSet& other);
  // The same, and everything below each of them.
  bool SubtractTrees(const FieldSet& other);
  FieldSet Intersection(const FieldSet& other) const;
  // Is there a path that is in both?
  bool Intersects(const FieldSet& other) const;
  // What is below one step, or null.
  const FieldSet* Below(std::string_view step) const;

  // Every path; at each level first those that end there, as upstream lists conflicts.
  void ForEach(const std::function<void(const FieldPath&)>& each) const;

  // FieldsV1, and back. Steps of kinds that are not known are dropped. kBadRequest.
  void AppendJson(std::string& out) const;
  std::string ToJson() const;
  static Result<FieldSet> FromJson(std::string_view json);

  // For walkers, which come by in order: adds a branch after the last one. A branch that holds nothing is
  // left out.
  void Append(std::string step, bool member, FieldSet below);
  // Restores the order after branches were appended in any; there must be no two of one step.
  void Sort();
  const std::vector<Node>& nodes() const { return nodes_; }
  std::vector<Node>& mutable_nodes() { return nodes_; }

 private:
  bool Has(const FieldPath& path, size_t at) const;
  void Insert(const FieldPath& path, size_t at);
  size_t LowerBound(std::string_view step) const;

  std::vector<Node> nodes_;  // none is without meaning: it is a member or has some below
};

struct FieldSet::Node {
  std::string step;
  bool member = false;  // the path up to here is in the set
  FieldSet below;
  bool operator==(const Node& other) const {
    return member == other.member && step == other.step && below == other.below;
  }
};

// Which fields a write may claim: what a resource's strategy throws away belongs to nobody.
class FieldFilter {
 public:
  FieldFilter() = default;  // everything
  static const FieldFilter& Everything();
  static FieldFilter Without(FieldSet fields);
  // Only what is on the way to or below one of these; "*" stands for any step.
  static FieldFilter Only(std::vector<std::vector<std::string>> patterns);

  bool IsEverything() const { return excluded_.Empty() && patterns_.empty(); }
  void Apply(FieldSet& set) const;

 private:
  FieldSet excluded_;
  std::vector<std::vector<std::string>> patterns_;
};

}  // namespace keelson::api

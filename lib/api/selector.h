// Label and field selectors.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/map.h>

#include "lib/api/scheme.h"

#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::api {

using LabelMap = google::protobuf::Map<std::string, std::string>;

class LabelSelector {
 public:
  enum class Op { kIn, kNotIn, kExists, kDoesNotExist, kGreaterThan, kLessThan };
  struct Requirement {
    std::string key;
    Op op;
    std::vector<std::string> values;  // sorted; `=` and `==` are kIn of one, `!=` is kNotIn of one
  };

  LabelSelector() = default;  // matches everything
  // "app=web,tier in (a,b),!canary,x>3"; kBadRequest in upstream's words
  static Result<LabelSelector> Parse(std::string_view text);
  // The selector of a spec: an absent one (null) matches nothing, an empty one everything. kBadRequest when
  // invalid.
  static Result<LabelSelector> From(const metav1::LabelSelector& selector);
  static LabelSelector FromMap(const LabelMap& labels);  // requires equality for each
  static LabelSelector Nothing();

  bool Matches(const LabelMap& labels) const;
  bool IsEverything() const { return !nothing_ && requirements_.empty(); }
  std::string ToString() const;
  const std::vector<Requirement>& requirements() const { return requirements_; }

 private:
  bool nothing_ = false;
  std::vector<Requirement> requirements_;  // sorted by key
};

// "spec.nodeName=n1,status.phase!=Failed": supports =, == and !=.
struct FieldSelector {
  struct Term {
    std::string field, value;
    bool equal;
  };
  std::vector<Term> terms;

  static Result<FieldSelector> Parse(std::string_view text);
  bool IsEverything() const { return terms.empty(); }
  std::string ToString() const;
};

// The value of a field for field selectors, or nullopt when the resource does not support the field.
// Supported are metadata.name and metadata.namespace for all; spec.nodeName, status.phase, ... for pods;
// type for secrets; involvedObject.* for events; and so on.
std::optional<std::string> SelectableField(const Message& object, std::string_view field);
// The fields that the kind supports, sorted.
std::vector<std::string> SelectableFields(const Descriptor* descriptor);
// Whether all terms match. An unsupported field does not match: reject it first by SelectableFields().
bool Matches(const FieldSelector& selector, const Message& object);

}  // namespace keelson::api

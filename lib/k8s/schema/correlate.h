// Internal to lib/k8s: finds what a part of an object was before an update, for ratcheting (KEP-4008) and for
// transition rules.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include <boost/json/value.hpp>

#include "lib/k8s/schema/nodes.h"

namespace keelson::k8s {

// The old value of a part of the object, and the node of the schema that both follow. Without a value when the part
// is new, or cannot be told from its neighbours.
struct Correlation {
  const boost::json::value* old = nullptr;
  NodeIndex node = kNoNode;
};

// For one update; not thread safe.
class Correlator {
 public:
  explicit Correlator(const SchemaNodes& nodes) : nodes_(nodes) {}

  Correlation Member(const Correlation& of, std::string_view name) const;
  // Of the item `value` of a new list. Only items of map lists have an old value.
  Correlation Item(const Correlation& of, const boost::json::value& value);
  // Whether the part has not changed. Items of map lists may have moved. A member that the schema does not name
  // makes its object count as changed.
  bool IsUnchanged(const Correlation& part, const boost::json::value& value);

 private:
  using Items = std::unordered_map<std::string, const boost::json::value*>;

  // Empty for items without one of the keys.
  std::string KeyOf(const SchemaNode& list, const boost::json::value& item) const;

  const SchemaNodes& nodes_;
  std::map<const boost::json::value*, Items> lists_;
};

}  // namespace keelson::k8s

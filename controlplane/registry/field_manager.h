// Server-side apply: maintains metadata.managedFields (who manages which fields of an object) in every
// write, and implements the apply verb. The rules are those of apimachinery's managedfields and of
// structured-merge-diff.
#pragma once

#include <memory>
#include <string_view>

#include <boost/json/value.hpp>

#include "controlplane/registry/managed_fields.h"
#include "controlplane/registry/strategy.h"

namespace keelson::registry {

// The parts of a write that matter here.
struct FieldWrite {
  const ResourceInfo& info;  // the requested row: version, kind and subresource
  std::string_view manager;  // empty: "unknown"
  WallTime now;
  const api::FieldFilter& filter;  // fields that the write may claim
};

// The fields that a write of this part ignores, whatever the client sends. `main` is a main row.
const api::FieldFilter& ResetFilter(const ResourceInfo& main, Part part);

// Returns the managed fields of `object` after a create (`live` null), update or patch, and removes those
// in `object`. `object` must have its defaults, and still the managed fields that the client sent.
ManagedFields::Encoded ManageUpdate(const FieldWrite& write, const Message* live, Message& object);

// Merges an applied configuration into `live` (null: the object does not exist). Returns the new object
// with its managed fields, not yet defaulted. kConflict with upstream's causes when others manage fields
// that `config` would change and `force` is not set.
Result<std::unique_ptr<Message>> ManageApply(const FieldWrite& write, const Message* live,
                                             const boost::json::value& config, bool force);

// A Scale shows the managers of its parent's replicas; writing it changes those of the parent.
ManagedFields::Encoded ScaleManagedFields(const ManagedFields::Encoded& parent);
ManagedFields::Encoded ParentManagedFields(const ManagedFields::Encoded& parent,
                                           const ManagedFields::Encoded& scale,
                                           std::string_view parent_version);

}  // namespace keelson::registry

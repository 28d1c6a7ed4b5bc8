// Server-side apply: who manages which fields of an object, kept in metadata.managedFields through every
// write, and the writes that go by it. The rules are those of apimachinery's managedfields and of
// structured-merge-diff.
#pragma once

#include <memory>
#include <string_view>

#include <boost/json/value.hpp>

#include "controlplane/registry/managed_fields.h"
#include "controlplane/registry/strategy.h"

namespace keelson::registry {

// One write, as far as it matters here.
struct FieldWrite {
  const ResourceInfo& info;  // the row that was asked for: version, kind and subresource of the write
  std::string_view manager;  // empty: "unknown"
  WallTime now;
  const api::FieldFilter& filter;  // what the write may claim
};

// The fields that a write of this part throws away, whatever a client sends. `main` is a main row.
const api::FieldFilter& ResetFilter(const ResourceInfo& main, Part part);

// The managed fields of `object` after a create (`live` null), update or patch; it has to be defaulted, and
// still to have the managed fields that the client sent. They are taken out of it.
ManagedFields::Encoded ManageUpdate(const FieldWrite& write, const Message* live, Message& object);

// Merges an applied configuration into `live` (null: there is nothing) and answers with the new object and
// its managed fields in it, not yet defaulted. kConflict with upstream's causes when others manage what
// `config` would change and `force` is not set.
Result<std::unique_ptr<Message>> ManageApply(const FieldWrite& write, const Message* live,
                                             const boost::json::value& config, bool force);

// A Scale shows who manages its parent's replicas, and a write of it moves that.
ManagedFields::Encoded ScaleManagedFields(const ManagedFields::Encoded& parent);
ManagedFields::Encoded ParentManagedFields(const ManagedFields::Encoded& parent,
                                           const ManagedFields::Encoded& scale,
                                           std::string_view parent_version);

}  // namespace keelson::registry

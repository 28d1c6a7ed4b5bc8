// Internal to controlplane/registry: steps that updates and applies share.
#pragma once

#include "controlplane/registry/field_manager.h"
#include "controlplane/registry/object_shape.h"
#include "lib/api/apply/typed.h"

namespace keelson::registry {

// Fields without a manager: the object's identity, and fields that the server sets.
const api::FieldSet& StripSet();

// The row of the same resource at another version; null when there is none.
const ResourceInfo* RowAtVersion(const ResourceInfo& info, std::string_view api_version);

// The differences between two objects of a row; `live` may be null. False when a list item has none of its keys.
bool Compare(const ResourceInfo& info, const Message* live, const Message& object, api::Comparison& out);

// What a write changes between `live` (null: nothing) and `object`, limited to fields that can have a
// manager. Empty when the two cannot be compared field by field.
api::Comparison Changes(const FieldWrite& write, const Message* live, const Message& object);

// Assigns the changes to the write's manager and removes them from all others.
void TakeOver(const FieldWrite& write, const Message* live, const Message& object, api::Comparison changes,
              ManagedFields& managed);

}  // namespace keelson::registry

// Inside the registry: steps that updates and applies share.
#pragma once

#include "controlplane/registry/field_manager.h"
#include "lib/api/apply/typed.h"

namespace keelson::registry {

// Fields that nobody manages: what identifies the object, and what the server keeps itself.
const api::FieldSet& StripSet();

// The row of the same objects at another version; null when there is none.
const ResourceInfo* RowAtVersion(const ResourceInfo& info, std::string_view api_version);

// What a write changes between `live` (null: nothing) and `object`, as far as anybody can manage it; empty
// when the two cannot be told apart field by field.
api::Comparison Changes(const FieldWrite& write, const Message* live, const Message& object);

// Gives the changes to the write's manager and takes them from all others.
void TakeOver(const FieldWrite& write, const Message* live, const Message& object, api::Comparison changes,
              ManagedFields& managed);

}  // namespace keelson::registry

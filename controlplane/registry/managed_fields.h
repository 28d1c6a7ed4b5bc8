// metadata.managedFields, decoded: which manager has which fields, since when, by which operation, at which
// API version and through which subresource.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/apply/field_path.h"
#include "lib/api/types.h"
#include "lib/k8s/field_error.h"

namespace keelson::registry {

// Manager, operation and subresource identify an entry; for updates, the version too.
struct ManagedEntry {
  std::string manager, api_version, subresource;
  bool applied = false;
  std::optional<metav1::Time> time;
  api::FieldSet fields;

  bool IsOf(std::string_view name, bool by_apply, std::string_view version, std::string_view sub) const {
    return manager == name && applied == by_apply && subresource == sub &&
           (applied || api_version == version);
  }
  // The form in conflict messages: "kubectl-edit" with subresource "status" using apps/v1.
  std::string Describe() const;
};

class ManagedFields {
 public:
  using Encoded = google::protobuf::RepeatedPtrField<metav1::ManagedFieldsEntry>;

  // kBadRequest when an entry could not have been written by a server.
  static Result<ManagedFields> Decode(const Encoded& entries);
  // Encodes in upstream's order: applies first, then by time and name.
  Encoded Encode() const;

  bool empty() const { return entries_.empty(); }
  std::vector<ManagedEntry>& entries() { return entries_; }
  const std::vector<ManagedEntry>& entries() const { return entries_; }
  ManagedEntry* Find(std::string_view manager, bool applied, std::string_view version,
                     std::string_view subresource);
  void DropEmpty();
  // Keeps at most `most` entries of updates, by merging the oldest ones of each version.
  void CapUpdates(size_t most);

 private:
  std::vector<ManagedEntry> entries_;
};

// Whether the client resets managed fields: by an empty list, or by one empty entry. The decoder turns the
// former into the latter, because a message cannot tell an empty list from an absent one.
bool AsksForReset(const ManagedFields::Encoded& entries);
bool SameButForTimes(const ManagedFields::Encoded& a, const ManagedFields::Encoded& b);
k8s::FieldErrors ValidateManagedFields(const ManagedFields::Encoded& entries);

}  // namespace keelson::registry

// metadata.managedFields in a form to work with: which manager has which fields, since when, by which
// operation, at which version of the API and through which subresource.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/apply/field_path.h"
#include "lib/api/types.h"
#include "lib/k8s/field_error.h"

namespace keelson::registry {

// An entry is known by its manager, operation and subresource; those of updates by their version as well.
struct ManagedEntry {
  std::string manager, api_version, subresource;
  bool applied = false;
  std::optional<metav1::Time> time;
  api::FieldSet fields;

  bool IsOf(std::string_view name, bool by_apply, std::string_view version, std::string_view sub) const {
    return manager == name && applied == by_apply && subresource == sub &&
           (applied || api_version == version);
  }
  // As messages about conflicts name it: "kubectl-edit" with subresource "status" using apps/v1.
  std::string Describe() const;
};

class ManagedFields {
 public:
  using Encoded = google::protobuf::RepeatedPtrField<metav1::ManagedFieldsEntry>;

  // kBadRequest when an entry is not what a server may have written.
  static Result<ManagedFields> Decode(const Encoded& entries);
  // In upstream's order: applies first, then by time and name.
  Encoded Encode() const;

  bool empty() const { return entries_.empty(); }
  std::vector<ManagedEntry>& entries() { return entries_; }
  const std::vector<ManagedEntry>& entries() const { return entries_; }
  ManagedEntry* Find(std::string_view manager, bool applied, std::string_view version,
                     std::string_view subresource);
  void DropEmpty();
  // At most so many updates are told apart; the oldest of one version become one.
  void CapUpdates(size_t most);

 private:
  std::vector<ManagedEntry> entries_;
};

// A client that wants no managed fields sends a list that is empty, or one empty entry: what is decoded here
// as the latter (a message cannot tell an empty list from none).
bool AsksForReset(const ManagedFields::Encoded& entries);
bool SameButForTimes(const ManagedFields::Encoded& a, const ManagedFields::Encoded& b);
k8s::FieldErrors ValidateManagedFields(const ManagedFields::Encoded& entries);

}  // namespace keelson::registry

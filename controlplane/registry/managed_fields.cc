#include "controlplane/registry/managed_fields.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "lib/api/meta.h"

namespace keelson::registry {
namespace {

constexpr const char* kOldUpdates = "ancient-changes";
constexpr size_t kMaxManagerLength = 128, kMaxSubresourceLength = 256;

Error Undecodable(std::string_view why) { return Error(Code::kBadRequest, std::string(why)); }

int64_t SecondsOf(const ManagedEntry& entry) { return entry.time ? entry.time->seconds() : 0; }

Result<ManagedEntry> DecodeEntry(const metav1::ManagedFieldsEntry& from, int index) {
  ManagedEntry entry;
  entry.applied = from.operation() == "Apply";
  if (!entry.applied && from.operation() != "Update") {
    return Undecodable("operation must be `Apply` or `Update`");
  }
  if (from.api_version().empty()) return Undecodable("apiVersion must not be empty");
  if (from.fields_type().empty()) {
    return Undecodable(fmt::format("missing fieldsType in managed fields entry {}", index));
  }
  if (from.fields_type() != "FieldsV1") {
    return Undecodable(
        fmt::format("invalid fieldsType \"{}\" in managed fields entry {}", from.fields_type(), index));
  }
  entry.manager = from.manager();
  entry.api_version = from.api_version();
  entry.subresource = from.subresource();
  if (from.has_time()) entry.time = from.time();
  if (from.has_fields_v1() && !from.fields_v1().raw().empty()) {
    KEELSON_ASSIGN_OR_RETURN(entry.fields, api::FieldSet::FromJson(from.fields_v1().raw()));
  }
  return entry;
}

}  // namespace

std::string ManagedEntry::Describe() const {
  std::string out = k8s::Quote(manager);
  if (!subresource.empty()) out += " with subresource " + k8s::Quote(subresource);
  return applied ? out : out + " using " + api_version;
}

Result<ManagedFields> ManagedFields::Decode(const Encoded& entries) {
  ManagedFields out;
  out.entries_.reserve(static_cast<size_t>(entries.size()));
  for (int i = 0; i < entries.size(); ++i) {
    KEELSON_ASSIGN_OR_RETURN(ManagedEntry entry, DecodeEntry(entries[i], i));
    ManagedEntry* twin = out.Find(entry.manager, entry.applied, entry.api_version, entry.subresource);
    if (twin) {
      *twin = std::move(entry);  // the last one wins
    } else {
      out.entries_.push_back(std::move(entry));
    }
  }
  return out;
}

ManagedFields::Encoded ManagedFields::Encode() const {
  std::vector<const ManagedEntry*> order;
  for (const ManagedEntry& entry : entries_) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const ManagedEntry* a, const ManagedEntry* b) {
    if (a->applied != b->applied) return a->applied;
    return std::make_tuple(SecondsOf(*a), std::string_view(a->manager), std::string_view(a->api_version),
                           std::string_view(a->subresource)) <
           std::make_tuple(SecondsOf(*b), std::string_view(b->manager), std::string_view(b->api_version),
                           std::string_view(b->subresource));
  });
  Encoded out;
  out.Reserve(static_cast<int>(order.size()));
  for (const ManagedEntry* entry : order) {
    metav1::ManagedFieldsEntry& to = *out.Add();
    if (!entry->manager.empty()) to.set_manager(entry->manager);
    to.set_operation(entry->applied ? "Apply" : "Update");
    to.set_api_version(entry->api_version);
    if (entry->time) *to.mutable_time() = *entry->time;
    to.set_fields_type("FieldsV1");
    entry->fields.AppendJson(*to.mutable_fields_v1()->mutable_raw());
    if (!entry->subresource.empty()) to.set_subresource(entry->subresource);
  }
  return out;
}

ManagedEntry* ManagedFields::Find(std::string_view manager, bool applied, std::string_view version,
                                  std::string_view subresource) {
  for (ManagedEntry& entry : entries_) {
    if (entry.IsOf(manager, applied, version, subresource)) return &entry;
  }
  return nullptr;
}

void ManagedFields::DropEmpty() {
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(),
                                [](const ManagedEntry& entry) { return entry.fields.Empty(); }),
                 entries_.end());
}

void ManagedFields::CapUpdates(size_t most) {
  std::vector<ManagedEntry*> updates;
  for (ManagedEntry& entry : entries_) {
    if (!entry.applied) updates.push_back(&entry);
  }
  if (updates.size() <= most) return;
  std::sort(updates.begin(), updates.end(), [](const ManagedEntry* a, const ManagedEntry* b) {
    return std::make_tuple(SecondsOf(*a), std::string_view(a->manager), std::string_view(a->api_version),
                           std::string_view(a->subresource)) <
           std::make_tuple(SecondsOf(*b), std::string_view(b->manager), std::string_view(b->api_version),
                           std::string_view(b->subresource));
  });
  // The first entry of a version stays as it is until a second one joins it.
  std::map<std::string, ManagedEntry*> buckets;
  size_t left = updates.size();
  for (ManagedEntry* entry : updates) {
    if (left <= most) break;
    auto [it, first] = buckets.try_emplace(entry->api_version, entry);
    if (first) continue;
    ManagedEntry& bucket = *it->second;
    bucket.manager = kOldUpdates;
    bucket.subresource.clear();
    bucket.fields.UnionWith(entry->fields);
    bucket.time = entry->time;
    entry->fields = {};
    --left;
  }
  DropEmpty();
}

bool AsksForReset(const ManagedFields::Encoded& entries) {
  return entries.size() == 1 && entries[0].ByteSizeLong() == 0;
}

bool SameButForTimes(const ManagedFields::Encoded& a, const ManagedFields::Encoded& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const metav1::ManagedFieldsEntry& x, const metav1::ManagedFieldsEntry& y) {
                      return x.manager() == y.manager() && x.operation() == y.operation() &&
                             x.api_version() == y.api_version() && x.subresource() == y.subresource() &&
                             x.fields_type() == y.fields_type() && x.fields_v1().raw() == y.fields_v1().raw();
                    });
}

k8s::FieldErrors ValidateManagedFields(const ManagedFields::Encoded& entries) {
  k8s::FieldErrors errors;
  k8s::Path metadata("metadata");
  k8s::Path list = metadata.Child("managedFields");
  for (int i = 0; i < entries.size(); ++i) {
    k8s::Path path = list.Index(i);
    if (entries[i].manager().size() > kMaxManagerLength) {
      errors.push_back(k8s::TooLong(path.Child("manager"), kMaxManagerLength));
    }
    for (size_t at = 0; at < entries[i].manager().size(); ++at) {
      const auto c = static_cast<unsigned char>(entries[i].manager()[at]);
      if (c >= 0x20 && c != 0x7f) continue;
      errors.push_back(k8s::Invalid(path.Child("manager"), entries[i].manager(),
                                    fmt::format("invalid character U+{:04X} (at position {})", c, at)));
    }
    if (entries[i].subresource().size() > kMaxSubresourceLength) {
      errors.push_back(k8s::TooLong(path.Child("subresource"), kMaxSubresourceLength));
    }
  }
  return errors;
}

}  // namespace keelson::registry

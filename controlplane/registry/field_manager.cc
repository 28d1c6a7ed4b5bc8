// Managed fields of creates, updates and patches, and of scales.
#include "controlplane/registry/field_manager.h"

#include <algorithm>
#include <map>

#include "controlplane/apiextensions/custom_resource.h"
#include "controlplane/registry/field_manager_parts.h"
#include "controlplane/registry/impl.h"
#include "controlplane/storage/convert.h"
#include "lib/api/codec/codec.h"
#include "lib/api/codec/custom_object.h"
#include "lib/api/meta.h"

namespace keelson::registry {
namespace {

constexpr size_t kMaxUpdates = 10;

// Unreadable entries count as absent, so that no object gets stuck with them.
ManagedFields DecodeOrNone(const ManagedFields::Encoded& entries) {
  Result<ManagedFields> decoded = ManagedFields::Decode(entries);
  return decoded ? std::move(*decoded) : ManagedFields();
}

// The managed fields to start from: the client's, where it may and does send some, or the stored ones.
ManagedFields StartingPoint(const FieldWrite& write, const Message* live,
                            const ManagedFields::Encoded& sent) {
  static const ManagedFields::Encoded kNone;
  const ManagedFields::Encoded& stored = live ? api::Meta(*live).managed_fields() : kNone;
  if (write.info.IsSubresource()) return DecodeOrNone(stored);
  if (AsksForReset(sent)) return {};
  Result<ManagedFields> decoded = ManagedFields::Decode(sent);
  if (decoded && !decoded->empty()) return std::move(*decoded);
  return DecodeOrNone(stored);
}

bool Same(const ManagedFields::Encoded& a, const ManagedFields::Encoded& b) {
  return SameButForTimes(a, b) &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [](const metav1::ManagedFieldsEntry& x, const metav1::ManagedFieldsEntry& y) {
                      return x.has_time() == y.has_time() && x.time().seconds() == y.time().seconds();
                    });
}

std::string Encoded(const Message* object) { return object ? api::EncodeRaw(*object) : std::string(); }

// Differences between the two objects at other versions than the write's; each is computed once.
class Versions {
 public:
  Versions(const FieldWrite& write, const Message* live, const Message& object, api::Comparison at_own)
      : write_(write), live_(live), object_(object) {
    made_.emplace(write.info.Gvk().ApiVersion(), std::move(at_own));
  }

  // Null: the version no longer exists.
  const api::Comparison* At(const std::string& version) {
    auto found = made_.find(version);
    if (found != made_.end()) return &found->second;
    const ResourceInfo* row = RowAtVersion(write_.info, version);
    if (!row) return nullptr;
    std::unique_ptr<Message> before = live_ ? storage::Convert(*live_, *row) : nullptr;
    std::unique_ptr<Message> after = storage::Convert(object_, *row);
    api::Comparison out;
    Compare(*row, before.get(), *after, out);
    out.Filter(write_.filter);
    return &made_.emplace(version, std::move(out)).first->second;
  }

 private:
  const FieldWrite& write_;
  const Message* live_;
  const Message& object_;
  std::map<std::string, api::Comparison> made_;
};

void TakeFromOthers(ManagedFields& managed, Versions& versions) {
  auto& entries = managed.entries();
  for (ManagedEntry& entry : entries) {
    const api::Comparison* difference = versions.At(entry.api_version);
    if (!difference) {
      entry.fields = {};
      continue;
    }
    entry.fields.Subtract(difference->modified);
    entry.fields.Subtract(difference->added);
    entry.fields.Subtract(difference->removed);
  }
  managed.DropEmpty();
}

void GiveTo(ManagedFields& managed, const FieldWrite& write, api::FieldSet fields) {
  std::string_view manager = write.manager.empty() ? "unknown" : write.manager;
  std::string version = write.info.Gvk().ApiVersion();
  std::string_view subresource = SubresourceOf(write.info);
  ManagedEntry* entry = managed.Find(manager, false, version, subresource);
  if (!entry) {
    entry = &managed.entries().emplace_back();
    entry->manager = manager;
    entry->api_version = version;
    entry->subresource = subresource;
  }
  entry->fields.UnionWith(fields);
  entry->time = api::ToTime(write.now);
}

}  // namespace

const api::FieldSet& StripSet() {
  static const api::FieldSet* const set = [] {
    auto* fields = new api::FieldSet;
    for (const char* name : {"apiVersion", "kind", "metadata"}) fields->Insert(api::MakePath({name}));
    for (const char* name : {"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName",
                             "generation", "managedFields", "resourceVersion"}) {
      fields->Insert(api::MakePath({"metadata", name}));
    }
    return fields;
  }();
  return *set;
}

const ResourceInfo* RowAtVersion(const ResourceInfo& info, std::string_view api_version) {
  if (info.Gvk().ApiVersion() == api_version) return &info;
  const ResourceInfo& main = MainRow(info);
  auto [group, version] = api::SplitApiVersion(api_version);
  if (const apiextensions::CustomRow* custom = apiextensions::CustomOf(main)) {
    std::shared_ptr<const apiextensions::Definition> definition = custom->owner->definition();
    const bool exists = definition && group == main.group && definition->Find(version);
    return exists ? &custom->owner->Row(version) : nullptr;
  }
  const ResourceInfo* row = api::FindResource(group, version, main.resource);
  return row && row->etcd_prefix == main.etcd_prefix ? row : nullptr;
}

std::shared_ptr<const api::Shape> ShapeOfRow(const ResourceInfo& info) {
  if (info.IsCustom()) {
    std::shared_ptr<const apiextensions::Version> version =
        apiextensions::CustomOf(info)->owner->VersionOf(info);
    std::shared_ptr<const k8s::StructuralSchema> schema = version ? version->Schema() : nullptr;
    if (schema) return {schema, &schema->shape()};
  }
  return {std::shared_ptr<const api::Shape>(), &api::ShapeOf(info.descriptor())};
}

bool Compare(const ResourceInfo& info, const Message* live, const Message& object, api::Comparison& out) {
  if (!info.IsCustom()) {
    return api::CompareWire(api::ShapeOf(object.GetDescriptor()), Encoded(live), Encoded(&object), out);
  }
  const std::shared_ptr<const api::Shape> shape = ShapeOfRow(info);
  const api::GroupVersionKind gvk = MainRow(info).Gvk();
  boost::json::value before = boost::json::object(), after;
  if (live) {
    Result<boost::json::object> tree = api::UnmanagedTreeOf(*live, gvk);
    if (!tree) return false;
    before = std::move(*tree);
  }
  Result<boost::json::object> tree = api::UnmanagedTreeOf(object, gvk);
  if (!tree) return false;
  after = std::move(*tree);
  // What does not fit the schema cannot be told apart field by field.
  if (!api::CheckShape(*shape, before, true).empty() || !api::CheckShape(*shape, after, true).empty()) {
    return false;
  }
  out = api::CompareJson(*shape, before, after);
  return true;
}

api::Comparison Changes(const FieldWrite& write, const Message* live, const Message& object) {
  api::Comparison changes;
  if (!Compare(write.info, live, object, changes)) return {};
  changes.added.Subtract(StripSet());
  changes.modified.Subtract(StripSet());
  changes.removed.Subtract(StripSet());
  changes.Filter(write.filter);
  return changes;
}

void TakeOver(const FieldWrite& write, const Message* live, const Message& object, api::Comparison changes,
              ManagedFields& managed) {
  if (changes.Empty()) return;
  api::FieldSet taken = changes.modified;
  taken.UnionWith(changes.added);
  taken.Subtract(changes.removed);
  if (!managed.empty()) {
    Versions versions(write, live, object, std::move(changes));
    TakeFromOthers(managed, versions);
  }
  if (!taken.Empty()) GiveTo(managed, write, std::move(taken));
  managed.CapUpdates(kMaxUpdates);
}

ManagedFields::Encoded ManageUpdate(const FieldWrite& write, const Message* live, Message& object) {
  metav1::ObjectMeta& meta = api::MutableMeta(object);
  ManagedFields::Encoded sent;
  sent.Swap(meta.mutable_managed_fields());
  api::Comparison changes = Changes(write, live, object);
  if (changes.Empty() && live) {
    // In most cases the stored entries need not be decoded.
    const ManagedFields::Encoded& stored = api::Meta(*live).managed_fields();
    if (write.info.IsSubresource() || sent.empty() || Same(sent, stored)) return stored;
  }
  ManagedFields managed = StartingPoint(write, live, sent);
  // An object without managed fields stays so until somebody applies.
  if (managed.empty() && live) return {};
  TakeOver(write, live, object, std::move(changes), managed);
  return managed.Encode();
}

ManagedFields::Encoded ScaleManagedFields(const ManagedFields::Encoded& parent) {
  const api::FieldPath replicas = api::MakePath({"spec", "replicas"});
  ManagedFields managed = DecodeOrNone(parent), scale;
  for (ManagedEntry& entry : managed.entries()) {
    if (!entry.fields.Has(replicas)) continue;
    entry.fields = {};
    entry.fields.Insert(replicas);
    entry.api_version = "autoscaling/v1";
    scale.entries().push_back(std::move(entry));
  }
  return scale.Encode();
}

ManagedFields::Encoded ParentManagedFields(const ManagedFields::Encoded& parent,
                                           const ManagedFields::Encoded& scale,
                                           std::string_view parent_version) {
  const api::FieldPath replicas = api::MakePath({"spec", "replicas"});
  api::FieldSet replicas_only;
  replicas_only.Insert(replicas);
  ManagedFields out = DecodeOrNone(parent), moved = DecodeOrNone(scale);
  for (ManagedEntry& entry : out.entries()) {
    if (!entry.fields.Has(replicas)) continue;
    ManagedEntry* kept = moved.Find(entry.manager, entry.applied, "autoscaling/v1", entry.subresource);
    if (kept) {
      kept->fields = {};
    } else {
      entry.fields.Subtract(replicas_only);
    }
  }
  out.DropEmpty();
  for (ManagedEntry& entry : moved.entries()) {
    if (!entry.fields.Has(replicas)) continue;
    ManagedEntry* mine = out.Find(entry.manager, entry.applied, parent_version, entry.subresource);
    if (!mine) {
      mine = &out.entries().emplace_back(entry);
      mine->fields = {};
      mine->api_version = parent_version;
    }
    mine->fields.Insert(replicas);
    mine->time = entry.time;
  }
  return out.Encode();
}

}  // namespace keelson::registry

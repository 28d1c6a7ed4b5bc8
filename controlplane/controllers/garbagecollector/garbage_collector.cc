#include "controlplane/controllers/garbagecollector/garbage_collector.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/controllers/common/deletable_resources.h"
#include "controlplane/controllers/common/ownership.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/json_quote.h"

namespace keelson::controllers {
namespace {

constexpr char kForeground[] = "foregroundDeletion";
constexpr char kOrphan[] = "orphan";
constexpr std::chrono::milliseconds kUnsettled{200};

bool HasFinalizer(const metav1::ObjectMeta& meta, std::string_view finalizer) {
  return std::find(meta.finalizers().begin(), meta.finalizers().end(), finalizer) != meta.finalizers().end();
}

GraphNode NodeOf(const api::ResourceInfo& info, const metav1::ObjectMeta& meta) {
  GraphNode node;
  node.info = &info;
  node.ns = meta.namespace_();
  node.name = meta.name();
  node.uid = meta.uid();
  node.owners.assign(meta.owner_references().begin(), meta.owner_references().end());
  node.deleting = meta.has_deletion_timestamp();
  node.foreground = node.deleting && HasFinalizer(meta, kForeground);
  node.orphaning = node.deleting && HasFinalizer(meta, kOrphan);
  return node;
}

// Servers patch lists by key only where they know the types.
bool HasMergeKeys(const api::ResourceInfo& info) {
  return info.prototype().GetDescriptor() != metav1::PartialObjectMetadata::descriptor();
}

using Owners = google::protobuf::RepeatedPtrField<metav1::OwnerReference>;

// Replaces the owner references, if the object is still the one that was read.
Result<metav1::ObjectMeta> ReplaceOwners(const client::MetadataClient& api, const GraphNode& node,
                                         const metav1::ObjectMeta& live, const Owners& owners) {
  std::string references;
  for (const metav1::OwnerReference& owner : owners) {
    references += (references.empty() ? "" : ",") + api::EncodeJson(owner);
  }
  return api.Patch(*node.info, node.ns, node.name, client::PatchType::kMerge,
                   fmt::format(R"({{"metadata":{{"resourceVersion":{},"uid":{},"ownerReferences":[{}]}}}})",
                               JsonQuoted(live.resource_version()), JsonQuoted(node.uid), references));
}

}  // namespace

GarbageCollector::GarbageCollector(client::RestClient api, client::InformerFactory& informers,
                                   client::EventRecorder& events, Clock& clock,
                                   client::DiscoveredInformers& discovered)
    : Controller("garbage_collector_attempt_to_delete", clock, 4),
      api_(std::move(api)),
      events_(events),
      discovered_(discovered) {
  for (const api::ResourceInfo* info : DeletableResources()) {
    if (info->resource == "events") continue;  // many, short-lived, and never owned
    informers.GetMetadata(*info).AddHandler([this, info](const auto& change) { Observe(*info, change); });
  }
  discovered_.AddHandler(
      [this](const api::ResourceInfo& info, const auto& change) { Observe(info, change); });
  discovered_.AddDiscoveryHandler([this] {
    std::set<std::string> again;
    {
      MutexLock lock(mutex_);
      again.swap(of_unknown_kinds_);
    }
    for (const std::string& uid : again) queue().Add(uid);
  });
}

void GarbageCollector::Observe(const api::ResourceInfo& info,
                               const client::Change<metav1::PartialObjectMetadata>& change) {
  std::vector<std::string> affected;
  auto forget = [&](const std::string& uid) {
    std::vector<std::string> more = graph_.Forget(uid);
    affected.insert(affected.end(), more.begin(), more.end());
  };
  const bool replaced = change.old_object && change.new_object &&
                        change.old_object->metadata().uid() != change.new_object->metadata().uid();
  if (replaced) forget(change.old_object->metadata().uid());
  if (change.new_object) {
    affected = [&] {
      std::vector<std::string> own = graph_.Observe(NodeOf(info, change.new_object->metadata()));
      own.insert(own.end(), affected.begin(), affected.end());
      return own;
    }();
  } else {
    forget(change.old_object->metadata().uid());
  }
  for (const std::string& uid : affected) queue().Add(uid);
}

const api::ResourceInfo* GarbageCollector::ResourceOf(const metav1::OwnerReference& owner) const {
  if (const api::ResourceInfo* info = RestMapping(owner.api_version(), owner.kind())) return info;
  auto [group, version] = api::SplitApiVersion(owner.api_version());
  const auto discovered = discovered_.discovered();
  return discovered ? discovered->FindKind(group, version, owner.kind()) : nullptr;
}

Result<bool> GarbageCollector::IsAbsent(const client::MetadataClient& api, const api::ResourceInfo& info,
                                        const GraphNode& node, const metav1::OwnerReference& owner) {
  if (info.namespaced && node.ns.empty()) return false;  // invalid; upstream ignores such objects
  const std::string ns = info.namespaced ? node.ns : "";
  if (absent_.Has(ns, owner)) return true;
  Result<metav1::ObjectMeta> live = api.Get(info, ns, owner.name());
  if (!live && !live.error().Is(Code::kNotFound)) return live.error().Wrap("read owner");
  if (live && live->uid() == owner.uid()) return false;
  absent_.Add(ns, owner);
  return true;
}

void GarbageCollector::TellMisplaced(const GraphNode& node, const metav1::OwnerReference& owner) {
  corev1::ObjectReference object;
  object.set_kind(std::string(node.info->kind));
  object.set_api_version(node.info->ApiVersion());
  object.set_namespace_(node.ns);
  object.set_name(node.name);
  object.set_uid(node.uid);
  events_.Record(
      object, "Warning", "OwnerRefInvalidNamespace",
      fmt::format("ownerRef [{}/{}, namespace: {}, name: {}, uid: {}] does not exist in namespace \"{}\"",
                  owner.api_version(), owner.kind(), node.ns, owner.name(), owner.uid(), node.ns));
}

Result<GarbageCollector::Classes> GarbageCollector::Classify(const client::MetadataClient& api,
                                                             const GraphNode& node,
                                                             const metav1::ObjectMeta& live) {
  Classes owners;
  for (const metav1::OwnerReference& owner : live.owner_references()) {
    const api::ResourceInfo* info = ResourceOf(owner);
    if (!info) {
      owners.unknown = true;
      return owners;
    }
    KEELSON_ASSIGN_OR_RETURN(bool absent, IsAbsent(api, *info, node, owner));
    std::optional<GraphNode> known = graph_.Find(owner.uid());
    if (known && known->info->namespaced && known->ns != node.ns) TellMisplaced(node, owner);
    if (absent) {
      owners.absent.push_back(owner.uid());
    } else if (known && known->foreground) {
      owners.waiting.push_back(owner.uid());
    } else {
      owners.solid = true;
    }
  }
  return owners;
}

Result<> GarbageCollector::RemoveOwners(const client::MetadataClient& api, const GraphNode& node,
                                        const std::vector<std::string>& uids) {
  auto told = [](const Error& error) -> Result<> {
    if (error.Is(Code::kNotFound)) return {};
    return error.Wrap("remove owner references");
  };
  if (!HasMergeKeys(*node.info)) {
    Result<metav1::ObjectMeta> live = api.Get(*node.info, node.ns, node.name);
    if (!live) return told(live.error());
    if (live->uid() != node.uid) return {};
    Owners kept = live->owner_references();
    kept.erase(std::remove_if(
                   kept.begin(), kept.end(),
                   [&](const auto& owner) { return std::count(uids.begin(), uids.end(), owner.uid()) > 0; }),
               kept.end());
    if (kept.size() == live->owner_references_size()) return {};
    Result<metav1::ObjectMeta> stored = ReplaceOwners(api, node, *live, kept);
    return stored ? Result<>() : told(stored.error());
  }
  std::string references;
  for (const std::string& uid : uids) {
    references +=
        (references.empty() ? "" : ",") + std::string(R"({"$patch":"delete","uid":)") + JsonQuoted(uid) + "}";
  }
  Result<metav1::ObjectMeta> stored = api.Patch(
      *node.info, node.ns, node.name, client::PatchType::kStrategicMerge,
      R"({"metadata":{"ownerReferences":[)" + references + R"(],"uid":)" + JsonQuoted(node.uid) + "}}");
  return stored ? Result<>() : told(stored.error());
}

Result<> GarbageCollector::RemoveFinalizer(const client::MetadataClient& api, const GraphNode& node,
                                           const metav1::ObjectMeta& live, const std::string& finalizer) {
  std::string kept;
  for (const std::string& other : live.finalizers()) {
    if (other != finalizer) kept += (kept.empty() ? "" : ",") + JsonQuoted(other);
  }
  // The resourceVersion guards finalizers that were added meanwhile.
  Result<metav1::ObjectMeta> patched =
      api.Patch(*node.info, node.ns, node.name, client::PatchType::kMerge,
                R"({"metadata":{"resourceVersion":)" + JsonQuoted(live.resource_version()) +
                    R"(,"finalizers":[)" + kept + "]}}");
  if (!patched && !patched.error().Is(Code::kNotFound)) return patched.error().Wrap("remove finalizer");
  return {};
}

Result<> GarbageCollector::FinishForeground(const client::MetadataClient& api, const GraphNode& node,
                                            const metav1::ObjectMeta& live) {
  bool blocked = false;
  for (const GraphNode& dependent : graph_.Dependents(node.uid)) {
    bool blocks = std::any_of(dependent.owners.begin(), dependent.owners.end(), [&](const auto& owner) {
      return owner.uid() == node.uid && owner.block_owner_deletion();
    });
    blocked = blocked || blocks;
    if (!dependent.foreground) queue().Add(dependent.uid);
  }
  if (blocked) return {};  // a later event enqueues it again
  return RemoveFinalizer(api, node, live, kForeground);
}

Result<> GarbageCollector::Orphan(const client::MetadataClient& api, const GraphNode& node,
                                  const metav1::ObjectMeta& live) {
  for (const GraphNode& dependent : graph_.Dependents(node.uid)) {
    KEELSON_RETURN_IF_ERROR(RemoveOwners(api, dependent, {node.uid}));
  }
  return RemoveFinalizer(api, node, live, kOrphan);
}

Result<metav1::ObjectMeta> GarbageCollector::UnblockOwners(const client::MetadataClient& api,
                                                           const GraphNode& node,
                                                           const metav1::ObjectMeta& live) {
  Owners owners = live.owner_references();
  std::string references;
  for (metav1::OwnerReference& owner : owners) {
    if (!owner.block_owner_deletion()) continue;
    owner.set_block_owner_deletion(false);
    references += fmt::format(R"({}{{"uid":{},"blockOwnerDeletion":false}})", references.empty() ? "" : ",",
                              JsonQuoted(owner.uid()));
  }
  if (references.empty()) return live;
  Result<metav1::ObjectMeta> stored =
      HasMergeKeys(*node.info)
          ? api.Patch(*node.info, node.ns, node.name, client::PatchType::kStrategicMerge,
                      fmt::format(R"({{"metadata":{{"ownerReferences":[{}],"uid":{}}}}})", references,
                                  JsonQuoted(node.uid)))
          : ReplaceOwners(api, node, live, owners);
  if (!stored) return stored.error().Wrap("unblock owners");
  return stored;
}

Result<> GarbageCollector::DeleteNode(const client::MetadataClient& api, const GraphNode& node,
                                      const metav1::ObjectMeta& live, const char* policy) {
  client::DeleteOptions options;
  options.propagation_policy = policy;
  options.uid = node.uid;
  // Delete only if the owners are still those that were checked
  options.resource_version = live.resource_version();
  Result<> deleted = api.Delete(*node.info, node.ns, node.name, options);
  if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error().Wrap("delete");
  return {};
}

Result<> GarbageCollector::Collect(const client::MetadataClient& api, const GraphNode& node,
                                   const metav1::ObjectMeta& live) {
  if (live.owner_references().empty()) return {};
  const auto discovered = discovered_.discovered();
  KEELSON_ASSIGN_OR_RETURN(const Classes owners, Classify(api, node, live));
  if (owners.unknown) {
    {
      MutexLock lock(mutex_);
      of_unknown_kinds_.insert(node.uid);
    }
    // A discovery that ended meanwhile did not find the object in the set.
    if (discovered_.discovered() != discovered) queue().Add(node.uid);
    return {};
  }
  std::vector<std::string> removable = owners.absent;
  removable.insert(removable.end(), owners.waiting.begin(), owners.waiting.end());
  if (removable.empty()) return {};
  if (owners.solid) return RemoveOwners(api, node, removable);
  const std::vector<GraphNode> dependents = graph_.Dependents(node.uid);
  if (!owners.waiting.empty() && !dependents.empty()) {
    // The owner waits in foreground deletion, so delete the dependents first, too. If a dependent already
    // waits, it may wait for this object in a cycle: break the cycle here.
    const bool circle = std::any_of(dependents.begin(), dependents.end(),
                                    [](const GraphNode& dependent) { return dependent.foreground; });
    if (!circle) return DeleteNode(api, node, live, "Foreground");
    KEELSON_ASSIGN_OR_RETURN(const metav1::ObjectMeta unblocked, UnblockOwners(api, node, live));
    return DeleteNode(api, node, unblocked, "Foreground");
  }
  const char* policy = HasFinalizer(live, kOrphan)       ? "Orphan"
                       : HasFinalizer(live, kForeground) ? "Foreground"
                                                         : "Background";
  return DeleteNode(api, node, live, policy);
}

Result<Requeue> GarbageCollector::Reconcile(const std::string& key, std::stop_token stop) {
  std::optional<GraphNode> node = graph_.Find(key);
  if (!node) return Requeue{};
  if (node->deleting && !node->foreground && !node->orphaning) return Requeue{};
  if (!node->deleting && (node->owners.empty() || graph_.AllOwnersStand(*node))) return Requeue{};

  // Dependents that are not known yet would be missed.
  if (!discovered_.settled()) return Requeue{kUnsettled};
  const client::MetadataClient api = api_.With(stop);
  Result<metav1::ObjectMeta> live = api.Get(*node->info, node->ns, node->name);
  if (!live && live.error().Is(Code::kNotFound)) return Requeue{};
  if (!live) return live.error();
  if (live->uid() != node->uid) return Requeue{};
  if (live->has_deletion_timestamp()) {
    if (HasFinalizer(*live, kOrphan)) KEELSON_RETURN_IF_ERROR(Orphan(api, *node, *live));
    if (HasFinalizer(*live, kForeground)) KEELSON_RETURN_IF_ERROR(FinishForeground(api, *node, *live));
    return Requeue{};
  }
  KEELSON_RETURN_IF_ERROR(Collect(api, *node, *live));
  return Requeue{};
}

}  // namespace keelson::controllers

#include "controlplane/controllers/garbagecollector/garbage_collector.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/controllers/common/deletable_resources.h"
#include "controlplane/controllers/common/ownership.h"
#include "lib/api/meta.h"
#include "lib/base/json_quote.h"

namespace keelson::controllers {
namespace {

constexpr char kForeground[] = "foregroundDeletion";
constexpr char kOrphan[] = "orphan";

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

Result<metav1::ObjectMeta> ReadMeta(const client::RestClient& api, const api::ResourceInfo& info,
                                    const std::string& ns, const std::string& name) {
  std::unique_ptr<google::protobuf::Message> object(info.prototype().New());
  KEELSON_RETURN_IF_ERROR(api.GetInto(info, ns, name, *object));
  return api::Meta(*object);
}

}  // namespace

GarbageCollector::GarbageCollector(client::RestClient api, client::InformerFactory& informers,
                                   client::EventRecorder& events, Clock& clock)
    : Controller("garbage_collector_attempt_to_delete", clock, 4), api_(std::move(api)), events_(events) {
  for (const api::ResourceInfo* info : DeletableResources()) {
    if (info->resource == "events") continue;  // many, short-lived, and never owned
    informers.GetMetadata(*info).AddHandler([this, info](const auto& change) { Observe(*info, change); });
  }
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

Result<bool> GarbageCollector::IsAbsent(const client::RestClient& api, const GraphNode& node,
                                        const metav1::OwnerReference& owner) {
  const api::ResourceInfo* info = RestMapping(owner.api_version(), owner.kind());
  if (!info) return false;                                // a custom resource: unknown
  if (info->namespaced && node.ns.empty()) return false;  // invalid; upstream ignores such objects
  const std::string ns = info->namespaced ? node.ns : "";
  if (absent_.Has(ns, owner)) return true;
  Result<metav1::ObjectMeta> live = ReadMeta(api, *info, ns, owner.name());
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

Result<GarbageCollector::Owners> GarbageCollector::Classify(const client::RestClient& api,
                                                            const GraphNode& node,
                                                            const metav1::ObjectMeta& live) {
  Owners owners;
  for (const metav1::OwnerReference& owner : live.owner_references()) {
    KEELSON_ASSIGN_OR_RETURN(bool absent, IsAbsent(api, node, owner));
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

Result<> GarbageCollector::RemoveOwners(const client::RestClient& api, const GraphNode& node,
                                        const std::vector<std::string>& uids) {
  std::string references;
  for (const std::string& uid : uids) {
    references +=
        (references.empty() ? "" : ",") + std::string(R"({"$patch":"delete","uid":)") + JsonQuoted(uid) + "}";
  }
  std::unique_ptr<google::protobuf::Message> stored(node.info->prototype().New());
  Result<> patched = api.PatchInto(
      *node.info, node.ns, node.name, "", client::PatchType::kStrategicMerge,
      R"({"metadata":{"ownerReferences":[)" + references + R"(],"uid":)" + JsonQuoted(node.uid) + "}}",
      *stored);
  if (!patched && !patched.error().Is(Code::kNotFound)) {
    return patched.error().Wrap("remove owner references");
  }
  return {};
}

Result<> GarbageCollector::RemoveFinalizer(const client::RestClient& api, const GraphNode& node,
                                           const metav1::ObjectMeta& live, const std::string& finalizer) {
  std::string kept;
  for (const std::string& other : live.finalizers()) {
    if (other != finalizer) kept += (kept.empty() ? "" : ",") + JsonQuoted(other);
  }
  std::unique_ptr<google::protobuf::Message> stored(node.info->prototype().New());
  // The resourceVersion guards finalizers that were added meanwhile.
  Result<> patched =
      api.PatchInto(*node.info, node.ns, node.name, "", client::PatchType::kMerge,
                    R"({"metadata":{"resourceVersion":)" + JsonQuoted(live.resource_version()) +
                        R"(,"finalizers":[)" + kept + "]}}",
                    *stored);
  if (!patched && !patched.error().Is(Code::kNotFound)) return patched.error().Wrap("remove finalizer");
  return {};
}

Result<> GarbageCollector::FinishForeground(const client::RestClient& api, const GraphNode& node,
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

Result<> GarbageCollector::Orphan(const client::RestClient& api, const GraphNode& node,
                                  const metav1::ObjectMeta& live) {
  for (const GraphNode& dependent : graph_.Dependents(node.uid)) {
    KEELSON_RETURN_IF_ERROR(RemoveOwners(api, dependent, {node.uid}));
  }
  return RemoveFinalizer(api, node, live, kOrphan);
}

Result<metav1::ObjectMeta> GarbageCollector::UnblockOwners(const client::RestClient& api,
                                                           const GraphNode& node,
                                                           const metav1::ObjectMeta& live) {
  std::string references;
  for (const metav1::OwnerReference& owner : live.owner_references()) {
    if (!owner.block_owner_deletion()) continue;
    references += fmt::format(R"({}{{"uid":{},"blockOwnerDeletion":false}})", references.empty() ? "" : ",",
                              JsonQuoted(owner.uid()));
  }
  if (references.empty()) return live;
  std::unique_ptr<google::protobuf::Message> stored(node.info->prototype().New());
  Result<> patched = api.PatchInto(
      *node.info, node.ns, node.name, "", client::PatchType::kStrategicMerge,
      fmt::format(R"({{"metadata":{{"ownerReferences":[{}],"uid":{}}}}})", references, JsonQuoted(node.uid)),
      *stored);
  if (!patched) return patched.error().Wrap("unblock owners");
  return api::Meta(*stored);
}

Result<> GarbageCollector::DeleteNode(const client::RestClient& api, const GraphNode& node,
                                      const metav1::ObjectMeta& live, const char* policy) {
  client::DeleteOptions options;
  options.propagation_policy = policy;
  options.uid = node.uid;
  // Delete only if the owners are still those that were checked
  options.resource_version = live.resource_version();
  Result<> deleted = api.DeleteObject(*node.info, node.ns, node.name, options);
  if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error().Wrap("delete");
  return {};
}

Result<> GarbageCollector::Collect(const client::RestClient& api, const GraphNode& node,
                                   const metav1::ObjectMeta& live) {
  if (live.owner_references().empty()) return {};
  KEELSON_ASSIGN_OR_RETURN(Owners owners, Classify(api, node, live));
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

  const client::RestClient api = api_.With(stop);
  Result<metav1::ObjectMeta> live = ReadMeta(api, *node->info, node->ns, node->name);
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

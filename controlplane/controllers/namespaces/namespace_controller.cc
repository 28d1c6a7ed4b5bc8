#include "controlplane/controllers/namespaces/namespace_controller.h"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include "controlplane/controllers/common/deletable_resources.h"
#include "lib/api/meta.h"
#include "lib/base/text.h"
#include "lib/base/wall_time.h"
#include "lib/client/metadata_client.h"

namespace keelson::controllers {
namespace {

constexpr char kFinalizer[] = "kubernetes";

bool HoldsFinalizer(const corev1::Namespace& ns) {
  const auto& finalizers = ns.spec().finalizers();
  return std::find(finalizers.begin(), finalizers.end(), kFinalizer) != finalizers.end();
}

void SetCondition(corev1::NamespaceStatus& status, const char* type, bool bad, const char* reason,
                  std::string message, WallTime now) {
  corev1::NamespaceCondition* condition = nullptr;
  for (auto& existing : *status.mutable_conditions()) {
    if (existing.type() == type) condition = &existing;
  }
  if (!condition) {
    condition = status.add_conditions();
    condition->set_type(type);
  }
  const char* value = bad ? "True" : "False";
  if (condition->status() != value) *condition->mutable_last_transition_time() = api::ToTime(now);
  condition->set_status(value);
  condition->set_reason(reason);
  condition->set_message(std::move(message));
}

}  // namespace

void SetDeletionConditions(const NamespaceController::Content& content, WallTime now,
                           corev1::NamespaceStatus& status) {
  if (content.discovery_failure.empty()) {
    SetCondition(status, "NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered",
                 "All resources successfully discovered", now);
  } else {
    SetCondition(status, "NamespaceDeletionDiscoveryFailure", true, "DiscoveryFailed",
                 content.discovery_failure, now);
  }
  SetCondition(status, "NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions",
               "All legacy kube types successfully parsed", now);
  if (content.failures.empty()) {
    SetCondition(status, "NamespaceDeletionContentFailure", false, "ContentDeleted",
                 "All content successfully deleted, may be waiting on finalization", now);
  } else {
    SetCondition(status, "NamespaceDeletionContentFailure", true, "ContentDeletionFailed",
                 "Failed to delete all resource types, " + std::to_string(content.failures.size()) +
                     " remaining: " + Join(content.failures, ", "),
                 now);
  }
  std::vector<std::string> remaining, finalizers;
  for (const auto& [kind, count] : content.remaining) {
    remaining.push_back(fmt::format("{} has {} resource instances", kind, count));
  }
  for (const auto& [name, count] : content.finalizers) {
    finalizers.push_back(fmt::format("{} in {} resource instances", name, count));
  }
  if (remaining.empty()) {
    SetCondition(status, "NamespaceContentRemaining", false, "ContentRemoved",
                 "All content successfully removed", now);
  } else {
    SetCondition(status, "NamespaceContentRemaining", true, "SomeResourcesRemain",
                 "Some resources are remaining: " + Join(remaining, ", "), now);
  }
  if (finalizers.empty()) {
    SetCondition(status, "NamespaceFinalizersRemaining", false, "ContentHasNoFinalizers",
                 "All content-preserving finalizers finished", now);
  } else {
    SetCondition(status, "NamespaceFinalizersRemaining", true, "SomeFinalizersRemain",
                 "Some content in the namespace has finalizers remaining: " + Join(finalizers, ", "), now);
  }
}

NamespaceController::NamespaceController(client::RestClient api, client::InformerFactory& informers,
                                         client::EventRecorder&, Clock& clock,
                                         client::DiscoveredInformers& discovered)
    : Controller("namespace", clock, 2),
      api_(std::move(api)),
      namespaces_(informers.Get<corev1::Namespace>()) {
  namespaces_.AddHandler([this](const client::Change<corev1::Namespace>& change) {
    if (change.new_object && change.new_object->metadata().has_deletion_timestamp()) queue().Add(change.key);
  });
  // Informer events report when the last object is gone, so no polling is needed.
  using ObjectChange = client::Change<metav1::PartialObjectMetadata>;
  auto left = [this](const ObjectChange& change) {
    if (change.new_object) return;
    std::string ns = api::SplitKey(change.key).first;
    auto owner = namespaces_.Get(ns);
    if (owner && owner->metadata().has_deletion_timestamp()) queue().Add(ns);
  };
  for (const api::ResourceInfo* info : DeletableResources()) {
    if (!info->namespaced || info->resource == "events") continue;  // events go at once
    informers.GetMetadata(*info).AddHandler(left);
  }
  discovered.AddHandler([left](const api::ResourceInfo& info, const ObjectChange& change) {
    if (info.namespaced) left(change);
  });
  // A deletion waits for groups whose discovery fails.
  discovered.AddDiscoveryHandler([this] {
    for (const auto& ns : namespaces_.List()) {
      if (ns->metadata().has_deletion_timestamp()) queue().Add(ns->metadata().name());
    }
  });
}

Result<> NamespaceController::DeleteContent(const client::RestClient& api, const api::ResourceInfo& info,
                                            const std::string& ns, Content& content) {
  const client::MetadataClient metadata(api);
  KEELSON_ASSIGN_OR_RETURN(const std::vector<metav1::ObjectMeta> objects, metadata.List(info, ns));
  Mutex mutex;
  std::optional<Error> failure;
  ParallelFor(objects.size(), [&](size_t i) {
    if (objects[i].has_deletion_timestamp()) return;
    Result<> deleted = metadata.Delete(info, ns, objects[i].name(),
                                       {.propagation_policy = "Background", .uid = objects[i].uid()});
    if (deleted || deleted.error().Is(Code::kNotFound) || deleted.error().Is(Code::kConflict)) return;
    MutexLock lock(mutex);
    failure = deleted.error();
  });
  if (failure) return *failure;
  if (objects.empty()) return {};

  // Most objects are gone by now; the rest takes its time.
  KEELSON_ASSIGN_OR_RETURN(const std::vector<metav1::ObjectMeta> left, metadata.List(info, ns));
  for (const metav1::ObjectMeta& object : left) {
    for (const std::string& finalizer : object.finalizers()) ++content.finalizers[finalizer];
    content.grace = std::max(content.grace, Span(object.deletion_grace_period_seconds()));
  }
  if (!left.empty()) {
    content.remaining[std::string(info.resource) + "." + std::string(info.group)] +=
        static_cast<int>(left.size());
  }
  return {};
}

std::vector<const api::ResourceInfo*> NamespaceController::Discovered(const client::RestClient& api,
                                                                      std::stop_token stop,
                                                                      Content& content) const {
  Result<client::DiscoveredResources> found = client::Discover(api, stop);
  if (!found) {
    content.discovery_failure = found.error().message();
    return {};
  }
  if (!found->failures.empty()) {
    content.discovery_failure = fmt::format("Discovery failed for some groups, {} failing: {}",
                                            found->failures.size(), found->FailureMessage());
  }
  std::vector<const api::ResourceInfo*> out = found->Unknown({"list", "delete"});
  std::erase_if(out, [](const api::ResourceInfo* info) { return !info->namespaced; });
  return out;
}

Result<> NamespaceController::WriteStatus(const client::RestClient& api, const corev1::Namespace& ns,
                                          const Content& content) {
  corev1::Namespace changed = ns;
  changed.mutable_status()->set_phase("Terminating");
  SetDeletionConditions(content, clock().Now(), *changed.mutable_status());
  if (google::protobuf::util::MessageDifferencer::Equals(changed.status(), ns.status())) return {};
  KEELSON_RETURN_IF_ERROR(api.UpdateStatus(changed));
  return {};
}

Result<> NamespaceController::DeleteAll(const client::RestClient& api, const std::string& ns,
                                        std::stop_token stop, Content& content) {
  auto delete_kind = [&](const api::ResourceInfo& info) -> Result<> {
    Result<> result = DeleteContent(api, info, ns, content);
    if (result || result.error().Is(Code::kNotFound)) return {};  // this server does not serve the resource
    if (stop.stop_requested()) return result;
    content.failures.push_back(info.GroupResource() + ": " + result.error().message());
    return {};
  };
  const api::ResourceInfo& pods = api::ResourceOf<corev1::Pod>();
  KEELSON_RETURN_IF_ERROR(delete_kind(pods));
  if (!content.remaining.empty()) return {};
  for (const api::ResourceInfo* info : DeletableResources()) {
    if (info->namespaced && info->etcd_prefix != pods.etcd_prefix) {
      KEELSON_RETURN_IF_ERROR(delete_kind(*info));
    }
  }
  for (const api::ResourceInfo* info : Discovered(api, stop, content)) {
    KEELSON_RETURN_IF_ERROR(delete_kind(*info));
  }
  std::sort(content.failures.begin(), content.failures.end());
  return {};
}

Result<Requeue> NamespaceController::Reconcile(const std::string& key, std::stop_token stop) {
  const client::RestClient api = api_.With(stop);
  Result<corev1::Namespace> ns = api.Get<corev1::Namespace>("", key);
  if (!ns && ns.error().Is(Code::kNotFound)) return Requeue{};
  if (!ns) return ns.error();
  if (!ns->metadata().has_deletion_timestamp() || !HoldsFinalizer(*ns)) return Requeue{};

  Content content;
  KEELSON_RETURN_IF_ERROR(DeleteAll(api, key, stop, content));
  if (!content.remaining.empty() || !content.failures.empty() || !content.discovery_failure.empty()) {
    Result<> written = WriteStatus(api, *ns, content);
    if (!written && !written.error().Is(Code::kConflict)) return written.error();
    if (!content.discovery_failure.empty()) content.failures.push_back(content.discovery_failure);
    if (!content.failures.empty()) return Error(Code::kUnavailable, Join(content.failures, ", "));
    // The informers say when something goes; this is for the case that they miss it.
    return Requeue{content.grace / 2 + std::chrono::seconds(15)};
  }
  auto& finalizers = *ns->mutable_spec()->mutable_finalizers();
  finalizers.erase(std::remove(finalizers.begin(), finalizers.end(), kFinalizer), finalizers.end());
  auto finalized = api.Update(*ns, "finalize");
  if (!finalized && !finalized.error().Is(Code::kNotFound)) return finalized.error().Wrap("finalize");
  return Requeue{};
}

}  // namespace keelson::controllers

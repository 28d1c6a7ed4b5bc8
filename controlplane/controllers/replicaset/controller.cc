#include "controlplane/controllers/replicaset/controller.h"

#include <google/protobuf/util/message_differencer.h>

#include "controlplane/controllers/common/first_error.h"
#include "controlplane/controllers/common/metrics.h"
#include "controlplane/controllers/common/ownership.h"
#include "controlplane/controllers/common/slow_start_batch.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

constexpr int kBurst = 500;  // pods created or deleted in one sync

void ObserveAges(const std::vector<double>& ratios) {
  static metrics::Histogram& histogram = TheMetrics().replicaset_sorting_deletion_age_ratio.HistogramWith();
  for (double ratio : ratios) histogram.Observe(ratio);
}

}  // namespace

template <typename Kind>
ReplicaController<Kind>::ReplicaController(client::RestClient api, client::InformerFactory& informers,
                                           client::EventRecorder& events, Clock& clock)
    : Controller(Kind::kQueue, clock, 4),
      api_(std::move(api)),
      control_(events),
      sets_(informers.Get<Object>()),
      pods_(informers.Get<corev1::Pod>()),
      expectations_(clock) {
  sets_.AddIndex(kByOwner, [](const Object& set) { return OwnerIndex(set.metadata()); });
  pods_.AddIndex(kByOwner, [](const corev1::Pod& pod) { return OwnerIndex(pod.metadata()); });
  sets_.AddHandler([this](const auto& change) { OnSet(change); });
  pods_.AddHandler([this](const auto& change) { OnPod(change); });
}

template <typename Kind>
void ReplicaController<Kind>::OnSet(const client::Change<Object>& change) {
  const bool replaced = change.old_object && change.new_object &&
                        change.old_object->metadata().uid() != change.new_object->metadata().uid();
  if (!change.new_object || replaced) expectations_.Forget(change.key);
  queue().Add(change.key);
}

template <typename Kind>
std::optional<std::string> ReplicaController<Kind>::KeyOfOwner(const corev1::Pod& pod) const {
  const metav1::OwnerReference* owner = api::ControllerOf(pod.metadata());
  if (!owner || owner->kind() != Kind::kKind) return std::nullopt;
  std::string key = api::KeyOf(pod.metadata().namespace_(), owner->name());
  auto set = sets_.Get(key);
  if (!set || set->metadata().uid() != owner->uid()) return std::nullopt;
  return key;
}

template <typename Kind>
void ReplicaController<Kind>::EnqueueMatching(const corev1::Pod& orphan) {
  for (const std::string& key : sets_.Keys()) {
    if (api::SplitKey(key).first != orphan.metadata().namespace_()) continue;
    auto set = sets_.Get(key);
    if (!set) continue;
    auto selector = api::LabelSelector::From(Kind::AsSet(*set).spec().selector());
    if (selector && !selector->IsEverything() && selector->Matches(orphan.metadata().labels())) {
      queue().Add(key);
    }
  }
}

template <typename Kind>
void ReplicaController<Kind>::OnPod(const client::Change<corev1::Pod>& change) {
  const corev1::Pod& pod = change.object();
  std::optional<std::string> owner = KeyOfOwner(pod);
  if (owner) {
    // A terminating pod counts as deleted: its termination may take long.
    if (!change.new_object || k8s::IsTerminating(pod)) {
      expectations_.DeletionObserved(*owner, change.key);
    } else if (!change.old_object) {
      expectations_.CreationObserved(*owner);
    }
    queue().Add(*owner);
  }
  if (change.old_object && change.new_object) {
    std::optional<std::string> before = KeyOfOwner(*change.old_object);
    if (before && before != owner) queue().Add(*before);
  }
  if (change.new_object && !k8s::IsTerminating(pod) && !api::ControllerOf(pod.metadata())) {
    EnqueueMatching(pod);
  }
}

template <typename Kind>
auto ReplicaController<Kind>::ClaimPods(const Sync& sync, const api::LabelSelector& selector)
    -> Result<Claimed> {
  const auto& [api, key, object, set] = sync;
  Claimed claimed;
  const std::string& ns = set.metadata().namespace_();
  const bool deleting = set.metadata().has_deletion_timestamp();
  for (auto& pod : pods_.ByIndex(kByOwner, set.metadata().uid())) {
    if (k8s::IsTerminating(*pod) && !k8s::IsTerminal(*pod)) ++claimed.terminating;
    if (!k8s::IsActive(*pod)) continue;
    if (selector.Matches(pod->metadata().labels())) {
      claimed.active.push_back(std::move(pod));
    } else if (!deleting) {
      auto released =
          sync.api.template Patch<corev1::Pod>(ns, pod->metadata().name(), client::PatchType::kStrategicMerge,
                                               ReleasePatch(set.metadata().uid(), pod->metadata().uid()));
      if (!released && !released.error().Is(Code::kNotFound)) return released.error().Wrap("release pod");
    }
  }
  if (deleting) return claimed;
  bool verified = false;
  for (auto& pod : pods_.ByIndex(kByOwner, "orphans/" + ns)) {
    if (!k8s::IsActive(*pod) || !selector.Matches(pod->metadata().labels())) continue;
    if (!verified) {
      // The store may lag behind a deletion of the set, so check with the API before adopting.
      KEELSON_ASSIGN_OR_RETURN(Object live, sync.api.template Get<Object>(ns, set.metadata().name()));
      if (live.metadata().uid() != set.metadata().uid() || live.metadata().has_deletion_timestamp()) {
        return claimed;
      }
      verified = true;
    }
    auto adopted =
        sync.api.template Patch<corev1::Pod>(ns, pod->metadata().name(), client::PatchType::kStrategicMerge,
                                             AdoptPatch(api::ControllerRef(object), pod->metadata().uid()));
    if (adopted) {
      claimed.active.push_back(std::move(pod));
    } else if (!adopted.error().Is(Code::kNotFound)) {
      return adopted.error().Wrap("adopt pod");
    }
  }
  return claimed;
}

template <typename Kind>
Result<> ReplicaController<Kind>::CreatePods(const Sync& sync, int count) {
  expectations_.ExpectCreations(sync.key, count);
  const corev1::Pod pod = PodFromTemplate(sync.set.spec().template_(), sync.object);
  FirstError failure;
  auto batch = [&](int n) {
    std::atomic<int> successes = 0;
    ParallelFor(static_cast<size_t>(n), [&](size_t) {
      Result<corev1::Pod> created = control_.Create(sync.api, sync.object, pod);
      if (created) {
        ++successes;
        return;
      }
      expectations_.CreationObserved(sync.key);
      failure.Note(created.error());
    });
    return successes.load();
  };
  int tried = 0;
  SlowStartBatch(count, [&](int n) {
    tried += n;
    return batch(n);
  });
  for (int i = tried; i < count; ++i) expectations_.CreationObserved(sync.key);  // not attempted
  Result<> result = failure.Take();
  if (!result && IsNamespaceTerminating(result.error())) return {};
  return result;
}

template <typename Kind>
Result<> ReplicaController<Kind>::DeletePods(const Sync& sync, const PodPointers& pods) {
  std::vector<std::string> keys;
  for (const auto& pod : pods) keys.push_back(api::KeyOf(*pod));
  expectations_.ExpectDeletions(sync.key, keys);
  FirstError failure;
  ParallelFor(pods.size(), [&](size_t i) {
    Result<> deleted = control_.Delete(sync.api, sync.object, *pods[i]);
    if (deleted) return;
    expectations_.DeletionObserved(sync.key, keys[i]);
    if (!deleted.error().Is(Code::kNotFound)) failure.Note(deleted.error());
  });
  return failure.Take();
}

// All pods of the sets that have the same controller as this one.
template <typename Kind>
PodPointers ReplicaController<Kind>::RelatedPods(const Object& set) const {
  PodPointers out;
  std::vector<std::string> uids = {set.metadata().uid()};
  if (const metav1::OwnerReference* owner = api::ControllerOf(set.metadata())) {
    uids.clear();
    for (const auto& sibling : sets_.ByIndex(kByOwner, owner->uid())) {
      uids.push_back(sibling->metadata().uid());
    }
  }
  for (const std::string& uid : uids) {
    for (auto& pod : pods_.ByIndex(kByOwner, uid)) out.push_back(std::move(pod));
  }
  return out;
}

template <typename Kind>
Result<> ReplicaController<Kind>::ManageReplicas(const Sync& sync, const PodPointers& active) {
  const int64_t diff = static_cast<int64_t>(active.size()) - sync.set.spec().replicas();
  if (diff < 0) return CreatePods(sync, static_cast<int>(std::min<int64_t>(-diff, kBurst)));
  if (diff == 0) return {};
  const size_t count = static_cast<size_t>(std::min<int64_t>(diff, kBurst));
  const WallTime now = clock().Now();
  const PodPointers chosen = PodsToDelete(active, RelatedPods(sync.object), count, now);
  if (count < active.size()) ObserveAges(AgeRatios(active, chosen, now));
  return DeletePods(sync, chosen);
}

template <typename Kind>
Result<Requeue> ReplicaController<Kind>::Reconcile(const std::string& key, std::stop_token stop) {
  auto object = sets_.Get(key);
  if (!object) {
    expectations_.Forget(key);
    return Requeue{};
  }
  const appsv1::ReplicaSet& set = Kind::AsSet(*object);
  const Sync sync{api_.With(stop), key, *object, set};
  KEELSON_ASSIGN_OR_RETURN(api::LabelSelector selector, api::LabelSelector::From(set.spec().selector()));
  const bool satisfied = expectations_.Satisfied(key);
  KEELSON_ASSIGN_OR_RETURN(Claimed claimed, ClaimPods(sync, selector));
  const int64_t diff = static_cast<int64_t>(claimed.active.size()) - set.spec().replicas();
  Result<> managed;
  if (satisfied && !set.metadata().has_deletion_timestamp()) managed = ManageReplicas(sync, claimed.active);

  const WallTime now = clock().Now();
  ReplicaCounts counts = CountReplicas(set, claimed.active, claimed.terminating, now);
  Object updated = *object;
  appsv1::ReplicaSetStatus status =
      NewStatus(set, counts, managed ? nullptr : &managed.error().message(), diff, now);
  // The counts do not include the pods just created, so they do not reflect this generation yet.
  if (!satisfied) {
    status.clear_observed_generation();
    if (set.status().has_observed_generation()) {
      status.set_observed_generation(set.status().observed_generation());
    }
  }
  Kind::SetStatus(status, updated);
  if (!google::protobuf::util::MessageDifferencer::Equals(updated.status(), object->status())) {
    Result<Object> stored = sync.api.UpdateStatus(updated);
    if (!stored && stored.error().Is(Code::kNotFound)) return Requeue{};
    if (!stored) return stored.error().Wrap("update status");
  }
  if (!managed) return managed.error();
  return Requeue{counts.next_available};
}

template class ReplicaController<ReplicaSetKind>;
template class ReplicaController<ReplicationControllerKind>;

}  // namespace keelson::controllers

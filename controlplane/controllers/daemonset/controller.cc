#include "controlplane/controllers/daemonset/controller.h"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include "controlplane/controllers/common/availability.h"
#include "controlplane/controllers/common/first_error.h"
#include "controlplane/controllers/common/slow_start_batch.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

constexpr size_t kBurst = 250;  // pods created, and deleted, in one sync

bool IsAnyKey(const metav1::LabelSelector& selector) {
  return selector.match_labels().empty() && selector.match_expressions().empty();
}

}  // namespace

DaemonSetController::DaemonSetController(client::RestClient api, client::InformerFactory& informers,
                                         client::EventRecorder& events, Clock& clock)
    : Controller("daemonset", clock, 2),
      api_(std::move(api)),
      events_(events),
      control_(events),
      sets_(informers.Get<appsv1::DaemonSet>()),
      pods_(informers.Get<corev1::Pod>()),
      nodes_(informers.Get<corev1::Node>()),
      revisions_(informers.Get<appsv1::ControllerRevision>()),
      expectations_(clock),
      failed_(clock) {
  pods_.AddIndex(kByOwner, [](const corev1::Pod& pod) { return OwnerIndex(pod.metadata()); });
  revisions_.AddIndex(kByOwner,
                      [](const appsv1::ControllerRevision& one) { return OwnerIndex(one.metadata()); });
  sets_.AddHandler([this](const client::Change<appsv1::DaemonSet>& change) {
    const bool replaced = change.old_object && change.new_object &&
                          change.old_object->metadata().uid() != change.new_object->metadata().uid();
    if (!change.new_object || replaced) expectations_.Forget(change.key);
    queue().Add(change.key);
  });
  pods_.AddHandler([this](const auto& change) { OnPod(change); });
  nodes_.AddHandler([this](const auto& change) { OnNode(change); });
  revisions_.AddHandler([this](const auto& change) { OnRevision(change); });
}

std::optional<std::string> DaemonSetController::KeyOfOwner(const metav1::ObjectMeta& meta) const {
  const metav1::OwnerReference* owner = api::ControllerOf(meta);
  if (!owner || owner->kind() != "DaemonSet") return std::nullopt;
  std::string key = api::KeyOf(meta.namespace_(), owner->name());
  auto set = sets_.Get(key);
  if (!set || set->metadata().uid() != owner->uid()) return std::nullopt;
  return key;
}

void DaemonSetController::EnqueueMatching(const metav1::ObjectMeta& orphan) {
  for (const auto& set : sets_.List()) {
    if (set->metadata().namespace_() != orphan.namespace_()) continue;
    auto selector = api::LabelSelector::From(set->spec().selector());
    if (selector && !selector->IsEverything() && selector->Matches(orphan.labels())) {
      queue().Add(api::KeyOf(*set));
    }
  }
}

void DaemonSetController::OnPod(const client::Change<corev1::Pod>& change) {
  const corev1::Pod& pod = change.object();
  const std::optional<std::string> owner = KeyOfOwner(pod.metadata());
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
    const std::optional<std::string> before = KeyOfOwner(change.old_object->metadata());
    if (before && before != owner) queue().Add(*before);
  }
  if (change.new_object && !k8s::IsTerminating(pod) && !api::ControllerOf(pod.metadata())) {
    EnqueueMatching(pod.metadata());
  }
}

// Nodes update often; most updates do not matter here.
void DaemonSetController::OnNode(const client::Change<corev1::Node>& change) {
  using Fit = DaemonPlacement::Fit;
  for (const auto& set : sets_.List()) {
    const DaemonPlacement placement(*set);
    const Fit before = change.old_object ? placement.Of(*change.old_object) : Fit();
    const Fit now = change.new_object ? placement.Of(*change.new_object) : Fit();
    if (before.should_run != now.should_run || before.should_continue != now.should_continue) {
      queue().Add(api::KeyOf(*set));
    }
  }
}

// Enqueue the set when it lost a revision or when an orphan matches. An added revision that the set owns
// needs no sync, even if another client created it: duplicates wait until the next sync.
void DaemonSetController::OnRevision(const client::Change<appsv1::ControllerRevision>& change) {
  auto owner_of = [this](const auto& object) {
    return object ? KeyOfOwner(object->metadata()) : std::nullopt;
  };
  if (auto before = owner_of(change.old_object); before && before != owner_of(change.new_object)) {
    queue().Add(*before);
  }
  if (change.new_object && !api::ControllerOf(change.new_object->metadata())) {
    EnqueueMatching(change.new_object->metadata());
  }
}

Result<> DaemonSetController::Apply(const Sync& sync, const DaemonChanges& changes) {
  const size_t creations = std::min(changes.create.size(), kBurst),
               deletions = std::min(changes.remove.size(), kBurst);
  if (creations + deletions == 0) return {};
  std::vector<std::string> gone;
  for (size_t i = 0; i < deletions; ++i) gone.push_back(api::KeyOf(*changes.remove[i]));
  expectations_.Expect(sync.key, static_cast<int>(creations), gone);
  FirstError failure;
  size_t tried = 0;
  SlowStartBatch(static_cast<int>(creations), [&](int n) {
    std::atomic<int> successes = 0;
    ParallelFor(static_cast<size_t>(n), [&](size_t i) {
      Result<corev1::Pod> created =
          control_.Create(sync.api, sync.set, NewDaemonPod(sync.set, changes.create[tried + i], sync.hash()));
      if (created) {
        ++successes;
        return;
      }
      expectations_.CreationObserved(sync.key);
      if (!IsNamespaceTerminating(created.error())) failure.Note(created.error());
    });
    tried += static_cast<size_t>(n);
    return successes.load();
  });
  for (size_t i = tried; i < creations; ++i) expectations_.CreationObserved(sync.key);  // not attempted
  ParallelFor(deletions, [&](size_t i) {
    Result<> deleted = control_.Delete(sync.api, sync.set, *changes.remove[i]);
    if (deleted) return;
    expectations_.DeletionObserved(sync.key, gone[i]);
    if (!deleted.error().Is(Code::kNotFound)) failure.Note(deleted.error());
  });
  return failure.Take();
}

Result<> DaemonSetController::Process(Sync& sync) {
  const PodsByNode pods = GroupByNode(sync.pods);
  const metav1::ObjectMeta& meta = sync.set.metadata();
  const NodePointers nodes = nodes_.List();
  const DaemonRepairs repairs =
      PlanPods(sync.set, nodes, pods, sync.hash(), clock().Now(), [&](const corev1::Pod& pod) {
        const auto wait =
            failed_.Replace(fmt::format("{}/{}/{}", meta.uid(), meta.generation(), TargetNodeOf(pod)));
        Earliest(sync.again, wait);
        return wait.has_value();
      });
  auto tell = [&](const PodPointers& which, const char* type, const char* reason, const char* what,
                  const char* how) {
    for (const auto& pod : which) {
      events_.Record(sync.set, type, reason,
                     fmt::format("Found {} daemon pod {}/{} on node {}, will try to {} it", what,
                                 meta.namespace_(), pod->metadata().name(), TargetNodeOf(*pod), how));
    }
  };
  tell(repairs.failed, "Warning", "FailedDaemonPod", "failed", "kill");
  tell(repairs.succeeded, "Normal", "SucceededDaemonPod", "succeeded", "delete");
  KEELSON_RETURN_IF_ERROR(Apply(sync, repairs));
  // Wait until the informer shows these creations and deletions.
  if (expectations_.Satisfied(sync.key) && sync.set.spec().update_strategy().type() == "RollingUpdate") {
    KEELSON_RETURN_IF_ERROR(Apply(sync, PlanRollout(sync.set, nodes, pods, sync.hash(), clock().Now())));
  }
  return CleanUp(sync);
}

Result<> DaemonSetController::WriteStatus(Sync& sync, bool settled) {
  const appsv1::DaemonSetStatus status =
      StatusOf(sync.set, nodes_.List(), GroupByNode(sync.pods), sync.hash(), settled, clock().Now());
  // Count every pod, not only those in the status: with surge a rollout waits for the second pod of a node.
  for (const auto& pod : sync.pods) {
    Earliest(sync.again, UntilAvailable(*pod, sync.set.spec().min_ready_seconds(), clock().Now()));
  }
  if (google::protobuf::util::MessageDifferencer::Equals(status, sync.set.status())) return {};
  *sync.set.mutable_status() = status;
  KEELSON_RETURN_IF_ERROR(sync.api.UpdateStatus(sync.set));
  return {};
}

Result<Requeue> DaemonSetController::Finish(Sync& sync, Result<> result, bool settled) {
  Result<> written = WriteStatus(sync, settled);
  if (!result) return result.error();
  if (!written) return written.error().Wrap("update status");
  return Requeue{sync.again};
}

Result<Requeue> DaemonSetController::Reconcile(const std::string& key, std::stop_token stop) {
  auto set = sets_.Get(key);
  if (!set) {
    expectations_.Forget(key);
    return Requeue{};
  }
  if (IsAnyKey(set->spec().selector())) {
    events_.Record(*set, "Warning", "SelectingAll",
                   "This daemon set is selecting all pods. A non-empty selector is required.");
    return Requeue{};
  }
  if (set->metadata().has_deletion_timestamp()) return Requeue{};
  Sync sync{api_.With(stop), key, *set, {}, {}, nullptr, {}, std::nullopt};
  KEELSON_ASSIGN_OR_RETURN(sync.selector, api::LabelSelector::From(set->spec().selector()));
  KEELSON_ASSIGN_OR_RETURN(sync.pods, ClaimObjects<corev1::Pod>(sync.api, pods_, sync.set, sync.selector));
  Result<> found = FindRevisions(sync);
  if (!found) {
    if (IsNamespaceTerminating(found.error())) return Requeue{};
    return found.error().Wrap("failed to construct revisions of DaemonSet");
  }
  // The store does not show earlier creations and deletions yet: update only the status.
  if (!expectations_.Satisfied(key)) return Finish(sync, {}, false);
  Result<> processed = Process(sync);
  return Finish(sync, std::move(processed), true);
}

}  // namespace keelson::controllers

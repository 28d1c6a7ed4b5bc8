// The revisions of a DaemonSet's template.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "controlplane/controllers/common/ownership.h"
#include "controlplane/controllers/daemonset/controller.h"
#include "controlplane/controllers/deployment/plan.h"
#include "lib/api/meta.h"
#include "lib/base/json_quote.h"

namespace keelson::controllers {

using appsv1::ControllerRevision;

std::string DaemonSetController::Sync::hash() const {
  auto it = current->metadata().labels().find(kPodRevisionLabel);
  return it == current->metadata().labels().end() ? "" : it->second;
}

// Revisions of old releases have no hash label: their name is the hash.
Result<> DaemonSetController::LabelWithHash(const Sync& sync, const RevisionPointer& revision,
                                            RevisionPointer& labelled) {
  labelled = revision;
  if (revision->metadata().labels().contains(kPodRevisionLabel)) return {};
  ControllerRevision changed = *revision;
  (*changed.mutable_metadata()->mutable_labels())[kPodRevisionLabel] = changed.metadata().name();
  KEELSON_ASSIGN_OR_RETURN(changed, sync.api.Update(changed));
  labelled = std::make_shared<ControllerRevision>(std::move(changed));
  return {};
}

Result<> DaemonSetController::FindRevisions(Sync& sync) {
  KEELSON_ASSIGN_OR_RETURN(RevisionPointers all,
                           ClaimObjects<ControllerRevision>(sync.api, revisions_, sync.set, sync.selector));
  RevisionPointers same;
  for (const RevisionPointer& found : all) {
    RevisionPointer revision;
    KEELSON_RETURN_IF_ERROR(LabelWithHash(sync, found, revision));
    (Restores(*revision, sync.set.spec().template_()) ? same : sync.old).push_back(std::move(revision));
  }
  const int64_t number = MaxRevision(sync.old) + 1;
  if (same.empty()) return MakeRevision(sync, number);
  KEELSON_RETURN_IF_ERROR(MergeDuplicates(sync, std::move(same)));
  if (sync.current->revision() >= number) return {};
  // Rollback: an earlier template is in use again.
  KEELSON_ASSIGN_OR_RETURN(sync.current, RenumberRevision(sync.api, sync.current, number));
  return {};
}

Result<> DaemonSetController::MakeRevision(Sync& sync, int64_t number) {
  const corev1::PodTemplateSpec& pod_template = sync.set.spec().template_();
  const int32_t before = sync.set.status().collision_count();
  int32_t collisions = before;
  KEELSON_ASSIGN_OR_RETURN(
      ControllerRevision made,
      CreateRevision(
          sync.api, sync.set.metadata().name(), NewRevision(sync.set, pod_template, number),
          kPodRevisionLabel, [&](int32_t count) { return TemplateHash(pod_template, count); }, collisions));
  sync.current = std::make_shared<ControllerRevision>(std::move(made));
  if (collisions == before) return {};
  sync.set.mutable_status()->set_collision_count(collisions);
  KEELSON_ASSIGN_OR_RETURN(sync.set, sync.api.UpdateStatus(sync.set));
  return {};
}

// Two revisions with the same template result from a controller that did not see its own write. The pods of
// all of them move to the newest one.
Result<> DaemonSetController::MergeDuplicates(Sync& sync, RevisionPointers same) {
  SortRevisions(same);
  sync.current = same.back();
  same.pop_back();
  if (same.empty()) return {};
  const std::string hash = sync.hash();
  for (auto& pod : sync.pods) {
    auto label = pod->metadata().labels().find(kPodRevisionLabel);
    if (label != pod->metadata().labels().end() && label->second == hash) continue;
    // Matches a duplicate, not an older template.
    const bool duplicate = std::any_of(same.begin(), same.end(), [&](const RevisionPointer& one) {
      return label != pod->metadata().labels().end() &&
             one->metadata().labels().at(kPodRevisionLabel) == label->second;
    });
    if (!duplicate) continue;
    // The controller's role may patch pods, but not update them.
    const metav1::ObjectMeta& meta = pod->metadata();
    KEELSON_ASSIGN_OR_RETURN(corev1::Pod changed,
                             sync.api.Patch<corev1::Pod>(
                                 meta.namespace_(), meta.name(), client::PatchType::kMerge,
                                 fmt::format(R"({{"metadata":{{"uid":{},"labels":{{"{}":{}}}}}}})",
                                             JsonQuoted(meta.uid()), kPodRevisionLabel, JsonQuoted(hash))));
    pod = std::make_shared<corev1::Pod>(std::move(changed));
  }
  for (const RevisionPointer& one : same) {
    const metav1::ObjectMeta& meta = one->metadata();
    Result<> deleted =
        sync.api.Delete<ControllerRevision>(meta.namespace_(), meta.name(), {.uid = meta.uid()});
    if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error().Wrap("delete revision");
  }
  return {};
}

Result<> DaemonSetController::CleanUp(const Sync& sync) {
  std::set<std::string> live;
  for (const auto& pod : sync.pods) {
    auto label = pod->metadata().labels().find(kPodRevisionLabel);
    if (label != pod->metadata().labels().end()) live.insert(label->second);
  }
  for (const RevisionPointer& one : RevisionsToCleanUp(
           sync.old, sync.set.spec().revision_history_limit(), [&](const ControllerRevision& r) {
             return live.count(r.metadata().labels().at(kPodRevisionLabel)) > 0;
           })) {
    const metav1::ObjectMeta& meta = one->metadata();
    Result<> deleted =
        sync.api.Delete<ControllerRevision>(meta.namespace_(), meta.name(), {.uid = meta.uid()});
    if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error().Wrap("delete old revision");
  }
  return {};
}

}  // namespace keelson::controllers

#include "csi/controller/snapshotter/snapshot_controller.h"

#include <fmt/format.h>

#include "csi/controller/model/snapshot_names.h"
#include "lib/api/meta.h"

namespace keelson::csi::controller {
namespace {

constexpr char kByClaim[] = "claim";
constexpr std::chrono::seconds kRestorePoll{5};

std::vector<std::string> ClaimIndex(const CustomObject& object) {
  const Result<Snapshot> snapshot = ReadSnapshot(object);
  if (!snapshot || !snapshot->claim) return {};
  return {snapshot->meta.namespace_() + "/" + *snapshot->claim};
}

}  // namespace

SnapshotController::SnapshotController(const SnapshotEnvironment& environment)
    : Reconciler("snapshots", environment.clock, environment.retry),
      environment_(environment),
      snapshots_(environment.informers.Get(SnapshotRow())),
      contents_(environment.informers.Get(SnapshotContentRow())),
      classes_(environment.informers.Get(SnapshotClassRow())),
      times_(environment.clock) {
  snapshots_.AddIndex(kByClaim, ClaimIndex);
  snapshots_.AddHandler([this](const client::Change<CustomObject>& change) {
    queue().Add(change.key);
    if (change.new_object) return;
    for (const std::string& claim : ClaimIndex(change.object())) queue().Add(":" + claim);
  });
  contents_.AddHandler([this](const client::Change<CustomObject>& change) {
    const Result<SnapshotContent> content = ReadSnapshotContent(change.object());
    if (content && !content->snapshot_name.empty()) queue().Add(content->SnapshotKey());
  });
  classes_.AddHandler([this](const client::Change<CustomObject>& change) {
    if (!change.new_object) return;
    // Snapshots that wait for a class; each change of one is rare.
    for (const auto& object : snapshots_.List()) {
      const Result<Snapshot> snapshot = ReadSnapshot(*object);
      if (snapshot && !snapshot->IsReady()) queue().Add(snapshot->Key());
    }
  });
}

Result<Requeue> SnapshotController::Reconcile(const std::string& key, std::stop_token stop) {
  if (key.starts_with(':')) {
    const auto [ns, name] = api::SplitKey(key.substr(1));
    KEELSON_RETURN_IF_ERROR(FreeClaim(ns, name, "", stop));
    return Requeue{};
  }
  const auto object = snapshots_.Get(key);
  if (!object) {
    times_.Forget(key);
    return Requeue{};
  }
  KEELSON_ASSIGN_OR_RETURN(const Snapshot snapshot, ReadSnapshot(*object));
  return snapshot.meta.has_deletion_timestamp() ? Delete(snapshot, stop) : Live(snapshot, stop);
}

Result<Requeue> SnapshotController::Live(const Snapshot& known, std::stop_token stop) {
  if (const auto problem = CheckSource(known)) {
    KEELSON_RETURN_IF_ERROR(Report(known, *problem, true, stop));
    return Requeue{};  // the source never changes
  }
  if (!known.IsReady()) {
    const bool taken = known.status && known.status->creation_time;
    if (!taken) times_.Begin(kCreateSnapshot, known, "");
    times_.Begin(kCreateSnapshotAndReady, known, "");
  }
  KEELSON_ASSIGN_OR_RETURN(const Snapshot snapshot, Prepare(known, stop));
  if (snapshot.meta.has_deletion_timestamp()) return Requeue{};  // the event of this comes
  if (snapshot.IsReady() && snapshot.status->bound_content) {
    KEELSON_RETURN_IF_ERROR(CheckReady(snapshot, stop));
  } else if (snapshot.content) {
    KEELSON_RETURN_IF_ERROR(BindGiven(snapshot, stop));
  } else {
    KEELSON_RETURN_IF_ERROR(BindMade(snapshot, stop));
  }
  return Requeue{};
}

Result<> SnapshotController::CheckReady(const Snapshot& snapshot, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const auto content, FindContent(*snapshot.status->bound_content, stop));
  if (!content) {
    return Report(snapshot, {"SnapshotContentMissing", "VolumeSnapshotContent is missing"}, true, stop);
  }
  if (!PointsTo(*content, snapshot)) {
    return Report(snapshot,
                  {"SnapshotMisbound", "VolumeSnapshotContent is not bound to the VolumeSnapshot correctly"},
                  true, stop);
  }
  return Keep(*content, stop);
}

Result<> SnapshotController::BindGiven(const Snapshot& snapshot, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const auto found, FindContent(*snapshot.content, stop));
  if (!found) {
    KEELSON_RETURN_IF_ERROR(
        Report(snapshot, {"SnapshotContentMissing", "VolumeSnapshotContent is missing"}, true, stop));
    return Error(Code::kNotFound, fmt::format("snapshot {} requests an non-existing content {}",
                                              snapshot.Key(), *snapshot.content));
  }
  if (const auto problem = CheckContent(snapshot, *found)) {
    KEELSON_RETURN_IF_ERROR(Report(snapshot, *problem, true, stop));
    return Error(Code::kInvalid, problem->message);
  }
  const Result<SnapshotContent> content = Reserve(snapshot, *found, stop);
  if (!content) {
    const std::string message = "Snapshot failed to bind VolumeSnapshotContent, " + content.error().message();
    KEELSON_RETURN_IF_ERROR(Report(snapshot, {"SnapshotBindFailed", message}, true, stop));
    return content.error();
  }
  return ShowStatus(snapshot, *content, stop);
}

Result<> SnapshotController::BindMade(const Snapshot& snapshot, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const auto found, FindContent(ContentNameOf(snapshot), stop));
  if (!found) {
    // One that was taken is lost. Another one would have the data of another time under its name.
    if (snapshot.status && snapshot.status->creation_time) {
      return Report(snapshot, {"SnapshotContentMissing", "VolumeSnapshotContent is missing"}, true, stop);
    }
    const Result<SnapshotContent> made = MakeContent(snapshot, stop);
    if (made) return ShowStatus(snapshot, *made, stop);
    if (stop.stop_requested()) return made.error();
    KEELSON_RETURN_IF_ERROR(Report(snapshot,
                                   {"SnapshotContentCreationFailed",
                                    "Failed to create snapshot content with error " + made.error().message()},
                                   true, stop));
    return made.error();
  }
  if (const auto problem = CheckContent(snapshot, *found)) {
    KEELSON_RETURN_IF_ERROR(Report(snapshot, *problem, true, stop));
    return Error(Code::kInvalid, problem->message);
  }
  KEELSON_RETURN_IF_ERROR(Keep(*found, stop));
  return ShowStatus(snapshot, *found, stop);
}

Result<Requeue> SnapshotController::Delete(const Snapshot& snapshot, std::stop_token stop) {
  if (!HasFinalizer(snapshot.meta, kSnapshotSourceFinalizer) &&
      !HasFinalizer(snapshot.meta, kSnapshotBoundFinalizer)) {
    return Requeue{};
  }
  KEELSON_ASSIGN_OR_RETURN(auto content, FindContent(BoundContentName(snapshot), stop));
  // One that is another snapshot's is none of our business.
  if (content && !PointsTo(*content, snapshot)) content.reset();
  if (content) {
    KEELSON_ASSIGN_OR_RETURN(const bool in_use, IsBeingRestored(snapshot, stop));
    if (in_use) {
      environment_.events.Record(ReferenceTo(SnapshotRow(), snapshot.meta), "Warning",
                                 "SnapshotDeletePending", "Snapshot is being used to restore a PVC");
      return Requeue{std::min<std::chrono::nanoseconds>(kRestorePoll, environment_.retry.backoff.max)};
    }
  }
  times_.Begin(kDeleteSnapshot, snapshot, content ? content->driver : std::string());
  const bool cascade = content && content->deletion_policy == "Delete";
  if (content) {
    auto marked = Custom(stop).UpdateWithRetry(
        SnapshotContentRow(), "", content->meta.name(), "", [&](CustomObject& live) -> Result<bool> {
          KEELSON_ASSIGN_OR_RETURN(const SnapshotContent now, ReadSnapshotContent(live));
          auto& annotations = *live.mutable_metadata()->mutable_annotations();
          if (!PointsTo(now, snapshot) || annotations.count(kBeingDeleted) > 0) return false;
          annotations[kBeingDeleted] = "yes";
          return true;
        });
    if (!marked && !marked.error().Is(Code::kNotFound)) return marked.error().Wrap("mark the content");
  }
  if (cascade && !content->meta.has_deletion_timestamp()) {
    client::DeleteOptions options;
    options.uid = content->meta.uid();
    const Result<> deleted = Custom(stop).Delete(SnapshotContentRow(), "", content->meta.name(), options);
    if (!deleted && !deleted.error().Is(Code::kNotFound)) {
      environment_.events.Record(ReferenceTo(SnapshotRow(), snapshot.meta), "Warning",
                                 "SnapshotContentObjectDeleteError",
                                 "Failed to delete snapshot content API object");
      return deleted.error().Wrap("failed to delete VolumeSnapshotContent " + content->meta.name() +
                                  " from API server");
    }
  }
  if (snapshot.claim) {
    KEELSON_RETURN_IF_ERROR(
        FreeClaim(snapshot.meta.namespace_(), *snapshot.claim, snapshot.meta.uid(), stop));
  }
  auto freed = Custom(stop).UpdateWithRetry(
      SnapshotRow(), snapshot.meta.namespace_(), snapshot.meta.name(), "",
      [&](CustomObject& live) -> Result<bool> {
        if (live.metadata().uid() != snapshot.meta.uid()) return false;
        // One of them holds the snapshot until its content is gone. The event of that leads back here.
        const bool held = HasFinalizer(live.metadata(), kSnapshotBoundFinalizer);
        bool changed = false;
        if (held || !cascade) changed |= DropFinalizer(*live.mutable_metadata(), kSnapshotSourceFinalizer);
        if (!cascade) changed |= DropFinalizer(*live.mutable_metadata(), kSnapshotBoundFinalizer);
        return changed;
      });
  if (!freed && !freed.error().Is(Code::kNotFound)) return freed.error().Wrap("remove the finalizers");
  if (!cascade) times_.Succeed(kDeleteSnapshot, snapshot, "");
  return Requeue{};
}

}  // namespace keelson::csi::controller

// What is written to snapshots and contents on their way to each other.
#include <fmt/format.h>

#include "csi/controller/model/snapshot_names.h"
#include "csi/controller/snapshotter/snapshot_controller.h"
#include "lib/api/meta.h"

namespace keelson::csi::controller {
namespace {

bool AddFinalizer(metav1::ObjectMeta& meta, const char* finalizer) {
  if (HasFinalizer(meta, finalizer)) return false;
  meta.add_finalizers(finalizer);
  return true;
}

}  // namespace

Result<Snapshot> SnapshotController::Prepare(const Snapshot& snapshot, std::stop_token stop) {
  std::string class_name;
  if (snapshot.claim && !snapshot.class_name && !snapshot.IsReady()) {
    const Result<std::string> found = FindDefaultClass(snapshot, stop);
    if (!found) {
      KEELSON_RETURN_IF_ERROR(
          Report(snapshot,
                 {"SetDefaultSnapshotClassFailed",
                  "Failed to set default snapshot class with error " + found.error().message()},
                 false, stop));
      return found.error();
    }
    class_name = *found;
  }
  bool bound = false;
  if (snapshot.status && snapshot.status->bound_content) {
    KEELSON_ASSIGN_OR_RETURN(const auto content, FindContent(*snapshot.status->bound_content, stop));
    bound = content && PointsTo(*content, snapshot) && content->deletion_policy == "Delete";
  }
  const bool complete = HasFinalizer(snapshot.meta, kSnapshotSourceFinalizer) &&
                        (!bound || HasFinalizer(snapshot.meta, kSnapshotBoundFinalizer));
  if (complete && class_name.empty()) return snapshot;
  auto prepared = Custom(stop).UpdateWithRetry(
      SnapshotRow(), snapshot.meta.namespace_(), snapshot.meta.name(), "",
      [&](CustomObject& live) -> Result<bool> {
        if (live.metadata().uid() != snapshot.meta.uid()) {
          return Error(Code::kConflict, "the snapshot was replaced");
        }
        if (live.metadata().has_deletion_timestamp()) return false;
        bool changed = AddFinalizer(*live.mutable_metadata(), kSnapshotSourceFinalizer);
        if (bound) changed |= AddFinalizer(*live.mutable_metadata(), kSnapshotBoundFinalizer);
        KEELSON_ASSIGN_OR_RETURN(const Snapshot now, ReadSnapshot(live));
        if (!class_name.empty() && !now.class_name) {
          KEELSON_RETURN_IF_ERROR(SetClassName(class_name, live));
          changed = true;
        }
        return changed;
      });
  if (!prepared) {
    environment_.events.Record(ReferenceTo(SnapshotRow(), snapshot.meta), "Warning", "SnapshotFinalizerError",
                               "Failed to check and update snapshot: " + prepared.error().message());
    return prepared.error();
  }
  return ReadSnapshot(*prepared);
}

Result<> SnapshotController::Keep(const SnapshotContent& content, std::stop_token stop) {
  if (content.meta.has_deletion_timestamp() || HasFinalizer(content.meta, kContentFinalizer)) return {};
  auto kept = Custom(stop).UpdateWithRetry(SnapshotContentRow(), "", content.meta.name(), "",
                                           [&](CustomObject& live) -> Result<bool> {
                                             if (live.metadata().has_deletion_timestamp()) return false;
                                             return AddFinalizer(*live.mutable_metadata(), kContentFinalizer);
                                           });
  if (!kept) return kept.error().Wrap("add the finalizer of the content");
  return {};
}

Result<SnapshotContent> SnapshotController::Reserve(const Snapshot& snapshot, const SnapshotContent& content,
                                                    std::stop_token stop) {
  auto reserved = Custom(stop).UpdateWithRetry(
      SnapshotContentRow(), "", content.meta.name(), "", [&](CustomObject& live) -> Result<bool> {
        KEELSON_ASSIGN_OR_RETURN(const SnapshotContent now, ReadSnapshotContent(live));
        if (const auto problem = CheckContent(snapshot, now)) return Error(Code::kInvalid, problem->message);
        bool changed = false;
        if (now.snapshot_uid.empty()) {
          KEELSON_RETURN_IF_ERROR(SetSnapshotUid(snapshot.meta.uid(), live));
          changed = true;
        }
        if (snapshot.class_name && !now.class_name) {
          KEELSON_RETURN_IF_ERROR(SetClassName(*snapshot.class_name, live));
          changed = true;
        }
        if (!live.metadata().has_deletion_timestamp()) {
          changed |= AddFinalizer(*live.mutable_metadata(), kContentFinalizer);
        }
        return changed;
      });
  if (!reserved) return reserved.error();
  return ReadSnapshotContent(*reserved);
}

Result<> SnapshotController::ShowStatus(const Snapshot& snapshot, const SnapshotContent& content,
                                        std::stop_token stop) {
  if (snapshot.status && StatusBy(snapshot, content) == *snapshot.status) return {};
  // Before the snapshot is ready: nothing leads back to the claim later.
  if (content.IsReady() && snapshot.claim) {
    KEELSON_RETURN_IF_ERROR(
        FreeClaim(snapshot.meta.namespace_(), *snapshot.claim, snapshot.meta.uid(), stop));
  }
  bool created = false, ready = false;
  auto shown = Custom(stop).UpdateWithRetry(
      SnapshotRow(), snapshot.meta.namespace_(), snapshot.meta.name(), "status",
      [&](CustomObject& live) -> Result<bool> {
        KEELSON_ASSIGN_OR_RETURN(const Snapshot now, ReadSnapshot(live));
        if (now.meta.uid() != snapshot.meta.uid()) return false;
        // What the caches show may be older.
        if (now.IsReady() && !content.IsReady() && !snapshot.IsReady()) return false;
        const SnapshotStatus status = StatusBy(now, content);
        if (now.status && status == *now.status) return false;
        created = status.creation_time && !(now.status && now.status->creation_time);
        ready = status.ready.value_or(false) && !now.IsReady();
        KEELSON_RETURN_IF_ERROR(SetStatus(status, live));
        return true;
      });
  if (!shown && shown.error().Is(Code::kNotFound)) return {};
  if (!shown) {
    environment_.events.Record(ReferenceTo(SnapshotRow(), snapshot.meta), "Warning",
                               "SnapshotStatusUpdateFailed",
                               "Snapshot status update failed, " + shown.error().message());
    return shown.error();
  }
  const auto tell = [&](const char* reason, std::string message) {
    environment_.events.Record(ReferenceTo(SnapshotRow(), snapshot.meta), "Normal", reason,
                               std::move(message));
  };
  if (created) {
    times_.Succeed(kCreateSnapshot, snapshot, content.driver);
    tell("SnapshotCreated",
         fmt::format("Snapshot {} was successfully created by the CSI driver.", snapshot.Key()));
  }
  if (ready) {
    times_.Succeed(kCreateSnapshotAndReady, snapshot, content.driver);
    tell("SnapshotReady", fmt::format("Snapshot {} is ready to use.", snapshot.Key()));
  }
  return {};
}

Result<> SnapshotController::Report(const Snapshot& snapshot, const SnapshotProblem& problem, bool unready,
                                    std::stop_token stop) {
  const auto& error = snapshot.status ? snapshot.status->error : std::nullopt;
  if (error && error->message == problem.message) return {};
  environment_.events.Record(ReferenceTo(SnapshotRow(), snapshot.meta), "Warning", problem.reason,
                             problem.message);
  auto told = Custom(stop).UpdateWithRetry(
      SnapshotRow(), snapshot.meta.namespace_(), snapshot.meta.name(), "status",
      [&](CustomObject& live) -> Result<bool> {
        KEELSON_ASSIGN_OR_RETURN(const Snapshot now, ReadSnapshot(live));
        if (now.meta.uid() != snapshot.meta.uid()) return false;
        SnapshotStatus status = now.status.value_or(SnapshotStatus());
        status.error = SnapshotError{api::FormatTime(api::ToTime(environment_.clock.Now())), problem.message};
        if (unready) status.ready = false;
        KEELSON_RETURN_IF_ERROR(SetStatus(status, live));
        return true;
      });
  if (told || told.error().Is(Code::kNotFound)) return {};
  return told.error().Wrap("save the error of the snapshot");
}

}  // namespace keelson::csi::controller

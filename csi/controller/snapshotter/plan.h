// What becomes of VolumeSnapshots and their contents: the decisions of external-snapshotter's two programs. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "csi/controller/model/snapshots.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::csi::controller {

// ---- snapshot-controller ----

// snapcontent-UID: the content of a snapshot that is made from a claim.
std::string ContentNameOf(const Snapshot& snapshot);
// The content that the snapshot is bound to, or will be; empty: none.
std::string BoundContentName(const Snapshot& snapshot);
bool PointsTo(const SnapshotContent& content, const Snapshot& snapshot);  // name, namespace and UID

// An error that users see: an event with `reason`, and `status.error`.
struct SnapshotProblem {
  std::string reason, message;
};

// Exactly one source. nullopt: fine.
std::optional<SnapshotProblem> CheckSource(const Snapshot& snapshot);
// Whether the content may be the snapshot's: of the right sort, and reserved for no other one. A content that an
// administrator made may name the snapshot without its UID.
std::optional<SnapshotProblem> CheckContent(const Snapshot& snapshot, const SnapshotContent& content);

// The default class of a driver. kInvalid, in upstream's words: none, or several.
Result<std::string> DefaultClass(const std::vector<SnapshotClass>& classes, const std::string& driver);

// The volume behind a bound claim, of the class's driver. kInvalid, in upstream's words.
Result<> CheckVolume(const Claim& claim, const Volume& volume, const SnapshotClass& snapshot_class);

// The new content of a snapshot of a claim. `node`: for the label of distributed snapshots; empty: none. kInvalid: the
// class's secret cannot be resolved.
Result<SnapshotContent> PlanContent(const Snapshot& snapshot, const SnapshotClass& snapshot_class,
                                    const Volume& volume, const std::string& node);

// What the snapshot's status becomes by its content.
SnapshotStatus StatusBy(const Snapshot& snapshot, const SnapshotContent& content);

// ---- csi-snapshotter ----

enum class ContentStep {
  kNothing,  // another program's task, or waits for one
  kCreate,   // CreateSnapshot, also to learn whether it is ready
  kCheck,    // a snapshot that was there before: ListSnapshots
  kSettle,   // ready: only the annotation is left
  kDelete,   // DeleteSnapshot, then the finalizer
  kRelease,  // the finalizer goes, the driver keeps what it has
};
ContentStep NextStep(const SnapshotContent& content);

// snapshot-UID. kInvalid: no UID.
Result<std::string> NameForDriver(const std::string& prefix, const std::string& uid, int uid_length);

// The driver's answer.
struct TakenSnapshot {
  std::string handle;
  bool ready = false;
  std::optional<int64_t> creation_time;  // ns since 1970
  int64_t bytes = 0;                     // 0: unknown
};
ContentStatus StatusBy(const SnapshotContent& content, const TakenSnapshot& taken, WallTime now);
ContentStatus StatusBy(const SnapshotContent& content, const std::string& error, WallTime now);

// How long to wait until a snapshot that is not ready is looked at again: a part of its age within the limits of back-off.
std::chrono::nanoseconds PollDelay(const SnapshotContent& content, WallTime now,
                                   std::chrono::milliseconds least, std::chrono::milliseconds most);

}  // namespace keelson::csi::controller

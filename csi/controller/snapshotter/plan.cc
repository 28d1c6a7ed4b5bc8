#include "csi/controller/snapshotter/plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "csi/controller/common/controller.h"
#include "csi/controller/model/secret_reference.h"
#include "csi/controller/model/snapshot_names.h"
#include "lib/api/meta.h"
#include "lib/api/quantity.h"

namespace keelson::csi::controller {
namespace {

Error Wrong(std::string message) { return Error(Code::kInvalid, std::move(message)); }

bool HasAnnotation(const metav1::ObjectMeta& meta, const char* name) {
  return meta.annotations().count(name) > 0;
}

int64_t Nanoseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

std::string TimeText(int64_t nanoseconds) {
  metav1::Time time;
  time.set_seconds(nanoseconds / 1'000'000'000);
  return api::FormatTime(time);
}

bool IsDeletion(const SnapshotContent& content) {
  if (!content.meta.has_deletion_timestamp()) return false;
  // An administrator's, which no snapshot has ever been bound to.
  if (content.snapshot_handle && content.snapshot_uid.empty()) return true;
  if (HasAnnotation(content.meta, kBeingCreated)) return false;
  return HasAnnotation(content.meta, kBeingDeleted);
}

}  // namespace

std::string ContentNameOf(const Snapshot& snapshot) { return "snapcontent-" + snapshot.meta.uid(); }

std::string BoundContentName(const Snapshot& snapshot) {
  if (snapshot.status && snapshot.status->bound_content) return *snapshot.status->bound_content;
  if (snapshot.claim) return ContentNameOf(snapshot);
  return snapshot.content.value_or("");
}

bool PointsTo(const SnapshotContent& content, const Snapshot& snapshot) {
  return content.snapshot_name == snapshot.meta.name() && content.snapshot_ns == snapshot.meta.namespace_() &&
         content.snapshot_uid == snapshot.meta.uid();
}

std::optional<SnapshotProblem> CheckSource(const Snapshot& snapshot) {
  if (snapshot.claim.has_value() != snapshot.content.has_value()) return std::nullopt;
  return SnapshotProblem{
      "SnapshotValidationError",
      "Exactly one of PersistentVolumeClaimName and VolumeSnapshotContentName should be specified"};
}

std::optional<SnapshotProblem> CheckContent(const Snapshot& snapshot, const SnapshotContent& content) {
  const std::string& name = content.meta.name();
  if (snapshot.content && !content.snapshot_handle) {
    return SnapshotProblem{
        "SnapshotContentMismatch",
        "VolumeSnapshotContent is dynamically provisioned while expecting a pre-provisioned one"};
  }
  if (snapshot.claim && !content.volume_handle) {
    return SnapshotProblem{"SnapshotContentMismatch",
                           "VolumeSnapshotContent " + name +
                               " is pre-provisioned while expecting a dynamically provisioned one"};
  }
  const bool reserved = snapshot.content && content.snapshot_uid.empty() &&
                        content.snapshot_name == snapshot.meta.name() &&
                        content.snapshot_ns == snapshot.meta.namespace_();
  if (PointsTo(content, snapshot) || reserved) return std::nullopt;
  return SnapshotProblem{"SnapshotContentMisbound",
                         "VolumeSnapshotContent [" + name + "] is bound to a different snapshot"};
}

Result<std::string> DefaultClass(const std::vector<SnapshotClass>& classes, const std::string& driver) {
  std::vector<std::string> found;
  for (const SnapshotClass& one : classes) {
    const auto& annotations = one.meta.annotations();
    const auto mark = annotations.find(kDefaultSnapshotClass);
    if (mark != annotations.end() && mark->second == "true" && one.driver == driver) {
      found.push_back(one.meta.name());
    }
  }
  if (found.empty()) return Wrong("cannot find default snapshot class");
  if (found.size() > 1) return Wrong(fmt::format("{} default snapshot classes were found", found.size()));
  return found.front();
}

Result<> CheckVolume(const Claim& claim, const Volume& volume, const SnapshotClass& snapshot_class) {
  const auto& reference = volume.spec().claim_ref();
  if (reference.name() != claim.metadata().name() ||
      reference.namespace_() != claim.metadata().namespace_() ||
      (!reference.uid().empty() && reference.uid() != claim.metadata().uid())) {
    return Wrong("claim in dataSource not bound or invalid");
  }
  if (!volume.spec().persistent_volume_source().has_csi()) {
    return Wrong("cannot find CSI PersistentVolumeSource for volume " + volume.metadata().name());
  }
  const std::string& driver = volume.spec().persistent_volume_source().csi().driver();
  if (driver != snapshot_class.driver) {
    return Wrong(fmt::format("the snapshot class {} is of driver {}, the volume {} of driver {}",
                             snapshot_class.meta.name(), snapshot_class.driver, volume.metadata().name(),
                             driver));
  }
  return {};
}

Result<SnapshotContent> PlanContent(const Snapshot& snapshot, const SnapshotClass& snapshot_class,
                                    const Volume& volume, const std::string& node) {
  SnapshotContent out;
  out.meta.set_name(ContentNameOf(snapshot));
  // It has to be there before the driver is asked for anything.
  out.meta.add_finalizers(kContentFinalizer);
  out.driver = snapshot_class.driver;
  out.deletion_policy = snapshot_class.deletion_policy;
  out.class_name = snapshot_class.meta.name();
  out.volume_handle = volume.spec().persistent_volume_source().csi().volume_handle();
  out.source_volume_mode = volume.spec().volume_mode();
  out.snapshot_ns = snapshot.meta.namespace_();
  out.snapshot_name = snapshot.meta.name();
  out.snapshot_uid = snapshot.meta.uid();
  if (!node.empty()) (*out.meta.mutable_labels())[kManagedByNode] = node;
  KEELSON_ASSIGN_OR_RETURN(
      const auto secret,
      ResolveSnapshotSecret(SnapshotSecretUse::kSnapshotter, snapshot_class.parameters,
                            {out.meta.name(), snapshot.meta.namespace_(), snapshot.meta.name()}));
  if (secret) {
    (*out.meta.mutable_annotations())[kSnapshotSecretName] = secret->name();
    (*out.meta.mutable_annotations())[kSnapshotSecretNamespace] = secret->namespace_();
  }
  return out;
}

SnapshotStatus StatusBy(const Snapshot& snapshot, const SnapshotContent& content) {
  SnapshotStatus out = snapshot.status.value_or(SnapshotStatus());
  const ContentStatus by = content.status.value_or(ContentStatus());
  if (!out.bound_content) out.bound_content = content.meta.name();
  if (!out.creation_time && by.creation_time) out.creation_time = TimeText(*by.creation_time);
  const bool unsized = !out.restore_size || *out.restore_size == "0";
  if (unsized && by.restore_size && (*by.restore_size > 0 || !out.restore_size)) {
    out.restore_size = api::Amount::FromBytes(*by.restore_size).ToString();
  }
  out.ready = by.ready.value_or(false);
  out.error = by.error;
  return out;
}

ContentStep NextStep(const SnapshotContent& content) {
  const bool kept = HasFinalizer(content.meta, kContentFinalizer);
  // A member of a group belongs to the group's controller, but for its status.
  const bool member = HasAnnotation(content.meta, kGroupHandle) || (content.status && content.status->group);
  if (IsDeletion(content)) {
    if (!kept) return ContentStep::kNothing;
    const bool there = content.status && content.status->handle && !member;
    return there && content.deletion_policy == "Delete" ? ContentStep::kDelete : ContentStep::kRelease;
  }
  if (member || content.volume_handle.has_value() == content.snapshot_handle.has_value()) {
    return ContentStep::kNothing;
  }
  const bool begun = HasAnnotation(content.meta, kBeingCreated);
  if (content.IsReady()) return begun ? ContentStep::kSettle : ContentStep::kNothing;
  // Nothing new begins on what is going.
  if (content.meta.has_deletion_timestamp() && !begun) return ContentStep::kNothing;
  if (content.snapshot_handle) return ContentStep::kCheck;
  return content.snapshot_uid.empty() ? ContentStep::kNothing : ContentStep::kCreate;
}

Result<std::string> NameForDriver(const std::string& prefix, const std::string& uid, int uid_length) {
  if (uid.empty()) return Wrong("Corrupted snapshot object, it is missing UID");
  if (uid_length < 0) return prefix + "-" + uid;
  std::string plain = uid;
  plain.erase(std::remove(plain.begin(), plain.end(), '-'), plain.end());
  return prefix + "-" + plain.substr(0, static_cast<size_t>(uid_length));
}

ContentStatus StatusBy(const SnapshotContent& content, const TakenSnapshot& taken, WallTime now) {
  ContentStatus out = content.status.value_or(ContentStatus());
  if (!out.handle) out.handle = taken.handle;
  if (!out.creation_time) out.creation_time = taken.creation_time.value_or(Nanoseconds(now));
  if (!out.restore_size && taken.bytes > 0) out.restore_size = taken.bytes;
  out.ready = taken.ready;
  out.error = std::nullopt;
  return out;
}

ContentStatus StatusBy(const SnapshotContent& content, const std::string& error, WallTime now) {
  ContentStatus out = content.status.value_or(ContentStatus());
  out.ready = false;
  // The same words again are no news.
  if (!out.error || out.error->message != error) {
    out.error = SnapshotError{api::FormatTime(api::ToTime(now)), error};
  }
  return out;
}

std::chrono::nanoseconds PollDelay(const SnapshotContent& content, WallTime now,
                                   std::chrono::milliseconds least, std::chrono::milliseconds most) {
  const auto age = now - api::FromTime(content.meta.creation_timestamp());
  const auto part = std::chrono::duration_cast<std::chrono::milliseconds>(age) / 4;
  return std::clamp(part, least, most);
}

}  // namespace keelson::csi::controller

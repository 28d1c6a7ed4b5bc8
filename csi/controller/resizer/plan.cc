#include "csi/controller/resizer/plan.h"

#include <algorithm>
#include <set>

namespace keelson::csi::controller {
namespace {

constexpr char kStorage[] = "storage";
constexpr char kFileSystemResizePending[] = "FileSystemResizePending";
const std::set<std::string> kResizeConditions{"Resizing", kFileSystemResizePending, "ControllerResizeError",
                                              "NodeResizeError"};

}  // namespace

api::Amount StorageOf(const google::protobuf::Map<std::string, Quantity>& amounts) {
  const auto found = amounts.find(kStorage);
  return found == amounts.end() ? api::Amount() : api::Amount::Of(found->second);
}

bool WantsMore(const Claim& claim) {
  return claim.status().phase() == "Bound" && !claim.spec().volume_name().empty() &&
         StorageOf(claim.spec().resources().requests()) > StorageOf(claim.status().capacity());
}

std::optional<ExpandPlan> PlanExpansion(const Claim& claim, const Volume& volume, bool control_plane,
                                        bool failed) {
  const auto& status = claim.status();
  const api::Amount asked = StorageOf(claim.spec().resources().requests());
  const api::Amount has = StorageOf(volume.spec().capacity());
  const bool has_allocated = status.allocated_resources().count(kStorage) > 0;
  const api::Amount allocated = has_allocated ? StorageOf(status.allocated_resources()) : asked;
  const auto entry = status.allocated_resource_statuses().find(kStorage);
  const std::string state = entry == status.allocated_resource_statuses().end() ? "" : entry->second;
  const bool on_node = state == kNodeResizePending || state == kNodeResizeInProgress;

  api::Amount size = asked;
  if (has < asked) {
    if (state == kNodeResizeInfeasible) {
      size = allocated;
    } else if (on_node) {
      size = allocated;
      if (has >= size) return std::nullopt;
    } else if (state == kControllerResizeInProgress && !failed) {
      size = allocated;
    }
  } else {
    // The volume is large enough: the node has to act, or what the controller did is not recorded yet.
    if (on_node) return std::nullopt;
    if (state == kNodeResizeInfeasible) {
      if (control_plane) size = allocated;
    } else if (!state.empty() || has_allocated) {
      size = allocated;
    } else {
      const auto& conditions = status.conditions();
      const bool pending = std::any_of(conditions.begin(), conditions.end(), [](const auto& condition) {
        return condition.type() == kFileSystemResizePending && condition.status() == "True";
      });
      if (pending) return std::nullopt;
    }
  }
  return ExpandPlan{size, !has_allocated || allocated != size};
}

void SetResizeCondition(corev1::PersistentVolumeClaimStatus& status, const std::string& condition,
                        const std::string& message, const metav1::Time& now) {
  google::protobuf::RepeatedPtrField<corev1::PersistentVolumeClaimCondition> kept;
  bool present = false;
  for (const auto& one : status.conditions()) {
    const bool same = one.type() == condition && one.status() == "True" && one.message() == message;
    if (kResizeConditions.count(one.type()) > 0 && !same) continue;
    present |= same;
    *kept.Add() = one;
  }
  if (!condition.empty() && !present) {
    auto& added = *kept.Add();
    added.set_type(condition);
    added.set_status("True");
    if (!message.empty()) added.set_message(message);
    *added.mutable_last_transition_time() = now;
  }
  status.mutable_conditions()->Swap(&kept);
}

void MarkInProgress(corev1::PersistentVolumeClaimStatus& status, const ExpandPlan& plan,
                    const metav1::Time& now) {
  SetResizeCondition(status, "Resizing", "", now);
  if (!plan.new_size) return;
  (*status.mutable_allocated_resource_statuses())[kStorage] = kControllerResizeInProgress;
  (*status.mutable_allocated_resources())[kStorage] = plan.size.ToQuantity();
}

void MarkFailed(corev1::PersistentVolumeClaimStatus& status, bool infeasible, const std::string& message,
                const metav1::Time& now) {
  SetResizeCondition(status, "ControllerResizeError", "failed to expand pvc with " + message, now);
  if (infeasible) (*status.mutable_allocated_resource_statuses())[kStorage] = kControllerResizeInfeasible;
}

void MarkNodePending(corev1::PersistentVolumeClaimStatus& status, const metav1::Time& now) {
  SetResizeCondition(status, kFileSystemResizePending,
                     "Waiting for user to (re-)start a pod to finish file system resize of volume on node.",
                     now);
  (*status.mutable_allocated_resource_statuses())[kStorage] = kNodeResizePending;
}

void MarkFinished(corev1::PersistentVolumeClaimStatus& status, const api::Amount& size,
                  const metav1::Time& now) {
  SetResizeCondition(status, "", "", now);
  (*status.mutable_capacity())[kStorage] = size.ToQuantity();
  status.mutable_allocated_resource_statuses()->erase(kStorage);
}

}  // namespace keelson::csi::controller

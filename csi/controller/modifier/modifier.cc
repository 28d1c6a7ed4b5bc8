#include "csi/controller/modifier/modifier.h"

#include <fmt/format.h>

#include "lib/api/meta.h"

namespace keelson::csi::controller {
namespace {

constexpr char kPending[] = "Pending", kInProgress[] = "InProgress", kInfeasible[] = "Infeasible";
constexpr char kModifying[] = "ModifyingVolume", kModifyError[] = "ModifyVolumeError";

// Sets one of the two conditions; the other one goes. An empty type: both go.
void SetCondition(corev1::PersistentVolumeClaimStatus& status, const std::string& type,
                  const std::string& message, const metav1::Time& now) {
  google::protobuf::RepeatedPtrField<corev1::PersistentVolumeClaimCondition> kept;
  bool present = false;
  for (const auto& one : status.conditions()) {
    const bool same = one.type() == type && one.status() == "True" && one.message() == message;
    if ((one.type() == kModifying || one.type() == kModifyError) && !same) continue;
    present |= same;
    *kept.Add() = one;
  }
  if (!type.empty() && !present) {
    auto& added = *kept.Add();
    added.set_type(type);
    added.set_status("True");
    added.set_message(message);
    *added.mutable_last_transition_time() = now;
  }
  status.mutable_conditions()->Swap(&kept);
}

}  // namespace

Modifier::Modifier(const Environment& environment)
    : Controller("modifications", environment),
      claims_(environment.informers.Get<Claim>()),
      volumes_(environment.informers.Get<Volume>()) {
  claims_.AddHandler([this](const client::Change<Claim>& change) {
    if (!change.new_object || Wants(*change.new_object)) queue().Add(change.key);
  });
}

bool Modifier::Wants(const Claim& claim) const {
  if (claim.status().phase() != "Bound" || claim.spec().volume_name().empty()) return false;
  return claim.spec().volume_attributes_class_name() !=
             claim.status().current_volume_attributes_class_name() ||
         claim.status().has_modify_volume_status();
}

std::string Modifier::NextTarget(const Claim& claim) {
  const auto& status = claim.status();
  MutexLock lock(mutex_);
  if (status.modify_volume_status().status() == kInProgress && settled_.count(api::KeyOf(claim)) == 0) {
    return status.modify_volume_status().target_volume_attributes_class_name();
  }
  const std::string& wanted = claim.spec().volume_attributes_class_name();
  return wanted == status.current_volume_attributes_class_name() ? "" : wanted;
}

Result<Requeue> Modifier::Reconcile(const std::string& key, std::stop_token stop) {
  const auto claim = claims_.Get(key);
  if (!claim) {
    MutexLock lock(mutex_);
    settled_.erase(key);
    delays_.erase(key);
    return Requeue{};
  }
  if (!Wants(*claim)) return Requeue{};
  const auto volume = volumes_.Get(claim->spec().volume_name());
  if (!volume || volume->spec().persistent_volume_source().csi().driver() != driver().name() ||
      volume->spec().claim_ref().uid() != claim->metadata().uid()) {
    return Requeue{};
  }
  KEELSON_ASSIGN_OR_RETURN(const auto info, driver().Info(stop));
  if (!info->Can(Capability::MODIFY_VOLUME)) return Requeue{};
  if (!environment().node.empty() && !IsReachable(*volume, info->node_topology)) return Requeue{};

  // The cache may not know yet how the last call has ended, and the driver would be called once more.
  Result<Claim> read = Api(stop).Get<Claim>(claim->metadata().namespace_(), claim->metadata().name());
  if (!read && read.error().Is(Code::kNotFound)) return Requeue{};
  KEELSON_ASSIGN_OR_RETURN(const Claim live, std::move(read));
  if (live.metadata().uid() != claim->metadata().uid() || !Wants(live)) return Requeue{};

  const std::string target = NextTarget(live);
  if (target.empty()) {
    // The owner has taken the wish back, after the driver has refused it.
    if (live.status().modify_volume_status().status() == kInProgress) {
      MutexLock lock(mutex_);
      settled_.erase(key);
    }
    KEELSON_RETURN_IF_ERROR(ChangeStatus(
        live,
        [&](corev1::PersistentVolumeClaimStatus& status) {
          status.clear_modify_volume_status();
          SetCondition(status, "", "", {});
        },
        stop));
    return Requeue{};
  }
  {
    MutexLock lock(mutex_);
    const auto delay = delays_.find(key);
    if (delay != delays_.end() && delay->second.name == target) {
      const auto wait = delay->second.until - environment().clock.SteadyNow();
      if (wait.count() > 0) return Requeue{wait};
    }
  }
  KEELSON_ASSIGN_OR_RETURN(const auto attributes, FindClass(live, target, stop));
  if (!attributes) return Error(Code::kNotFound, "VAC " + target + " does not exist");

  // On the object that was decided about: a claim that has changed is looked at anew.
  Claim marked = live;
  auto& modify = *marked.mutable_status()->mutable_modify_volume_status();
  if (modify.status() != kInProgress || modify.target_volume_attributes_class_name() != target) {
    modify.set_status(kInProgress);
    modify.set_target_volume_attributes_class_name(target);
    SetCondition(*marked.mutable_status(), kModifying, "ModifyVolume operation in progress.",
                 api::ToTime(environment().clock.Now()));
    KEELSON_ASSIGN_OR_RETURN(marked, Api(stop).UpdateStatus(marked));
    environment().events.Record(
        marked, "Normal", "VolumeModify",
        fmt::format("external resizer is modifying volume {} with vac {}", marked.metadata().name(), target));
  }
  {
    MutexLock lock(mutex_);
    settled_.erase(key);
  }
  v1::ControllerModifyVolumeRequest request;
  request.set_volume_id(volume->spec().persistent_volume_source().csi().volume_handle());
  *request.mutable_mutable_parameters() = attributes->parameters();
  const Result<> modified = driver().Modify(request, stop);
  if (!modified) return Fail(marked, target, modified.error(), stop);
  KEELSON_RETURN_IF_ERROR(Finish(marked, *volume, target, stop));
  return Requeue{};
}

Result<std::optional<storagev1::VolumeAttributesClass>> Modifier::FindClass(const Claim& claim,
                                                                            const std::string& name,
                                                                            std::stop_token stop) {
  Result<AttributesClass> found = Api(stop).Get<AttributesClass>("", name);
  if (found && found->driver_name() == driver().name()) return std::optional(*std::move(found));
  if (!found && !found.error().Is(Code::kNotFound)) return found.error();
  const std::string message = found ? fmt::format("VAC {} is for driver {}", name, found->driver_name())
                                    : fmt::format("VAC {} does not exist.", name);
  environment().events.Record(claim, "Warning", "VolumeModifyFailed", message);
  if (claim.status().modify_volume_status().status() != kInProgress) {
    KEELSON_RETURN_IF_ERROR(ChangeStatus(
        claim,
        [&](corev1::PersistentVolumeClaimStatus& status) {
          status.mutable_modify_volume_status()->set_status(kPending);
          status.mutable_modify_volume_status()->set_target_volume_attributes_class_name(name);
        },
        stop));
  }
  return std::optional<AttributesClass>();
}

Result<> Modifier::Finish(const Claim& claim, const Volume& volume, const std::string& name,
                          std::stop_token stop) {
  // The volume first: the claim's status says that all is done.
  auto stored = client::UpdateWithRetry<Volume>(Api(stop), "", volume.metadata().name(), "",
                                                [&](Volume& live) -> Result<bool> {
                                                  if (live.metadata().uid() != volume.metadata().uid()) {
                                                    return Error(Code::kConflict, "the volume was replaced");
                                                  }
                                                  if (live.spec().volume_attributes_class_name() == name) {
                                                    return false;
                                                  }
                                                  live.mutable_spec()->set_volume_attributes_class_name(name);
                                                  return true;
                                                });
  if (!stored) return stored.error().Wrap("update the volume");
  KEELSON_RETURN_IF_ERROR(ChangeStatus(
      claim,
      [&](corev1::PersistentVolumeClaimStatus& status) {
        status.set_current_volume_attributes_class_name(name);
        status.clear_modify_volume_status();
        SetCondition(status, "", "", {});
      },
      stop));
  {
    MutexLock lock(mutex_);
    delays_.erase(api::KeyOf(claim));
  }
  environment().events.Record(claim, "Normal", "VolumeModifySuccessful",
                              fmt::format("external resizer modified volume {} with vac {} successfully",
                                          claim.metadata().name(), name));
  return {};
}

Result<Requeue> Modifier::Fail(const Claim& claim, const std::string& name, const Error& error,
                               std::stop_token stop) {
  if (stop.stop_requested()) return error;
  const std::string key = api::KeyOf(claim);
  const bool infeasible = error.Is(Code::kBadRequest);
  const auto delay = environment().retry.backoff.max;
  environment().events.Record(claim, "Warning", "VolumeModifyFailed", error.message());
  KEELSON_RETURN_IF_ERROR(ChangeStatus(
      claim,
      [&](corev1::PersistentVolumeClaimStatus& status) {
        if (infeasible) status.mutable_modify_volume_status()->set_status(kInfeasible);
        SetCondition(status, kModifyError,
                     "ModifyVolume failed with error: " + error.message() + ". Waiting for retry.",
                     api::ToTime(environment().clock.Now()));
      },
      stop));
  MutexLock lock(mutex_);
  if (IsFinal(error)) settled_.insert(key);
  if (!infeasible) return error;
  delays_[key] = {name, environment().clock.SteadyNow() + delay};
  return Requeue{delay};
}

Result<> Modifier::ChangeStatus(const Claim& claim, const Change& change, std::stop_token stop) {
  auto changed =
      client::UpdateWithRetry<Claim>(Api(stop), claim.metadata().namespace_(), claim.metadata().name(),
                                     "status", [&](Claim& live) -> Result<bool> {
                                       if (live.metadata().uid() != claim.metadata().uid()) return false;
                                       change(*live.mutable_status());
                                       return true;
                                     });
  if (changed || changed.error().Is(Code::kNotFound)) return {};
  return changed.error();
}

}  // namespace keelson::csi::controller

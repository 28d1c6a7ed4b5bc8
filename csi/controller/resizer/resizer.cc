#include "csi/controller/resizer/resizer.h"

#include <fmt/format.h>

#include "csi/controller/model/capability.h"
#include "lib/api/meta.h"

namespace keelson::csi::controller {
namespace {

// What the claim had before: the binder goes by it as long as the node has not acted.
constexpr char kPreResizeCapacity[] = "volume.alpha.kubernetes.io/pre-resize-capacity";

bool HasOldCapacity(const Volume& volume) {
  return volume.metadata().annotations().count(kPreResizeCapacity) > 0;
}

bool IsInfeasible(const Error& error) {
  return error.Is(Code::kBadRequest) || error.Is(Code::kGone) || error.Is(Code::kNotFound);
}

}  // namespace

Resizer::Resizer(const Environment& environment)
    : Controller("expansions", environment),
      claims_(environment.informers.Get<Claim>()),
      volumes_(environment.informers.Get<Volume>()) {
  claims_.AddHandler([this](const client::Change<Claim>& change) {
    // A claim that wants no more may have left a mark on its volume.
    const bool wanted = change.new_object && WantsMore(*change.new_object);
    if (wanted || !change.old_object || WantsMore(*change.old_object)) queue().Add(change.key);
  });
  volumes_.AddHandler([this](const client::Change<Volume>& change) {
    // The mark may show after the claim's last change.
    if (!change.new_object || !HasOldCapacity(*change.new_object)) return;
    if (!change.old_object || !HasOldCapacity(*change.old_object)) {
      const auto& claim = change.new_object->spec().claim_ref();
      queue().Add(api::KeyOf(claim.namespace_(), claim.name()));
    }
  });
}

bool Resizer::Ours(const Claim& claim, const Volume& volume, const DriverInfo& info) const {
  const auto& source = volume.spec().persistent_volume_source();
  if (!source.has_csi() || source.csi().driver() != info.name) return false;
  if (volume.spec().claim_ref().uid() != claim.metadata().uid()) return false;
  return environment().node.empty() || IsReachable(volume, info.node_topology);
}

Result<Requeue> Resizer::Reconcile(const std::string& key, std::stop_token stop) {
  const auto claim = claims_.Get(key);
  if (!claim || claim->spec().volume_name().empty()) {
    MutexLock lock(mutex_);
    failed_.erase(key);
    offline_.erase(key);
    delays_.erase(key);
    return Requeue{};
  }
  const auto volume = volumes_.Get(claim->spec().volume_name());
  if (!volume || volume->spec().persistent_volume_source().csi().driver() != driver().name()) {
    return Requeue{};
  }
  if (!WantsMore(*claim)) {
    KEELSON_RETURN_IF_ERROR(DropOldCapacity(*volume, stop));
    return Requeue{};
  }
  KEELSON_ASSIGN_OR_RETURN(const auto info, driver().Info(stop));
  // The claim's status is written after the volume, so it may be known while the cache of volumes is behind: the driver would
  // be called once more.
  KEELSON_ASSIGN_OR_RETURN(const std::optional<Volume> live, Live(*volume, stop));
  if (!live || !Ours(*claim, *live, *info)) return Requeue{};
  const bool control_plane = info->Can(Capability::EXPAND_VOLUME);
  if (!control_plane && !info->node_expand) return Requeue{};

  bool failed = false, offline = false;
  std::chrono::nanoseconds wait{0};
  {
    MutexLock lock(mutex_);
    failed = failed_.count(key) > 0;
    offline = offline_.count(key) > 0;
    if (const auto delay = delays_.find(key); delay != delays_.end()) {
      wait = delay->second - environment().clock.SteadyNow();
    }
  }
  const std::optional<ExpandPlan> plan = PlanExpansion(*claim, *live, control_plane, failed);
  if (!plan) return Requeue{};
  if (!plan->new_size && wait.count() > 0) return Requeue{wait};

  // On the object that the plan was made for: a claim that has changed is planned anew.
  Claim marked = *claim;
  MarkInProgress(*marked.mutable_status(), *plan, api::ToTime(environment().clock.Now()));
  KEELSON_ASSIGN_OR_RETURN(marked, Api(stop).UpdateStatus(marked));
  if (offline) {
    KEELSON_ASSIGN_OR_RETURN(const bool used, InUse(marked, stop));
    if (used) {
      const std::string message = fmt::format(
          "Unable to expand {} because CSI driver {} only supports offline expansion and volume is currently "
          "in-use",
          key, info->name);
      environment().events.Record(marked, "Warning", "VolumeResizeFailed", message);
      return Error(Code::kUnavailable, message);
    }
  }
  environment().events.Record(marked, "Normal", "Resizing",
                              "External resizer is resizing volume " + live->metadata().name());
  Result<Expanded> expanded = control_plane ? Expand(*live, plan->size, *info, stop)
                                            : Result<Expanded>(Expanded{plan->size, true, true});
  if (!expanded) return Fail(marked, *live, expanded.error(), stop);
  {
    MutexLock lock(mutex_);
    failed_.erase(key);
    offline_.erase(key);
    delays_.erase(key);
  }
  KEELSON_RETURN_IF_ERROR(Record(marked, *live, *expanded, stop));
  return Requeue{};
}

Result<std::optional<Volume>> Resizer::Live(const Volume& known, std::stop_token stop) {
  Result<Volume> read = Api(stop).Get<Volume>("", known.metadata().name());
  if (!read && read.error().Is(Code::kNotFound)) return std::optional<Volume>();
  if (!read) return read.error();
  if (read->metadata().uid() != known.metadata().uid()) return std::optional<Volume>();
  return std::optional<Volume>(*std::move(read));
}

Result<Resizer::Expanded> Resizer::Expand(const Volume& volume, const api::Amount& size,
                                          const DriverInfo& info, std::stop_token stop) {
  const auto& source = volume.spec().persistent_volume_source().csi();
  v1::ControllerExpandVolumeRequest request;
  request.set_volume_id(source.volume_handle());
  request.mutable_capacity_range()->set_required_bytes(size.Value());
  KEELSON_ASSIGN_OR_RETURN(*request.mutable_volume_capability(),
                           VolumeCapability(volume, info.Can(Capability::SINGLE_NODE_MULTI_WRITER)));
  if (source.has_controller_expand_secret_ref()) {
    Result<Strings> secrets = ReadSecret(Api(stop), source.controller_expand_secret_ref());
    // Nothing has been asked of the driver, so nothing is final.
    if (!secrets) return Error(Code::kUnavailable, secrets.error().message());
    *request.mutable_secrets() = *std::move(secrets);
  }
  KEELSON_ASSIGN_OR_RETURN(const auto reply, driver().Expand(request, stop));
  if (reply.capacity_bytes() < size.Value()) {
    return Error(Code::kInternal,
                 fmt::format("the driver has expanded the volume to {} bytes, less than the {} asked for",
                             reply.capacity_bytes(), size.Value()));
  }
  return Expanded{api::Amount::FromBytes(reply.capacity_bytes()), reply.node_expansion_required()};
}

Result<> Resizer::ChangeStatus(const Claim& claim, const Change& change, std::stop_token stop) {
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

Result<> Resizer::Record(const Claim& claim, const Volume& volume, const Expanded& expanded,
                         std::stop_token stop) {
  const api::Amount before = StorageOf(claim.status().capacity());
  auto stored = client::UpdateWithRetry<Volume>(
      Api(stop), "", volume.metadata().name(), "", [&](Volume& live) -> Result<bool> {
        if (live.metadata().uid() != volume.metadata().uid()) {
          return Error(Code::kConflict, "the volume was replaced");
        }
        const api::Amount has = StorageOf(live.spec().capacity());
        // The new size may be smaller: the node could not give the last one.
        const bool change = expanded.node_only ? has != expanded.size : has < expanded.size;
        auto& annotations = *live.mutable_metadata()->mutable_annotations();
        const bool note = expanded.node && annotations.count(kPreResizeCapacity) == 0;
        if (change) (*live.mutable_spec()->mutable_capacity())["storage"] = expanded.size.ToQuantity();
        if (note) annotations[kPreResizeCapacity] = before.ToString();
        return change || note;
      });
  if (!stored) {
    return stored.error().Wrap(fmt::format("error updating pv \"{}\" by resizer", volume.metadata().name()));
  }
  const metav1::Time now = api::ToTime(environment().clock.Now());
  KEELSON_RETURN_IF_ERROR(ChangeStatus(
      claim,
      [&](corev1::PersistentVolumeClaimStatus& status) {
        expanded.node ? MarkNodePending(status, now) : MarkFinished(status, expanded.size, now);
      },
      stop));
  if (expanded.node) {
    environment().events.Record(claim, "Normal", "FileSystemResizeRequired",
                                "Require file system resize of volume on node");
  } else {
    environment().events.Record(claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded");
  }
  return {};
}

Result<Requeue> Resizer::Fail(const Claim& claim, const Volume& volume, const Error& error,
                              std::stop_token stop) {
  if (stop.stop_requested()) return error;
  const std::string key = api::KeyOf(claim);
  const bool final = IsFinal(error), infeasible = final && IsInfeasible(error);
  const auto delay = environment().retry.backoff.max;
  {
    MutexLock lock(mutex_);
    final ? (void)failed_.insert(key) : (void)failed_.erase(key);
    if (error.Is(Code::kInvalid)) offline_.insert(key);
    if (infeasible) {
      delays_[key] = environment().clock.SteadyNow() + delay;
    } else {
      delays_.erase(key);
    }
  }
  const Error told = error.Wrap(fmt::format("resize volume \"{}\" by resizer \"{}\" failed",
                                            volume.metadata().name(), driver().name()));
  environment().events.Record(claim, "Warning", "VolumeResizeFailed", told.message());
  if (final) {
    KEELSON_RETURN_IF_ERROR(ChangeStatus(
        claim,
        [&](corev1::PersistentVolumeClaimStatus& status) {
          MarkFailed(status, infeasible, error.message(), api::ToTime(environment().clock.Now()));
        },
        stop));
  }
  return infeasible ? Result<Requeue>(Requeue{delay}) : Result<Requeue>(told);
}

Result<bool> Resizer::InUse(const Claim& claim, std::stop_token stop) {
  // Rare enough to be asked live: only of claims whose driver has refused once.
  KEELSON_ASSIGN_OR_RETURN(const std::vector<corev1::Pod> pods,
                           Api(stop).List<corev1::Pod>(claim.metadata().namespace_()));
  for (const corev1::Pod& pod : pods) {
    if (pod.status().phase() == "Succeeded" || pod.status().phase() == "Failed") continue;
    for (const auto& volume : pod.spec().volumes()) {
      const auto& source = volume.volume_source();
      const std::string name = source.has_ephemeral() ? pod.metadata().name() + "-" + volume.name()
                                                      : source.persistent_volume_claim().claim_name();
      if (name == claim.metadata().name()) return true;
    }
  }
  return false;
}

Result<> Resizer::DropOldCapacity(const Volume& volume, std::stop_token stop) {
  if (!HasOldCapacity(volume)) return {};
  auto changed = client::UpdateWithRetry<Volume>(
      Api(stop), "", volume.metadata().name(), "", [&](Volume& live) -> Result<bool> {
        return live.metadata().uid() == volume.metadata().uid() &&
               live.mutable_metadata()->mutable_annotations()->erase(kPreResizeCapacity) > 0;
      });
  if (changed || changed.error().Is(Code::kNotFound)) return {};
  return changed.error();
}

}  // namespace keelson::csi::controller

#include "kubelet/volume/expansion/expansion.h"

#include <algorithm>

#include "kubelet/volume/claim.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"

namespace keelson::kubelet {

namespace {

using Claim = corev1::PersistentVolumeClaim;

constexpr char kStorage[] = "storage";
constexpr char kPending[] = "NodeResizePending", kInProgress[] = "NodeResizeInProgress",
               kInfeasible[] = "NodeResizeInfeasible", kErrorCondition[] = "NodeResizeError";

api::Amount Storage(const google::protobuf::Map<std::string, Quantity>& amounts) {
  const auto it = amounts.find(kStorage);
  return it == amounts.end() ? api::Amount() : api::Amount::Of(it->second);
}

std::string StateOf(const Claim& claim) {
  const auto& states = claim.status().allocated_resource_statuses();
  const auto it = states.find(kStorage);
  return it == states.end() ? "" : it->second;
}

void SetState(Claim& claim, const char* state) {
  (*claim.mutable_status()->mutable_allocated_resource_statuses())[kStorage] = state;
}

// The API server's refusal: its codes have other meanings than a driver's.
Error NotStored(const Error& error) {
  const bool kept = error.Is(Code::kConflict) || error.Is(Code::kCancelled);
  return kept ? error : Error(Code::kUnavailable, error.message());
}

bool MayBeUnderWay(const Error& error) {
  for (const Code code :
       {Code::kTimeout, Code::kUnavailable, Code::kTooManyRequests, Code::kConflict, Code::kCancelled}) {
    if (error.Is(code)) return true;
  }
  return false;
}

bool CannotBe(const Error& error) {
  return error.Is(Code::kBadRequest) || error.Is(Code::kGone) || error.Is(Code::kNotFound);
}

bool IsOfResizing(const std::string& condition) {
  return condition == "Resizing" || condition == "FileSystemResizePending" ||
         condition == "ControllerResizeError" || condition == kErrorCondition;
}

Claim Finished(Claim claim, const api::Amount& capacity) {
  auto& status = *claim.mutable_status();
  (*status.mutable_capacity())[kStorage] = capacity.ToQuantity();
  status.mutable_allocated_resource_statuses()->erase(kStorage);
  auto& conditions = *status.mutable_conditions();
  for (int i = conditions.size() - 1; i >= 0; --i) {
    if (IsOfResizing(conditions[i].type())) conditions.DeleteSubrange(i, 1);
  }
  return claim;
}

}  // namespace

Growth PlanGrowth(const Claim& claim, const api::Amount& capacity, const api::Amount& known) {
  if (capacity <= known) return Growth::kNone;
  const std::string state = StateOf(claim);
  const bool shown = Storage(claim.status().capacity()) >= capacity;
  if (state.empty()) {
    if (shown) return Growth::kVolume;
    const bool knows_states = claim.status().allocated_resources().contains(kStorage);
    return knows_states ? Growth::kNone : Growth::kVolumeAndClaim;
  }
  return state == kPending || state == kInProgress ? Growth::kVolumeAndClaim : Growth::kNone;
}

Growth VolumeExpander::Begin(const VolumeInput& input, const api::Amount& capacity) {
  MutexLock lock(mutex_);
  const auto [it, fresh] = volumes_.try_emplace(input.name());
  Volume& volume = it->second;
  if (fresh) volume.size = Storage(input.claim->status().capacity());
  const std::string& uid = input.pod.metadata().uid();
  volume.pods.insert(uid);
  volume.retries.erase(uid);
  const Growth growth = PlanGrowth(*input.claim, capacity, volume.size);
  if (growth == Growth::kNone || volume.busy || volume.only_offline) return Growth::kNone;
  volume.busy = true;
  return growth;
}

void VolumeExpander::End(const VolumeInput& input, const std::optional<api::Amount>& size,
                         const Result<>& done) {
  MutexLock lock(mutex_);
  Volume& volume = volumes_[input.name()];
  volume.busy = false;
  if (done) {
    if (size) volume.size = *size;
    volume.failed = false;
    volume.told.clear();
  } else if (done.error().Is(Code::kInvalid)) {
    volume.only_offline = true;
  }
}

Result<> VolumeExpander::Expand(VolumePlugin& plugin, const VolumeInput& input, const std::string& path,
                                bool mounted, std::stop_token stop) {
  if (!input.claim || input.read_only) return {};
  const api::Amount capacity = Storage(input.persistent->spec().capacity());
  const Growth growth = Begin(input, capacity);
  if (growth == Growth::kNone) return {};
  const bool expands = plugin.Expands(input);
  Result<> done = expands ? Grow(plugin, input, path, growth, capacity, std::move(stop)) : Result<>();
  End(input, expands ? std::optional(capacity) : std::nullopt, done);
  // A volume that cannot grow now is still one to use.
  if (done || done.error().Is(Code::kInvalid)) return {};
  if (!mounted || done.error().Is(Code::kCancelled)) return done;
  {
    MutexLock lock(mutex_);
    Volume& volume = volumes_[input.name()];
    volume.retries.insert(input.pod.metadata().uid());
    // A claim that has changed meanwhile is no news.
    if (done.error().Is(Code::kConflict) || volume.told == done.error().message()) return {};
    volume.told = done.error().message();
  }
  const Error told =
      done.error().Wrap("NodeExpandVolume.NodeExpandVolume failed for volume \"" + input.name() + "\" ");
  if (tell_) tell_(input.pod, *input.claim, "Warning", "VolumeResizeFailed", told.message());
  return {};
}

Result<> VolumeExpander::Grow(VolumePlugin& plugin, const VolumeInput& input, const std::string& path,
                              Growth growth, const api::Amount& capacity, std::stop_token stop) {
  Claim claim = *input.claim;
  const bool has_state = !StateOf(claim).empty();
  if (has_state && StateOf(claim) != kInProgress) {
    SetState(claim, kInProgress);
    auto marked = objects_.UpdateClaimStatus(claim);
    if (!marked) return NotStored(marked.error());
    claim = *std::move(marked);
  }
  if (auto grown = plugin.Expand(input, path, std::move(stop)); !grown) {
    if (has_state) MarkFailed(input, std::move(claim), grown.error());
    return grown;
  }
  if (tell_) {
    tell_(
        input.pod, claim, "Normal", "FileSystemResizeSuccessful",
        "MountVolume.NodeExpandVolume succeeded for volume \"" + input.name() + "\" " + input.node.node_name);
  }
  if (growth == Growth::kVolume) return {};
  // A failure here calls the driver once more, which changes nothing then.
  auto stored = objects_.UpdateClaimStatus(Finished(std::move(claim), capacity));
  return stored ? Result<>() : Result<>(NotStored(stored.error()));
}

void VolumeExpander::MarkFailed(const VolumeInput& input, Claim claim, const Error& error) {
  if (MayBeUnderWay(error)) return;
  // The claim may ask for another size by now: then the resizer has to decide.
  const bool other =
      Storage(claim.spec().resources().requests()) != Storage(input.persistent->spec().capacity());
  bool infeasible = CannotBe(error);
  {
    MutexLock lock(mutex_);
    Volume& volume = volumes_[input.name()];
    infeasible = infeasible || (volume.failed && other);
    volume.failed = true;
  }
  if (infeasible) SetState(claim, kInfeasible);
  auto& conditions = *claim.mutable_status()->mutable_conditions();
  const bool known = std::any_of(conditions.begin(), conditions.end(), [](const auto& condition) {
    return condition.type() == kErrorCondition && condition.status() == "True";
  });
  if (known && !infeasible) return;
  if (!known) {
    auto& added = *conditions.Add();
    added.set_type(kErrorCondition);
    added.set_status("True");
    added.set_message("failed to expand pvc with " + error.message());
    *added.mutable_last_transition_time() = api::ToTime(clock_.Now());
  }
  if (auto stored = objects_.UpdateClaimStatus(claim); !stored) {
    log::Warn("Cannot mark a claim whose volume could not grow",
              {{"claim", api::KeyOf(claim)}, {"err", stored.error()}});
  }
}

bool VolumeExpander::RetriesFor(const std::string& uid) const {
  MutexLock lock(mutex_);
  return std::any_of(volumes_.begin(), volumes_.end(),
                     [&](const auto& entry) { return entry.second.retries.contains(uid); });
}

void VolumeExpander::Forget(const std::string& uid) {
  MutexLock lock(mutex_);
  for (auto it = volumes_.begin(); it != volumes_.end();) {
    it->second.pods.erase(uid);
    it->second.retries.erase(uid);
    it = it->second.pods.empty() && !it->second.busy ? volumes_.erase(it) : std::next(it);
  }
}

}  // namespace keelson::kubelet

#include "csi/controller/provisioner/provisioner.h"

#include <fmt/format.h>

#include "csi/controller/model/names.h"
#include "csi/controller/provisioner/provision_metrics.h"
#include "lib/base/json_quote.h"
#include "lib/base/log.h"

namespace keelson::csi::controller {
namespace {

std::unique_ptr<TopologyNodes> NodesOf(const Environment& environment) {
  const auto info = environment.driver.Info({});
  if (!info || !(*info)->topology) return nullptr;
  return std::make_unique<TopologyNodes>(environment.informers, (*info)->name, environment.node);
}

std::string Annotation(const Claim& claim, const char* key) {
  const auto found = claim.metadata().annotations().find(key);
  return found == claim.metadata().annotations().end() ? "" : found->second;
}

bool IsLate(const storagev1::StorageClass& storage_class) {
  return storage_class.volume_binding_mode() == "WaitForFirstConsumer";
}

}  // namespace

Provisioner::Provisioner(const Environment& environment, ProvisionerOptions options)
    : Controller("claims", environment),
      options_(std::move(options)),
      claims_(environment.informers.Get<Claim>()),
      volumes_(environment.informers.Get<Volume>()),
      classes_(environment.informers.Get<storagev1::StorageClass>()),
      nodes_(NodesOf(environment)) {
  claims_.AddIndex("uid", [](const Claim& claim) { return std::vector{claim.metadata().uid()}; });
  claims_.AddHandler([this](const client::Change<Claim>& change) {
    const std::string& uid = change.object().metadata().uid();
    const bool wanted = change.new_object && Wanted(*change.new_object);
    if (wanted || InProgress(uid)) queue().Add(uid);
  });
}

Provisioner::~Provisioner() = default;

bool Provisioner::Wanted(const Claim& claim) const {
  if (!claim.spec().volume_name().empty()) return false;
  const std::string& name = driver().name();
  if (ProvisionerOf(claim) != name && Annotation(claim, kMigratedTo) != name) return false;
  return environment().node.empty() || Annotation(claim, kSelectedNode) == environment().node;
}

bool Provisioner::InProgress(const std::string& uid) {
  MutexLock lock(mutex_);
  return in_progress_.count(uid) > 0;
}

void Provisioner::SetInProgress(const ClaimPtr& claim, bool in_progress) {
  MutexLock lock(mutex_);
  if (in_progress) {
    in_progress_[claim->metadata().uid()] = claim;
  } else {
    in_progress_.erase(claim->metadata().uid());
  }
}

Provisioner::ClaimPtr Provisioner::Find(const std::string& uid) {
  if (auto found = claims_.ByIndex("uid", uid); !found.empty()) return found.front();
  MutexLock lock(mutex_);
  const auto it = in_progress_.find(uid);
  if (it != in_progress_.end()) return it->second;
  delays_.erase(uid);
  return nullptr;
}

std::chrono::nanoseconds Provisioner::Wait(const Task& task) {
  MutexLock lock(mutex_);
  const auto delay = delays_.find(task.claim->metadata().uid());
  if (delay == delays_.end()) return {};
  const SteadyTime now = environment().clock.SteadyNow();
  if (delay->second.class_uid != task.storage_class->metadata().uid() || delay->second.until <= now) {
    delays_.erase(delay);
    return {};
  }
  return delay->second.until - now;
}

Result<Requeue> Provisioner::Reconcile(const std::string& key, std::stop_token stop) {
  Task task;
  task.claim = Find(key);
  if (!task.claim || !Wanted(*task.claim)) {
    if (task.claim) SetInProgress(task.claim, false);
    return Requeue{};
  }
  const Claim& claim = *task.claim;
  const std::string class_name = ClassOf(claim);
  task.storage_class = classes_.Get(class_name);
  if (!task.storage_class) {
    return Error(Code::kNotFound, "storageClass " + JsonQuoted(class_name) + " not found");
  }
  if (task.storage_class->provisioner() != driver().name()) return Requeue{};
  task.node = Annotation(claim, kSelectedNode);
  // The annotation is gone again when another node has to be found.
  if (IsLate(*task.storage_class) && task.node.empty()) return Requeue{};
  if (const auto wait = Wait(task); wait.count() > 0) return Requeue{wait};
  if (const auto name = VolumeName(
          claim, {.name_prefix = options_.name_prefix, .name_uuid_length = options_.name_uuid_length});
      name && volumes_.Get(*name)) {
    SetInProgress(task.claim, false);  // made before; binding is the binder's task
    return Requeue{};
  }
  Result<std::shared_ptr<const DriverInfo>> info = driver().Info(stop);
  if (!info) return Fail(task, {State::kNoChange, info.error()}, stop);

  environment().events.Record(claim, "Normal", "Provisioning",
                              fmt::format("External provisioner is provisioning volume for claim \"{}/{}\"",
                                          claim.metadata().namespace_(), claim.metadata().name()));
  const SteadyTime begun = environment().clock.SteadyNow();
  const Attempt<Volume> volume = Provision(task, **info, stop);
  if (!volume) return Fail(task, volume.error(), stop);
  // From here on the volume exists. It must not be forgotten when the claim goes away now.
  SetInProgress(task.claim, true);
  if (Result<> stored = Store(claim, *volume, stop); !stored) {
    return Fail(task, {State::kInBackground, stored.error()}, stop);
  }
  SetInProgress(task.claim, false);
  const std::chrono::duration<double> took = environment().clock.SteadyNow() - begun;
  CountProvisioning(claim, true, took.count());
  environment().events.Record(claim, "Normal", "ProvisioningSucceeded",
                              "Successfully provisioned volume " + volume->metadata().name());
  return Requeue{};
}

Result<> Provisioner::Store(const Claim& claim, const Volume& volume, std::stop_token stop) {
  const client::RestClient api = Api(stop);
  const Result<Volume> created = api.Create(volume);
  if (created) return {};
  if (!created.error().Is(Code::kAlreadyExists)) return created.error().Wrap("error saving volume");
  // Perhaps it is ours, and the answer got lost.
  KEELSON_ASSIGN_OR_RETURN(const Volume present, api.Get<Volume>("", volume.metadata().name()));
  if (present.spec().claim_ref().uid() == claim.metadata().uid()) return {};
  return Error(Code::kInvalid, "volume " + volume.metadata().name() + " exists and belongs to another claim");
}

Result<> Provisioner::Reselect(const Claim& claim, const std::string& node, std::stop_token stop) {
  const auto& meta = claim.metadata();
  // Not by another claim of this name, nor when the scheduler has chosen anew.
  auto changed = client::UpdateWithRetry<Claim>(
      Api(stop), meta.namespace_(), meta.name(), "", [&](Claim& live) -> Result<bool> {
        if (live.metadata().uid() != meta.uid() ||
            Annotation(live, kSelectedNode) != Annotation(claim, kSelectedNode)) {
          return false;
        }
        auto& annotations = *live.mutable_metadata()->mutable_annotations();
        if (node.empty()) {
          annotations.erase(kSelectedNode);
        } else {
          annotations[kSelectedNode] = node;
        }
        return true;
      });
  if (changed || changed.error().Is(Code::kNotFound)) return {};
  return changed.error();
}

Result<Requeue> Provisioner::Fail(const Task& task, const Failure& failure, std::stop_token stop) {
  const Claim& claim = *task.claim;
  if (stop.stop_requested()) return Error(Code::kCancelled, "stopped");
  if (failure.state == State::kIgnored) {
    SetInProgress(task.claim, false);
    return Requeue{};
  }
  CountProvisioning(claim, false, 0);
  client::EventRecorder& events = environment().events;
  if (failure.state == State::kInfeasible) {
    const auto delay = environment().retry.backoff.max;
    events.Record(claim, "Warning", "ProvisioningFailed",
                  "Volume provisioning failed with infeasible error. Retries will be delayed. " +
                      failure.error.message());
    SetInProgress(task.claim, false);
    MutexLock lock(mutex_);
    delays_[claim.metadata().uid()] = {task.storage_class->metadata().uid(),
                                       environment().clock.SteadyNow() + delay};
    return Requeue{delay};
  }
  events.Record(claim, "Warning", "ProvisioningFailed",
                fmt::format("failed to provision volume with StorageClass \"{}\": {}", ClassOf(claim),
                            failure.error.message()));
  if (failure.state == State::kInBackground) SetInProgress(task.claim, true);
  if (failure.state == State::kFinished || failure.state == State::kReschedule) {
    SetInProgress(task.claim, false);
  }
  if (failure.state == State::kReschedule && !task.node.empty()) {
    KEELSON_RETURN_IF_ERROR(Reselect(claim, failure.node, stop));
    log::Info("Another node has to be found for a claim",
              {{"claim", claim.metadata().namespace_() + "/" + claim.metadata().name()},
               {"node", task.node},
               {"instead", failure.node}});
    return Requeue{};
  }
  return failure.error;
}

}  // namespace keelson::csi::controller

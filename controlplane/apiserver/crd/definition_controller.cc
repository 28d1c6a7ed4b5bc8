#include "controlplane/apiserver/crd/definition_controller.h"

#include <algorithm>
#include <thread>

#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "controlplane/storage/store.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"

namespace keelson::apiserver {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRetry{1000};
constexpr milliseconds kLookAgain{500};  // for objects that finalizers hold
constexpr int kFinalizers = 2;           // threads
constexpr client::BackoffOptions kDeletionBackoff{kRetry, std::chrono::seconds(30)};

const api::ResourceInfo& Row() {
  static const api::ResourceInfo& row = api::ResourceOf<CustomResourceDefinition>();
  return row;
}

const api::ResourceInfo& StatusRow() {
  static const api::ResourceInfo& row =
      *api::FindResource(Row().group, Row().version, "customresourcedefinitions/status");
  return row;
}

bool HasFinalizer(const CustomResourceDefinition& definition) {
  const auto& finalizers = definition.metadata().finalizers();
  return std::find(finalizers.begin(), finalizers.end(), kCleanupFinalizer) != finalizers.end();
}

}  // namespace

DefinitionController::DefinitionController(registry::Registry& registry, Clock& clock)
    : registry_(registry), clock_(clock), deletions_("crd_finalizer", clock, kDeletionBackoff) {}

void DefinitionController::Put(const storage::ObjectPtr& object) {
  MutexLock lock(mutex_);
  dirty_.insert(object->key());
  changed_.notify_all();
}

void DefinitionController::Remove(const std::string& name) {
  MutexLock lock(mutex_);
  dirty_.insert(name);
  changed_.notify_all();
}

void DefinitionController::Later(const std::string& name, milliseconds delay) {
  MutexLock lock(mutex_);
  later_.emplace(clock_.SteadyNow() + delay, name);
}

DefinitionController::Names DefinitionController::Take(std::stop_token stop) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  });
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    const SteadyTime now = clock_.SteadyNow();
    while (!later_.empty() && later_.begin()->first <= now) {
      dirty_.insert(later_.begin()->second);
      later_.erase(later_.begin());
    }
    if (!dirty_.empty()) break;
    clock_.WaitUntil(mutex_, changed_,
                     later_.empty() ? now + std::chrono::seconds(60) : later_.begin()->first);
  }
  return std::exchange(dirty_, {});
}

std::shared_ptr<const CustomResourceDefinition> DefinitionController::Learn(const std::string& name) {
  const storage::ObjectPtr object = registry_.store().Peek(Row(), name);
  if (!object) {
    if (auto found = known_.find(name); found != known_.end()) {
      const std::string group = found->second.group;
      known_.erase(found);
      registry_.ForgetCustom(name);
      WakeConflicts(group);
    }
    return nullptr;
  }
  auto definition = std::static_pointer_cast<const CustomResourceDefinition>(object->Decode());
  Known& known = known_[name];
  const bool same = api::EncodeRaw(known.accepted) == api::EncodeRaw(definition->status().accepted_names());
  known.group = definition->spec().group();
  known.accepted = definition->status().accepted_names();
  known.conflicts = !apiextensions::IsConditionTrue(*definition, "NamesAccepted");
  if (!same) WakeConflicts(known.group);
  return definition;
}

void DefinitionController::WakeConflicts(const std::string& group) {
  MutexLock lock(mutex_);
  for (const auto& [name, known] : known_) {
    if (known.group == group && known.conflicts) dirty_.insert(name);
  }
}

UsedNames DefinitionController::UsedIn(const std::string& group) const {
  std::vector<CustomResourceDefinition> of_group;
  for (const auto& entry : known_) {
    if (entry.second.group != group) continue;
    *of_group.emplace_back().mutable_status()->mutable_accepted_names() = entry.second.accepted;
  }
  return AcceptedNamesOf(of_group);
}

Result<> DefinitionController::WriteStatus(const CustomResourceDefinition& definition,
                                           const std::function<void(CustomResourceDefinition&)>& change,
                                           std::stop_token stop) {
  const std::string uid = definition.metadata().uid();
  auto written = registry_.Modify(
      StatusRow(), "", definition.metadata().name(),
      [&](api::Message& object) -> Result<> {
        auto& current = static_cast<CustomResourceDefinition&>(object);
        if (current.metadata().uid() != uid) return Error(Code::kNotFound, "another definition");
        change(current);
        return {};
      },
      BootstrapWrite(stop));
  if (!written && !written.error().Is(Code::kNotFound)) return written.error();
  return {};
}

Result<> DefinitionController::Reconcile(const CustomResourceDefinition& definition, std::stop_token stop) {
  const std::string& name = definition.metadata().name();
  if (definition.metadata().has_deletion_timestamp() && HasFinalizer(definition)) {
    deletions_.Add(name);
    return {};
  }
  const UsedNames used = UsedIn(definition.spec().group());
  const DefinitionStatus wanted = StatusOf(definition, used, clock_.Now());
  if (api::EncodeRaw(wanted) == api::EncodeRaw(definition.status())) return {};
  KEELSON_RETURN_IF_ERROR(WriteStatus(
      definition,
      [&](CustomResourceDefinition& current) {
        const bool same = current.metadata().generation() == definition.metadata().generation() &&
                          api::EncodeRaw(current.status()) == api::EncodeRaw(definition.status());
        *current.mutable_status() = same ? wanted : StatusOf(current, used, clock_.Now());
      },
      stop));
  // Later ones of this batch must see the names as taken.
  known_[name].accepted = wanted.accepted_names();
  return {};
}

Result<client::Requeue> DefinitionController::FinalizeNamed(const std::string& name, std::stop_token stop) {
  const storage::ObjectPtr object = registry_.store().Peek(Row(), name);
  if (!object) return client::Requeue{};
  const auto definition = std::static_pointer_cast<const CustomResourceDefinition>(object->Decode());
  const bool due = definition->metadata().has_deletion_timestamp() && HasFinalizer(*definition);
  if (!due) return client::Requeue{};
  KEELSON_ASSIGN_OR_RETURN(const bool done, Finalize(*definition, std::move(stop)));
  return done ? client::Requeue{} : client::Requeue{kLookAgain};
}

Result<bool> DefinitionController::Finalize(const CustomResourceDefinition& definition,
                                            std::stop_token stop) {
  auto tell = [&](const char* value, const char* reason, const char* message) {
    return WriteStatus(
        definition,
        [&](CustomResourceDefinition& current) {
          SetCondition(*current.mutable_status(), "Terminating", value, reason, message,
                       current.metadata().generation(), clock_.Now());
        },
        stop);
  };
  const std::string& group = definition.spec().group();
  const std::string& plural = definition.spec().names().plural();
  bool built_in = false;
  for (const api::ResourceInfo& info : api::Resources()) {
    built_in |= info.etcd_prefix == "/registry/" + group + "/" + plural + "/";
  }
  if (built_in) {
    KEELSON_RETURN_IF_ERROR(
        tell("False", "OverlappingBuiltInResource", "instances overlap with built-in resources in storage"));
  } else if (apiextensions::IsConditionTrue(definition, "Established")) {
    KEELSON_RETURN_IF_ERROR(
        tell("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"));
    Result<size_t> left = registry_.DeleteCustomObjects(group, plural, BootstrapWrite(stop));
    if (!left) {
      KEELSON_RETURN_IF_ERROR(tell("True", "InstanceDeletionFailed",
                                   ("could not delete instances: " + left.error().message()).c_str()));
      return left.error();
    }
    if (*left > 0) return false;
    KEELSON_RETURN_IF_ERROR(tell("False", "InstanceDeletionCompleted", "removed all instances"));
  } else {
    KEELSON_RETURN_IF_ERROR(tell("False", "NeverEstablished", "resource was never established"));
  }
  auto removed = registry_.Modify(
      Row(), "", definition.metadata().name(),
      [&](api::Message& object) -> Result<> {
        metav1::ObjectMeta& meta = api::MutableMeta(object);
        if (meta.uid() != definition.metadata().uid()) return Error(Code::kNotFound, "another definition");
        auto& finalizers = *meta.mutable_finalizers();
        finalizers.erase(std::remove(finalizers.begin(), finalizers.end(), kCleanupFinalizer),
                         finalizers.end());
        return {};
      },
      BootstrapWrite(stop));
  if (!removed && !removed.error().Is(Code::kNotFound)) return removed.error();
  return true;
}

void DefinitionController::Run(std::stop_token stop) {
  const std::jthread finalizers([this, stop] {
    client::RunWorkers(deletions_, kFinalizers, stop, [this](const std::string& name, std::stop_token token) {
      return FinalizeNamed(name, std::move(token));
    });
  });
  while (!stop.stop_requested()) {
    const Names names = Take(stop);
    std::vector<std::shared_ptr<const CustomResourceDefinition>> definitions;
    for (const std::string& name : names) {
      if (auto definition = Learn(name)) definitions.push_back(std::move(definition));
    }
    for (const auto& definition : definitions) {
      if (stop.stop_requested()) return;
      Result<> done = Reconcile(*definition, stop);
      if (done) continue;
      const std::string& name = definition->metadata().name();
      log::Warn("Cannot follow a custom resource definition", {{"crd", name}, {"err", done.error()}});
      Later(name, kRetry);
    }
  }
}

}  // namespace keelson::apiserver

#include "controlplane/apiserver/aggregator/registration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "controlplane/apiserver/aggregator/priorities.h"
#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "controlplane/storage/store.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/api/types.h"

namespace keelson::apiserver {
namespace {

using Definition = api::apiextensions::v1::CustomResourceDefinition;

// May be an extension server's at any time: metrics-server's.
constexpr std::string_view kReplaceable = "metrics.k8s.io";

const api::ResourceInfo& Row() {
  static const api::ResourceInfo& row = api::ResourceOf<apiregistrationv1::APIService>();
  return row;
}

std::string LabelOf(const apiregistrationv1::APIService& service) {
  const auto& labels = service.metadata().labels();
  auto found = labels.find(kAutomanaged);
  return found == labels.end() ? "" : found->second;
}

}  // namespace

ApiServiceRegistration::ApiServiceRegistration(registry::Registry& registry,
                                               const std::vector<GroupVersion>& built_in, Clock& clock)
    : registry_(registry), queue_("autoregister", clock) {
  for (const GroupVersion& one : built_in) {
    const auto priority = BuiltInPriority(one.first, one.second);
    if (!priority) continue;
    const Mode mode = one.first == kReplaceable ? Mode::kWhenAbsent : Mode::kOnce;
    Desired desired = Make(one, mode, priority->group, priority->version);
    std::string name = desired.service.metadata().name();
    missing_.insert(name);
    built_in_.emplace(std::move(name), std::move(desired));
  }
}

Result<> ApiServiceRegistration::Completed() const {
  MutexLock lock(mutex_);
  if (missing_.empty()) return {};
  return Error(Code::kUnavailable, fmt::format("missing APIService: [{}]", fmt::join(missing_, " ")));
}

ApiServiceRegistration::Desired ApiServiceRegistration::Make(const GroupVersion& of, Mode mode,
                                                             int32_t group_priority,
                                                             int32_t version_priority) {
  Desired out{{}, mode};
  metav1::ObjectMeta& meta = *out.service.mutable_metadata();
  meta.set_name(of.second + "." + of.first);
  if (mode != Mode::kWhenAbsent) {
    (*meta.mutable_labels())[kAutomanaged] = mode == Mode::kOnce ? "onstart" : "true";
  }
  apiregistrationv1::APIServiceSpec& spec = *out.service.mutable_spec();
  if (!of.first.empty()) spec.set_group(of.first);
  spec.set_version(of.second);
  spec.set_group_priority_minimum(group_priority);
  spec.set_version_priority(version_priority);
  return out;
}

// Wants an APIService for each version that a definition serves, and looks at those that are wanted no longer.
void ApiServiceRegistration::FollowDefinitions() {
  std::map<std::string, Desired> now;
  registry_.store().ForEach(api::ResourceOf<Definition>(), [&](const storage::ObjectPtr& object) {
    const auto decoded = object->Decode();
    const auto& spec = static_cast<const Definition&>(*decoded).spec();
    for (const auto& version : spec.versions()) {
      if (!version.served() || BuiltInPriority(spec.group(), version.name())) continue;
      Desired desired =
          Make({spec.group(), version.name()}, Mode::kAlways, kCustomPriority.group, kCustomPriority.version);
      now.emplace(desired.service.metadata().name(), std::move(desired));
    }
  });
  for (const auto& one : custom_) {
    if (!now.contains(one.first)) queue_.Add(one.first);
  }
  for (const auto& one : now) {
    if (!custom_.contains(one.first)) queue_.Add(one.first);
  }
  custom_ = std::move(now);
}

// The cases are upstream's: what is there, by label and time, against what is wanted.
Result<> ApiServiceRegistration::Sync(const std::string& name, std::stop_token stop) {
  const Desired* desired = nullptr;
  if (auto own = built_in_.find(name); own != built_in_.end()) desired = &own->second;
  if (auto custom = custom_.find(name); custom != custom_.end()) desired = &custom->second;
  const bool synced = synced_.contains(name);
  const storage::ObjectPtr object = registry_.store().Peek(Row(), name);
  if (!object && !desired) return {};
  if (desired && desired->mode == Mode::kOnce && synced) return {};
  if (!object) return CreateIfAbsent(registry_, desired->service, stop);
  if (desired && desired->mode == Mode::kWhenAbsent) return {};

  const auto decoded = object->Decode();
  const auto& current = static_cast<const apiregistrationv1::APIService&>(*decoded);
  const std::string label = LabelOf(current);
  if (label != "onstart" && label != "true") return {};
  if (label == "onstart" && (synced || !at_start_.contains(name))) return {};
  if (!desired) {
    metav1::DeleteOptions options;
    options.mutable_preconditions()->set_uid(current.metadata().uid());
    Result<registry::Deleted> deleted = registry_.Delete(Row(), "", name, options, BootstrapWrite(stop));
    const bool gone = deleted || deleted.error().Is(Code::kNotFound) || deleted.error().Is(Code::kConflict);
    return gone ? Result<>() : deleted.error().Wrap("delete APIService " + name);
  }
  if (api::EncodeRaw(current.spec()) == api::EncodeRaw(desired->service.spec())) return {};
  Result<registry::Written> written = registry_.Modify(
      Row(), "", name,
      [&](api::Message& message) -> Result<> {
        *static_cast<apiregistrationv1::APIService&>(message).mutable_spec() = desired->service.spec();
        return {};
      },
      BootstrapWrite(stop));
  if (written || written.error().Is(Code::kNotFound)) return {};
  return written.error().Wrap("update APIService " + name);
}

Result<> ApiServiceRegistration::Reconcile(const std::string& name, std::stop_token stop) {
  if (name == kDefinitions) {
    FollowDefinitions();
    return {};
  }
  KEELSON_RETURN_IF_ERROR(Sync(name, std::move(stop)));
  synced_.insert(name);
  MutexLock lock(mutex_);
  missing_.erase(name);
  return {};
}

void ApiServiceRegistration::Run(std::stop_token stop, const std::function<void()>& completed) {
  bool told = false;
  const auto tell = [&] {
    if (!told && Completed()) {
      told = true;
      completed();
    }
  };
  tell();
  // Before anything is deleted the definitions are known.
  FollowDefinitions();
  registry_.store().ForEach(Row(), [this](const storage::ObjectPtr& object) {
    at_start_.insert(object->key());
    queue_.Add(object->key());
  });
  for (const auto& one : built_in_) queue_.Add(one.first);
  client::RunWorkers(queue_, 1, stop,
                     [&](const std::string& name, std::stop_token token) -> Result<client::Requeue> {
                       KEELSON_RETURN_IF_ERROR(Reconcile(name, std::move(token)));
                       tell();
                       return client::Requeue{};
                     });
}

}  // namespace keelson::apiserver

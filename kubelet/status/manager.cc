#include "kubelet/status/manager.h"

#include <algorithm>
#include <boost/json.hpp>

#include "kubelet/status/own_conditions.h"
#include "lib/api/codec/codec.h"
#include "lib/client/workqueue.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace json = boost::json;

namespace {

constexpr int kWriters = 4;
// The longest delay of a status while more changes are expected: mostly the pod's end.
constexpr std::chrono::seconds kHold(1);

json::object ToJson(const corev1::PodStatus& status) {
  json::error_code failed;
  json::value value = json::parse(api::EncodeJson(status), failed);
  return !failed && value.is_object() ? value.as_object() : json::object();
}

const json::value* FindType(const json::value* list, const json::value& type) {
  if (!list || !list->is_array()) return nullptr;
  for (const json::value& item : list->as_array()) {
    if (item.is_object() && item.as_object().if_contains("type") && item.at("type") == type) return &item;
  }
  return nullptr;
}

json::array ChangedConditions(const json::value* base, const json::value& desired) {
  json::array out;
  if (!desired.is_array()) return out;
  for (const json::value& item : desired.as_array()) {
    const std::string_view type = item.at("type").as_string();
    if (!IsKubeletsCondition(type) && type != k8s::kDisruptionTarget) continue;
    const json::value* old = FindType(base, item.at("type"));
    if (old && *old == item) continue;
    json::object changed = item.as_object();
    if (old) {  // what a condition no longer says has to be taken out of it
      for (const auto& field : old->as_object()) {
        if (!changed.if_contains(field.key())) changed[field.key()] = nullptr;
      }
    }
    out.push_back(std::move(changed));
  }
  // Conditions that exist only while their cause does; conditions of other owners stay.
  for (const char* type : {"PodResizePending", "PodResizeInProgress"}) {
    if (FindType(base, json::value(type)) && !FindType(&desired, json::value(type))) {
      out.push_back(json::object{{"$patch", "delete"}, {"type", type}});
    }
  }
  return out;
}

corev1::PodStatus Unpack(const std::string& wire) {
  corev1::PodStatus status;
  if (!api::DecodeRaw(wire, status)) std::abort();  // what EncodeRaw has made
  return status;
}

// Of changes, until the API has them: also when others came on top meanwhile.
metrics::Histogram& SyncDuration() {
  static metrics::Histogram& histogram =
      metrics::Histograms(
          "kubelet_pod_status_sync_duration_seconds",
          "Duration in seconds to sync a pod status update. Measures time from detection of a "
          "change to pod status until the API is successfully updated for that pod, even if "
          "multiple intevening changes to pod status occur.",
          {0.010, 0.050, 0.100, 0.500, 1, 5, 10, 20, 30, 45, 60})
          .HistogramWith();
  return histogram;
}

// Nothing has started yet, and nothing is wrong.
bool IsBeingMade(const corev1::PodStatus& status) {
  const auto all_wait = [](const auto& containers) {
    return std::all_of(containers.begin(), containers.end(), [](const corev1::ContainerStatus& container) {
      const std::string& reason = container.state().waiting().reason();
      return reason == "ContainerCreating" || reason == "PodInitializing";
    });
  };
  return status.phase() == "Pending" && status.reason().empty() &&
         all_wait(status.init_container_statuses()) && all_wait(status.container_statuses()) &&
         status.ephemeral_container_statuses().empty();
}

int64_t VersionOf(const std::string& resource_version) {
  return std::strtoll(resource_version.c_str(), nullptr, 10);
}

}  // namespace

std::optional<std::string> StatusPatch(const std::string& uid, const corev1::PodStatus& base,
                                       const corev1::PodStatus& desired) {
  json::object old = ToJson(base), wanted = ToJson(desired), changed;
  for (const auto& field : wanted) {
    const json::value* before = old.if_contains(field.key());
    if (before && *before == field.value()) continue;
    if (field.key() == "conditions") {
      json::array conditions = ChangedConditions(before, field.value());
      if (!conditions.empty()) changed["conditions"] = std::move(conditions);
    } else if ((field.key() == "podIPs" || field.key() == "hostIPs") && before) {
      json::array list = {{{"$patch", "replace"}}};  // these lists would merge by address
      for (const json::value& item : field.value().as_array()) list.push_back(item);
      changed[field.key()] = std::move(list);
    } else {
      changed[field.key()] = field.value();
    }
  }
  for (const auto& field : old) {
    if (!wanted.if_contains(field.key())) changed[field.key()] = nullptr;
  }
  if (changed.empty()) return std::nullopt;
  json::object patch;
  patch["metadata"] = {{"uid", uid}};
  patch["status"] = std::move(changed);
  return json::serialize(patch);
}

struct StatusManager::Impl {
  // Statuses are kept in wire form: a tenth of their decoded size, and of all pods at rest nobody asks for
  // them.
  struct Entry {
    std::shared_ptr<const corev1::Pod> pod, mirror;
    std::string desired;
    bool set = false, finished = false;
    std::optional<SteadyTime> changed;  // since when the API may have been behind
    bool was_behind = false;            // since then something has been written
    uint64_t wishes = 0;                // grows with every change
    std::string written;                // what the API answered last
    int64_t written_version = 0;
  };

  Impl(client::RestClient client, Clock& clock)
      : api(std::move(client)),
        clock(clock),
        queue("pod_status", clock, {std::chrono::milliseconds(100), std::chrono::seconds(30)}) {}

  Result<client::Requeue> Reconcile(const std::string& uid, std::stop_token stop) {
    Entry entry;
    {
      MutexLock lock(mutex);
      auto it = entries.find(uid);
      if (it == entries.end()) return client::Requeue{};
      entry = it->second;
    }
    if (entry.set && entry.changed) KEELSON_RETURN_IF_ERROR(Write(uid, entry, stop));
    if (!entry.finished || !k8s::IsTerminating(*entry.pod)) return client::Requeue{};
    client::DeleteOptions options;
    options.grace_period_seconds = 0;
    options.uid = uid;
    const metav1::ObjectMeta& meta = entry.pod->metadata();
    auto deleted = api.With(stop).Delete<corev1::Pod>(meta.namespace_(), meta.name(), options);
    if (!deleted && !deleted.error().Is(Code::kNotFound) && !deleted.error().Is(Code::kConflict)) {
      return deleted.error().Wrap("delete pod " + meta.namespace_() + "/" + meta.name());
    }
    return client::Requeue{};
  }

  Result<> Write(const std::string& uid, const Entry& entry, std::stop_token stop) {
    if (!entry.mirror && k8s::IsStatic(*entry.pod)) return {};  // no object to show it
    const corev1::Pod& shown = entry.mirror ? *entry.mirror : *entry.pod;
    const metav1::ObjectMeta& meta = shown.metadata();
    bool newer = entry.written_version > VersionOf(meta.resource_version());
    auto patch =
        StatusPatch(meta.uid(), newer ? Unpack(entry.written) : shown.status(), Unpack(entry.desired));
    if (!patch) {  // nothing has changed that the API does not know
      MutexLock lock(mutex);
      if (auto it = entries.find(uid); it != entries.end()) Told(entry, it->second);
      return {};
    }
    auto stored = api.With(stop).Patch<corev1::Pod>(
        meta.namespace_(), meta.name(), client::PatchType::kStrategicMerge, std::move(*patch), "status");
    if (!stored) {
      // The pod is gone, or another pod has its name: there is no object to update.
      if (stored.error().Is(Code::kNotFound) || stored.error().Is(Code::kConflict)) return {};
      return stored.error().Wrap("write status of pod " + meta.namespace_() + "/" + meta.name());
    }
    MutexLock lock(mutex);
    auto it = entries.find(uid);
    if (it == entries.end()) return {};
    it->second.written = api::EncodeRaw(stored->status());
    it->second.written_version = VersionOf(stored->metadata().resource_version());
    it->second.was_behind = true;
    Told(entry, it->second);
    return {};
  }

  // The API has everything, unless a change arrived during the request: the watch may even show what is being
  // written before its answer is here.
  void Told(const Entry& told, Entry& now) KEELSON_REQUIRES(mutex) {
    if (now.wishes != told.wishes) return;
    if (now.was_behind && now.changed) {
      SyncDuration().Observe(std::chrono::duration<double>(clock.SteadyNow() - *now.changed).count());
    }
    now.was_behind = false;
    now.changed.reset();
  }

  void Changed(Entry& entry) KEELSON_REQUIRES(mutex) {
    ++entry.wishes;
    if (!entry.changed) entry.changed = clock.SteadyNow();
  }

  client::RestClient api;
  Clock& clock;
  client::WorkQueue queue;
  mutable Mutex mutex;
  std::map<std::string, Entry> entries KEELSON_GUARDED_BY(mutex);
};

StatusManager::StatusManager(client::RestClient api, Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(api), clock)) {}
StatusManager::~StatusManager() = default;

void StatusManager::Set(std::shared_ptr<const corev1::Pod> pod, const corev1::PodStatus& status, When when) {
  const std::string uid = pod->metadata().uid();
  std::string packed = api::EncodeRaw(status);
  {
    MutexLock lock(impl_->mutex);
    Impl::Entry& entry = impl_->entries[uid];
    // A sync that takes its time has begun with an older one: what others wrote since would not be seen.
    if (!entry.pod || VersionOf(entry.pod->metadata().resource_version()) <=
                          VersionOf(pod->metadata().resource_version())) {
      entry.pod = std::move(pod);
    }
    impl_->Changed(entry);
    entry.desired = std::move(packed);
    entry.set = true;
  }
  if (when == When::kSoon || IsBeingMade(status)) {
    impl_->queue.AddAfter(uid, kHold);
  } else {
    impl_->queue.Add(uid);
  }
}

void StatusManager::Reconcile(std::shared_ptr<const corev1::Pod> pod) {
  const std::string uid = pod->metadata().uid();
  const int64_t version = VersionOf(pod->metadata().resource_version());
  {
    MutexLock lock(impl_->mutex);
    auto it = impl_->entries.find(uid);
    if (it == impl_->entries.end() || !it->second.set) return;
    if (version <= VersionOf(it->second.pod->metadata().resource_version())) return;
    it->second.pod = std::move(pod);  // always the newest: an older one would be kept in memory for us alone
    if (version <= it->second.written_version) return;
    impl_->Changed(it->second);
  }
  impl_->queue.Add(uid);
}

void StatusManager::SetMirror(const std::string& uid, std::shared_ptr<const corev1::Pod> mirror) {
  {
    MutexLock lock(impl_->mutex);
    auto it = impl_->entries.find(uid);
    if (it == impl_->entries.end() && !mirror) return;
    Impl::Entry& entry = impl_->entries[uid];
    const bool other = !entry.mirror || !mirror || entry.mirror->metadata().uid() != mirror->metadata().uid();
    if (other) entry.written_version = 0;
    entry.mirror = std::move(mirror);
    if (!entry.set) return;
    impl_->Changed(entry);
  }
  impl_->queue.Add(uid);
}

std::optional<corev1::PodStatus> StatusManager::Get(const std::string& uid) const {
  MutexLock lock(impl_->mutex);
  auto it = impl_->entries.find(uid);
  if (it == impl_->entries.end() || !it->second.set) return std::nullopt;
  return Unpack(it->second.desired);
}

void StatusManager::Finish(std::shared_ptr<const corev1::Pod> pod) {
  const std::string uid = pod->metadata().uid();
  {
    MutexLock lock(impl_->mutex);
    Impl::Entry& entry = impl_->entries[uid];
    entry.pod = std::move(pod);
    entry.finished = true;
  }
  impl_->queue.Add(uid);
}

void StatusManager::Forget(const std::string& uid) {
  MutexLock lock(impl_->mutex);
  impl_->entries.erase(uid);
}

void StatusManager::Run(std::stop_token stop) {
  client::RunWorkers(impl_->queue, kWriters, stop, [this](const std::string& uid, std::stop_token token) {
    return impl_->Reconcile(uid, token);
  });
}

}  // namespace keelson::kubelet

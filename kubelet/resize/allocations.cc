#include "kubelet/resize/allocations.h"

#include <boost/json.hpp>

#include "kubelet/container/labels.h"
#include "kubelet/resize/resize_metrics.h"
#include "lib/api/codec/codec.h"
#include "lib/api/quantity.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace json = boost::json;

namespace {

constexpr const char* kResizable[] = {"cpu", "memory"};
constexpr char kThePod[] = "";  // in place of a container's name or id
constexpr char kOfPod[] = "pod/";

std::string FileOf(const Paths& paths, const std::string& uid) { return paths.Pod(uid) + "/resources.json"; }

bool SameAmounts(const k8s::QuantityMap& a, const k8s::QuantityMap& b) {
  for (const char* name : kResizable) {
    auto in_a = a.find(name), in_b = b.find(name);
    if ((in_a == a.end()) != (in_b == b.end())) return false;
    if (in_a != a.end() && api::Amount::Of(in_a->second) != api::Amount::Of(in_b->second)) return false;
  }
  return true;
}

// Puts CPU and memory of `from` in place of those of `to`.
void Replace(const k8s::QuantityMap& from, k8s::QuantityMap& to) {
  for (const char* name : kResizable) {
    auto it = from.find(name);
    if (it == from.end()) {
      to.erase(name);
    } else {
      to[name] = it->second;
    }
  }
}

std::optional<corev1::ResourceRequirements> FromText(std::string_view text) {
  corev1::ResourceRequirements out;
  if (text.empty() || !api::DecodeJson(text, out)) return std::nullopt;
  return out;
}

json::object ToJson(const std::map<std::string, corev1::ResourceRequirements>& resources) {
  json::object out;
  for (const auto& [name, item] : resources) out[name] = json::parse(ResourcesText(item));
  return out;
}

void FromJson(const json::value* value, std::map<std::string, corev1::ResourceRequirements>& out) {
  if (!value || !value->is_object()) return;
  for (const auto& [name, item] : value->as_object()) {
    if (auto resources = FromText(json::serialize(item))) out[std::string(name)] = std::move(*resources);
  }
}

template <typename Function>
void ForEach(corev1::PodSpec& spec, const Function& function) {
  for (auto* list : {spec.mutable_init_containers(), spec.mutable_containers()}) {
    for (corev1::Container& container : *list) function(container);
  }
}

template <typename Predicate>
bool Any(const corev1::PodSpec& spec, const Predicate& predicate) {
  return std::any_of(spec.init_containers().begin(), spec.init_containers().end(), predicate) ||
         std::any_of(spec.containers().begin(), spec.containers().end(), predicate);
}

std::map<std::string, corev1::ResourceRequirements> WishOf(const corev1::Pod& pod) {
  std::map<std::string, corev1::ResourceRequirements> out;
  corev1::PodSpec spec = pod.spec();
  ForEach(spec,
          [&](corev1::Container& container) { out[container.name()] = Resizable(container.resources()); });
  if (spec.has_resources()) out[kThePod] = Resizable(spec.resources());
  return out;
}

// nullopt: the container was started by another kubelet.
std::optional<corev1::ResourceRequirements> PodAtStartOf(const ContainerRecord& record) {
  if (!record.annotations.count(kResourcesAnnotation)) return std::nullopt;
  auto text = record.annotations.find(kPodResourcesAnnotation);
  return text == record.annotations.end() ? corev1::ResourceRequirements() : FromText(text->second);
}

}  // namespace

corev1::ResourceRequirements Resizable(const corev1::ResourceRequirements& resources) {
  corev1::ResourceRequirements out;
  SetResizable(resources, out);
  return out;
}

void SetResizable(const corev1::ResourceRequirements& from, corev1::ResourceRequirements& to) {
  Replace(from.requests(), *to.mutable_requests());
  Replace(from.limits(), *to.mutable_limits());
}

bool SameResources(const corev1::ResourceRequirements& a, const corev1::ResourceRequirements& b) {
  return SameAmounts(a.requests(), b.requests()) && SameAmounts(a.limits(), b.limits());
}

std::string ResourcesText(const corev1::ResourceRequirements& resources) {
  return api::EncodeJson(Resizable(resources));
}

Allocations::Allocations(Paths paths) : paths_(std::move(paths)) {
  CountResizeState({}, 0);  // there from the first scrape on
}

void Allocations::Restore(const corev1::Pod& pod, const PodRuntimeStatus& status) {
  const std::string& uid = pod.metadata().uid();
  MutexLock lock(mutex_);
  if (entries_.count(uid)) return;
  Entry& entry = entries_[uid];
  entry.granted = WishOf(pod);
  for (auto& [name, resources] : entry.granted) {
    const ContainerRecord* record = status.Latest(name);
    auto text = record ? record->annotations.find(kResourcesAnnotation) : cri::Labels::const_iterator();
    if (!record || text == record->annotations.end()) continue;
    if (auto started_with = FromText(text->second)) resources = std::move(*started_with);
  }
  const auto began = status.containers.empty() ? std::nullopt : PodAtStartOf(status.containers.front());
  if (began && pod.spec().has_resources()) entry.granted[kThePod] = *began;
  auto text = ReadFile(FileOf(paths_, uid));
  if (!text) return;
  boost::system::error_code problem;
  json::value root = json::parse(*text, problem);
  if (problem || !root.is_object()) {
    log::Error("Cannot read what a pod was granted", {{"file", FileOf(paths_, uid)}});
    return;
  }
  FromJson(root.as_object().if_contains("granted"), entry.granted);
  FromJson(root.as_object().if_contains("actual"), entry.actual);
}

Allocations::PodPtr Allocations::Granted(const PodPtr& pod) const {
  MutexLock lock(mutex_);
  auto entry = entries_.find(pod->metadata().uid());
  if (entry == entries_.end()) return pod;
  const auto& granted = entry->second.granted;
  const auto differs = [&](const corev1::Container& container) {
    auto it = granted.find(container.name());
    return it != granted.end() && !SameResources(it->second, container.resources());
  };
  const auto of_pod = granted.find(kThePod);
  const corev1::ResourceRequirements& pod_has =
      of_pod == granted.end() ? corev1::ResourceRequirements::default_instance() : of_pod->second;
  const bool pod_differs = !SameResources(pod_has, pod->spec().resources());
  if (!pod_differs && !Any(pod->spec(), differs)) return pod;
  auto out = std::make_shared<corev1::Pod>(*pod);
  if (pod_differs) {
    SetResizable(pod_has, *out->mutable_spec()->mutable_resources());
  }
  ForEach(*out->mutable_spec(), [&](corev1::Container& container) {
    if (!differs(container)) return;
    SetResizable(granted.at(container.name()), *container.mutable_resources());
  });
  return out;
}

Result<> Allocations::Grant(const corev1::Pod& pod) {
  MutexLock lock(mutex_);
  Entry next = entries_[pod.metadata().uid()];
  next.granted = WishOf(pod);
  KEELSON_RETURN_IF_ERROR(Save(pod.metadata().uid(), next));
  entries_[pod.metadata().uid()] = std::move(next);
  return {};
}

std::optional<corev1::ResourceRequirements> Allocations::Actual(const std::string& uid,
                                                                const ContainerRecord& record) const {
  MutexLock lock(mutex_);
  if (auto entry = entries_.find(uid); entry != entries_.end()) {
    if (auto found = entry->second.actual.find(record.id); found != entry->second.actual.end()) {
      return found->second;
    }
  }
  auto text = record.annotations.find(kResourcesAnnotation);
  return text == record.annotations.end() ? std::nullopt : FromText(text->second);
}

std::optional<corev1::ResourceRequirements> Allocations::ActualOfPod(const std::string& uid,
                                                                     const ContainerRecord& record) const {
  MutexLock lock(mutex_);
  if (auto entry = entries_.find(uid); entry != entries_.end()) {
    if (auto found = entry->second.actual.find(kOfPod + record.id); found != entry->second.actual.end()) {
      return found->second;
    }
  }
  return PodAtStartOf(record);
}

std::optional<corev1::ResourceRequirements> Allocations::ActualOfPod(const std::string& uid,
                                                                     const PodRuntimeStatus& status) const {
  MutexLock lock(mutex_);
  if (auto entry = entries_.find(uid); entry != entries_.end()) {
    if (auto found = entry->second.actual.find(kThePod); found != entry->second.actual.end()) {
      return found->second;
    }
  }
  return status.containers.empty() ? std::nullopt : PodAtStartOf(status.containers.front());
}

Result<> Allocations::SetActual(const std::string& uid, const std::string& container_id,
                                const corev1::ResourceRequirements& resources,
                                const corev1::ResourceRequirements* of_pod) {
  MutexLock lock(mutex_);
  Entry next = entries_[uid];
  next.actual[container_id] = Resizable(resources);
  if (of_pod) next.actual[kOfPod + container_id] = Resizable(*of_pod);
  KEELSON_RETURN_IF_ERROR(Save(uid, next));
  entries_[uid] = std::move(next);
  return {};
}

Result<> Allocations::Save(const std::string& uid, const Entry& entry) const {
  return WriteFileAtomic(
      FileOf(paths_, uid),
      json::serialize(json::object{{"granted", ToJson(entry.granted)}, {"actual", ToJson(entry.actual)}}),
      0600);
}

ResizeState Allocations::State(const std::string& uid) const {
  MutexLock lock(mutex_);
  auto entry = entries_.find(uid);
  return entry == entries_.end() ? ResizeState() : entry->second.state;
}

void Allocations::SetState(const std::string& uid, const ResizeState& state) {
  MutexLock lock(mutex_);
  ResizeState& known = entries_[uid].state;
  if (known == state) return;
  CountResizeState(known, -1);
  CountResizeState(state, 1);
  known = state;
}

void Allocations::Forget(const std::string& uid) {
  MutexLock lock(mutex_);
  auto entry = entries_.find(uid);
  if (entry == entries_.end()) return;
  CountResizeState(entry->second.state, -1);
  entries_.erase(entry);
}

}  // namespace keelson::kubelet

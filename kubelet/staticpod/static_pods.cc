#include "kubelet/staticpod/static_pods.h"

#include "kubelet/staticpod/parse.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

std::string AnnotationOf(const corev1::Pod& pod, std::string_view name) {
  const auto& annotations = pod.metadata().annotations();
  auto it = annotations.find(std::string(name));
  return it == annotations.end() ? "" : it->second;
}

bool IsMirrorOf(const corev1::Pod& mirror, const corev1::Pod& pod) {
  return AnnotationOf(mirror, k8s::kMirrorAnnotation) == AnnotationOf(pod, k8s::kConfigHashAnnotation);
}

}  // namespace

StaticPods::StaticPods(Dependencies dependencies, std::set<std::string> sources, Clock& clock)
    : deps_(std::move(dependencies)),
      queue_("mirror_pods", clock, {std::chrono::milliseconds(250), std::chrono::seconds(60)}),
      clock_(clock),
      silent_(std::move(sources)) {}

bool StaticPods::ready() const {
  MutexLock lock(mutex_);
  return silent_.empty();
}

void StaticPods::Place(PodPtr pod, std::vector<std::function<void()>>& effects) {
  Slot& slot = slots_[api::KeyOf(*pod)];
  if (!slot.running) {
    slot.running = pod;
    slot.ending = false;
    effects.push_back([this, pod] { deps_.run(pod); });
  } else {
    slot.next = std::move(pod);
  }
}

void StaticPods::Retire(const corev1::Pod& pod, std::vector<std::function<void()>>& effects) {
  auto it = slots_.find(api::KeyOf(pod));
  if (it == slots_.end()) return;
  Slot& slot = it->second;
  const std::string& uid = pod.metadata().uid();
  if (slot.next && slot.next->metadata().uid() == uid) slot.next = nullptr;
  if (slot.running && slot.running->metadata().uid() == uid && !slot.ending) {
    slot.ending = true;
    effects.push_back([this, uid] { deps_.end(uid); });
  }
}

void StaticPods::Set(const std::string& source, std::vector<corev1::Pod> pods) {
  std::vector<std::function<void()>> effects;
  std::set<std::string> names;
  {
    MutexLock lock(mutex_);
    // Mirrors of pods that no source has told of may go from now on.
    if (silent_.erase(source) && silent_.empty()) {
      for (const auto& [name, mirror] : mirrors_) names.insert(name);
    }
    auto& known = sources_[source];
    std::map<std::string, PodPtr> now;
    for (corev1::Pod& pod : pods) {
      const std::string uid = pod.metadata().uid();
      if (auto it = known.find(uid); it != known.end()) {
        now[uid] = it->second;
        continue;
      }
      (*pod.mutable_metadata()->mutable_annotations())[kConfigSeenAnnotation] =
          api::FormatTime(api::ToTime(clock_.Now()));
      now[uid] = std::make_shared<const corev1::Pod>(std::move(pod));
    }
    for (const auto& [uid, pod] : known) {
      if (!now.count(uid)) {
        Retire(*pod, effects);
        names.insert(api::KeyOf(*pod));
      }
    }
    for (const auto& [uid, pod] : now) {
      if (!known.count(uid)) {
        Place(pod, effects);
        names.insert(api::KeyOf(*pod));
      }
    }
    known = std::move(now);
  }
  for (const auto& effect : effects) effect();
  for (const std::string& name : names) queue_.Add(name);
}

void StaticPods::Released(const std::string& uid) {
  std::vector<std::function<void()>> effects;
  std::string name;
  {
    MutexLock lock(mutex_);
    for (auto it = slots_.begin(); it != slots_.end(); ++it) {
      Slot& slot = it->second;
      if (!slot.running || slot.running->metadata().uid() != uid) continue;
      name = it->first;
      PodPtr next = std::move(slot.next);
      slots_.erase(it);
      if (next) Place(std::move(next), effects);
      break;
    }
  }
  for (const auto& effect : effects) effect();
  if (!name.empty()) queue_.Add(name);
}

void StaticPods::MirrorChanged(PodPtr mirror, bool gone) {
  const std::string name = api::KeyOf(*mirror);
  {
    MutexLock lock(mutex_);
    if (gone) {
      mirrors_.erase(name);
    } else {
      mirrors_[name] = std::move(mirror);
    }
  }
  queue_.Add(name);
}

Result<corev1::Pod> StaticPods::NewMirror(const corev1::Pod& pod) const {
  auto node_uid = deps_.node_uid();
  if (!node_uid) return Error(Code::kUnavailable, "node \"" + deps_.node_name + "\" not found");
  corev1::Pod mirror = pod;
  metav1::ObjectMeta& meta = *mirror.mutable_metadata();
  meta.clear_uid();
  meta.clear_resource_version();
  (*meta.mutable_annotations())[std::string(k8s::kMirrorAnnotation)] =
      AnnotationOf(pod, k8s::kConfigHashAnnotation);
  metav1::OwnerReference& owner = *meta.add_owner_references();
  owner.set_api_version("v1");
  owner.set_kind("Node");
  owner.set_name(deps_.node_name);
  owner.set_uid(*node_uid);
  owner.set_controller(true);
  mirror.clear_status();
  return mirror;
}

Result<client::Requeue> StaticPods::ReconcileMirror(const std::string& name, std::stop_token stop) {
  PodPtr pod, mirror;
  bool ending = false;  // it is shown until nothing of it is left
  {
    MutexLock lock(mutex_);
    if (auto it = slots_.find(name); it != slots_.end()) {
      pod = it->second.running;
      ending = it->second.ending;
    }
    if (auto it = mirrors_.find(name); it != mirrors_.end()) mirror = it->second;
    if (!pod && !silent_.empty()) return client::Requeue{};
  }
  client::RestClient api = deps_.api.With(stop);
  if (mirror && (!pod || k8s::IsTerminating(*mirror) || !IsMirrorOf(*mirror, *pod))) {
    if (pod) deps_.mirrored(pod->metadata().uid(), nullptr);
    client::DeleteOptions options;
    options.grace_period_seconds = 0;
    options.uid = mirror->metadata().uid();
    auto deleted =
        api.Delete<corev1::Pod>(mirror->metadata().namespace_(), mirror->metadata().name(), options);
    if (!deleted && !deleted.error().Is(Code::kNotFound) && !deleted.error().Is(Code::kConflict)) {
      return deleted.error().Wrap("delete mirror pod " + name);
    }
    return client::Requeue{};  // that it is gone will be seen
  }
  if (!pod) return client::Requeue{};
  if (!mirror && ending) return client::Requeue{};
  if (!mirror) {
    KEELSON_ASSIGN_OR_RETURN(corev1::Pod wanted, NewMirror(*pod));
    auto created = api.Create(wanted);
    if (!created) return created.error().Wrap("create mirror pod " + name);
    mirror = std::make_shared<const corev1::Pod>(std::move(*created));
  }
  deps_.mirrored(pod->metadata().uid(), mirror);
  return client::Requeue{};
}

void StaticPods::RunMirrors(std::stop_token stop) {
  client::RunWorkers(queue_, 1, stop, [this](const std::string& name, std::stop_token token) {
    return ReconcileMirror(name, token);
  });
}

}  // namespace keelson::kubelet

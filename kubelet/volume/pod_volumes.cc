#include "kubelet/volume/pod_volumes.h"

#include "kubelet/volume/claim.h"

namespace keelson::kubelet {

std::string PodVolume::Directory() const {
  constexpr std::string_view kBelow = "/mount";
  const bool below = plugin == "kubernetes.io/csi" && !block && path.ends_with(kBelow);
  return below ? path.substr(0, path.size() - kBelow.size()) : path;
}

bool PodVolumes::Note(const std::string& plugin, const VolumeInput& input, const std::string& path) {
  const metav1::ObjectMeta& pod = input.pod.metadata();
  const std::string& name = input.volume.name();
  MutexLock lock(mutex_);
  PodVolume& known = volumes_[pod.uid()][name];
  const bool news = path.empty() || known.path.empty();
  known = {pod.uid(),     pod.namespace_(),
           name,          input.claim ? input.claim->metadata().name() : "",
           plugin,        path.empty() ? known.path : path,
           IsBlock(input)};
  return news;
}

void PodVolumes::Forget(const std::string& uid) {
  MutexLock lock(mutex_);
  volumes_.erase(uid);
}

bool PodVolumes::IsMounted(const std::string& uid, const std::string& volume) const {
  MutexLock lock(mutex_);
  const auto pod = volumes_.find(uid);
  if (pod == volumes_.end()) return false;
  const auto it = pod->second.find(volume);
  return it != pod->second.end() && !it->second.path.empty();
}

bool PodVolumes::OthersUse(const corev1::PersistentVolumeClaim& claim, const std::string& uid) const {
  MutexLock lock(mutex_);
  for (const auto& [pod, volumes] : volumes_) {
    for (const auto& [name, volume] : volumes) {
      if (pod != uid && !volume.path.empty() && volume.claim == claim.metadata().name() &&
          volume.ns == claim.metadata().namespace_()) {
        return true;
      }
    }
  }
  return false;
}

std::vector<PodVolume> PodVolumes::All() const {
  MutexLock lock(mutex_);
  std::vector<PodVolume> out;
  for (const auto& [uid, volumes] : volumes_) {
    for (const auto& [name, volume] : volumes) out.push_back(volume);
  }
  return out;
}

std::optional<PodVolume> PodVolumes::FindByPath(const std::string& uid, const std::string& path) const {
  MutexLock lock(mutex_);
  auto it = volumes_.find(uid);
  if (it == volumes_.end()) return std::nullopt;
  for (const auto& [name, volume] : it->second) {
    if (volume.path == path || volume.path.compare(0, path.size() + 1, path + "/") == 0) return volume;
  }
  return std::nullopt;
}

}  // namespace keelson::kubelet

#include "kubelet/volume/attached_volumes.h"

#include <algorithm>

namespace keelson::kubelet {

void AttachedVolumes::Restore(const std::string& name, const std::string& uid) {
  MutexLock lock(mutex_);
  pods_[name].insert(uid);
}

Result<> AttachedVolumes::Use(const std::string& name, VolumeInput& input) {
  bool fresh = false;
  {
    MutexLock lock(mutex_);
    fresh = !pods_.count(name);
    pods_[name].insert(input.pod.metadata().uid());
  }
  if (fresh && changed_) changed_();
  return CheckAttached(name, input);
}

// Both lists have to have the volume, in one state of the node: the controller may be about to detach a volume that the
// node did not report in use.
Result<> AttachedVolumes::CheckAttached(const std::string& name, VolumeInput& input) const {
  const auto own = node_ ? node_() : nullptr;
  if (own) {
    const auto& in_use = own->status().volumes_in_use();
    if (std::find(in_use.begin(), in_use.end(), name) == in_use.end()) {
      return Error(Code::kUnavailable,
                   "Volume has not been added to the list of VolumesInUse in the node's volume status for "
                   "volume \"" +
                       input.name() + "\"");
    }
    for (const auto& attached : own->status().volumes_attached()) {
      if (attached.name() != name) continue;
      input.device = attached.device_path();
      return {};
    }
  }
  return Error(Code::kUnavailable,
               "Volume not attached according to node status for volume \"" + input.name() + "\"");
}

void AttachedVolumes::Release(const std::string& name, const std::string& uid) {
  bool changed = false;
  {
    MutexLock lock(mutex_);
    auto it = pods_.find(name);
    if (it == pods_.end() || it->second.erase(uid) == 0) return;
    changed = it->second.empty();
    if (changed) pods_.erase(it);
  }
  if (changed && changed_) changed_();
}

void AttachedVolumes::Forget(const std::string& uid) {
  bool changed = false;
  {
    MutexLock lock(mutex_);
    waiting_.erase(uid);
    for (auto it = pods_.begin(); it != pods_.end();) {
      it->second.erase(uid);
      changed |= it->second.empty();
      it = it->second.empty() ? pods_.erase(it) : std::next(it);
    }
  }
  if (changed && changed_) changed_();
}

std::vector<std::string> AttachedVolumes::Names() const {
  MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, pods] : pods_) names.push_back(name);
  return names;
}

void AttachedVolumes::SetWaiting(const std::string& uid, bool in_vain) {
  MutexLock lock(mutex_);
  waiting_[uid] |= in_vain;
}

void AttachedVolumes::ClearWaiting(const std::string& uid) {
  MutexLock lock(mutex_);
  waiting_.erase(uid);
}

std::set<std::string> AttachedVolumes::Waiting() const {
  MutexLock lock(mutex_);
  std::set<std::string> out;
  for (const auto& [uid, in_vain] : waiting_) out.insert(uid);
  return out;
}

bool AttachedVolumes::WaitsInVain(const std::string& uid) const {
  MutexLock lock(mutex_);
  auto it = waiting_.find(uid);
  return it != waiting_.end() && it->second;
}

}  // namespace keelson::kubelet

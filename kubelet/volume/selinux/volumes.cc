#include "kubelet/volume/selinux/volumes.h"

#include <algorithm>
#include <utility>

#include "lib/base/text.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

constexpr char kReadWriteOncePod[] = "ReadWriteOncePod";

// The highest mode, as upstream names it.
std::string AccessModeLabel(const SeLinuxUse& use) {
  if (!use.persistent) return "inline";
  const auto& modes = use.persistent->spec().access_modes();
  for (const auto& [mode, label] :
       {std::pair("ReadWriteMany", "RWX"), std::pair("ReadOnlyMany", "ROX"),
        std::pair("ReadWriteOnce", "RWO"), std::pair(kReadWriteOncePod, "RWOP")}) {
    if (std::find(modes.begin(), modes.end(), mode) != modes.end()) return label;
  }
  return "";
}

bool IsOfOnePod(const corev1::PersistentVolume& volume) {
  return volume.spec().access_modes_size() == 1 && volume.spec().access_modes(0) == kReadWriteOncePod;
}

// What the containers that mount the volume run with, of those that say it.
std::vector<corev1::SELinuxOptions> OptionsOf(const corev1::PodSpec& spec, const std::string& volume) {
  std::vector<corev1::SELinuxOptions> out;
  auto add = [&](const auto& container) {
    const auto& mounts = container.volume_mounts();
    const bool uses =
        std::any_of(mounts.begin(), mounts.end(), [&](const auto& mount) { return mount.name() == volume; });
    if (!uses) return;
    if (container.security_context().has_se_linux_options()) {
      out.push_back(container.security_context().se_linux_options());
    } else if (spec.security_context().has_se_linux_options()) {
      out.push_back(spec.security_context().se_linux_options());
    }
  };
  k8s::ForEachContainer(spec, add);
  for (const auto& ephemeral : spec.ephemeral_containers()) add(ephemeral.ephemeral_container_common());
  return out;
}

std::string KeyOf(const SeLinuxUse& use) {
  return use.persistent ? use.persistent->metadata().name() : use.pod.metadata().uid() + "/" + use.volume;
}

}  // namespace

Result<std::string> SeLinuxVolumes::Admit(const SeLinuxUse& use, bool takes) {
  if (!labels_.enabled() || !takes) return std::string();
  if (use.pod.spec().security_context().se_linux_change_policy() == "Recursive") return std::string();
  const bool supported = use.persistent && (all_modes_ || IsOfOnePod(*use.persistent));
  const std::string mode = AccessModeLabel(use), &uid = use.pod.metadata().uid();
  MutexLock lock(mutex_);
  Volume& volume = volumes_[KeyOf(use)];
  const bool known = volume.pods.count(uid) > 0;
  // Counts each failed attempt; what is none yet once a pod.
  const auto refuse = [&](const SeLinuxRefusals& refusals, const std::vector<std::string>& of) {
    if (supported) refusals.errors.With(of).Increment();
    if (!supported && !known) refusals.warnings.With(of).Increment();
    return supported;
  };

  std::set<std::string> labels;
  for (const corev1::SELinuxOptions& options : OptionsOf(use.pod.spec(), use.volume)) {
    auto label = labels_.FileLabel(options);
    if (label) {
      labels.insert(std::move(*label));
    } else if (refuse(metrics_.container, {mode})) {
      return label.error();
    }
  }
  if (labels.size() > 1) {
    if (refuse(metrics_.pod, {mode})) {
      return Error(Code::kInvalid, "multiple SELinux labels found: " +
                                       Join(std::vector<std::string>(labels.begin(), labels.end()), ","));
    }
    labels.clear();
  }
  const std::string label = labels.empty() ? "" : *labels.begin();
  if (!known && !volume.pods.empty() && volume.label != label) {
    if (refuse(metrics_.volume, {use.plugin, mode})) {
      return Error(Code::kConflict, "conflicting SELinux labels of volume " + KeyOf(use) + ": \"" +
                                        volume.label + "\" and \"" + label + "\"");
    }
  }
  if (volume.pods.empty()) {
    volume.label = label;
    if (!label.empty()) metrics_.admitted.With({use.plugin, mode}).Increment();
  }
  volume.pods.insert(uid);
  return supported ? volume.label : std::string();
}

void SeLinuxVolumes::Forget(const std::string& uid) {
  MutexLock lock(mutex_);
  for (auto it = volumes_.begin(); it != volumes_.end();) {
    it->second.pods.erase(uid);
    it = it->second.pods.empty() ? volumes_.erase(it) : std::next(it);
  }
}

}  // namespace keelson::kubelet

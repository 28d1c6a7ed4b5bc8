// Volume mounts and volume devices of containers.
#include <algorithm>

#include "lib/k8s/validation/pod/internal.h"

namespace keelson::k8s {

namespace {

void CheckPropagation(const corev1::VolumeMount& mount, bool privileged, const Path& path,
                      FieldErrors& errors) {
  if (!mount.has_mount_propagation()) return;
  const std::string& mode = mount.mount_propagation();
  if (mode != "Bidirectional" && mode != "HostToContainer" && mode != "None") {
    errors.push_back(NotSupported(path, mode, {"Bidirectional", "HostToContainer", "None"}));
  }
  if (mode == "Bidirectional" && !privileged) {
    errors.push_back(
        Forbidden(path, "Bidirectional mount propagation is available only to privileged containers"));
  }
}

void CheckRecursiveReadOnly(const corev1::VolumeMount& mount, const Path& path, FieldErrors& errors) {
  if (!mount.has_recursive_read_only() || mount.recursive_read_only() == "Disabled") return;
  const std::string& mode = mount.recursive_read_only();
  if (mode != "Enabled" && mode != "IfPossible") {
    errors.push_back(NotSupported(path, mode, {"Disabled", "Enabled", "IfPossible"}));
    return;
  }
  if (!mount.read_only()) errors.push_back(Forbidden(path, "may only be specified when readOnly is true"));
  if (mount.has_mount_propagation() && mount.mount_propagation() != "None") {
    errors.push_back(Forbidden(path, "may only be specified when mountPropagation is None or not specified"));
  }
}

void CheckSubPath(const corev1::VolumeMount& mount, const Path& list, const Path& item, FieldErrors& errors) {
  // Upstream's paths name the list here.
  if (!mount.sub_path().empty()) CheckDescendingPath(mount.sub_path(), list.Child("subPath"), errors);
  if (mount.sub_path_expr().empty()) return;
  if (!mount.sub_path().empty()) {
    errors.push_back(Invalid(item.Child("subPathExpr"), mount.sub_path_expr(),
                             "subPathExpr and subPath are mutually exclusive"));
  }
  CheckDescendingPath(mount.sub_path_expr(), list.Child("subPathExpr"), errors);
}

void CheckMount(const corev1::Container& container, int index, const PodScope& scope,
                std::set<std::string_view>& paths, const Path& list, FieldErrors& errors) {
  const corev1::VolumeMount& mount = container.volume_mounts(index);
  const Path item = list.Index(index);
  if (mount.name().empty()) errors.push_back(Required(item.Child("name")));
  if (!scope.volumes.contains(mount.name())) errors.push_back(NotFound(item.Child("name"), mount.name()));
  if (mount.mount_path().empty()) errors.push_back(Required(item.Child("mountPath")));
  if (!paths.insert(mount.mount_path()).second) {
    errors.push_back(Invalid(item.Child("mountPath"), mount.mount_path(), "must be unique"));
  }
  const auto& devices = container.volume_devices();
  if (std::any_of(devices.begin(), devices.end(), [&](const auto& d) { return d.name() == mount.name(); })) {
    errors.push_back(Invalid(item.Child("name"), mount.name(), "must not already exist in volumeDevices"));
  }
  if (std::any_of(devices.begin(), devices.end(),
                  [&](const auto& d) { return d.device_path() == mount.mount_path(); })) {
    errors.push_back(Invalid(item.Child("mountPath"), mount.mount_path(),
                             "must not already exist as a path in volumeDevices"));
  }
  CheckSubPath(mount, list, item, errors);
  CheckPropagation(mount, container.security_context().privileged(), list.Child("mountPropagation"), errors);
  CheckRecursiveReadOnly(mount, list.Child("recursiveReadOnly"), errors);
}

bool HasBackstep(std::string_view path) {
  FieldErrors found;
  CheckNoBacksteps(path, Path(""), found);
  return !found.empty();
}

struct SeenDevices {
  std::set<std::string_view> names, paths;
};

void CheckDevice(const corev1::Container& container, int index, const PodScope& scope, SeenDevices& seen,
                 const Path& item, FieldErrors& errors) {
  const corev1::VolumeDevice& device = container.volume_devices(index);
  const auto name = [&](std::string_view detail) {
    errors.push_back(Invalid(item.Child("name"), device.name(), detail));
  };
  const auto path = [&](std::string_view detail) {
    errors.push_back(Invalid(item.Child("devicePath"), device.device_path(), detail));
  };
  if (device.name().empty()) errors.push_back(Required(item.Child("name")));
  if (seen.names.contains(device.name())) name("must be unique");
  const auto volume = scope.volumes.find(device.name());
  if (volume == scope.volumes.end()) {
    errors.push_back(NotFound(item.Child("name"), device.name()));
  } else if (!volume->second->has_persistent_volume_claim() && !volume->second->has_ephemeral()) {
    name("can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
  }
  if (device.device_path().empty()) errors.push_back(Required(item.Child("devicePath")));
  if (seen.paths.contains(device.device_path())) path("must be unique");
  if (HasBackstep(device.device_path())) {
    path("can not contain backsteps ('..')");
  } else {
    seen.paths.insert(device.device_path());
  }
  const auto& mounts = container.volume_mounts();
  if (std::any_of(mounts.begin(), mounts.end(), [&](const auto& m) { return m.name() == device.name(); })) {
    name("must not already exist in volumeMounts");
  }
  if (std::any_of(mounts.begin(), mounts.end(),
                  [&](const auto& m) { return m.mount_path() == device.device_path(); })) {
    path("must not already exist as a path in volumeMounts");
  }
  if (!device.name().empty()) seen.names.insert(device.name());
}

}  // namespace

void CheckMounts(const corev1::Container& container, const PodScope& scope, const Path& path,
                 FieldErrors& errors) {
  const Path list = path.Child("volumeMounts");
  std::set<std::string_view> paths;
  for (int i = 0; i < container.volume_mounts_size(); ++i) {
    CheckMount(container, i, scope, paths, list, errors);
  }
  const Path devices = path.Child("volumeDevices");
  SeenDevices seen;
  for (int i = 0; i < container.volume_devices_size(); ++i) {
    CheckDevice(container, i, scope, seen, devices.Index(i), errors);
  }
}

}  // namespace keelson::k8s

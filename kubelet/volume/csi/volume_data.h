// What the kubelet remembers of a CSI volume on disk, for what comes after a restart. Files and their JSON are upstream's,
// so that a node can change its kubelet while pods run:
//
//   <root>/pods/<uid>/volumes/kubernetes.io~csi/<name>/mount, vol_data.json             a pod's volume
//   <root>/plugins/kubernetes.io/csi/<driver>/<sha256 of handle>/globalmount, vol_data.json   staged once a node
//   <root>/plugins/kubernetes.io/csi/volumeDevices/<name>/data/vol_data.json            a volume of mode Block
//                                   /volumeDevices/staging/<name>
//                                   /volumeDevices/publish/<name>/<uid>                 the device, made by the driver
//
// <name> is the PersistentVolume's, or the volume's in the pod.
#pragma once

#include <optional>
#include <string>

#include "kubelet/container/paths.h"
#include "lib/base/error.h"

namespace keelson::kubelet::csi {

inline constexpr char kPluginName[] = "kubernetes.io/csi";

struct VolumeData {
  std::string driver, handle;
  // Not of staged volumes.
  std::string name, node, attachment;
  bool ephemeral = false;     // in the pod's spec
  std::string selinux_label;  // that it is mounted with, also of staged volumes; empty: none
};

// One line of JSON. `staged`: driver, handle and label only.
std::string EncodeVolumeData(const VolumeData& data, bool staged);
// kInvalid: malformed, or without driver or handle.
Result<VolumeData> DecodeVolumeData(const std::string& text);

// vol_data.json in `dir`. nullopt: there is none.
Result<std::optional<VolumeData>> ReadVolumeData(const std::string& dir);
// Makes `dir`. The file is whole or not there, whenever the kubelet is killed.
Result<> WriteVolumeData(const std::string& dir, const VolumeData& data, bool staged = false);
// Removes the file, and `dir` if it is empty then.
Result<> RemoveVolumeData(const std::string& dir);

std::string AttachmentName(const std::string& handle, const std::string& driver, const std::string& node);
// Of a volume in a pod's spec.
std::string EphemeralHandle(const std::string& uid, const std::string& volume);
// "kubernetes.io/csi/DRIVER^HANDLE", as in node.status.volumesInUse.
std::string AttachName(const std::string& driver, const std::string& handle);

std::string StagingPath(const Paths& paths, const std::string& driver, const std::string& handle);
struct DevicePaths {
  std::string data, staging, publish_dir, publish;
};
DevicePaths DevicePathsOf(const Paths& paths, const std::string& volume, const std::string& uid);

}  // namespace keelson::kubelet::csi

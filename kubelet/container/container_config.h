// Builds the CRI configuration of a container. Reads the objects that variables refer to, and creates files and
// directories that the mounts need.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "kubelet/container/env.h"
#include "kubelet/container/node_context.h"
#include "kubelet/container/objects.h"
#include "kubelet/container/volume_paths.h"
#include "kubelet/cri/types.h"

namespace keelson::kubelet {

// Returns the host path of a subPath in a volume. Creates directories, and follows no symlink out of the volume.
using SubPathFunction = std::function<Result<std::string>(
    const std::string& volume_path, const std::string& sub_path, const std::string& volume,
    const std::string& container, int index, bool read_only)>;

struct ContainerInput {
  const corev1::Pod& pod;  // with status.podIPs and status.hostIPs filled in
  const corev1::Container& container;
  const cri::Image& image;
  std::string image_ref;  // to run
  int restart_count = 0;
  const VolumePaths& volumes;
  SubPathFunction sub_path;
  std::string message_file;  // host path of the termination message, exists; empty: none
  std::string hosts_file;    // host path of the managed /etc/hosts; empty: none
  std::string handler;       // of the pod's RuntimeClass
  std::string target_id;  // of the container whose PID namespace an ephemeral container shares; empty: none
  std::optional<cri::IdMapping> user_ids;  // of the pod's user namespace
};

// Whether the mount and all mounts below it are read-only. `supported`: by the runtime, which decides about
// IfPossible. kInvalid: required, but not supported.
Result<bool> RecursiveReadOnly(const corev1::VolumeMount& mount, bool supported);

// kInvalid and other errors: CreateContainerConfigError, with upstream's message.
Result<cri::ContainerConfig> BuildContainerConfig(const ContainerInput& input, ObjectSource& objects,
                                                  const NodeContext& node);

// "main/0.log", below the pod's log directory.
std::string LogPath(const std::string& container, int restart_count);
// An ephemeral container as a Container.
corev1::Container FromEphemeral(const corev1::EphemeralContainer& ephemeral);

}  // namespace keelson::kubelet

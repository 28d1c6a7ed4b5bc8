// Kinds of volumes. A plugin makes a volume's content appear at a path of the node, again and again: SetUp is
// idempotent, and called on every sync also refreshes what has changed.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/container/node_context.h"
#include "kubelet/container/objects.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

// Mounts, apart so that tests need no root.
class Mounter {  // thread safe
 public:
  virtual ~Mounter() = default;
  virtual Result<> MountTmpfs(const std::string& target, const std::string& options) = 0;
  virtual Result<> Bind(const std::string& source, const std::string& target, bool read_only) = 0;
  virtual Result<bool> IsMountPoint(const std::string& path) = 0;
  virtual Result<> Unmount(const std::string& target, bool lazy) = 0;
  virtual Result<std::vector<std::string>> MountPointsUnder(const std::string& prefix) = 0;  // deepest first
};
std::unique_ptr<Mounter> NewMounter();

struct VolumeInput {
  const corev1::Pod& pod;
  const corev1::Volume& volume;
  const NodeContext& node;
};

class VolumePlugin {  // thread safe
 public:
  virtual ~VolumePlugin() = default;
  virtual std::string name() const = 0;  // kubernetes.io/configmap
  virtual bool Supports(const corev1::Volume& volume) const = 0;
  // The host path.
  virtual Result<std::string> SetUp(const VolumeInput& input, std::stop_token stop) = 0;
  virtual void ForgetPod(const std::string& uid) { (void)uid; }
};

std::unique_ptr<VolumePlugin> NewEmptyDirPlugin(Mounter& mounter);
std::unique_ptr<VolumePlugin> NewHostPathPlugin();
// configMap, secret, downwardAPI and projected (with service account tokens).
std::unique_ptr<VolumePlugin> NewPayloadPlugin(Mounter& mounter, ObjectSource& objects, Clock& clock);

// The group that owns the pod's volumes, if it names one.
std::optional<gid_t> FsGroup(const corev1::Pod& pod);
// Gives a tree to the group, readable and (but for read-only) writable by it, new files inheriting it. Done
// once: skipped when the top already is so and the pod's fsGroupChangePolicy is OnRootMismatch.
Result<> SetOwnership(const std::string& path, const corev1::Pod& pod, bool read_only);

}  // namespace keelson::kubelet

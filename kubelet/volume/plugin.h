// Kinds of volumes. A plugin makes a volume's content appear at a path of the node, again and again: SetUp is
// idempotent, and called on every sync also refreshes what has changed.
//
//   claim bound -> Check -> [attached] -> [Stage, once a node] -> SetUp, once a pod ... TearDown -> [Unstage]
//
// The steps in brackets are for volumes that have an AttachName or a StagePath. What a plugin has to know for
// TearDown and Unstage after a restart it reads from its own files below the two directories: nothing else is
// remembered.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/container/node_context.h"
#include "kubelet/container/objects.h"
#include "kubelet/volume/mounter.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

// A volume of a pod, and what its claim is bound to.
struct VolumeInput {
  const corev1::Pod& pod;
  const corev1::Volume& volume;
  const NodeContext& node;
  std::shared_ptr<const corev1::PersistentVolumeClaim> claim = nullptr;
  std::shared_ptr<const corev1::PersistentVolume> persistent = nullptr;  // null for volumes in the pod's spec
  bool read_only = false;                                                // as the pod's reference says
  std::string device = {};  // where an attached volume is found, as the attacher said

  const corev1::PersistentVolumeSource& source() const {
    return persistent->spec().persistent_volume_source();
  }
  // Of its directory: the persistent volume's, or what the pod calls it.
  const std::string& name() const { return persistent ? persistent->metadata().name() : volume.name(); }
};

// What a pod has had set up, as the directories tell.
struct PublishedVolume {
  std::string uid, name, path;  // of the pod, of the directory
};

// Directories of volumes are open to all users; a tmpfs is sticky, as the kernel makes it.
inline constexpr mode_t kDiskMode = 0777, kMemoryMode = 01777;

class VolumePlugin {  // thread safe
 public:
  virtual ~VolumePlugin() = default;
  virtual std::string name() const = 0;  // kubernetes.io/empty-dir
  virtual bool Supports(const VolumeInput& input) const = 0;

  // What must hold of the volume before anything is done about it; called before each SetUp.
  virtual Result<> Check(const VolumeInput& input) {
    (void)input;
    return {};
  }
  // "kubernetes.io/csi/driver^handle": goes into node.status.volumesInUse, and SetUp waits until
  // node.status.volumesAttached has it. Empty: nothing to attach.
  virtual std::string AttachName(const VolumeInput& input) const {
    (void)input;
    return "";
  }
  // Where the volume is mounted once for all pods; empty: it is not.
  virtual std::string StagePath(const VolumeInput& input) const {
    (void)input;
    return "";
  }
  virtual Result<> Stage(const VolumeInput& input, std::stop_token stop) {
    (void)input, (void)stop;
    return {};
  }
  // The node's device, of volumes of mode Block: they have neither stage nor SetUp.
  virtual Result<std::string> Device(const VolumeInput& input) {
    (void)input;
    return Error(Code::kUnimplemented, "failed to find BlockVolumeMapper plugin. Volume plugin is nil.");
  }
  // The host path.
  virtual Result<std::string> SetUp(const VolumeInput& input, std::stop_token stop) = 0;
  // Whether Expand is to be called. What is attached may have grown elsewhere.
  virtual bool Expands(const VolumeInput& input) const { return !AttachName(input).empty(); }
  // Grows the file system to what the claim asks for; called after SetUp when capacity and status differ.
  virtual Result<> Expand(const VolumeInput& input, const std::string& path, std::stop_token stop) {
    (void)input, (void)path, (void)stop;
    return Error(Code::kUnimplemented, "volume plugin " + name() + " cannot expand volumes");
  }

  // The stage path of a volume that some kubelet has set up; empty: none.
  virtual std::string Reconstruct(const Paths& paths, const PublishedVolume& published) const {
    (void)paths, (void)published;
    return "";
  }
  // Mounts at the path itself are undone by who calls.
  virtual Result<> TearDown(const PublishedVolume& published, std::stop_token stop) {
    (void)published, (void)stop;
    return {};
  }
  virtual Result<> Unstage(const std::string& stage_path, std::stop_token stop) {
    (void)stage_path, (void)stop;
    return {};
  }

  // Of persistent volumes, where there is a mount that they could be of.
  virtual bool TakesMountOptions() const { return true; }
  // What containers may not write to, whatever their mounts say.
  virtual bool ReadOnly() const { return false; }
  // Whether the runtime may give the files the pod's SELinux label.
  virtual bool MayRelabel() const { return true; }
  virtual void ForgetPod(const std::string& uid) { (void)uid; }
};

std::unique_ptr<VolumePlugin> NewEmptyDirPlugin(Mounter& mounter);
std::unique_ptr<VolumePlugin> NewHostPathPlugin();
std::unique_ptr<VolumePlugin> NewLocalPlugin(Mounter& mounter);
std::unique_ptr<VolumePlugin> NewNfsPlugin(Mounter& mounter);
// configMap, secret, downwardAPI and projected (with service account tokens).
std::unique_ptr<VolumePlugin> NewPayloadPlugin(Mounter& mounter, ObjectSource& objects, Clock& clock);
// All of the above.
std::vector<std::unique_ptr<VolumePlugin>> NewVolumePlugins(Mounter& mounter, ObjectSource& objects,
                                                            Clock& clock);

// The group that owns the pod's volumes, if it names one.
std::optional<gid_t> FsGroup(const corev1::Pod& pod);
// Gives a tree to the group, readable and (but for read-only) writable by it, new files inheriting it. Done
// once: skipped when the top already is so and the pod's fsGroupChangePolicy is OnRootMismatch.
Result<> SetOwnership(const std::string& path, const corev1::Pod& pod, bool read_only);

}  // namespace keelson::kubelet

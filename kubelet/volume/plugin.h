// Volume plugins. A plugin makes a volume's content appear at a path of the node. SetUp is idempotent: every sync
// calls it, which also refreshes the content.
//
//   claim bound -> Check -> [attached] -> [Stage, once per node] -> SetUp, once per pod ... TearDown -> [Unstage]
//                                      -> Device, once per pod ............. UnmapDevice -> ReleaseDevice
//
// The steps in brackets are for volumes that have an AttachName or a StagePath; the second line is for volumes of mode
// Block. What a plugin needs for TearDown, UnmapDevice and Unstage after a restart it reads from its own files.
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

// A volume of a pod, with its claim and persistent volume.
struct VolumeInput {
  const corev1::Pod& pod;
  const corev1::Volume& volume;
  const NodeContext& node;
  std::shared_ptr<const corev1::PersistentVolumeClaim> claim = nullptr;
  std::shared_ptr<const corev1::PersistentVolume> persistent = nullptr;  // null for volumes in the pod's spec
  bool read_only = false;          // from the pod's reference to the claim
  std::string device = {};         // of an attached volume, from the attacher
  std::string selinux_label = {};  // for all of its files (mount -o context); empty: none

  const corev1::PersistentVolumeSource& source() const {
    return persistent->spec().persistent_volume_source();
  }
  // The name of its directory: the persistent volume's name, or the volume's in the pod.
  const std::string& name() const { return persistent ? persistent->metadata().name() : volume.name(); }
};

// A volume that was set up for a pod, found by its directory.
struct PublishedVolume {
  std::string uid, name, path;  // uid: of the pod; name: of the directory
};

// What a plugin tells of a volume by itself.
struct VolumeMetrics {
  uint64_t capacity = 0, available = 0, used = 0, inodes = 0, inodes_free = 0, inodes_used = 0;
  std::optional<bool> abnormal;  // nullopt: the plugin does not say
  std::string condition;         // what is wrong, for people
};

// Directories of volumes are open to all users; a tmpfs is sticky, as the kernel makes it.
inline constexpr mode_t kDiskMode = 0777, kMemoryMode = 01777;

class VolumePlugin {  // thread safe
 public:
  virtual ~VolumePlugin() = default;
  virtual std::string name() const = 0;  // kubernetes.io/empty-dir
  virtual bool Supports(const VolumeInput& input) const = 0;

  // Checks preconditions; called before each SetUp.
  virtual Result<> Check(const VolumeInput& input) {
    (void)input;
    return {};
  }
  // "kubernetes.io/csi/driver^handle": goes into node.status.volumesInUse, and SetUp waits until
  // node.status.volumesAttached has it too. Empty: nothing to attach.
  virtual std::string AttachName(const VolumeInput& input) const {
    (void)input;
    return "";
  }
  // The name that AttachName has for volumes that have to be attached, whether this one has to be or not.
  virtual std::string NameInUse(const VolumeInput& input) const { return AttachName(input); }
  // The same as AttachName, of a volume that any kubelet has set up (`device`: as a device). Empty: nothing to attach, or
  // not known.
  virtual std::string FindAttachName(const Paths& paths, const PublishedVolume& volume, bool device) const {
    (void)paths, (void)volume, (void)device;
    return "";
  }
  // Whether the volume is not attached because the node has as many as it takes: its pod has to go elsewhere.
  virtual bool ExceedsAttachLimit(const VolumeInput& input) {
    (void)input;
    return false;
  }
  // Where the volume is mounted once for all pods; empty: no staging.
  virtual std::string StagePath(const VolumeInput& input) const {
    (void)input;
    return "";
  }
  virtual Result<> Stage(const VolumeInput& input, std::stop_token stop) {
    (void)input, (void)stop;
    return {};
  }
  // The device of a Block volume, which has neither Stage nor SetUp.
  virtual Result<std::string> Device(const VolumeInput& input, std::stop_token stop) {
    (void)input, (void)stop;
    return Error(Code::kUnimplemented, "failed to find BlockVolumeMapper plugin. Volume plugin is nil.");
  }
  // The pod's device is not bound any more; its link, the record of its use, is still there.
  virtual Result<> UnmapDevice(const Paths& paths, const PublishedVolume& volume, std::stop_token stop) {
    (void)paths, (void)volume, (void)stop;
    return {};
  }
  // After UnmapDevice, before the link goes: undoes what was done once for all pods, if no other pod has the device.
  virtual Result<> ReleaseDevice(const Paths& paths, const PublishedVolume& volume, std::stop_token stop) {
    (void)paths, (void)volume, (void)stop;
    return {};
  }
  // Returns the host path.
  virtual Result<std::string> SetUp(const VolumeInput& input, std::stop_token stop) = 0;
  // Whether Expand has to be called: attached volumes may have grown.
  virtual bool Expands(const VolumeInput& input) const { return !AttachName(input).empty(); }
  // Grows the volume on this node to the persistent volume's capacity; called after SetUp or Device. `path`: what those
  // returned. kTimeout, kUnavailable, kTooManyRequests, kConflict, kCancelled: it may be under way, or was not tried.
  // kInvalid: not while the volume is in use. kBadRequest, kGone, kNotFound: the volume cannot have that size. Others: it has
  // failed for good.
  virtual Result<> Expand(const VolumeInput& input, const std::string& path, std::stop_token stop) {
    (void)input, (void)path, (void)stop;
    return Error(Code::kUnimplemented, "volume plugin " + name() + " cannot expand volumes");
  }

  // The stage path of a volume that any kubelet has set up; empty: none.
  virtual std::string Reconstruct(const Paths& paths, const PublishedVolume& published) const {
    (void)paths, (void)published;
    return "";
  }
  // The caller unmounts the path itself.
  virtual Result<> TearDown(const PublishedVolume& published, std::stop_token stop) {
    (void)published, (void)stop;
    return {};
  }
  virtual Result<> Unstage(const std::string& stage_path, std::stop_token stop) {
    (void)stage_path, (void)stop;
    return {};
  }

  // Whether the plugin tells capacity and usage of its volumes; otherwise their file system does.
  virtual bool Measures() const { return false; }
  virtual Result<VolumeMetrics> Measure(const PublishedVolume& volume, std::stop_token stop) {
    (void)volume, (void)stop;
    return Error(Code::kUnimplemented, "volume plugin " + name() + " does not measure volumes");
  }

  // Whether persistent volumes of this plugin may have mount options.
  virtual bool TakesMountOptions() const { return true; }
  // Whether containers may never write to its volumes.
  virtual bool ReadOnly() const { return false; }
  // Whether the runtime may give the files the pod's SELinux label.
  virtual bool MayRelabel() const { return true; }
  // Whether the volume can be mounted with VolumeInput::selinux_label.
  virtual Result<bool> TakesSeLinuxLabel(const VolumeInput& input) {
    (void)input;
    return false;
  }
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

// securityContext.fsGroup.
std::optional<gid_t> FsGroup(const corev1::Pod& pod);
// Applies fsGroup to a tree: the group may read and (unless `read_only`) write it, new files inherit it. Skipped if
// the root already matches and the pod's fsGroupChangePolicy is OnRootMismatch.
Result<> SetOwnership(const std::string& path, const corev1::Pod& pod, bool read_only);

}  // namespace keelson::kubelet

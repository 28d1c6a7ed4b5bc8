// Decides which nodes a CSI volume is attached to, and the next step to get there. Pure functions.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/api/proto/storage_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::controllers {

using VolumeAttachment = api::storage::v1::VolumeAttachment;

// "kubernetes.io/csi/DRIVER^HANDLE": the name of the volume in node.status.
std::string UniqueVolumeName(const corev1::PersistentVolume& volume);
// "csi-" plus the SHA-256 of handle, driver and node. The name is deterministic, so it can be looked up.
std::string AttachmentName(const corev1::PersistentVolume& volume, const std::string& node);
VolumeAttachment MakeAttachment(const corev1::PersistentVolume& volume, const std::string& node);

// True when the access modes allow several nodes at once.
bool IsShareable(const corev1::PersistentVolume& volume);

// True while the pod needs its volumes on its node. False for a pod that has ended, and for a terminating pod
// without running containers, unless `keep_terminated` (the node's keep-terminated-pod-volumes annotation) is
// set.
bool NeedsVolumes(const corev1::Pod& pod, bool keep_terminated);

// The state of a node for one volume.
struct NodeView {
  bool known = false;    // the Node object exists
  bool in_use = false;   // the kubelet reports, or last reported, the volume in volumesInUse
  bool healthy = false;  // Ready
  bool out_of_service = false;
};
NodeView ViewOf(const corev1::Node* node, const std::string& unique_name);

struct AttachPlan {
  std::vector<std::string> attach;   // nodes that get a VolumeAttachment
  std::vector<std::string> blocked;  // nodes that wait until another node detaches
  std::vector<std::string> detach;   // nodes whose VolumeAttachment is deleted
  // The part of `detach` that is still in use, with the reason for forcing
  std::map<std::string, const char*> forced;
  // Unhealthy nodes, with the time left until a forced detach
  std::map<std::string, std::chrono::seconds> waiting;
};

// `wanted`: nodes with a pod that uses the volume. `attachments`: by node. `unwanted_since`: by node, when
// its attachment became unused. A node that still uses the volume is detached by force when it is out of
// service, or when it has been unhealthy or deleted for `force_after` (zero: never).
AttachPlan PlanAttachments(const corev1::PersistentVolume& volume, const std::set<std::string>& wanted,
                           const std::map<std::string, std::shared_ptr<const VolumeAttachment>>& attachments,
                           const std::map<std::string, NodeView>& nodes,
                           const std::map<std::string, SteadyTime>& unwanted_since, SteadyTime now,
                           std::chrono::seconds force_after);

}  // namespace keelson::controllers

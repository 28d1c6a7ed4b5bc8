// Where a volume of a CSI driver has to be attached, and what to do next about it. Pure.
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

// "kubernetes.io/csi/DRIVER^HANDLE": what kubelets call the volume in their nodes' status.
std::string UniqueVolumeName(const corev1::PersistentVolume& volume);
// "csi-" and a SHA-256 of handle, driver and node: who looks for the attachment knows its name.
std::string AttachmentName(const corev1::PersistentVolume& volume, const std::string& node);
VolumeAttachment MakeAttachment(const corev1::PersistentVolume& volume, const std::string& node);

// May be at several nodes at once.
bool IsShareable(const corev1::PersistentVolume& volume);

// Whether a pod on a node needs its volumes there: not one that has ended, nor one that goes away with
// nothing of it running, unless its kubelet keeps what such pods had mounted.
bool NeedsVolumes(const corev1::Pod& pod, bool keep_terminated);

// How a node stands to one volume.
struct NodeView {
  bool known = false;   // there is such a Node
  bool in_use = false;  // its kubelet says, or said when last seen, that the volume is mounted or about to be
  bool healthy = false;  // Ready
  bool out_of_service = false;
};
NodeView ViewOf(const corev1::Node* node, const std::string& unique_name);

struct AttachPlan {
  std::vector<std::string> attach;                      // nodes that get an attachment
  std::vector<std::string> blocked;                     // nodes that have to wait for another to let go
  std::vector<std::string> detach;                      // nodes whose attachment goes
  std::map<std::string, const char*> forced;            // of these, those that had not let go, and why
  std::map<std::string, std::chrono::seconds> waiting;  // unhealthy nodes, and when they need not be asked
};

// `wanted`: nodes with a pod that uses the volume; `attachments`: by node; `unwanted_since`: by node, since
// when an attachment has not been wanted. A node that does not let go is not waited for when it is out of
// service, nor, unless `force_after` is zero, when it has been unhealthy or gone for that long.
AttachPlan PlanAttachments(const corev1::PersistentVolume& volume, const std::set<std::string>& wanted,
                           const std::map<std::string, std::shared_ptr<const VolumeAttachment>>& attachments,
                           const std::map<std::string, NodeView>& nodes,
                           const std::map<std::string, SteadyTime>& unwanted_since, SteadyTime now,
                           std::chrono::seconds force_after);

}  // namespace keelson::controllers

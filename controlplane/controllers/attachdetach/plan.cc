#include "controlplane/controllers/attachdetach/plan.h"

#include <algorithm>

#include "lib/crypto/digest.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {

std::string UniqueVolumeName(const corev1::PersistentVolume& volume) {
  const auto& csi = volume.spec().persistent_volume_source().csi();
  return "kubernetes.io/csi/" + csi.driver() + "^" + csi.volume_handle();
}

std::string AttachmentName(const corev1::PersistentVolume& volume, const std::string& node) {
  const auto& csi = volume.spec().persistent_volume_source().csi();
  return "csi-" + crypto::Sha256Hex(csi.volume_handle() + csi.driver() + node);
}

VolumeAttachment MakeAttachment(const corev1::PersistentVolume& volume, const std::string& node) {
  VolumeAttachment out;
  out.mutable_metadata()->set_name(AttachmentName(volume, node));
  out.mutable_spec()->set_attacher(volume.spec().persistent_volume_source().csi().driver());
  out.mutable_spec()->set_node_name(node);
  out.mutable_spec()->mutable_source()->set_persistent_volume_name(volume.metadata().name());
  return out;
}

bool IsShareable(const corev1::PersistentVolume& volume) {
  const auto& modes = volume.spec().access_modes();
  // Without access modes, allow it: the driver may refuse.
  return modes.empty() || std::any_of(modes.begin(), modes.end(), [](const std::string& mode) {
           return mode == "ReadWriteMany" || mode == "ReadOnlyMany";
         });
}

bool NeedsVolumes(const corev1::Pod& pod, bool keep_terminated) {
  if (keep_terminated) return true;
  if (k8s::IsTerminal(pod)) return false;
  const auto& containers = pod.status().container_statuses();
  return !k8s::IsTerminating(pod) ||
         std::any_of(containers.begin(), containers.end(), [](const corev1::ContainerStatus& container) {
           return !container.state().has_terminated() && !container.state().has_waiting();
         });
}

NodeView ViewOf(const corev1::Node* node, const std::string& unique_name) {
  NodeView out;
  if (!node) return out;
  out.known = true;
  const auto& in_use = node->status().volumes_in_use();
  out.in_use = std::find(in_use.begin(), in_use.end(), unique_name) != in_use.end();
  for (const corev1::NodeCondition& condition : node->status().conditions()) {
    out.healthy |= condition.type() == "Ready" && condition.status() == "True";
  }
  for (const corev1::Taint& taint : node->spec().taints()) {
    out.out_of_service |= taint.key() == "node.kubernetes.io/out-of-service";
  }
  return out;
}

AttachPlan PlanAttachments(const corev1::PersistentVolume& volume, const std::set<std::string>& wanted,
                           const std::map<std::string, std::shared_ptr<const VolumeAttachment>>& attachments,
                           const std::map<std::string, NodeView>& nodes,
                           const std::map<std::string, SteadyTime>& unwanted_since, SteadyTime now,
                           std::chrono::seconds force_after) {
  AttachPlan out;
  auto view = [&](const std::string& node) {
    auto found = nodes.find(node);
    return found == nodes.end() ? NodeView() : found->second;
  };
  for (const auto& [node, attachment] : attachments) {
    if (wanted.contains(node) || attachment->metadata().has_deletion_timestamp()) continue;
    const NodeView at = view(node);
    if (!at.in_use || at.out_of_service) {
      out.detach.push_back(node);
      if (at.in_use) out.forced[node] = "out-of-service";
      continue;
    }
    if (at.healthy || force_after.count() <= 0) continue;  // the kubelet will unmount and report it
    auto since = unwanted_since.find(node);
    const auto waited = since == unwanted_since.end() ? SteadyTime::duration() : now - since->second;
    if (waited >= force_after) {
      out.detach.push_back(node);
      out.forced[node] = "timeout";
    } else {
      out.waiting[node] = std::chrono::ceil<std::chrono::seconds>(force_after - waited);
    }
  }
  const bool shareable = IsShareable(volume);
  bool taken = !attachments.empty();
  for (const std::string& node : wanted) {
    if (attachments.contains(node) || !view(node).known) continue;
    if (taken && !shareable) {
      out.blocked.push_back(node);
    } else {
      out.attach.push_back(node);
      taken = true;
    }
  }
  return out;
}

}  // namespace keelson::controllers

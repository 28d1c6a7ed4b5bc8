// The attach-detach controller for CSI drivers. It creates a VolumeAttachment for each volume that pods use
// on a node; the driver's external-attacher carries it out. It lists attached volumes in
// node.status.volumesAttached for the kubelet.
//
// The controller detaches a volume when no pod on the node uses it and the kubelet no longer reports it in
// volumesInUse. It first removes the volume from node.status.volumesAttached, then deletes the
// VolumeAttachment. All state is in these objects, so a new controller continues where a killed one stopped.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "controlplane/controllers/attachdetach/plan.h"
#include "controlplane/controllers/common/controller.h"

namespace keelson::controllers {

inline constexpr std::chrono::seconds kForceDetachAfter = std::chrono::minutes(6);

class AttachDetachController : public Controller {
 public:
  // `force_after`: how long an unhealthy node may delay a detach; zero: no limit.
  AttachDetachController(client::RestClient api, client::InformerFactory& informers,
                         client::EventRecorder& events, Clock& clock,
                         std::chrono::seconds force_after = kForceDetachAfter);
  // Key: the name of a PersistentVolume.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  using Pods = std::map<std::string, std::vector<std::shared_ptr<const corev1::Pod>>>;  // by node
  using Attachments = std::map<std::string, std::shared_ptr<const VolumeAttachment>>;   // by node

  void OnPod(const client::Change<corev1::Pod>& change);
  void OnNode(const client::Change<corev1::Node>& change);
  void EnqueueVolumesOf(const corev1::Pod& pod);
  // True for a CSI volume of a driver whose CSIDriver requires attaching.
  bool NeedsAttaching(const corev1::PersistentVolume& volume) const;
  Pods UsersOf(const corev1::PersistentVolume& volume) const;
  // In-memory state of a volume, by node, kept while the volume has an attachment on that node.
  struct Memory {
    std::map<std::string, SteadyTime> unwanted;  // when the last pod that used the volume there went away
    std::map<std::string, std::string> told;     // the attach result that was last reported as an event
    std::set<std::string> leaving;               // nodes that the volume is being detached from
    std::set<std::string> blocked;               // nodes for which an event reported a multi-attach conflict
    std::map<std::string, bool> in_use;          // volumesInUse of each node, as last seen
    std::map<std::string, SteadyTime> awaited;   // since when a node waits for an attacher's answer
  };
  Memory& Remember(const std::string& volume, const Attachments& attachments, const Pods& wanted);
  // The state of each node for this volume. A deleted node may still have the volume mounted, unless it last
  // reported otherwise.
  std::map<std::string, NodeView> ViewNodes(const std::string& unique_name, const Attachments& attachments,
                                            const Pods& wanted, Memory& memory) const;
  Result<> Attach(const client::RestClient& api, const corev1::PersistentVolume& volume,
                  const std::string& node, const Pods& users);
  // Writes node.status.volumesAttached: all attached volumes except those being detached.
  Result<> ReportAttached(const client::RestClient& api, const std::string& node);
  // Records one FailedAttachVolume event per conflict, not one per sync.
  void TellBlocked(const corev1::PersistentVolume& volume, const std::vector<std::string>& nodes,
                   const Attachments& attachments, const Pods& users, Memory& memory);
  void TellOutcome(const corev1::PersistentVolume& volume, const VolumeAttachment& attachment,
                   const Pods& users, Memory& memory);
  // Records an event each two minutes that an attacher has not answered. Returns when the next one is due.
  std::optional<std::chrono::nanoseconds> TellSilence(const corev1::PersistentVolume& volume,
                                                      const Attachments& attachments, const Pods& users,
                                                      Memory& memory);

  client::RestClient api_;
  client::EventRecorder& events_;
  const std::chrono::seconds force_after_;
  client::Informer<corev1::Pod>& pods_;
  client::Informer<corev1::PersistentVolumeClaim>& claims_;
  client::Informer<corev1::PersistentVolume>& volumes_;
  client::Informer<corev1::Node>& nodes_;
  client::Informer<VolumeAttachment>& attachments_;
  client::Informer<api::storage::v1::CSIDriver>& drivers_;

  std::map<std::string, Memory> memory_;  // by volume; used by the single worker only
};

}  // namespace keelson::controllers

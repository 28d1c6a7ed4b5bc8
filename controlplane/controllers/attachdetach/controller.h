// Attaches volumes of CSI drivers to the nodes whose pods use them, by VolumeAttachments that each driver's
// own attacher works off, and tells kubelets in their nodes' status what is attached.
//
// A volume is taken from a node when no pod there uses it and its kubelet says that it is not mounted; it is
// first taken out of node.status.volumesAttached, then its VolumeAttachment is deleted. All that has to be
// known stands in these objects: a controller that was killed is followed by one that reads them.
#pragma once

#include <map>
#include <set>

#include "controlplane/controllers/attachdetach/plan.h"
#include "controlplane/controllers/common/controller.h"

namespace keelson::controllers {

class AttachDetachController : public Controller {
 public:
  // `force_after`: how long a node that is not healthy may hold on; zero: for ever.
  AttachDetachController(client::RestClient api, client::InformerFactory& informers,
                         client::EventRecorder& events, Clock& clock,
                         std::chrono::seconds force_after = std::chrono::minutes(6));
  // By name of the volume.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  using Pods = std::map<std::string, std::vector<std::shared_ptr<const corev1::Pod>>>;  // by node
  using Attachments = std::map<std::string, std::shared_ptr<const VolumeAttachment>>;   // by node

  void OnPod(const client::Change<corev1::Pod>& change);
  void OnNode(const client::Change<corev1::Node>& change);
  void EnqueueVolumesOf(const corev1::Pod& pod);
  // CSI, and of a driver that has volumes attached.
  bool NeedsAttaching(const corev1::PersistentVolume& volume) const;
  Pods UsersOf(const corev1::PersistentVolume& volume) const;
  // What is remembered of a volume, by node, while it has an attachment there.
  struct Memory {
    std::map<std::string, SteadyTime> unwanted;  // since when no pod there uses it
    std::map<std::string, std::string> told;     // how attaching ended, as events said
    std::set<std::string> leaving;               // where it is taken away
    std::set<std::string> blocked;               // who has been told that another node has it
    std::map<std::string, bool> in_use;          // as each node said when it was last seen
  };
  Memory& Remember(const std::string& volume, const Attachments& attachments, const Pods& wanted);
  // How the nodes stand to the volume. One that is gone may have it mounted still, unless it said otherwise.
  std::map<std::string, NodeView> ViewNodes(const std::string& unique_name, const Attachments& attachments,
                                            const Pods& wanted, Memory& memory) const;
  Result<> Attach(const client::RestClient& api, const corev1::PersistentVolume& volume,
                  const std::string& node, const Pods& users);
  // node.status.volumesAttached says what is attached there, but for what is being taken away.
  Result<> ReportAttached(const client::RestClient& api, const std::string& node);
  // Once for as long as it lasts.
  void TellBlocked(const corev1::PersistentVolume& volume, const std::vector<std::string>& nodes,
                   const Attachments& attachments, const Pods& users, Memory& memory);
  void TellOutcome(const corev1::PersistentVolume& volume, const VolumeAttachment& attachment,
                   const Pods& users, Memory& memory);

  client::RestClient api_;
  client::EventRecorder& events_;
  const std::chrono::seconds force_after_;
  client::Informer<corev1::Pod>& pods_;
  client::Informer<corev1::PersistentVolumeClaim>& claims_;
  client::Informer<corev1::PersistentVolume>& volumes_;
  client::Informer<corev1::Node>& nodes_;
  client::Informer<VolumeAttachment>& attachments_;
  client::Informer<api::storage::v1::CSIDriver>& drivers_;

  std::map<std::string, Memory> memory_;  // by volume; the one worker's only
};

}  // namespace keelson::controllers

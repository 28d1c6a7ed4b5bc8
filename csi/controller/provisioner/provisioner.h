// Makes volumes for claims of one driver's classes, as external-provisioner does.
//
// Everything is in the API and in the driver: a volume has the name of its claim's UID, so a killed provisioner asks for
// the same volume again. A claim that is deleted while its CreateVolume may still be at work is finished all the same:
// the volume appears, is Released and gets deleted.
#pragma once

#include <map>
#include <memory>

#include "csi/controller/common/controller.h"
#include "csi/controller/common/topology_nodes.h"
#include "csi/controller/model/new_volume.h"

namespace keelson::csi::controller {

struct ProvisionerOptions {
  std::string identity;  // in spec.csi.volumeAttributes of volumes
  std::string name_prefix = "pvc";
  int name_uuid_length = -1;
  std::string default_fs_type;
  bool extra_create_metadata = false;
  bool publish_read_only = false;
  TopologyOptions topology;
};

class Provisioner : public Controller {
 public:
  Provisioner(const Environment& environment, ProvisionerOptions options);
  ~Provisioner() override;
  // Key: the UID of a claim.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  using ClaimPtr = std::shared_ptr<const Claim>;
  enum class State {
    kFinished,      // nothing is under way
    kNoChange,      // as after the attempt before
    kInBackground,  // the driver may be at work
    kReschedule,    // nothing is under way, and another node may do
    kInfeasible,    // nothing is under way, and the same request will fail again
    kIgnored,       // the volume is another program's task
  };
  struct Failure {
    State state;
    Error error;
    std::string node = {};  // kReschedule: the one that does; empty: the scheduler finds one
  };
  template <typename T>
  using Attempt = tl::expected<T, Failure>;
  struct Delay {
    std::string class_uid;
    SteadyTime until;
  };

  // What the scheduler and the binder have decided about the claim.
  struct Task {
    ClaimPtr claim;
    std::shared_ptr<const storagev1::StorageClass> storage_class;
    std::string node;  // selected; empty: none
  };

  ClaimPtr Find(const std::string& uid);
  bool Wanted(const Claim& claim) const;
  bool InProgress(const std::string& uid);
  void SetInProgress(const ClaimPtr& claim, bool in_progress);
  // How long the claim still has to wait after its request was infeasible, unless its class is another one now.
  std::chrono::nanoseconds Wait(const Task& task);

  Attempt<ProvisionPlan> Plan(const Task& task, const DriverInfo& info, std::stop_token stop);
  Attempt<Volume> Provision(const Task& task, const DriverInfo& info, std::stop_token stop);
  // Deletes a volume that cannot be used.
  Failure Discard(const ProvisionPlan& plan, const Strings& secrets, const std::string& volume_id, Error why,
                  std::stop_token stop);
  Result<> ProtectSource(const Claim& claim, const std::string& source, std::stop_token stop);
  Result<> Store(const Claim& claim, const Volume& volume, std::stop_token stop);
  Result<Requeue> Fail(const Task& task, const Failure& failure, std::stop_token stop);
  // What an answer without a volume leads to.
  Failure Judge(const Task& task, const DriverInfo& info, const Error& error, std::stop_token stop);
  // Selects the node, or none, in place of the one that was selected.
  Result<> Reselect(const Claim& claim, const std::string& node, std::stop_token stop);
  ProvisionOptions PlanOptions(const DriverInfo& info) const;

  const ProvisionerOptions options_;
  client::Informer<Claim>& claims_;
  client::Informer<Volume>& volumes_;
  client::Informer<storagev1::StorageClass>& classes_;
  const std::unique_ptr<TopologyNodes> nodes_;  // null: the driver had no topology at the start

  Mutex mutex_;
  // Their deletion must not stop the work, by UID.
  std::map<std::string, ClaimPtr> in_progress_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, Delay> delays_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::csi::controller

// Publishes how much space a driver has (CSIStorageCapacity), for the scheduler: one object for each topology of the
// driver and each class with WaitForFirstConsumer. Objects follow GetCapacity: every minute, and soon after volumes,
// classes or topologies have changed.
//
// Labels tell which objects are the controller's own, so a new process finds those of the one before; external-provisioner
// has the same labels.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "csi/controller/capacity/plan.h"
#include "csi/controller/common/controller.h"
#include "csi/controller/common/topology_nodes.h"

namespace keelson::csi::controller {

struct CapacityOptions {
  std::string ns;                                            // of the objects
  std::chrono::nanoseconds poll{std::chrono::minutes(1)};    // --capacity-poll-interval
  std::chrono::nanoseconds settle{std::chrono::seconds(1)};  // how long changes are gathered
  bool immediate = false;  // --capacity-for-immediate-binding: these classes too
  std::string default_fs_type;
};

class Capacity : public Controller {
 public:
  Capacity(const Environment& environment, CapacityOptions options);
  // There is one key, for everything.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  std::vector<CapacitySlot> Slots(const DriverInfo& info) const;
  Result<CapacityAnswer> Ask(const CapacitySlot& slot, std::stop_token stop);

  const CapacityOptions options_;
  client::Informer<storagev1::StorageClass>& classes_;
  client::Informer<Volume>& volumes_;
  const std::unique_ptr<TopologyNodes> nodes_;  // null: on a node, whose topology the driver tells
};

}  // namespace keelson::csi::controller

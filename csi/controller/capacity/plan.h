// Which CSIStorageCapacity objects there have to be: external-provisioner's rules. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "csi/controller/model/topology.h"
#include "csi/controller/model/wire.h"

namespace keelson::csi::controller {

using StorageCapacity = storagev1::CSIStorageCapacity;

// One object: how much a volume of the class may have where these labels are.
struct CapacitySlot {
  Segments segments;
  std::string storage_class;
  bool operator==(const CapacitySlot&) const = default;
};

struct CapacityAnswer {
  int64_t available = 0;
  std::optional<int64_t> maximum;  // of one volume
};

// The distinct topologies of the nodes on which the driver has registered, sorted.
std::vector<Segments> DistinctTopologies(const std::vector<TopologyNode>& nodes);

// csi.storage.k8s.io/managed-by: which process an object belongs to. 63 characters at most.
std::string ManagedBy(const std::string& node);

StorageCapacity MakeCapacity(const CapacitySlot& slot, const CapacityAnswer& answer,
                             const std::string& driver, const std::string& managed_by, const std::string& ns);

struct CapacityPlan {
  std::vector<CapacitySlot> missing;  // to be made
  std::vector<StorageCapacity> kept;  // to be brought up to date, in the order of their slots
  std::vector<CapacitySlot> kept_slots;
  std::vector<StorageCapacity> superfluous;  // of no slot, and second ones of a slot
};
CapacityPlan PlanCapacities(const std::vector<CapacitySlot>& slots,
                            const std::vector<StorageCapacity>& present);

}  // namespace keelson::csi::controller

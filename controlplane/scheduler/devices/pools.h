// Pools of devices, made of ResourceSlices (KEP-4381, KEP-4815).
//
// A pool consists of the slices of its newest generation. It is incomplete until all of them are there: then nothing is
// allocated from it, and a request for all devices of a node has to wait. A pool is invalid when two devices or counter sets
// have one name, or a device consumes a counter that does not exist.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "controlplane/scheduler/devices/selectors.h"
#include "controlplane/scheduler/devices/uses.h"
#include "controlplane/scheduler/types/node_info.h"

namespace keelson::scheduler {

using SlicePtr = std::shared_ptr<const resourcev1::ResourceSlice>;

// The nodes that a slice or device is for.
class NodeTarget {
 public:
  NodeTarget() = default;  // none
  NodeTarget(const std::string& node, bool all, const corev1::NodeSelector* selector);
  bool Matches(const k8s::NodeView& node) const;
  const std::string& node() const { return node_; }  // "": it does not name one

 private:
  std::string node_;
  bool all_ = false;
  std::vector<k8s::NodeTerm> terms_;
};

struct PoolDevice {
  const resourcev1::Device* device;
  const resourcev1::ResourceSlice* slice;
  NodeTarget target;
  // What it takes of the pool's counters: index, amount.
  std::vector<std::pair<uint32_t, api::Amount>> counters;
};

class Pool {
 public:
  // `slices`: those of the newest generation, not empty.
  explicit Pool(std::vector<SlicePtr> slices);

  const std::string& id() const { return id_; }
  const std::string& driver() const { return slices_.front()->spec().driver(); }
  bool incomplete() const { return incomplete_; }
  const std::string& invalid() const { return invalid_; }  // why, or ""
  bool usable() const { return !incomplete_ && invalid_.empty(); }
  bool has_binding_conditions() const { return has_binding_conditions_; }
  const std::vector<PoolDevice>& devices() const { return devices_; }
  // The one node that all devices are for; "": any.
  const std::string& node() const { return node_; }
  const std::vector<api::Amount>& counters() const { return counters_; }
  // What devices in use leave of the counters.
  std::vector<api::Amount> AvailableCounters(const PoolUse* uses) const;

  // Whether devices()[device] matches; what an earlier call has found is remembered. Not thread safe.
  Result<bool> Matches(const Selector& selector, uint32_t device) const;

 private:
  void AddDevice(const resourcev1::Device& device, const resourcev1::ResourceSlice& slice);
  void AddCounters(const resourcev1::ResourceSlice& slice);
  std::string ReadCounters(const resourcev1::Device& device, PoolDevice& out) const;

  std::vector<SlicePtr> slices_;
  std::string id_, invalid_, node_;
  bool incomplete_ = false, has_binding_conditions_ = false;
  std::vector<PoolDevice> devices_;
  std::unordered_map<std::string_view, uint32_t> by_name_;
  std::map<std::string, std::map<std::string, uint32_t>> counter_sets_;  // set -> counter -> index
  std::vector<api::Amount> counters_;
  // By selector: for each device unknown, no or yes.
  mutable std::unordered_map<uint64_t, std::vector<int8_t>> matches_;
};

class PoolIndex {  // not thread safe
 public:
  // A slice has changed; null: it is gone.
  void Set(const std::string& name, SlicePtr slice);
  // The pools with devices that may be for the node, in the order in which they are searched: those whose devices have
  // binding conditions come last, otherwise by id. Valid until the next Set().
  std::vector<const Pool*> Of(const std::string& node);

 private:
  void Rebuild();
  void Insert(const Pool& pool);
  void Erase(const Pool& pool);

  std::unordered_map<std::string, SlicePtr> slices_;
  std::map<std::string, std::set<std::string>> names_;  // of the slices of a pool, by its id
  std::map<std::string, std::unique_ptr<Pool>> pools_;
  std::set<std::string> stale_;                                        // ids of pools to be built anew
  std::unordered_map<std::string, std::vector<const Pool*>> by_node_;  // sorted
  std::vector<const Pool*> wide_;                                      // of no single node; sorted
};

}  // namespace keelson::scheduler

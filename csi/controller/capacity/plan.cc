#include "csi/controller/capacity/plan.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "lib/api/quantity.h"

namespace keelson::csi::controller {
namespace {

constexpr size_t kMostOfLabel = 63;

std::optional<CapacitySlot> SlotOf(const StorageCapacity& object) {
  if (!object.has_node_topology() || object.node_topology().match_expressions_size() > 0) return std::nullopt;
  const auto& labels = object.node_topology().match_labels();
  return CapacitySlot{{labels.begin(), labels.end()}, object.storage_class_name()};
}

}  // namespace

std::vector<Segments> DistinctTopologies(const std::vector<TopologyNode>& nodes) {
  std::set<Segments> out;
  for (const TopologyNode& node : nodes) {
    Segments segments;
    for (const std::string& key : node.keys) {
      const auto label = node.labels.find(key);
      if (label != node.labels.end()) segments.insert(*label);
    }
    // A node that lacks a label is no place for volumes yet.
    if (!node.keys.empty() && segments.size() == node.keys.size()) out.insert(std::move(segments));
  }
  return {out.begin(), out.end()};
}

std::string ManagedBy(const std::string& node) {
  std::string base = "external-provisioner";
  if (node.empty()) return base;
  std::string name = base + "-" + node;
  if (name.size() <= kMostOfLabel) return name;
  uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return fmt::format("{}-{:08x}", base, hash);
}

StorageCapacity MakeCapacity(const CapacitySlot& slot, const CapacityAnswer& answer,
                             const std::string& driver, const std::string& managed_by,
                             const std::string& ns) {
  StorageCapacity out;
  metav1::ObjectMeta& meta = *out.mutable_metadata();
  meta.set_generate_name("csisc-");
  meta.set_namespace_(ns);
  (*meta.mutable_labels())["csi.storage.k8s.io/drivername"] = driver;
  (*meta.mutable_labels())["csi.storage.k8s.io/managed-by"] = managed_by;
  auto& labels = *out.mutable_node_topology()->mutable_match_labels();
  for (const auto& [key, value] : slot.segments) labels[key] = value;
  out.set_storage_class_name(slot.storage_class);
  *out.mutable_capacity() = api::Amount::FromBytes(answer.available).ToQuantity();
  if (answer.maximum) {
    *out.mutable_maximum_volume_size() = api::Amount::FromBytes(*answer.maximum).ToQuantity();
  }
  return out;
}

CapacityPlan PlanCapacities(const std::vector<CapacitySlot>& slots,
                            const std::vector<StorageCapacity>& present) {
  CapacityPlan out;
  std::vector<bool> used(present.size(), false);
  for (const CapacitySlot& slot : slots) {
    bool found = false;
    for (size_t i = 0; i < present.size() && !found; ++i) {
      if (used[i] || SlotOf(present[i]) != slot) continue;
      found = used[i] = true;
      out.kept.push_back(present[i]);
      out.kept_slots.push_back(slot);
    }
    if (!found) out.missing.push_back(slot);
  }
  for (size_t i = 0; i < present.size(); ++i) {
    if (!used[i]) out.superfluous.push_back(present[i]);
  }
  return out;
}

}  // namespace keelson::csi::controller

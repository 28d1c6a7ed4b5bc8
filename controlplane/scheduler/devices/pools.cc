#include "controlplane/scheduler/devices/pools.h"

#include <fmt/format.h>

#include <algorithm>

namespace keelson::scheduler {

namespace {

constexpr size_t kRememberedSelectors = 64;
constexpr int8_t kUnknown = 0, kNo = 1, kYes = 2;

bool Before(const Pool* a, const Pool* b) {
  if (a->has_binding_conditions() != b->has_binding_conditions()) return b->has_binding_conditions();
  return a->id() < b->id();
}

std::string IdOf(const resourcev1::ResourceSlice& slice) {
  return PoolId(slice.spec().driver(), slice.spec().pool().name());
}

}  // namespace

NodeTarget::NodeTarget(const std::string& node, bool all, const corev1::NodeSelector* selector)
    : node_(node), all_(all) {
  if (!selector) return;
  for (const corev1::NodeSelectorTerm& term : selector->node_selector_terms()) terms_.emplace_back(term);
}

bool NodeTarget::Matches(const k8s::NodeView& node) const {
  if (!node_.empty()) return node_ == node.name;
  return all_ || std::any_of(terms_.begin(), terms_.end(),
                             [&](const k8s::NodeTerm& term) { return term.Matches(node); });
}

Pool::Pool(std::vector<SlicePtr> slices) : slices_(std::move(slices)), id_(IdOf(*slices_.front())) {
  std::sort(slices_.begin(), slices_.end(),
            [](const SlicePtr& a, const SlicePtr& b) { return a->metadata().name() < b->metadata().name(); });
  incomplete_ = static_cast<int64_t>(slices_.size()) != slices_.front()->spec().pool().resource_slice_count();
  for (const SlicePtr& slice : slices_) AddCounters(*slice);
  for (const SlicePtr& slice : slices_) {
    for (const resourcev1::Device& device : slice->spec().devices()) AddDevice(device, *slice);
  }
  const bool one =
      !devices_.empty() && std::all_of(devices_.begin(), devices_.end(), [&](const auto& device) {
        return device.target.node() == devices_.front().target.node();
      });
  if (one) node_ = devices_.front().target.node();
}

void Pool::AddCounters(const resourcev1::ResourceSlice& slice) {
  for (const resourcev1::CounterSet& set : slice.spec().shared_counters()) {
    const auto [it, added] = counter_sets_.try_emplace(set.name());
    if (!added && invalid_.empty()) invalid_ = fmt::format("duplicate counter set name {}", set.name());
    for (const auto& [name, counter] : set.counters()) {
      it->second[name] = static_cast<uint32_t>(counters_.size());
      counters_.push_back(api::Amount::Of(counter.value()));
    }
  }
}

std::string Pool::ReadCounters(const resourcev1::Device& device, PoolDevice& out) const {
  for (const resourcev1::DeviceCounterConsumption& consumption : device.consumes_counters()) {
    const auto set = counter_sets_.find(consumption.counter_set());
    if (set == counter_sets_.end()) return fmt::format("counter set {} not found", consumption.counter_set());
    for (const auto& [name, counter] : consumption.counters()) {
      const auto known = set->second.find(name);
      if (known == set->second.end()) {
        return fmt::format("counter {} not found in counter set {}", name, consumption.counter_set());
      }
      out.counters.emplace_back(known->second, api::Amount::Of(counter.value()));
    }
  }
  return "";
}

void Pool::AddDevice(const resourcev1::Device& device, const resourcev1::ResourceSlice& slice) {
  const resourcev1::ResourceSliceSpec& spec = slice.spec();
  PoolDevice& out = devices_.emplace_back(PoolDevice{&device, &slice, {}, {}});
  if (spec.per_device_node_selection()) {
    out.target = NodeTarget(device.node_name(), device.all_nodes(),
                            device.has_node_selector() ? &device.node_selector() : nullptr);
  } else {
    out.target = NodeTarget(spec.node_name(), spec.all_nodes(),
                            spec.has_node_selector() ? &spec.node_selector() : nullptr);
  }
  has_binding_conditions_ = has_binding_conditions_ || device.binding_conditions_size() > 0;
  std::string problem = ReadCounters(device, out);
  if (!by_name_.emplace(device.name(), static_cast<uint32_t>(devices_.size() - 1)).second) {
    problem = fmt::format("duplicate device name {}", device.name());
  }
  if (invalid_.empty()) invalid_ = std::move(problem);
}

std::vector<api::Amount> Pool::AvailableCounters(const PoolUse* uses) const {
  std::vector<api::Amount> left = counters_;
  if (!uses) return left;
  for (const auto& [name, use] : *uses) {
    const auto known = by_name_.find(name);
    if (known == by_name_.end()) continue;
    for (const auto& [index, amount] : devices_[known->second].counters) left[index] -= amount;
  }
  return left;
}

Result<bool> Pool::Matches(const Selector& selector, uint32_t device) const {
  if (matches_.size() > kRememberedSelectors) matches_.clear();
  std::vector<int8_t>& known = matches_[selector.id];
  if (known.empty()) known.resize(devices_.size(), kUnknown);
  if (known[device] == kUnknown) {
    KEELSON_ASSIGN_OR_RETURN(const bool matches,
                             k8s::DeviceMatches(*selector.program, driver(), *devices_[device].device));
    known[device] = matches ? kYes : kNo;
  }
  return known[device] == kYes;
}

void PoolIndex::Set(const std::string& name, SlicePtr slice) {
  if (const auto old = slices_.find(name); old != slices_.end()) {
    const std::string id = IdOf(*old->second);
    names_[id].erase(name);
    stale_.insert(id);
    slices_.erase(old);
  }
  if (!slice) return;
  const std::string id = IdOf(*slice);
  names_[id].insert(name);
  stale_.insert(id);
  slices_[name] = std::move(slice);
}

void PoolIndex::Insert(const Pool& pool) {
  std::vector<const Pool*>& list = pool.node().empty() ? wide_ : by_node_[pool.node()];
  list.insert(std::lower_bound(list.begin(), list.end(), &pool, Before), &pool);
}

void PoolIndex::Erase(const Pool& pool) {
  if (pool.node().empty()) {
    std::erase(wide_, &pool);
    return;
  }
  const auto list = by_node_.find(pool.node());
  std::erase(list->second, &pool);
  if (list->second.empty()) by_node_.erase(list);
}

void PoolIndex::Rebuild() {
  for (const std::string& id : stale_) {
    if (const auto old = pools_.find(id); old != pools_.end()) {
      if (!old->second->devices().empty()) Erase(*old->second);
      pools_.erase(old);
    }
    const auto names = names_.find(id);
    if (names->second.empty()) {
      names_.erase(names);
      continue;
    }
    std::vector<SlicePtr> newest;
    for (const std::string& name : names->second) {
      const SlicePtr& slice = slices_.at(name);
      const int64_t generation = slice->spec().pool().generation();
      if (!newest.empty() && newest.front()->spec().pool().generation() < generation) newest.clear();
      if (newest.empty() || newest.front()->spec().pool().generation() == generation) newest.push_back(slice);
    }
    const auto& pool = pools_[id] = std::make_unique<Pool>(std::move(newest));
    if (!pool->devices().empty()) Insert(*pool);
  }
  stale_.clear();
}

std::vector<const Pool*> PoolIndex::Of(const std::string& node) {
  if (!stale_.empty()) Rebuild();
  const auto own = by_node_.find(node);
  if (own == by_node_.end()) return wide_;
  if (wide_.empty()) return own->second;
  std::vector<const Pool*> out;
  out.reserve(own->second.size() + wide_.size());
  std::merge(own->second.begin(), own->second.end(), wide_.begin(), wide_.end(), std::back_inserter(out),
             Before);
  return out;
}

}  // namespace keelson::scheduler

#include "controlplane/apiserver/resource_metrics/usage_store.h"

namespace keelson::apiserver {

std::shared_ptr<const NodeUsage> UsageStore::Find(std::string_view node) const {
  MutexLock lock(mutex_);
  auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : found->second;
}

void UsageStore::Put(const std::string& node, UsageSample sample) {
  std::shared_ptr<const NodeUsage> known = Find(node);
  auto next = std::make_shared<const NodeUsage>(Advance(known.get(), std::move(sample), period_));
  MutexLock lock(mutex_);
  nodes_.insert_or_assign(node, std::move(next));
}

void UsageStore::Remove(const std::string& node) {
  MutexLock lock(mutex_);
  nodes_.erase(node);
}

std::optional<Usage> UsageStore::Node(std::string_view node) const {
  std::shared_ptr<const NodeUsage> known = Find(node);
  return known ? UsageOf(known->node) : std::nullopt;
}

std::optional<PodUsage> UsageStore::Pod(std::string_view node, std::string_view key) const {
  std::shared_ptr<const NodeUsage> known = Find(node);
  if (!known) return std::nullopt;
  auto found = known->pods.find(key);
  if (found == known->pods.end()) return std::nullopt;
  PodUsage out;
  for (const auto& [name, track] : found->second) {
    std::optional<Usage> usage = UsageOf(track);
    if (!usage) return std::nullopt;
    if (out.containers.empty() || usage->time < out.time) {
      out.time = usage->time;
      out.window = usage->window;
    }
    out.containers.emplace(name, *usage);
  }
  return out;
}

}  // namespace keelson::apiserver

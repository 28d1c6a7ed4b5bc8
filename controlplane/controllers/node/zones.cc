#include "controlplane/controllers/node/zones.h"

#include <algorithm>

#include "controlplane/controllers/common/metrics.h"
#include "lib/base/log.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

constexpr char kExcluded[] = "node.kubernetes.io/exclude-disruption";

std::string Label(const corev1::Node& node, const char* name, const char* before) {
  const auto& labels = node.metadata().labels();
  auto it = labels.find(name);
  if (it == labels.end()) it = labels.find(before);
  return it == labels.end() ? "" : it->second;
}

const char* NameOf(ZoneState state) {
  constexpr const char* kNames[] = {"Normal", "PartialDisruption", "FullDisruption"};
  return kNames[static_cast<int>(state)];
}

// The zone name in metrics.
void Show(const std::string& zone, int ready, int not_ready) {
  const int size = ready + not_ready;
  TheMetrics().node_collector_zone_size.With({zone}).Set(size);
  TheMetrics().node_collector_zone_health.With({zone}).Set(size == 0 ? 100 : 100.0 * ready / size);
  TheMetrics().node_collector_unhealthy_nodes_in_zone.With({zone}).Set(not_ready);
}

}  // namespace

std::string ZoneOf(const corev1::Node& node) {
  const std::string region =
      Label(node, "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region");
  const std::string zone =
      Label(node, "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone");
  if (region.empty() && zone.empty()) return "";
  return region + ":" + std::string(1, '\0') + ":" + zone;
}

ZoneState StateOfZone(int ready, int not_ready, double unhealthy_threshold) {
  if (ready == 0 && not_ready > 0) return ZoneState::kFullDisruption;
  if (not_ready > 2 && not_ready >= unhealthy_threshold * (ready + not_ready)) {
    return ZoneState::kPartialDisruption;
  }
  return ZoneState::kNormal;
}

double EvictionRate(ZoneState state, int nodes, const Options& options) {
  // When one whole zone fails and others are healthy, it is evicted at the normal rate: its pods are needed
  // elsewhere.
  if (state != ZoneState::kPartialDisruption) return options.node_eviction_rate;
  return nodes > options.large_cluster_size_threshold ? options.secondary_node_eviction_rate : 0;
}

void Zones::Count(const Member& member, int by) {
  if (!member.counted) return;
  Zone& zone = zones_[member.zone];
  (member.ready ? zone.ready : zone.not_ready) += by;
}

void Zones::Fill(Zone& zone, SteadyTime now) {
  const std::chrono::duration<double> passed = now - zone.filled;
  zone.tokens = std::min(1.0, zone.tokens + std::max(0.0, passed.count()) * zone.rate);
  zone.filled = now;
}

void Zones::Judge(const std::string& name, SteadyTime now) {
  Zone& zone = zones_[name];
  Fill(zone, now);  // up to now by the rate so far
  const ZoneState state = StateOfZone(zone.ready, zone.not_ready, options_.unhealthy_zone_threshold);
  if (state != zone.state) {
    log::Info("Zone has another state", {{"zone", name}, {"state", NameOf(state)}});
    zone.state = state;
  }
  zone.rate = EvictionRate(state, zone.ready + zone.not_ready, options_);
  Show(name, zone.ready, zone.not_ready);
}

Zones::Mood Zones::Update(const std::string& name, const corev1::Node* node, SteadyTime now) {
  std::optional<std::string> left;
  if (auto it = members_.find(name); it != members_.end()) {
    Count(it->second, -1);
    left = it->second.zone;
    members_.erase(it);
  }
  if (node) {
    Member member{ZoneOf(*node),
                  k8s::FindCondition(node->status(), "Ready") && !node->metadata().labels().count(kExcluded),
                  HealthOf(*node) == NodeHealth::kReady};
    Count(member, 1);
    Judge(member.zone, now);
    if (left == member.zone) left.reset();
    members_.emplace(name, std::move(member));
  }
  if (left) {
    Withdraw(name);
    Judge(*left, now);
  }
  bool any = false, all = true;
  for (const auto& [key, zone] : zones_) {
    if (zone.ready + zone.not_ready == 0) continue;
    any = true;
    all = all && zone.state == ZoneState::kFullDisruption;
  }
  all = any && all;
  if (all == all_disrupted_) return Mood::kSame;
  all_disrupted_ = all;
  return all ? Mood::kAllDisrupted : Mood::kRecovered;
}

Zones::Turn Zones::Ask(const std::string& name, SteadyTime now) {
  auto member = members_.find(name);
  if (member == members_.end()) return {};
  Zone& zone = zones_[member->second.zone];
  if (std::find(zone.waiting.begin(), zone.waiting.end(), name) == zone.waiting.end()) {
    zone.waiting.push_back(name);
  }
  if (zone.waiting.front() != name) return {};
  if (zone.rate <= 0) return {};
  Fill(zone, now);
  // Summing small parts falls short of one by rounding.
  constexpr double kWhole = 1 - 1e-6;
  if (zone.tokens < kWhole) {
    const std::chrono::duration<double> wait((1 - zone.tokens) / zone.rate);
    return {false, std::chrono::ceil<std::chrono::milliseconds>(wait), ""};
  }
  zone.tokens = 0;
  zone.waiting.pop_front();
  TheMetrics().node_collector_evictions_total.With({member->second.zone}).Increment();
  return {true, std::nullopt, zone.waiting.empty() ? "" : zone.waiting.front()};
}

void Zones::Withdraw(const std::string& name) {
  for (auto& [key, zone] : zones_) std::erase(zone.waiting, name);
}

}  // namespace keelson::controllers

#include "controlplane/controllers/endpoints/hints.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lib/api/quantity.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

using Endpoints = std::vector<discoveryv1::Endpoint*>;

constexpr double kOverload = 0.2;  // how far an endpoint may exceed its share

struct NodeShare {
  bool counts = false;
  std::string zone;
  int64_t milli_cpus = 0;
};
NodeShare ShareOf(const corev1::Node& node) {
  const auto& labels = node.metadata().labels();
  if (labels.contains("node-role.kubernetes.io/control-plane") ||
      labels.contains("node-role.kubernetes.io/master") || !k8s::IsReady(node)) {
    return {};
  }
  NodeShare share{.counts = true};
  if (auto zone = labels.find("topology.kubernetes.io/zone"); zone != labels.end()) share.zone = zone->second;
  const auto& allocatable = node.status().allocatable();
  if (auto cpu = allocatable.find("cpu"); cpu != allocatable.end()) {
    share.milli_cpus = api::Amount::Of(cpu->second).MilliValue();
  }
  return share;
}

struct Zone {
  double desired = 0;
  int minimum = 0;
  Endpoints own;  // endpoints that the zone uses
  int count() const { return static_cast<int>(own.size()); }
};
using Zones = std::map<std::string, Zone>;

// The zone with the largest surplus that can give an endpoint away.
Zone* Giver(Zones& zones) {
  Zone* most = nullptr;
  for (auto& [name, zone] : zones) {
    if (zone.count() <= zone.minimum) continue;
    if (!most || zone.count() - zone.desired > most->count() - most->desired) most = &zone;
  }
  return most;
}

// Each endpoint serves its own zone, except for those that other zones need to reach their minimum.
std::string ShareOut(const ZoneShares& shares, const Endpoints& ready, Zones& zones) {
  const auto problem = [&](std::string_view what) {
    return fmt::format("{} ({} endpoints, {} zones)", what, ready.size(), shares.size());
  };
  if (shares.empty()) {
    return "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes";
  }
  if (ready.size() < shares.size()) return problem("Insufficient number of endpoints");
  size_t minimum = 0;
  for (const auto& [name, share] : shares) {
    Zone& zone = zones[name];
    zone.desired = share * static_cast<double>(ready.size());
    zone.minimum = static_cast<int>(std::ceil(zone.desired * (1 / (1 + kOverload))));
    minimum += static_cast<size_t>(zone.minimum);
  }
  if (minimum > ready.size()) {
    return problem(
        "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold");
  }
  for (discoveryv1::Endpoint* endpoint : ready) {
    if (endpoint->zone().empty()) return "One or more endpoints do not have a zone specified";
    zones[endpoint->zone()].own.push_back(endpoint);
  }
  for (auto& [name, zone] : zones) {
    while (zone.count() < zone.minimum) {
      Zone& giver = *Giver(zones);  // the minimums together never exceed the number of endpoints
      zone.own.push_back(giver.own.back());
      giver.own.pop_back();
    }
  }
  return "";
}

}  // namespace

HintMode HintModeOf(const corev1::Service& service) {
  const auto& annotations = service.metadata().annotations();
  // The older annotation takes precedence.
  auto mode = annotations.find("service.kubernetes.io/topology-aware-hints");
  if (mode == annotations.end()) mode = annotations.find("service.kubernetes.io/topology-mode");
  if (mode != annotations.end() && (mode->second == "Auto" || mode->second == "auto")) {
    return HintMode::kTopology;
  }
  const std::string& distribution = service.spec().traffic_distribution();
  if (distribution == "PreferClose" || distribution == "PreferSameZone") return HintMode::kSameZone;
  return distribution == "PreferSameNode" ? HintMode::kSameNode : HintMode::kNone;
}

std::string ShareKeyOf(const corev1::Node& node) {
  const NodeShare share = ShareOf(node);
  return share.counts ? fmt::format("{}/{}", share.milli_cpus, share.zone) : "";
}

ZoneShares SharesOf(const std::vector<std::shared_ptr<const corev1::Node>>& nodes) {
  ZoneShares shares;
  double total = 0;
  for (const auto& node : nodes) {
    const NodeShare share = ShareOf(*node);
    if (!share.counts) continue;
    if (share.zone.empty() || share.milli_cpus == 0) return {};
    shares[share.zone] += static_cast<double>(share.milli_cpus);
    total += static_cast<double>(share.milli_cpus);
  }
  if (shares.size() < 2) return {};
  for (auto& [zone, share] : shares) share /= total;
  return shares;
}

std::string SetHints(HintMode mode, const ZoneShares& shares, const Endpoints& endpoints) {
  Endpoints ready;
  for (discoveryv1::Endpoint* endpoint : endpoints) {
    endpoint->clear_hints();
    if (endpoint->conditions().ready()) ready.push_back(endpoint);
  }
  if (mode == HintMode::kNone) return "";
  if (mode == HintMode::kTopology) {
    Zones zones;
    std::string problem = ShareOut(shares, ready, zones);
    if (!problem.empty()) return problem;
    for (const auto& [name, zone] : zones) {
      for (discoveryv1::Endpoint* endpoint : zone.own) {
        endpoint->mutable_hints()->add_for_zones()->set_name(name);
      }
    }
    return "";
  }
  for (discoveryv1::Endpoint* endpoint : ready) {
    if (!endpoint->zone().empty()) endpoint->mutable_hints()->add_for_zones()->set_name(endpoint->zone());
    if (mode == HintMode::kSameNode && !endpoint->node_name().empty()) {
      endpoint->mutable_hints()->add_for_nodes()->set_name(endpoint->node_name());
    }
  }
  return "";
}

}  // namespace keelson::controllers

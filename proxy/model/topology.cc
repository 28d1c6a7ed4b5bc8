#include "proxy/model/topology.h"

#include <algorithm>
#include <tuple>

namespace keelson::proxy {
namespace {

enum class Preference { kNone, kSameZone, kSameNode };

bool Has(const std::vector<std::string>& hints, const std::string& here) {
  return std::find(hints.begin(), hints.end(), here) != hints.end();
}

bool IsLeaving(const Endpoint& e) { return !e.ready && e.serving && e.terminating; }

// Hints hold only when every ready endpoint carries them and some point here: a slice that is half updated
// must not send everything to one endpoint.
Preference FollowHints(const std::vector<EndpointPort>& endpoints, const NodeTopology& here) {
  bool any = false, all_nodes = true, all_zones = true, this_node = false, this_zone = false;
  for (const auto& [endpoint, port] : endpoints) {
    if (!endpoint->ready) continue;
    any = true;
    all_nodes = all_nodes && !endpoint->node_hints.empty();
    all_zones = all_zones && !endpoint->zone_hints.empty();
    this_node = this_node || Has(endpoint->node_hints, here.name);
    this_zone = this_zone || (!here.zone.empty() && Has(endpoint->zone_hints, here.zone));
  }
  if (any && all_nodes && this_node) return Preference::kSameNode;
  return any && all_zones && this_zone ? Preference::kSameZone : Preference::kNone;
}

template <typename Wanted>
std::vector<Backend> Pick(const std::vector<EndpointPort>& endpoints, Wanted wanted) {
  std::vector<Backend> out;
  for (const auto& [endpoint, port] : endpoints) {
    if (wanted(*endpoint)) out.push_back({endpoint->ip, port, endpoint->local});
  }
  // Slices may overlap while an endpoint moves from one to another; local in any is local.
  std::sort(out.begin(), out.end(), [](const Backend& a, const Backend& b) {
    return std::tie(a.ip, a.port, b.local) < std::tie(b.ip, b.port, a.local);
  });
  auto same = [](const Backend& a, const Backend& b) { return a.ip == b.ip && a.port == b.port; };
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
  return out;
}

}  // namespace

void CategorizeEndpoints(const std::vector<EndpointPort>& endpoints, const NodeTopology& here,
                         ResolvedPort& out) {
  if (out.service.protocol == kUdp) {
    out.serving = Pick(endpoints, [](const Endpoint& e) { return e.serving; });
  }
  out.has_endpoints = std::any_of(endpoints.begin(), endpoints.end(), [](const EndpointPort& e) {
    return e.endpoint->ready || IsLeaving(*e.endpoint);
  });
  if (out.service.UsesClusterEndpoints()) {
    Preference preference = FollowHints(endpoints, here);
    out.cluster = Pick(endpoints, [&](const Endpoint& e) {
      if (preference == Preference::kSameNode && !Has(e.node_hints, here.name)) return false;
      if (preference == Preference::kSameZone && !Has(e.zone_hints, here.zone)) return false;
      return e.ready;
    });
    if (out.cluster.empty()) out.cluster = Pick(endpoints, IsLeaving);
  }
  if (out.service.UsesLocalEndpoints()) {
    out.local = Pick(endpoints, [](const Endpoint& e) { return e.local && e.ready; });
    if (out.local.empty()) {
      out.local = Pick(endpoints, [](const Endpoint& e) { return e.local && IsLeaving(e); });
    }
  }
}

}  // namespace keelson::proxy

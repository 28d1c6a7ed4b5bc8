// Counts Service ports with policy Local and no endpoint on this node, though there are endpoints elsewhere:
// the metric sync_proxy_rules_no_local_endpoints_total. Not thread safe.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "proxy/model/traffic.h"

namespace keelson::proxy {

class NoLocalEndpoints {
 public:
  // Replaces what a Service counts. No ports: it has gone.
  void SetService(const std::string& key, const std::vector<ResolvedPort>& ports) {
    Count now;
    for (const ResolvedPort& port : ports) {
      const ServicePort& s = port.service;
      now.internal += s.internal_local && InternalVerdict(port) == TrafficVerdict::kDropped;
      now.external +=
          s.external_local && s.ExternallyAccessible() && ExternalVerdict(port) == TrafficVerdict::kDropped;
    }
    auto found = counts_.find(key);
    if (found != counts_.end()) {
      total_.internal -= found->second.internal;
      total_.external -= found->second.external;
      counts_.erase(found);
    }
    if (now.internal == 0 && now.external == 0) return;
    total_.internal += now.internal;
    total_.external += now.external;
    counts_[key] = now;
  }
  // Ports, by internalTrafficPolicy and by externalTrafficPolicy.
  int internal() const { return total_.internal; }
  int external() const { return total_.external; }

 private:
  struct Count {
    int internal = 0, external = 0;
  };
  std::unordered_map<std::string, Count> counts_;  // of Services that count
  Count total_;
};

}  // namespace keelson::proxy

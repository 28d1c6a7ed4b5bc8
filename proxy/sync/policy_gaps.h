// Counts Service ports whose Local policy finds no endpoint on this node, though there are some elsewhere.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "proxy/model/traffic.h"

namespace keelson::proxy {

class PolicyGaps {
 public:
  void SetService(const std::string& key, const std::vector<ResolvedPort>& ports) {
    Count now;
    for (const ResolvedPort& port : ports) {
      const ServicePort& s = port.service;
      now.internal += s.internal_local && InternalFate(port) == Fate::kDropped;
      now.external += s.external_local && s.ExternallyAccessible() && ExternalFate(port) == Fate::kDropped;
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
  int internal() const { return total_.internal; }
  int external() const { return total_.external; }

 private:
  struct Count {
    int internal = 0, external = 0;
  };
  std::unordered_map<std::string, Count> counts_;  // of those that have any
  Count total_;
};

}  // namespace keelson::proxy

// Inside proxy/sync/proxier*.cc only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "proxy/sync/proxier.h"

namespace keelson::proxy {

// What has changed since the last one.
struct Proxier::Batch {
  struct Change {
    std::string key;
    std::vector<ResolvedPort> v4, v6;
  };
  std::vector<Change> changes;
  std::map<std::string, HealthCheckNodePort> health_checks;
  NodeFacts node;
  std::vector<IpPrefix> service_cidrs;
  std::vector<WallTime> triggers;
  bool periodic = false;        // a sync period has passed
  bool look_at_tables = false;  // others may have changed them unseen
  bool tampered_v4 = false, tampered_v6 = false;
  bool addresses_changed = false;
  std::optional<DataplaneMode> next_mode;
};

}  // namespace keelson::proxy

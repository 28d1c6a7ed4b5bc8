// The `ipam` section of host-local.
//
//   "ipam": {"type": "host-local",
//            "ranges": [[{"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.10", "gateway": "10.1.0.1"}],
//                       [{"subnet": "fd00:1::/64"}]],
//            "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/run/ipam"}
//
// The plugin takes one address from each entry of `ranges`; the ranges within an entry are alternatives.
// `subnet`, `rangeStart`, `rangeEnd` and `gateway` directly below `ipam` are the older form of a first
// range.
#pragma once

#include <string>
#include <vector>

#include "cni/lib/plugin.h"

namespace keelson::cni {

struct Range {
  IpPrefix subnet;
  IpAddress start, end, gateway;
  bool Contains(const IpAddress& address) const { return start <= address && address <= end; }
};
using RangeSet = std::vector<Range>;

struct HostLocalConfig {
  std::vector<RangeSet> ranges;
  std::vector<RouteConfig> routes;
  std::vector<IpAddress> requested;  // each must be in a different range set
  std::string data_dir;              // for this network: DATADIR/NAME
  std::string resolv_conf;           // file with DNS settings for the result; empty: none
};

Outcome<HostLocalConfig> ReadHostLocalConfig(const Request& request);
// Reads the nameserver, search, domain and options lines of a resolv.conf(5).
Outcome<Dns> ReadResolvConf(const std::string& path);

}  // namespace keelson::cni

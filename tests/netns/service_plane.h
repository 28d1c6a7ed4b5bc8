// A common interface of kube-proxy's dataplanes for tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/linux/netns.h"
#include "proxy/model/dataplane.h"

namespace keelson::netns {

struct PlaneOptions {
  std::string mode = "nftables";  // or ipvs, ebpf
  bool v4 = true;
  std::vector<IpPrefix> pod_cidrs;
  std::string pod_bridge;
  bool direct = false;               // ebpf: bypass the rules where possible
  bool replies_bypass_node = false;  // pods on one bridge, without br_netfilter
};

class ServicePlane {
 public:
  explicit ServicePlane(std::unique_ptr<proxy::Dataplane> dataplane) : dataplane_(std::move(dataplane)) {}
  proxy::Dataplane& dataplane() { return *dataplane_; }

  // Sets the ports in the plane's family; empty: deletes the Service. Effective after Sync().
  void SetService(const std::string& key, const std::vector<proxy::ResolvedPort>& ports) {
    dataplane_->SetService(key, ports);
  }
  void SetNodeIps(const std::vector<IpAddress>& ips) { dataplane_->SetNodeIps(ips); }
  void SetServiceCidrs(const std::vector<IpPrefix>& cidrs) { dataplane_->SetServiceCidrs(cidrs); }
  Result<> Sync();
  // Call when another plane has taken over; returns false while connections still need this one.
  Result<bool> Retire();

 private:
  std::unique_ptr<proxy::Dataplane> dataplane_;
};

// A node's cgroup (whose processes belong to the node), and its BPF file system for pins.
struct NodePlaces {
  std::string cgroup, pins;
};

// Error when this kernel does not support the mode; cheap to call before a world is made.
Result<> Possible(const std::string& mode);

// Creates the plane in `node`; like a starting proxy, it adopts the state of an earlier one.
// kUnimplemented: this kernel does not support it.
Result<std::unique_ptr<ServicePlane>> MakePlane(const linux::NetNs& node, const PlaneOptions& options,
                                                const NodePlaces& places);

}  // namespace keelson::netns

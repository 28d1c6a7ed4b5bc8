// What puts Services into a kernel, as tests see it: every dataplane of kube-proxy behind one face.
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
  bool direct = false;               // of ebpf: past the rules where it can be
  bool replies_bypass_node = false;  // of pods on one bridge, without br_netfilter
};

class ServicePlane {
 public:
  explicit ServicePlane(std::unique_ptr<proxy::Dataplane> dataplane) : dataplane_(std::move(dataplane)) {}
  proxy::Dataplane& dataplane() { return *dataplane_; }

  // Ports of the plane's family; none: gone. In the kernel after Sync().
  void SetService(const std::string& key, const std::vector<proxy::ResolvedPort>& ports) {
    dataplane_->SetService(key, ports);
  }
  void SetNodeIps(const std::vector<IpAddress>& ips) { dataplane_->SetNodeIps(ips); }
  void SetServiceCidrs(const std::vector<IpPrefix>& cidrs) { dataplane_->SetServiceCidrs(cidrs); }
  Result<> Sync();
  // Another plane is in place; false: connections still need this one.
  Result<bool> Retire();

 private:
  std::unique_ptr<proxy::Dataplane> dataplane_;
};

// Whose processes a node's are, where a dataplane asks for that (a cgroup), and what outlives its process (a
// BPF file system).
struct NodePlaces {
  std::string cgroup, pins;
};

// Fails where this kernel has nothing of the mode: nobody needs to make a world to find that out.
Result<> Possible(const std::string& mode);

// In `node`; like a proxy that starts: whatever an earlier one left there is found.
// kUnimplemented: this kernel cannot.
Result<std::unique_ptr<ServicePlane>> MakePlane(const linux::NetNs& node, const PlaneOptions& options,
                                                const NodePlaces& places);

}  // namespace keelson::netns

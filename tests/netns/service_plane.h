// What puts Services into a kernel, as tests see it: every dataplane of kube-proxy behind one face.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/linux/netns.h"
#include "proxy/model/service_port.h"

namespace keelson::netns {

struct PlaneOptions {
  bool v4 = true;
  std::vector<IpPrefix> pod_cidrs;
  std::string pod_bridge;
};

class ServicePlane {
 public:
  virtual ~ServicePlane() = default;
  // Ports of the plane's family; none: gone. In the kernel after Sync().
  virtual void SetService(const std::string& key, const std::vector<proxy::ResolvedPort>& ports) = 0;
  virtual void SetNodeIps(const std::vector<IpAddress>& ips) = 0;
  virtual void SetServiceCidrs(const std::vector<IpPrefix>& cidrs) = 0;
  virtual Result<> Sync() = 0;
};

// In `node`; like a proxy that starts: whatever an earlier one left there is found.
Result<std::unique_ptr<ServicePlane>> MakeNftablesPlane(const linux::NetNs& node,
                                                        const PlaneOptions& options);

}  // namespace keelson::netns

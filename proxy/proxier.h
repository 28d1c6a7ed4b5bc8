// From API events to kernel: handlers note what changed, one thread works it off.
//
//   handlers (informer threads)            Run (one thread)
//   OnService, OnSlice -> ServiceMap  -->  changed Services -> Plan of each family -> kernel transaction
//   OnNode                                  -> stale UDP flows -> health check ports -> Health
//
// Nothing is written before MarkSynced(): a proxy that starts with half of the Services would take the rest
// out of the kernel.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "proxy/conntrack_cleaner.h"
#include "proxy/health.h"
#include "proxy/nftables/dataplane.h"
#include "proxy/service_map.h"

namespace keelson::api::core::v1 {
class Node;
}

namespace keelson::proxy {

struct ProxierOptions {
  std::string node_name;
  nftables::Options v4, v6;
  bool pods_of_node_cidr = false;  // pods are told by the Node's pod CIDRs (detect-local-mode NodeCIDR)
  std::chrono::milliseconds min_sync_period{0};
  std::chrono::milliseconds sync_period{30000};
};

class Proxier {
 public:
  using OpenKernel = std::function<Result<std::unique_ptr<nft::Kernel>>()>;
  // Where NodePorts answer, given the Node's own addresses.
  using NodePortIps = std::function<Result<std::vector<IpAddress>>(const std::vector<IpAddress>&)>;

  Proxier(ProxierOptions options, OpenKernel open_kernel, NodePortIps node_port_ips, Health& health,
          Clock& clock = Clock::Real());
  ~Proxier();

  // Thread safe; null: deleted. Keys are namespace/name.
  void OnService(const std::string& key, const api::core::v1::Service* service);
  void OnSlice(const std::string& key, const api::discovery::v1::EndpointSlice* slice);
  void OnNode(const api::core::v1::Node* node);
  void MarkSynced();

  // Follows until `stop`; `ready` once the first sync is in the kernel.
  Result<> Run(std::stop_token stop, const std::function<void()>& ready);

 private:
  struct Batch;
  struct NodeFacts {
    std::string zone;
    std::vector<IpAddress> ips;
    std::vector<IpPrefix> pod_cidrs;
    bool operator==(const NodeFacts&) const = default;
  };
  void Wake() REQUIRES(mutex_);
  void OpenDataplanes(const NodeFacts& facts);
  std::optional<Batch> NextBatch(std::stop_token stop, SteadyTime verify_at);
  Result<> Apply(const Batch& batch);
  void CleanConntrack();

  const ProxierOptions options_;
  const OpenKernel open_kernel_;
  const NodePortIps node_port_ips_;
  Health& health_;
  Clock& clock_;

  Mutex mutex_;
  CondVar wake_;
  ServiceMap services_ GUARDED_BY(mutex_);
  NodeFacts node_ GUARDED_BY(mutex_);
  bool synced_ GUARDED_BY(mutex_) = false;
  bool pending_ GUARDED_BY(mutex_) = false;

  // Run's thread only.
  std::vector<std::unique_ptr<nftables::Dataplane>> dataplanes_;
  std::vector<IpPrefix> pod_cidrs_;  // of the Node, when dataplanes_ were made
  ConntrackCleaner cleaner_;
  HealthCheckServers health_checks_;
};

}  // namespace keelson::proxy

// From API events to kernel: handlers note what changed, one thread works it off.
//
//   handlers (informer threads)            Run (one thread)
//   OnService, OnSlice -> ServiceChangeTracker  -->  changed Services -> Dataplane of each family -> kernel
//   OnNode, OnServiceCidr                   -> stale UDP flows -> health check ports -> Health
//   OnTables, OnAddressesChanged (kernel)
//
// Nothing is written before MarkSynced(): a proxy that starts with half of the Services would take the rest
// out of the kernel. Changes that come while one batch is written make up the next one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/nft/monitor.h"
#include "proxy/model/dataplane.h"
#include "proxy/model/node_facts.h"
#include "proxy/model/service_change_tracker.h"
#include "proxy/serving/health.h"
#include "proxy/sync/conntrack_cleaner.h"
#include "proxy/sync/no_local_endpoints.h"

namespace keelson::api::networking::v1 {
class ServiceCIDR;
}

namespace keelson::proxy {

struct ProxierOptions {
  std::string node_name;
  bool pods_of_node_cidr = false;  // pods are told by the Node's pod CIDRs (detect-local-mode NodeCIDR)
  bool external_ips = true;        // Services are reached by spec.externalIPs (gate AllowServiceExternalIPs)
  std::chrono::milliseconds min_sync_period{0};  // between two batches
  std::chrono::milliseconds sync_period{30000};  // after which what was refused is tried again
  // What an earlier process may have left of these is retired once the first sync is in the kernel.
  std::vector<DataplaneMode> others;
};

struct NodeIps {
  std::vector<IpAddress> node_ports;  // where NodePorts answer
  std::vector<IpAddress> own;         // Dataplane::SetOwnIps
  bool operator==(const NodeIps&) const = default;
};

class Proxier {
 public:
  // This machine's addresses, given the Node's.
  using ReadIps = std::function<Result<NodeIps>(const std::vector<IpAddress>&)>;
  // Tells people of a Service (namespace/name) that something is wrong with it.
  using Warn =
      std::function<void(const std::string& service, const char* reason, const std::string& message)>;

  Proxier(ProxierOptions options, DataplaneMode mode, ReadIps read_ips, Warn warn, Health& health,
          Clock& clock = Clock::Real());
  ~Proxier();

  // Thread safe; null: deleted. Keys are namespace/name.
  void OnService(const std::string& key, const api::core::v1::Service* service);
  void OnSlice(const std::string& key, const api::discovery::v1::EndpointSlice* slice);
  void OnNode(const api::core::v1::Node* node);
  void OnServiceCidr(const std::string& key, const api::networking::v1::ServiceCIDR* cidr);
  void MarkSynced();
  // What the kernel tells. Until TablesWatched(true), and after a loss, every sync period looks at the
  // tables.
  void OnTables(const nft::Monitor::Changes& changes);
  void TablesWatched(bool watched);
  void OnAddressesChanged();
  // Another mode from now on: its dataplanes are filled beside those in place, which are then retired. When
  // it cannot be opened all stays as it was, which is logged.
  void Switch(DataplaneMode mode);
  // Blocks until the first sync is in the kernel; false: `stop` came first.
  bool AwaitFirstSync(std::stop_token stop);

  // Follows until `stop`; `ready` once the first sync is in the kernel.
  Result<> Run(std::stop_token stop, const std::function<void()>& ready);

 private:
  struct Batch;
  void Wake() KEELSON_REQUIRES(mutex_);
  void OpenDataplanes(const NodeFacts& facts);
  void BeginSwitch(DataplaneMode next, const NodeFacts& facts);
  void RetireOthers();
  std::optional<Batch> NextBatch(std::stop_token stop, SteadyTime periodic_at);
  Result<> Apply(const Batch& batch);
  Result<> FollowIps(const NodeFacts& facts);
  Result<> SyncOne(Dataplane& dataplane, const Batch& batch);
  void CleanConntrack();
  void Finish();
  void Requeue(const Batch& batch);
  void WaitMinSyncPeriod(std::stop_token stop);

  const ProxierOptions options_;
  const ReadIps read_ips_;
  const Warn warn_;
  Health& health_;
  Clock& clock_;
  const WallTime started_;

  Mutex mutex_;
  CondVar wake_;
  ServiceChangeTracker services_ KEELSON_GUARDED_BY(mutex_);
  NodeFacts node_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<IpPrefix>> service_cidrs_ KEELSON_GUARDED_BY(mutex_);
  std::vector<WallTime> triggers_ KEELSON_GUARDED_BY(mutex_);  // when the pending endpoint changes began
  std::vector<OwnTable> own_tables_ KEELSON_GUARDED_BY(mutex_);
  bool synced_ KEELSON_GUARDED_BY(mutex_) = false;
  bool pending_ KEELSON_GUARDED_BY(mutex_) = false;
  bool written_ KEELSON_GUARDED_BY(mutex_) = false;  // once
  bool watched_ KEELSON_GUARDED_BY(mutex_) = false;
  bool look_at_tables_ KEELSON_GUARDED_BY(mutex_) = false;
  bool tampered_v4_ KEELSON_GUARDED_BY(mutex_) = false, tampered_v6_ KEELSON_GUARDED_BY(mutex_) = false;
  bool addresses_changed_ KEELSON_GUARDED_BY(mutex_) = true;
  std::optional<DataplaneMode> next_mode_ KEELSON_GUARDED_BY(mutex_);

  // Run's thread only.
  DataplaneMode mode_;
  std::vector<std::unique_ptr<Dataplane>> dataplanes_;
  std::optional<SteadyTime> again_at_;  // when one of them has something to do by itself
  std::vector<IpPrefix> pod_cidrs_;     // of the Node, when dataplanes_ were made
  std::optional<NodeIps> ips_;
  struct Retiree {
    std::string mode;
    std::unique_ptr<Dataplane> dataplane;
  };
  std::vector<Retiree> retiring_;
  std::optional<SteadyTime> retire_at_;  // nullopt: nothing is retiring
  bool looked_for_others_ = false;
  ConntrackCleaner cleaner_;
  HealthCheckServers health_checks_;
  NoLocalEndpoints no_local_endpoints_v4_, no_local_endpoints_v6_;
};

}  // namespace keelson::proxy

// The agent's single worker: reads Nodes and kernel state, plans, and writes the kernel and the CNI
// configuration.
//
// It syncs when Nodes change, when others change kernel state that it manages or plans by, every `resync`
// for safety, and soon after a failure. Before the first list of Nodes it does nothing: the state that an
// earlier agent left keeps working.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "cni/agent/config.h"
#include "cni/agent/dataplane.h"
#include "cni/agent/extension.h"
#include "cni/agent/health.h"
#include "cni/agent/plan.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/netlink/monitor.h"
#include "lib/nft/kernel.h"

namespace keelson::cni::agent {

struct SyncerOptions {
  std::chrono::milliseconds resync{60'000};
  std::chrono::milliseconds nft_poll{5'000};    // how often to check tables for others' changes
  std::chrono::milliseconds min_interval{100};  // between two syncs
  std::chrono::milliseconds retry{1'000};       // after a failure; doubles each time, up to `resync`
};

class Syncer {
 public:
  using Nodes = std::function<std::shared_ptr<const NodeMap>()>;
  // Opens its sockets in the calling thread's network namespace.
  static Result<std::unique_ptr<Syncer>> Open(const Config& config, Nodes nodes, Health& health,
                                              SyncerOptions options = {}, Clock& clock = Clock::Real());

  void AddExtension(std::unique_ptr<Extension> extension);  // before Run()
  void NodesChanged();                                      // thread safe
  // Works until `stop`. The thread must be in the network namespace that Open() was called in.
  Result<> Run(std::stop_token stop);
  // Watches for changes by others until `stop`; needs a thread of its own.
  Result<> RunMonitor(std::stop_token stop);

  // Syncs once, like each round of Run(). True when it changed anything in the kernel.
  Result<bool> SyncOnce();
  uint64_t syncs() const;  // thread safe
  // Blocks until `count` syncs have succeeded in all.
  void AwaitSyncs(uint64_t count);

 private:
  Syncer(const Config& config, Nodes nodes, Health& health, SyncerOptions options, Clock& clock,
         netlink::Socket socket, std::unique_ptr<nft::Kernel> nft, netlink::Monitor monitor);
  Result<bool> SyncNft(const Plan& plan);
  Result<> SyncLinks(const Plan& plan, const HostState& host, int link, Changes& changes);
  void ReportProblems(const Plan& plan);
  void ReportPlan(const Plan& plan, const Changes& changes);
  bool Matters(const netlink::KernelEvent& event) const;
  bool NftTouched();
  bool AwaitCause(SteadyTime resync_at, std::stop_token stop, std::string& cause);

  const Config config_;
  const Nodes nodes_;
  Health& health_;
  const SyncerOptions options_;
  Clock& clock_;
  netlink::Socket socket_;
  const uint32_t own_port_;
  std::unique_ptr<nft::Kernel> nft_;
  netlink::Monitor monitor_;
  std::vector<std::unique_ptr<Extension>> extensions_;
  uint32_t nft_generation_ = 0;  // after our last check
  bool nft_known_ = false;
  bool forwarding_set_ = false;
  std::set<std::string> problems_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool nodes_changed_ KEELSON_GUARDED_BY(mutex_) = false;
  bool kernel_changed_ KEELSON_GUARDED_BY(mutex_) = false;
  std::set<int> watched_links_ KEELSON_GUARDED_BY(mutex_);  // the uplink and the tunnel device
  uint64_t syncs_ KEELSON_GUARDED_BY(mutex_) = 0;
};

}  // namespace keelson::cni::agent

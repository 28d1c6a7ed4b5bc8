// Keeps the tables keelson-policy equal to the plan (cni/policy): one worker, which syncs when the cluster
// changes, when a CNI plugin asks, when other programs touch nftables, and every `resync`.
//
// Before the first lists it changes nothing: what an earlier agent left keeps deciding, and pods that begin
// meanwhile are held back by their plugin.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "cni/policy/plan.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/netlink/socket.h"
#include "lib/nft/kernel.h"

namespace keelson::cni::agent {

struct PolicySyncerOptions {
  std::chrono::milliseconds resync{60'000};
  std::chrono::milliseconds nft_poll{5'000};   // how often to check the tables for others' changes
  std::chrono::milliseconds min_interval{20};  // between two syncs; at least as long as the last one took
  std::chrono::milliseconds retry{1'000};      // after a failure; doubles each time, up to `resync`
};

struct PolicySources {
  std::function<Result<policy::Node>()> node;  // this one; kUnavailable: not known yet
  // Calls its argument with the cluster; false: not known yet.
  std::function<bool(const std::function<void(const policy::Cluster&)>&)> cluster;
  // After every sync, with its error or none, on Run()'s thread.
  std::function<void(const Result<>& result)> on_sync;
};

class PolicySyncer {
 public:
  // Opens its sockets in the calling thread's network namespace.
  // `bridge`: name of the bridge of the pods, which need not exist yet.
  static Result<std::unique_ptr<PolicySyncer>> Open(const std::string& bridge, PolicySources sources,
                                                    PolicySyncerOptions options = {},
                                                    Clock& clock = Clock::Real());

  void Changed();    // the cluster did; thread safe
  void Requested();  // a plugin has attached a pod: read the kernel again; thread safe
  // Whether packets from and to the address are let through by its attachment's policies. Thread safe.
  bool IsReady(const IpAddress& address, uint32_t epoch) const;
  Result<> Run(std::stop_token stop);
  // Syncs once, reading the kernel first if `reread`. True when it changed anything.
  Result<bool> SyncOnce(bool reread);

 private:
  PolicySyncer(std::string bridge, PolicySources sources, PolicySyncerOptions options, Clock& clock,
               netlink::Socket socket, std::unique_ptr<nft::Kernel> nft);
  Result<bool> SyncPolicies(const policy::Node& node, bool reread);
  Result<> Apply(const policy::Plan& plan, bool& changed);
  void Adopt(const policy::Cluster& cluster, const policy::Node& node, policy::Attachments& attachments);
  void ReportProblems(const policy::Cluster& cluster);
  bool AwaitCause(SteadyTime next, SteadyTime resync_at, std::stop_token stop, bool& reread);

  const std::string bridge_;
  const PolicySources sources_;
  const PolicySyncerOptions options_;
  Clock& clock_;
  netlink::Socket socket_;
  std::unique_ptr<nft::Kernel> nft_;
  // The table as it was last read or written; nullopt: there is none.
  std::optional<nft::Ruleset> found_;
  bool in_step_ = false;
  uint32_t generation_ = 0;  // of the kernel's ruleset after the last sync; 0: others wrote at the same time
  uint32_t written_ = 0;     // transactions of this sync
  std::set<std::string> problems_;

  mutable Mutex mutex_;
  CondVar wake_;
  bool changed_ KEELSON_GUARDED_BY(mutex_) = false;
  bool requested_ KEELSON_GUARDED_BY(mutex_) = false;
  policy::Attachments ready_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::cni::agent

// Keeps the tables keelson-policy equal to the plan (cni/policy): one worker, which writes what has changed
// when the cluster changes or a CNI plugin asks. When other programs have written nftables, it reads again what
// plugins write, and soon after that all; and all every `resync`.
//
// Before the first lists it changes nothing: what an earlier agent left keeps deciding, and pods that begin
// meanwhile are held back by their plugin.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "cni/agent/policy/problems.h"
#include "cni/policy/incremental.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/netlink/socket.h"
#include "lib/nft/kernel.h"

namespace keelson::cni::agent {

struct PolicySyncerOptions {
  std::chrono::milliseconds resync{60'000};
  std::chrono::milliseconds nft_poll{5'000};  // how often to check the tables for others' changes
  std::chrono::milliseconds min_interval{1};  // between two syncs; at least as long as the last one took
  std::chrono::milliseconds retry{1'000};     // after a failure; doubles each time, up to `resync`
};

struct PolicySources {
  std::function<Result<policy::Node>()> node;  // this one; kUnavailable: not known yet
  // Calls its argument with the plan, to which no events come meanwhile; false: the cluster is not known yet.
  std::function<bool(const std::function<void(policy::Incremental&)>&)> plan;
  // After every sync, with its error or none, on Run()'s thread.
  std::function<void(const Result<>& result)> on_sync;
  PodEvent on_event;
};

class PolicySyncer {
 public:
  // Opens its sockets in the calling thread's network namespace.
  // `bridge`: name of the bridge of the pods, which need not exist yet.
  static Result<std::unique_ptr<PolicySyncer>> Open(const std::string& bridge, PolicySources sources,
                                                    PolicySyncerOptions options = {},
                                                    Clock& clock = Clock::Real());

  void Changed();    // the cluster did; thread safe
  void Requested();  // a plugin has attached a pod; thread safe
  // Whether packets from and to the address are let through by its attachment's policies. Thread safe.
  bool IsReady(const IpAddress& address, uint32_t epoch) const;
  Result<> Run(std::stop_token stop);
  // Syncs once; `whole`: reads the tables and compares them with a plan of all. True when it changed anything.
  Result<bool> SyncOnce(bool whole);

 private:
  using ReadyChanges = std::map<IpAddress, std::optional<policy::Attachment>>;
  // What one sync writes.
  struct Write {
    nft::Transaction transaction;
    policy::Attachments added;  // addresses that become ready
    // Addresses that are ready after it: all, or what changes.
    std::optional<policy::Attachments> ready;
    ReadyChanges ready_changes;
    size_t isolated = 0, ready_count = 0;
  };

  PolicySyncer(std::string bridge, PolicySources sources, PolicySyncerOptions options, Clock& clock,
               netlink::Socket socket, netlink::Socket netfilter, std::unique_ptr<nft::Kernel> nft);
  Result<bool> SyncBridge(bool whole);
  Result<bool> SyncPolicies(bool whole, bool foreign);
  Result<std::optional<nft::Ruleset>> ReadWhatPluginsWrite();
  Write PlanAll(policy::Incremental& plan, const std::optional<nft::Ruleset>& found);
  Write PlanChanges(policy::Incremental& plan, const std::optional<nft::Ruleset>& found);
  void Committed(Write write);
  void ForgetFormerPods();
  void ReportFailure(const Error& error);
  bool AwaitCause(SteadyTime next, SteadyTime resync_at, std::stop_token stop, bool& whole);

  const std::string bridge_;
  const PolicySources sources_;
  const PolicySyncerOptions options_;
  Clock& clock_;
  netlink::Socket socket_, netfilter_;
  std::unique_ptr<nft::Kernel> nft_;
  std::optional<policy::Node> node_;
  std::optional<std::string> bridge_mac_;
  bool in_step_ = false;     // the table is what the plan has written, but for what others wrote
  bool unverified_ = false;  // others have written since all was read
  uint32_t generation_ = 0;  // of the kernel's ruleset after the last sync; 0: others wrote at the same time
  uint32_t written_ = 0;     // transactions of this sync
  SteadyTime poll_at_{};
  std::set<IpAddress> handed_over_;  // whose tracked connections are yet to be forgotten
  PolicyProblems problems_;

  mutable Mutex mutex_;
  CondVar wake_;
  std::optional<SteadyTime> changed_ KEELSON_GUARDED_BY(mutex_);  // when it first did, since the last sync
  bool requested_ KEELSON_GUARDED_BY(mutex_) = false;
  policy::Attachments ready_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::cni::agent

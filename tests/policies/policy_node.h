// For tests: the part of kube-cni that enforces policies, on one node, without an API server.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cni/agent/policy/syncer.h"
#include "cni/policy/incremental.h"
#include "lib/api/proto/networking_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/mutex.h"
#include "lib/linux/netns.h"

namespace keelson::policies {

namespace agent = cni::agent;
namespace policy = cni::policy;
namespace networkingv1 = api::networking::v1;

class PolicyNode {
 public:
  // The node's bridge is br0. `netns` must outlive the result.
  static Result<std::unique_ptr<PolicyNode>> Open(const linux::NetNs& netns, const policy::Node& node);
  ~PolicyNode();

  // Objects of the cluster, as the agent reads them from an API server. In effect after Sync(), or soon while
  // the syncer runs.
  void Put(const corev1::Pod& pod);
  void Put(const corev1::Namespace& ns);
  void Put(const networkingv1::NetworkPolicy& policy);
  void Put(const policy::ClusterPolicy& policy);
  void Put(const corev1::Node& node);
  void ErasePod(const std::string& key);
  void EraseClusterPolicy(const std::string& name);
  void ErasePolicy(const std::string& key);
  // All objects but policies of the whole cluster as one text, and what another node has saved.
  std::string Save();
  Result<> Load(std::string_view saved);

  // By hand; true when the kernel's state has changed. Not while the syncer runs.
  Result<bool> Sync(bool whole = false);
  // The syncer's own thread, until Stop().
  void Start(agent::PolicySyncerOptions options = {});
  void Stop();

  // As the plugin keelson-policy does in ADD and DEL of a container that has this port of the bridge.
  Result<> Attach(const std::string& port, const std::string& uid, const std::vector<IpAddress>& addresses);
  Result<> Detach(const std::string& port);

  // What the kernel has, compared with a plan of all that has been put; empty: nothing differs. An error's text
  // when the table cannot be read.
  std::string Difference();
  // The table that MakePlan() wants for the attachments that the kernel has.
  Result<nft::Ruleset> Wanted();
  Result<std::optional<nft::Ruleset>> Found();
  // Another program's changes.
  Result<> Tamper(const nft::Transaction& transaction);

 private:
  PolicyNode(const linux::NetNs& netns, policy::Node node) : netns_(netns), node_(std::move(node)) {}
  Result<> OpenSyncer(agent::PolicySyncerOptions options);
  void Change(const std::function<void(policy::Incremental&)>& change);
  void PutRaw(char kind, const std::string& raw);

  const linux::NetNs& netns_;
  const policy::Node node_;
  Mutex mutex_;
  policy::Incremental plan_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, std::string> raw_;  // objects by kind and key
  policy::ClusterNodes nodes_;
  std::unique_ptr<nft::Kernel> kernel_;  // of the test itself
  std::unique_ptr<agent::PolicySyncer> syncer_;
  std::jthread thread_;
  uint32_t epoch_ = 0;
};

}  // namespace keelson::policies

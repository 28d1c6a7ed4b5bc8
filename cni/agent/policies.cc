#include "cni/agent/policies.h"

#include <optional>
#include <string>
#include <utility>

#include "cni/agent/conflist.h"
#include "cni/agent/node_watch.h"
#include "cni/agent/pages.h"
#include "cni/agent/policy/tables.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/service_group.h"
#include "lib/linux/notify.h"

namespace keelson::cni::agent {

Result<> PreparePolicies(const Config& config) {
  if (!config.network_policy) {
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> nft, nft::OpenKernel());
    return RemovePolicyTables(*nft);
  }
  if (config.policy_log_group > 0) {
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> nft, nft::OpenKernel());
    KEELSON_RETURN_IF_ERROR(CheckPolicyLog(*nft, config.policy_log_group));
  }
  std::string plugin = config.bin_dir + "/" + kPolicyPlugin;
  if (config.bin_dir.empty() || PathExists(plugin)) return {};
  return Error(Code::kInvalid,
               plugin + " is missing: no pod would start. Install it, or set --network-policy=off");
}

Result<std::unique_ptr<PolicyServices>> OpenPolicies(const Config& config,
                                                     const std::shared_ptr<client::Transport>& transport,
                                                     std::function<std::shared_ptr<const NodeMap>()> nodes,
                                                     Health& health) {
  std::optional<policy::DeniedLog> log;
  if (config.policy_log_group > 0) log = {config.policy_log_group, config.policy_log_rate};
  PolicyServices::Agent agent{
      .node = [nodes = std::move(nodes), name = config.node_name, log]() -> Result<policy::Node> {
        KEELSON_ASSIGN_OR_RETURN(policy::Node node, PolicyNode(nodes(), name));
        node.log = log;
        return node;
      },
      .on_sync =
          [&health](const Result<>& result) { result ? health.Synced() : health.Failed(result.error()); },
      .node_name = config.node_name};
  return PolicyServices::Open(config.bridge, transport, std::move(agent));
}

Result<int> RunPoliciesOnly(const Config& config) {
  KEELSON_RETURN_IF_ERROR(Validate(config));
  KEELSON_RETURN_IF_ERROR(PreparePolicies(config));
  KEELSON_ASSIGN_OR_RETURN(client::RestConfig api, client::LoadKubeconfig(config.kubeconfig));
  api.user_agent = "kube-cni/keelson";
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<client::Transport> transport, client::NewHttpTransport(api));

  Health health(3 * PolicySyncerOptions().resync, Clock::Real());
  std::unique_ptr<PolicyServices> policies;
  NodeWatch nodes(NodeSource(transport), [&] { policies->NodesChanged(PolicyPeers(*nodes.Nodes())); });
  KEELSON_ASSIGN_OR_RETURN(policies, OpenPolicies(
                                         config, transport, [&] { return nodes.Nodes(); }, health));
  PolicyCounters counters;
  ServiceGroup group;
  AddPages(group, config, {&health}, &counters);
  // Before what waits for the API server: rules of an earlier run hold without one.
  group.Add(linux::SystemdNotifier({}, [&] { return health.Alive(); }));
  policies->AddTo(group);
  group.Add({"nodes", {}, [&](std::stop_token stop, ServiceGroup::Ready ready) {
               ready();
               return nodes.Run(stop);
             }});
  log::Info("kube-cni starts, for network policies only",
            {{"node", config.node_name}, {"server", api.server}, {"bridge", config.bridge}});
  return group.RunUntilSignal();
}

}  // namespace keelson::cni::agent

#include "cni/agent/services.h"

#include <malloc.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cni/agent/bird.h"
#include "cni/agent/ipsec.h"
#include "cni/agent/masquerade.h"
#include "cni/agent/node_watch.h"
#include "cni/agent/pages.h"
#include "cni/agent/policies.h"
#include "cni/agent/policy/tables.h"
#include "cni/agent/syncer.h"
#include "cni/agent/wireguard.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/service_group.h"
#include "lib/client/transport.h"
#include "lib/linux/notify.h"
#include "lib/netlink/link.h"

namespace keelson::cni::agent {
namespace {

Result<> AddExtensions(const Config& config, const NodeSource& source, Syncer& syncer) {
  if (config.encryption == Encryption::kIpsec) {
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Ipsec> ipsec, Ipsec::Open(config));
    syncer.AddExtension(std::move(ipsec));
  }
  if (config.encryption == Encryption::kWireguard) {
    auto publish = [source, name = config.node_name](const std::string& key) {
      return source.Annotate(name, kWireguardKeyAnnotation, key);
    };
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Wireguard> wireguard,
                             Wireguard::Open(config, std::move(publish)));
    syncer.AddExtension(std::move(wireguard));
  }
  if (!config.bgp.bird_config.empty()) syncer.AddExtension(std::make_unique<Bird>(config));
  return {};
}

Result<int> Run(const Config& config) {
  KEELSON_RETURN_IF_ERROR(Validate(config));
  KEELSON_RETURN_IF_ERROR(PreparePolicies(config));
  KEELSON_ASSIGN_OR_RETURN(client::RestConfig api, client::LoadKubeconfig(config.kubeconfig));
  api.user_agent = "kube-cni/keelson";
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<client::Transport> transport, client::NewHttpTransport(api));
  NodeSource source(transport);

  SyncerOptions options;
  Health health(3 * options.resync, Clock::Real());
  Health policy_health(3 * options.resync, Clock::Real());
  std::unique_ptr<Syncer> syncer;
  std::unique_ptr<PolicyServices> policies;
  NodeWatch nodes(source, [&] {
    syncer->NodesChanged();
    if (policies) policies->NodesChanged(PolicyPeers(*nodes.Nodes()));
  });
  KEELSON_ASSIGN_OR_RETURN(syncer, Syncer::Open(
                                       config, [&] { return nodes.Nodes(); }, health, options));
  KEELSON_RETURN_IF_ERROR(AddExtensions(config, source, *syncer));
  if (config.network_policy) {
    KEELSON_ASSIGN_OR_RETURN(policies, OpenPolicies(
                                           config, transport, [&] { return nodes.Nodes(); }, policy_health));
  }

  PolicyCounters counters;
  ServiceGroup group;
  std::vector<const Health*> healths = {&health};
  if (policies) healths.push_back(&policy_health);
  AddPages(group, config, std::move(healths), policies ? &counters : nullptr);
  group.Add({"monitor", {}, [&](std::stop_token stop, ServiceGroup::Ready ready) {
               ready();
               return syncer->RunMonitor(stop);
             }});
  group.Add({"syncer", {"monitor"}, [&](std::stop_token stop, ServiceGroup::Ready ready) {
               ready();
               return syncer->Run(stop);
             }});
  // Before what waits for the API server: routes of an earlier run carry traffic without one.
  group.Add(linux::SystemdNotifier({"syncer"}, [&]() -> Result<> {
    KEELSON_RETURN_IF_ERROR(health.Alive());
    return policy_health.Alive();
  }));
  if (policies) policies->AddTo(group);
  group.Add({"nodes", {"syncer"}, [&](std::stop_token stop, ServiceGroup::Ready ready) {
               ready();
               return nodes.Run(stop);
             }});
  log::Info("kube-cni starts", {{"node", config.node_name},
                                {"server", api.server},
                                {"mode", ToString(config.mode)},
                                {"encryption", ToString(config.encryption)},
                                {"network_policy", config.network_policy ? "on" : "off"}});
  return group.RunUntilSignal();
}

// A kernel without IPsec has nothing to remove.
Result<> RemoveEncryption(netlink::Socket& socket, const Config& config) {
  if (Result<netlink::Socket> xfrm = netlink::Socket::OpenXfrm()) {
    KEELSON_RETURN_IF_ERROR(Ipsec::RemoveAll(*xfrm));
  }
  Result<netlink::Link> device = netlink::GetLink(socket, config.wireguard_device);
  if (device && device->kind == "wireguard") {
    KEELSON_RETURN_IF_ERROR(netlink::DeleteLink(socket, device->index));
  }
  return {};
}

}  // namespace

int RunAgent(const Config& config) {
  // Lists of Nodes are large and short-lived: use one arena, so that free memory is shared and returned.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, 64 << 10);
  Result<int> code = config.network_policy_only ? RunPoliciesOnly(config) : Run(config);
  if (!code) log::Error("kube-cni cannot run", {{"err", code.error()}});
  return code.value_or(1);
}

namespace {

// The bridge that the plugin has made for pods, once no pod is left on it.
Result<> RemoveBridge(netlink::Socket& socket, const std::string& name) {
  KEELSON_ASSIGN_OR_RETURN(const std::vector<netlink::Link> links, netlink::ListLinks(socket));
  const auto bridge = std::find_if(links.begin(), links.end(), [&](const auto& link) {
    return link.name == name && link.kind == "bridge";
  });
  if (bridge == links.end()) return {};
  const bool used =
      std::any_of(links.begin(), links.end(), [&](const auto& link) { return link.master == bridge->index; });
  return used ? Result<>() : netlink::DeleteLink(socket, bridge->index);
}

}  // namespace

Result<> Cleanup(const Config& config) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> nft, nft::OpenKernel());
  if (!config.conf_dir.empty()) KEELSON_RETURN_IF_ERROR(RemoveFile(config.ConflistPath()));
  KEELSON_ASSIGN_OR_RETURN(Changes changes, RemoveAll(socket, config));
  KEELSON_RETURN_IF_ERROR(RemoveMasquerade(*nft));
  KEELSON_RETURN_IF_ERROR(RemovePolicyTables(*nft));
  KEELSON_RETURN_IF_ERROR(RemoveEncryption(socket, config));
  if (!config.network_policy_only) KEELSON_RETURN_IF_ERROR(RemoveBridge(socket, config.bridge));
  if (!changes.refused.empty()) return changes.refused.front();
  return {};
}

}  // namespace keelson::cni::agent

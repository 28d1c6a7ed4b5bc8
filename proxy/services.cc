#include "proxy/services.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "lib/api/types.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/service_group.h"
#include "lib/client/informer.h"
#include "lib/client/transport.h"
#include "lib/http/server_service.h"
#include "lib/linux/sysctl.h"
#include "proxy/node_addresses.h"
#include "proxy/proxier.h"

namespace keelson::proxy {
namespace {

constexpr uint16_t kHealthzPort = 10256, kMetricsPort = 10249;

Result<std::string> NodeName(const Config& config) {
  std::string name = config.hostname;
  if (name.empty()) {
    char buffer[256] = {};
    if (::gethostname(buffer, sizeof buffer - 1) != 0) return ErrnoError("get host name");
    name = buffer;
  }
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

// The kubeconfig, or what a pod is given.
Result<client::RestConfig> ApiConfig(const Config& config) {
  if (!config.kubeconfig.empty()) return client::LoadKubeconfig(config.kubeconfig);
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (!host || !port) return Error(Code::kInvalid, "no --kubeconfig, and not in a pod");
  const std::string account = "/var/run/secrets/kubernetes.io/serviceaccount/";
  client::RestConfig out;
  std::string name = host;
  out.server = "https://" + (name.find(':') == std::string::npos ? name : "[" + name + "]") + ":" + port;
  ASSIGN_OR_RETURN(out.ca_pem, ReadFile(account + "ca.crt"));
  out.token_file = account + "token";
  return out;
}

nftables::Options DataplaneOptions(const Config& config, bool v4) {
  nftables::Options out{.v4 = v4, .table = config.table, .masquerade_all = config.masquerade_all};
  out.masquerade_bit = 1u << config.masquerade_bit;
  for (const IpPrefix& cidr : config.cluster_cidrs) {
    if (cidr.is_v4() == v4) out.pod_cidrs.push_back(cidr);
  }
  // Bridged packets pass netfilter only when br_netfilter is there and told so.
  Result<std::string> bridged =
      linux::ReadSysctl(v4 ? "net/bridge/bridge-nf-call-iptables" : "net/bridge/bridge-nf-call-ip6tables");
  out.replies_bypass_node = !bridged || *bridged != "1";
  return out;
}

// Without forwarding no Service works; a read-only /proc/sys may have it on already. IPv6's is left to who
// sets the node's network up: switching it on makes a host forget the routes that it learned from routers.
void EnsureForwarding() {
  if (Result<> on = linux::EnsureSysctl("net/ipv4/ip_forward", "1"); !on) {
    log::Warn("Cannot switch IPv4 forwarding on", {{"err", on.error()}});
  }
}

http::Handler MetricsHandler() {
  return [](std::shared_ptr<const http::ServerRequest> request,
            std::shared_ptr<http::ResponseWriter> writer) {
    http::Headers text = {{"Content-Type", "text/plain; charset=utf-8"}};
    if (request->path == "/metrics") {
      writer->Reply(200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}}, metrics::Print());
    } else if (request->path == "/proxyMode") {
      writer->Reply(200, text, "nftables");
    } else if (request->path == "/healthz") {
      writer->Reply(200, text, "ok");
    } else {
      writer->Reply(404, text, "404 page not found\n");
    }
  };
}

// An empty address means no server.
Result<> AddPages(ServiceGroup& group, const std::string& name, const std::string& address,
                  uint16_t default_port, http::Handler handler) {
  if (address.empty()) return {};
  ASSIGN_OR_RETURN(HostPort where, ParseHostPort(address, default_port));
  http::AddServer(group, name, where.host, where.port, std::move(handler));
  return {};
}

void Connect(client::InformerFactory& informers, const std::string& node_name, Proxier& proxier) {
  informers.Get<corev1::Service>().AddHandler(
      [&](const client::Change<corev1::Service>& c) { proxier.OnService(c.key, c.new_object.get()); });
  informers.Get<discoveryv1::EndpointSlice>().AddHandler(
      [&](const client::Change<discoveryv1::EndpointSlice>& c) {
        proxier.OnSlice(c.key, c.new_object.get());
      });
  informers.Get<corev1::Node>({.field_selector = "metadata.name=" + node_name})
      .AddHandler([&](const client::Change<corev1::Node>& c) { proxier.OnNode(c.new_object.get()); });
}

Result<int> Run(const Config& config) {
  RETURN_IF_ERROR(Validate(config));
  ASSIGN_OR_RETURN(std::string node_name, NodeName(config));
  ASSIGN_OR_RETURN(client::RestConfig api, ApiConfig(config));
  api.user_agent = "kube-proxy/keelson";
  ASSIGN_OR_RETURN(std::shared_ptr<client::Transport> transport, client::NewHttpTransport(api));
  EnsureForwarding();

  Health health(2 * config.sync_period, Clock::Real());
  ProxierOptions options{.node_name = node_name,
                         .v4 = DataplaneOptions(config, true),
                         .v6 = DataplaneOptions(config, false),
                         .pods_of_node_cidr = config.detect_local_mode == "NodeCIDR",
                         .min_sync_period = config.min_sync_period,
                         .sync_period = config.sync_period};
  auto node_port_ips = [wanted = config.nodeport_addresses](const std::vector<IpAddress>& own) {
    return NodePortAddresses(wanted, own);
  };
  Proxier proxier(
      std::move(options), [] { return nft::OpenKernel(); }, node_port_ips, health);
  client::InformerFactory informers{client::RestClient(transport)};
  Connect(informers, node_name, proxier);

  ServiceGroup group;
  RETURN_IF_ERROR(AddPages(group, "healthz", config.healthz_address, kHealthzPort, health.Handler()));
  RETURN_IF_ERROR(AddPages(group, "metrics", config.metrics_address, kMetricsPort, MetricsHandler()));
  group.Add({"proxier", {}, [&](std::stop_token stop, ServiceGroup::Ready ready) {
               ready();
               return proxier.Run(stop, [] { log::Info("Service rules are in place"); });
             }});
  group.Add({"informers", {"proxier"}, [&](std::stop_token stop, ServiceGroup::Ready ready) {
               return informers.Run(stop, [&] {
                 proxier.MarkSynced();
                 ready();
               });
             }});
  log::Info("kube-proxy starts", {{"node", node_name}, {"server", api.server}, {"mode", config.mode}});
  return group.RunUntilSignal();
}

}  // namespace

int RunProxy(const Config& config) {
  Result<int> code = Run(config);
  if (!code) log::Error("kube-proxy cannot run", {{"err", code.error()}});
  return code.value_or(1);
}

Result<> Cleanup(const Config& config) {
  ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel());
  Result<> v4 = nftables::Dataplane::Remove(*kernel, DataplaneOptions(config, true).Table());
  Result<> v6 = nftables::Dataplane::Remove(*kernel, DataplaneOptions(config, false).Table());
  return v4 ? v6 : v4;
}

}  // namespace keelson::proxy

#include "proxy/services.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "lib/api/proto/networking_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/build_info.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/service_group.h"
#include "lib/base/text.h"
#include "lib/client/events.h"
#include "lib/client/informer.h"
#include "lib/client/transport.h"
#include "lib/k8s/feature_gates.h"
#include "lib/linux/notify.h"
#include "lib/linux/sysctl.h"
#include "proxy/announce/announce_services.h"
#include "proxy/config/config_watch.h"
#include "proxy/dns/dns_link.h"
#include "proxy/dns/dns_services.h"
#include "proxy/ebpf/dataplane.h"
#include "proxy/host/host_setup.h"
#include "proxy/host/leftovers.h"
#include "proxy/host/node_addresses.h"
#include "proxy/ipvs/mode.h"
#include "proxy/nftables/dataplane.h"
#include "proxy/serving/metrics.h"
#include "proxy/serving/pages.h"
#include "proxy/sync/kernel_watch.h"
#include "proxy/sync/proxier.h"

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
  return Lower(name);
}

// The kubeconfig, or what a pod is given.
Result<client::RestConfig> ApiConfig(const Config& config) {
  if (!config.kubeconfig.empty()) {
    KEELSON_ASSIGN_OR_RETURN(client::RestConfig out, client::LoadKubeconfig(config.kubeconfig));
    if (!config.master.empty()) out.server = config.master;
    return out;
  }
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (!host || !port) return Error(Code::kInvalid, "no --kubeconfig, and not in a pod");
  const std::string account = "/var/run/secrets/kubernetes.io/serviceaccount/";
  client::RestConfig out;
  std::string name = host;
  out.server = "https://" + (name.find(':') == std::string::npos ? name : "[" + name + "]") + ":" + port;
  KEELSON_ASSIGN_OR_RETURN(out.ca_pem, ReadFile(account + "ca.crt"));
  out.token_file = account + "token";
  return out;
}

nftables::Options DataplaneOptions(const Config& config, bool v4) {
  nftables::Options out{.v4 = v4, .table = config.table, .masquerade_all = config.masquerade_all};
  out.masquerade_bit = 1u << config.masquerade_bit;
  out.pod_bridge = config.pod_bridge;
  out.pod_interface_prefix = config.pod_interface_prefix;
  for (const IpPrefix& cidr : config.cluster_cidrs) {
    if (cidr.is_v4() == v4) out.pod_cidrs.push_back(cidr);
  }
  // Bridged packets pass netfilter only when br_netfilter is there and told so.
  Result<std::string> bridged =
      linux::ReadSysctl(v4 ? "net/bridge/bridge-nf-call-iptables" : "net/bridge/bridge-nf-call-ip6tables");
  out.replies_bypass_node = !bridged || *bridged != "1";
  return out;
}

constexpr const char* kModes[] = {"nftables", "ipvs", "ebpf"};

DataplaneMode MakeMode(const std::string& name, const Config& config, TableWatch& tables) {
  const auto open = [&tables] { return tables.OpenKernel(); };
  nftables::Options v4 = DataplaneOptions(config, true), v6 = DataplaneOptions(config, false);
  if (name == "nftables") return nftables::Mode(v4, v6, open);
  if (name == "ebpf") {
    return ebpf::Mode(v4, v6, open, config.ebpf_cgroup, config.ebpf_pins,
                      {.devices = config.ebpf_devices,
                       .direct = config.ebpf_direct,
                       .dsr = config.ebpf_dsr,
                       .xdp = config.ebpf_xdp},
                      {config.ebpf_affinity_clients, config.ebpf_udp_sockets});
  }
  v4.table = v6.table = IpvsTable(config.table);
  ipvs::Options options{.scheduler = config.ipvs.scheduler,
                        .scheduler_flags = ipvs::SchedulerFlags(config.ipvs.scheduler),
                        .excluded = config.ipvs.excluded};
  ipvs::HostOptions host{
      .strict_arp = config.ipvs.strict_arp,
      .timeouts = {.tcp = config.ipvs.tcp, .tcp_fin = config.ipvs.tcp_fin, .udp = config.ipvs.udp}};
  return ipvs::Mode(std::move(options), host, v4, v6, open);
}

std::vector<DataplaneMode> OtherModes(const Config& config, TableWatch& tables) {
  std::vector<DataplaneMode> out;
  for (const char* name : kModes) {
    if (name != config.mode) out.push_back(MakeMode(name, config, tables));
  }
  return out;
}

// The configuration file has changed: follows if only the mode is another one.
Result<> Follow(const std::string& fixed, const ReloadConfig& reload, Proxier& proxier, TableWatch& tables,
                Running& running) {
  Result<Config> config = reload();
  if (!config) {
    log::Error("The configuration file cannot be used; all stays as it was", {{"err", config.error()}});
    return {};
  }
  if (config->configz == running.configz()) return {};
  if (config->fixed != fixed) {
    return Error(Code::kUnavailable, "content of the proxy server's configuration file was updated");
  }
  DataplaneMode mode = MakeMode(config->mode, *config, tables);
  if (Result<> fit = mode.check ? mode.check() : Result<>(); !fit) {
    log::Error("The proxy mode stays as it was", {{"mode", running.mode()}, {"err", fit.error()}});
    return {};
  }
  running.Set(config->mode, config->configz);
  proxier.Switch(std::move(mode));
  return {};
}

Result<> RemoveDnsLink() {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  KEELSON_RETURN_IF_ERROR(dns::RemoveDnsLink(socket));
  return {};
}

// With DNS the metrics address tells whether it answers yet, as CoreDNS does. `dns` may be null.
http::Handler WithReadiness(const dns::ClusterDns* dns, http::Handler others) {
  if (!dns) return others;
  return [dns, others](std::shared_ptr<const http::ServerRequest> request,
                       std::shared_ptr<http::ResponseWriter> writer) {
    if (request->path != "/ready") return others(request, writer);
    http::Headers text = {{"Content-Type", "text/plain; charset=utf-8"}};
    dns->Ready() ? writer->Reply(200, text, "OK") : writer->Reply(503, text, "kubernetes");
  };
}

// `dns` may be null. What is needed of Services and slices is kept by whom they are told.
void Connect(client::InformerFactory& informers, const std::string& node_name, Proxier& proxier,
             dns::ClusterDns* dns) {
  informers.Get<corev1::Service>().KeepNoObjects();
  informers.Get<discoveryv1::EndpointSlice>().KeepNoObjects();
  informers.Get<corev1::Service>().AddHandler([&proxier, dns](const client::Change<corev1::Service>& c) {
    const corev1::Service* service = c.new_object.get();
    if (dns) dns->OnService(c.key, service);
    proxier.OnService(c.key, dns && service && dns->IsFor(*service) ? nullptr : service);
  });
  informers.Get<discoveryv1::EndpointSlice>().AddHandler(
      [&proxier, dns](const client::Change<discoveryv1::EndpointSlice>& c) {
        if (dns) dns->OnSlice(c.key, c.new_object.get());
        proxier.OnSlice(c.key, c.new_object.get());
      });
  informers.Get<corev1::Node>({.field_selector = "metadata.name=" + node_name})
      .AddHandler([&](const client::Change<corev1::Node>& c) { proxier.OnNode(c.new_object.get()); });
}

// Null without --cluster-dns-address; then nothing is left of a proxy that had it and was killed.
Result<std::unique_ptr<dns::ClusterDns>> MakeDns(const Config& config) {
  if (!config.dns.addresses.empty()) return dns::ClusterDns::Create(config.dns, Clock::Real());
  KEELSON_RETURN_IF_ERROR(RemoveDnsLink());
  return std::unique_ptr<dns::ClusterDns>();
}

Proxier::Warn WarnWith(client::EventRecorder& events) {
  return [&events](const std::string& service, const char* reason, const std::string& message) {
    corev1::ObjectReference about;
    auto slash = service.find('/');
    about.set_kind("Service");
    about.set_namespace_(service.substr(0, slash));
    about.set_name(service.substr(slash + 1));
    about.set_uid(service);
    events.Record(about, "Warning", reason, message);
  };
}

// What nothing waits for: without it the proxy works nearly as well.
void AddWatches(ServiceGroup& group, const Config& config, Proxier& proxier, TableWatch& tables,
                client::EventRecorder& events, client::InformerFactory& extras) {
  auto add = [&](const char* name, std::function<Result<>(std::stop_token)> run) {
    group.Add({name, {"proxier"}, [run = std::move(run)](std::stop_token stop, ServiceGroup::Ready ready) {
                 ready();
                 return run(stop);
               }});
  };
  add("tables", [&](std::stop_token stop) { return tables.Run(stop, proxier); });
  add("addresses",
      [&](std::stop_token stop) { return WatchAddresses(stop, [&] { proxier.OnAddressesChanged(); }); });
  // What is to be encrypted is not sent on past the rules.
  if (config.ebpf_direct) {
    add("policies",
        [&](std::stop_token stop) { return WatchPolicies(stop, [&] { proxier.OnAddressesChanged(); }); });
  }
  add("events", [&](std::stop_token stop) -> Result<> {
    events.Run(stop);
    return {};
  });
  using Cidr = api::networking::v1::ServiceCIDR;
  extras.Get<Cidr>().AddHandler(
      [&](const client::Change<Cidr>& c) { proxier.OnServiceCidr(c.key, c.new_object.get()); });
  add("service-cidrs", [&](std::stop_token stop) { return extras.Run(stop, [] {}); });
}

// Best effort: rules that stay are no reason not to serve.
void RemoveOthers(const Config& config) {
  Result<std::unique_ptr<nft::Kernel>> kernel = nft::OpenKernel();
  Result<> removed = kernel ? RemoveLeftovers(**kernel, config.table) : Result<>(kernel.error());
  if (!removed) log::Warn("Cannot remove the rules of another proxy mode", {{"err", removed.error()}});
}

StatusPages StatusPagesOf(const Config& config) {
  return {.statusz = k8s::FeatureEnabled(config.feature_gates, "ComponentStatusz"),
          .flagz = k8s::FeatureEnabled(config.feature_gates, "ComponentFlagz"),
          .flags = config.flags};
}

Result<int> Run(const Config& config, const ReloadConfig& reload) {
  KEELSON_ASSIGN_OR_RETURN(std::string node_name, NodeName(config));
  KEELSON_ASSIGN_OR_RETURN(client::RestConfig api, ApiConfig(config));
  api.user_agent = "kube-proxy/keelson";
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<client::Transport> transport, client::NewHttpTransport(api));
  TableWatch tables;
  DataplaneMode mode = MakeMode(config.mode, config, tables);
  if (mode.check) KEELSON_RETURN_IF_ERROR(mode.check());
  KEELSON_RETURN_IF_ERROR(PrepareHost(config));
  RemoveOthers(config);

  Health health(2 * config.sync_period, Clock::Real());
  ProxierOptions options{.node_name = node_name,
                         .pods_of_node_cidr = config.detect_local_mode == "NodeCIDR",
                         .external_ips = k8s::FeatureEnabled(config.feature_gates, "AllowServiceExternalIPs"),
                         .min_sync_period = config.min_sync_period,
                         .sync_period = config.sync_period,
                         .others = OtherModes(config, tables)};
  auto read_ips = [&config](std::vector<IpAddress> own) -> Result<NodeIps> {
    if (config.node_ip) {
      std::erase_if(own, [&](const IpAddress& ip) { return ip.is_v4() == config.node_ip->is_v4(); });
      own.insert(own.begin(), *config.node_ip);
    }
    NodeIps out;
    KEELSON_ASSIGN_OR_RETURN(out.node_ports, NodePortAddresses(config.nodeport_addresses, own));
    KEELSON_ASSIGN_OR_RETURN(out.own, OwnAddresses());
    return out;
  };
  client::EventRecorder events{client::RestClient(transport), "kube-proxy", node_name};
  Running running(config.mode, config.configz);
  Proxier proxier(std::move(options), std::move(mode), read_ips, WarnWith(events), health);
  client::InformerFactory informers{client::RestClient(transport)}, extras{client::RestClient(transport)};
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<dns::ClusterDns> dns, MakeDns(config));
  Connect(informers, node_name, proxier, dns.get());
  std::unique_ptr<Announcing> announcing;
  if (!config.announced.empty()) {
    announcing = std::make_unique<Announcing>(
        AnnouncerOptions{.node_name = node_name, .addresses = config.announced}, transport, informers);
  }

  ServiceGroup group;
  const bool hard = config.address_hard_fail;
  KEELSON_RETURN_IF_ERROR(
      AddPages(group, "healthz", config.healthz_address, kHealthzPort, hard, health.Handler()));
  KEELSON_RETURN_IF_ERROR(AddPages(group, "metrics", config.metrics_address, kMetricsPort, hard,
                                   WithReadiness(dns.get(), MetricsPages(running, StatusPagesOf(config)))));
  if (!config.config_file.empty()) {
    group.Add({"config-file", {}, [&](std::stop_token stop, ServiceGroup::Ready ready) {
                 ready();
                 return FollowFile(config.config_file, stop,
                                   [&] { return Follow(config.fixed, reload, proxier, tables, running); });
               }});
  }
  group.Add({"proxier", {}, [&](std::stop_token stop, ServiceGroup::Ready ready) {
               ready();
               return proxier.Run(stop, [] { log::Info("Service rules are in place"); });
             }});
  // Before what waits for the API server: without one the rules of an earlier run stay in the kernel.
  group.Add(linux::SystemdNotifier({"proxier"}, [&health]() -> Result<> {
    if (health.Live()) return {};
    return Error(Code::kUnavailable, "changes of Services do not reach the kernel");
  }));
  if (dns) dns::AddServices(group, *dns);
  if (announcing) announcing->AddServices(group);
  group.Add({"informers", {"proxier"}, [&](std::stop_token stop, ServiceGroup::Ready ready) {
               return informers.Run(stop, [&] {
                 proxier.MarkSynced();
                 if (dns) dns->MarkSynced();
                 if (announcing) announcing->MarkSynced();
                 ready();
               });
             }});
  AddWatches(group, config, proxier, tables, events, extras);
  log::Info("kube-proxy starts", {{"node", node_name}, {"server", api.server}, {"mode", config.mode}});
  return group.RunUntilSignal();
}

}  // namespace

Result<> PrepareHost(const Config& config) {
  EnsureForwarding();
  SetConntrackLimits(config.conntrack);
  SetOomScore(config.oom_score_adj);
  return {};
}

int RunProxy(const Config& config, const ReloadConfig& reload) {
  if (config.asked_mode != config.mode) {
    log::Warn("Services are programmed into nftables, whichever mode of iptables was asked for",
              {{"mode", config.asked_mode}});
  }
  if (config.detect_local_mode == "ClusterCIDR" && config.cluster_cidrs.empty()) {
    log::Warn("Detect-local-mode set to ClusterCIDR, but no cluster CIDR defined");
  }
  TellBuild();
  k8s::TellFeatureGates(config.feature_gates, k8s::Program::kProxy);
  Result<int> code = Run(config, reload);
  if (!code) log::Error("kube-proxy cannot run", {{"err", code.error()}});
  return code.value_or(1);
}

Result<> Cleanup(const Config& config) {
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel());
  Result<> link = RemoveDnsLink();
  Result<> others = RemoveLeftovers(*kernel, config.table);
  Result<> servers = RemoveVirtualServers(), outside = ebpf::DetachFilters(config.ebpf_pins),
           sockets = ebpf::Datapath::RemoveAll(config.ebpf_pins), rules;
  for (bool is_v4 : {true, false}) {
    nft::Table table = DataplaneOptions(config, is_v4).Table();
    for (const std::string& name : {config.table, IpvsTable(config.table), ebpf::TableName(config.table)}) {
      table.name = name;
      if (Result<> one = nftables::Dataplane::Remove(*kernel, table); !one) rules = one;
    }
  }
  for (Result<>* one : {&link, &others, &servers, &outside, &sockets, &rules}) {
    if (!*one) return one->error().Wrap("encountered an error while tearing down rules");
  }
  return {};
}

}  // namespace keelson::proxy

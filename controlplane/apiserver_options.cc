#include "controlplane/apiserver_options.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "controlplane/audit_setup.h"
#include "controlplane/auth_services.h"
#include "controlplane/options/option_values.h"
#include "lib/base/fd.h"
#include "lib/base/ip.h"
#include "lib/base/text.h"
#include "lib/crypto/certificates.h"

namespace keelson::controlplane {
namespace {

// Threads for requests that need no seat.
constexpr int kSpareWorkers = 8;

// The source address of packets to other hosts. Sends nothing.
std::string DefaultRouteAddress() {
  UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  inet_pton(AF_INET, "192.0.2.1", &address.sin_addr);
  socklen_t size = sizeof address;
  char text[INET_ADDRSTRLEN];
  if (!fd || connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return "127.0.0.1";
  }
  return inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
}

std::string AdvertiseAddress(const Options& options) {
  // Without a default route, use an address of this machine, whatever the bind address is.
  const auto elsewhere = [](const std::string& address) {
    const Result<IpAddress> ip = IpAddress::Parse(address);
    return ip && !ip->IsUnspecified() && !ip->IsLoopback();
  };
  for (const std::string* address : {&options.advertise_address, &options.bind_address}) {
    if (elsewhere(*address)) return *address;
  }
  return DefaultRouteAddress();
}

Result<apiserver::RequestLimits> LimitsOf(const Options& options) {
  if (options.request_timeout.count() <= 0) {
    return Error(Code::kInvalid, "--request-timeout must be more than 0");
  }
  if (options.min_request_timeout_seconds < 0) {
    return Error(Code::kInvalid, "--min-request-timeout can not be negative value");
  }
  if (options.max_requests_inflight < 0 || options.max_mutating_requests_inflight < 0) {
    return Error(Code::kInvalid,
                 "--max-requests-inflight and --max-mutating-requests-inflight can not be "
                 "negative value");
  }
  apiserver::RequestLimits limits;
  limits.timeout = options.request_timeout;
  limits.min_watch_timeout = std::chrono::seconds(options.min_request_timeout_seconds);
  limits.priority_and_fairness = options.priority_and_fairness;
  limits.max_read_only = options.max_requests_inflight;
  limits.max_mutating = options.max_mutating_requests_inflight;
  const int seats = options.max_requests_inflight + options.max_mutating_requests_inflight;
  if (limits.priority_and_fairness && seats <= 0) {
    return Error(Code::kInvalid,
                 "--max-requests-inflight and --max-mutating-requests-inflight must not both be "
                 "0 with priority and fairness");
  }
  // Each request needs a thread, so more seats would be useless.
  limits.seats = std::min(seats, kApiServerWorkers - kSpareWorkers);
  return limits;
}

Result<int> KubernetesNodePort(const Options& options) {
  const int port = options.kubernetes_service_node_port;
  if (port < 0 || port > 65535) {
    return Error(Code::kInvalid, fmt::format("--kubernetes-service-node-port {} must be between 0 and 65535, "
                                             "inclusive. If 0, the Kubernetes master service will be of type "
                                             "ClusterIP",
                                             port));
  }
  KEELSON_ASSIGN_OR_RETURN(const registry::Config config, RegistryConfigOf(options));
  if (port > 0 && (port < config.node_port_first || port > config.node_port_last)) {
    return Error(Code::kInvalid, fmt::format("kubernetes service port range {} doesn't contain {}",
                                             options.service_node_port_range, port));
  }
  return port;
}

// Without `leases`, which are there later.
Result<apiserver::PeerOptions> PeerOptionsOf(const Options& options) {
  apiserver::PeerOptions out;
  KEELSON_ASSIGN_OR_RETURN(out.ca_pem, ReadIfSet(options.peer_ca_file));
  const std::pair<const char*, const std::string*> needed[] = {
      {"proxy-cert-file", &options.proxy_certificate_file}, {"proxy-key-file", &options.proxy_key_file}};
  for (const auto& [name, file] : needed) {
    if (options.peer_ca_file.empty() || !file->empty()) continue;
    return Error(Code::kInvalid, fmt::format("error building peer proxy handler, {} not specified", name));
  }
  out.host = options.peer_advertise_ip.empty() ? AdvertiseAddress(options) : options.peer_advertise_ip;
  out.port = options.secure_port;
  if (!IpAddress::Parse(out.host)) {
    return Error(Code::kInvalid, "--peer-advertise-ip " + out.host + " is no IP address");
  }
  if (options.peer_advertise_port.empty()) return out;
  const std::string& port = options.peer_advertise_port;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (error != std::errc() || end != port.data() + port.size() || out.port < 1 || out.port > 65535) {
    return Error(Code::kInvalid, "--peer-advertise-port " + port + " is no port");
  }
  return out;
}

}  // namespace

Result<registry::Config> RegistryConfigOf(const Options& options) {
  registry::Config config;
  config.service_cidrs = SplitList(options.service_cluster_ip_range);
  auto dash = options.service_node_port_range.find('-');
  if (config.service_cidrs.empty() || dash == std::string::npos) {
    return Error(Code::kInvalid, "--service-cluster-ip-range and --service-node-port-range must be ranges");
  }
  config.node_port_first = std::atoi(options.service_node_port_range.c_str());
  config.node_port_last = std::atoi(options.service_node_port_range.c_str() + dash + 1);
  if (config.node_port_first <= 0 || config.node_port_last < config.node_port_first ||
      config.node_port_last > 65535) {
    return Error(Code::kInvalid, "--service-node-port-range is no range of ports");
  }
  config.event_ttl = std::chrono::duration_cast<std::chrono::seconds>(options.event_ttl);
  return config;
}

Result<apiserver::ProxyCertificate> ReadProxyCertificate(const Options& options) {
  apiserver::ProxyCertificate out;
  KEELSON_ASSIGN_OR_RETURN(out.certificate_pem, ReadIfSet(options.proxy_certificate_file));
  KEELSON_ASSIGN_OR_RETURN(out.key_pem, ReadIfSet(options.proxy_key_file));
  if (out.certificate_pem.empty() != out.key_pem.empty()) {
    return Error(Code::kInvalid,
                 "--proxy-client-cert-file and --proxy-client-key-file must be specified together");
  }
  if (!out.key_pem.empty() && !crypto::BelongTogether(out.certificate_pem, out.key_pem)) {
    return Error(Code::kInvalid, "--proxy-client-key-file is not the key of --proxy-client-cert-file");
  }
  return out;
}

Result<apiserver::ApiServerOptions> ApiServerOptionsOf(const Options& options) {
  apiserver::ApiServerOptions out;
  KEELSON_RETURN_IF_ERROR(ReadAuthOptions(options, out));
  KEELSON_ASSIGN_OR_RETURN(out.backends.kubelet_certificate_pem, ReadIfSet(options.kubelet_certificate_file));
  KEELSON_ASSIGN_OR_RETURN(out.backends.kubelet_key_pem, ReadIfSet(options.kubelet_key_file));
  KEELSON_ASSIGN_OR_RETURN(out.backends.kubelet_ca_pem, ReadIfSet(options.kubelet_ca_file));
  out.backends.kubelet_address_types = options.kubelet_address_types;
  out.backends.connect_timeout = options.kubelet_timeout;
  KEELSON_ASSIGN_OR_RETURN(out.proxy_certificate, ReadProxyCertificate(options));
  out.reject_extension_redirects = options.reject_extension_redirects;
  KEELSON_ASSIGN_OR_RETURN(out.peers, PeerOptionsOf(options));
  KEELSON_ASSIGN_OR_RETURN(out.enablement, apiserver::ApiEnablement::Parse(options.runtime_config));
  KEELSON_ASSIGN_OR_RETURN(out.kubernetes_service.service_ip,
                           apiserver::FirstServiceIp(SplitList(options.service_cluster_ip_range).front()));
  out.kubernetes_service.advertise_address = AdvertiseAddress(options);
  out.kubernetes_service.port = options.secure_port;
  KEELSON_ASSIGN_OR_RETURN(out.kubernetes_service.node_port, KubernetesNodePort(options));
  out.kubernetes_service.publish = options.endpoint_reconciler != "none";
  out.external_host = options.external_hostname.empty() ? out.kubernetes_service.advertise_address
                                                        : options.external_hostname;
  KEELSON_ASSIGN_OR_RETURN(
      out.admission,
      apiserver::ReadAdmissionConfig(options.enable_admission_plugins, options.disable_admission_plugins,
                                     options.admission_control_config_file));
  out.admission.not_ready_toleration_seconds = options.default_not_ready_toleration_seconds;
  out.admission.unreachable_toleration_seconds = options.default_unreachable_toleration_seconds;
  out.gate_on = [gates = options.feature_gates](std::string_view gate) {
    return k8s::FeatureInEffect(gates, gate, k8s::Program::kApiServer);
  };
  KEELSON_ASSIGN_OR_RETURN(out.auditor, MakeAuditor(options.audit));
  KEELSON_ASSIGN_OR_RETURN(out.limits, LimitsOf(options));
  out.flags = options.flags;
  out.flagz = k8s::FeatureEnabled(options.feature_gates, "ComponentFlagz");
  out.statusz = k8s::FeatureEnabled(options.feature_gates, "ComponentStatusz");
  out.profiling = options.profiling;
  out.metric_resolution = std::chrono::duration_cast<std::chrono::seconds>(options.metric_resolution);
  if (!options.enable_aggregator_routing) {
    out.service_routing = apiserver::ServiceResolver::Routing::kClusterIp;
  }
  if (out.metric_resolution.count() <= 0) {
    return Error(Code::kInvalid, "--metric-resolution must be at least 1s");
  }
  return out;
}

}  // namespace keelson::controlplane

#include <arpa/inet.h>

#include <cstring>

#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "controlplane/storage/master_leases.h"
#include "controlplane/storage/store.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::apiserver {
namespace {

constexpr const char* kName = "kubernetes";
constexpr const char* kNamespace = "default";
// As kube-apiserver's, which may stand beside this one.
constexpr std::chrono::seconds kLeaseTtl{15};
constexpr std::chrono::seconds kPatience{5};

storage::Limits Soon(std::stop_token stop) {
  return {std::chrono::steady_clock::now() + kPatience, std::move(stop)};
}

void SetMeta(metav1::ObjectMeta& meta) {
  meta.set_name(kName);
  meta.set_namespace_(kNamespace);
}

void SetTypeAndPorts(const KubernetesServiceOptions& options, corev1::ServiceSpec& spec) {
  spec.set_type(options.node_port > 0 ? "NodePort" : "ClusterIP");
  spec.clear_ports();
  corev1::ServicePort& port = *spec.add_ports();
  port.set_name("https");
  port.set_protocol("TCP");
  port.set_port(443);
  port.mutable_target_port()->set_int_val(options.port);
  if (options.node_port > 0) port.set_node_port(options.node_port);
}

corev1::Service WantedService(const KubernetesServiceOptions& options) {
  corev1::Service service;
  SetMeta(*service.mutable_metadata());
  (*service.mutable_metadata()->mutable_labels())["component"] = "apiserver";
  (*service.mutable_metadata()->mutable_labels())["provider"] = "kubernetes";
  corev1::ServiceSpec& spec = *service.mutable_spec();
  SetTypeAndPorts(options, spec);
  spec.set_cluster_ip(options.service_ip);
  spec.add_cluster_ips(options.service_ip);
  spec.set_session_affinity("None");
  return service;
}

bool HasTypeAndPorts(const KubernetesServiceOptions& options, const corev1::ServiceSpec& have) {
  corev1::ServiceSpec wanted;
  SetTypeAndPorts(options, wanted);
  if (have.type() != wanted.type() || have.ports_size() != 1) return false;
  const corev1::ServicePort &one = have.ports(0), &other = wanted.ports(0);
  return one.name() == other.name() && one.protocol() == other.protocol() && one.port() == other.port() &&
         one.target_port().int_val() == other.target_port().int_val() && one.node_port() == other.node_port();
}

using Addresses = std::vector<std::string>;

void FillEndpoints(const KubernetesServiceOptions& options, const Addresses& servers,
                   corev1::Endpoints& endpoints) {
  SetMeta(*endpoints.mutable_metadata());
  // The label excludes these Endpoints from mirroring: this file writes their slice.
  (*endpoints.mutable_metadata()->mutable_labels())["endpointslice.kubernetes.io/skip-mirror"] = "true";
  endpoints.clear_subsets();
  corev1::EndpointSubset& subset = *endpoints.add_subsets();
  for (const std::string& server : servers) subset.add_addresses()->set_ip(server);
  corev1::EndpointPort& port = *subset.add_ports();
  port.set_name("https");
  port.set_port(options.port);
  port.set_protocol("TCP");
}

void FillSlice(const KubernetesServiceOptions& options, const Addresses& servers,
               discoveryv1::EndpointSlice& slice) {
  SetMeta(*slice.mutable_metadata());
  (*slice.mutable_metadata()->mutable_labels())["kubernetes.io/service-name"] = kName;
  bool v6 = servers.front().find(':') != std::string::npos;
  slice.set_address_type(v6 ? "IPv6" : "IPv4");
  slice.clear_endpoints();
  for (const std::string& server : servers) {
    discoveryv1::Endpoint& endpoint = *slice.add_endpoints();
    endpoint.add_addresses(server);
    endpoint.mutable_conditions()->set_ready(true);
  }
  slice.clear_ports();
  discoveryv1::EndpointPort& port = *slice.add_ports();
  port.set_name("https");
  port.set_port(options.port);
  port.set_protocol("TCP");
}

// Creates the object, or updates it with `fill` if it differs.
template <typename T>
Result<> Reconcile(registry::Registry& registry, const std::function<void(T&)>& fill, std::stop_token stop) {
  const api::ResourceInfo& info = api::ResourceOf<T>();
  Result<registry::ObjectPtr> found = registry.Get(info, kNamespace, kName, "", stop);
  if (!found && !found.error().Is(Code::kNotFound)) return found.error();
  if (!found) {
    T wanted;
    fill(wanted);
    return CreateIfAbsent(registry, wanted, stop);
  }
  T before = static_cast<const T&>(*(*found)->Decode());
  T after = before;
  fill(after);
  if (api::EncodeRaw(before) == api::EncodeRaw(after)) return {};
  auto updated = registry.Modify(
      info, kNamespace, kName,
      [&](api::Message& object) -> Result<> {
        fill(static_cast<T&>(object));
        return {};
      },
      BootstrapWrite(stop));
  if (!updated) return updated.error();
  return {};
}

// Writes what the leases say. A server that runs has a lease, so none at all is an error.
Result<> PublishServers(registry::Registry& registry, const KubernetesServiceOptions& options,
                        std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(Addresses servers, registry.store().master_leases().List(Soon(stop)));
  if (servers.empty()) {
    return Error(Code::kInternal,
                 "no master IPs were listed in storage, refusing to erase all endpoints for the kubernetes "
                 "service");
  }
  KEELSON_RETURN_IF_ERROR(Reconcile<corev1::Endpoints>(
      registry, [&](corev1::Endpoints& object) { FillEndpoints(options, servers, object); }, stop));
  return Reconcile<discoveryv1::EndpointSlice>(
      registry, [&](discoveryv1::EndpointSlice& object) { FillSlice(options, servers, object); }, stop);
}

}  // namespace

Result<std::string> FirstServiceIp(const std::string& cidr) {
  std::string ip = cidr.substr(0, cidr.find('/'));
  unsigned char bytes[16];
  char text[INET6_ADDRSTRLEN];
  int family = ip.find(':') == std::string::npos ? AF_INET : AF_INET6;
  size_t size = family == AF_INET ? 4 : 16;
  if (inet_pton(family, ip.c_str(), bytes) != 1) return Error(Code::kInvalid, "not a CIDR: " + cidr);
  for (size_t i = size; i-- > 0;) {
    if (++bytes[i] != 0) break;
  }
  inet_ntop(family, bytes, text, sizeof text);
  return std::string(text);
}

Result<> EnsureKubernetesService(registry::Registry& registry, const KubernetesServiceOptions& options,
                                 std::stop_token stop) {
  KEELSON_RETURN_IF_ERROR(CreateIfAbsent(registry, WantedService(options), stop));
  if (!options.publish) return {};
  KEELSON_RETURN_IF_ERROR(
      registry.store().master_leases().Renew(options.advertise_address, kLeaseTtl, Soon(stop)));
  return PublishServers(registry, options, stop);
}

Result<> CorrectKubernetesService(registry::Registry& registry, const KubernetesServiceOptions& options,
                                  std::stop_token stop) {
  const api::ResourceInfo& info = api::ResourceOf<corev1::Service>();
  KEELSON_ASSIGN_OR_RETURN(registry::ObjectPtr found, registry.Get(info, kNamespace, kName, "", stop));
  const auto stored = found->Decode();
  if (HasTypeAndPorts(options, static_cast<const corev1::Service&>(*stored).spec())) return {};
  auto updated = registry.Modify(
      info, kNamespace, kName,
      [&](api::Message& object) -> Result<> {
        SetTypeAndPorts(options, *static_cast<corev1::Service&>(object).mutable_spec());
        return {};
      },
      BootstrapWrite(stop));
  if (!updated) return updated.error().Wrap("set the ports of the Service kubernetes");
  return {};
}

Result<> WithdrawKubernetesEndpoint(registry::Registry& registry, const KubernetesServiceOptions& options) {
  if (!options.publish) return {};
  storage::MasterLeases& leases = registry.store().master_leases();
  KEELSON_RETURN_IF_ERROR(leases.Remove(options.advertise_address, Soon({})));
  KEELSON_ASSIGN_OR_RETURN(Addresses others, leases.List(Soon({})));
  if (others.empty()) return {};
  return PublishServers(registry, options, {});
}

}  // namespace keelson::apiserver

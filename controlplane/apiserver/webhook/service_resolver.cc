#include "controlplane/apiserver/webhook/service_resolver.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "lib/api/types.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kServiceLabel = "kubernetes.io/service-name";

bool BelongsTo(const storage::Object& slice, std::string_view service) {
  const auto& labels = slice.labels();
  return std::any_of(labels.begin(), labels.end(), [&](const auto& label) {
    return label.first == kServiceLabel && label.second == service;
  });
}

bool IsReady(const discoveryv1::Endpoint& endpoint) {
  return !endpoint.conditions().has_ready() || endpoint.conditions().ready();
}

const corev1::ServicePort* FindPort(const corev1::Service& service, int32_t number) {
  for (const corev1::ServicePort& port : service.spec().ports()) {
    if (port.port() == number) return &port;
  }
  return nullptr;
}

std::string Join(std::string_view host, int32_t port) {
  const bool v6 = host.find(':') != std::string_view::npos;
  return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

// Types that have a ClusterIP or endpoints.
bool IsRouted(std::string_view type) {
  return type.empty() || type == "ClusterIP" || type == "NodePort" || type == "LoadBalancer";
}

}  // namespace

std::string EndpointAddress::HostPort() const { return Join(ip, port); }

std::vector<EndpointAddress> ReadyEndpoints(const storage::Store& store, std::string_view ns,
                                            std::string_view service, std::string_view port_name) {
  std::vector<EndpointAddress> ready;
  auto add = [&](const storage::ObjectPtr& object) {
    if (!BelongsTo(*object, service)) return;
    auto slice = std::static_pointer_cast<const discoveryv1::EndpointSlice>(object->Decode());
    if (slice->address_type() == "FQDN") return;
    for (const discoveryv1::EndpointPort& port : slice->ports()) {
      if (port.name() != port_name || !port.has_port()) continue;
      for (const discoveryv1::Endpoint& endpoint : slice->endpoints()) {
        // The addresses of one endpoint are interchangeable.
        if (IsReady(endpoint) && !endpoint.addresses().empty()) {
          ready.push_back({endpoint.addresses(0), port.port()});
        }
      }
    }
  };
  store.ForEachIn(api::ResourceOf<discoveryv1::EndpointSlice>(), ns, add);
  return ready;
}

Result<std::string> ServiceResolver::Resolve(std::string_view ns, std::string_view name, int32_t port,
                                             std::string_view preferred) const {
  storage::ObjectPtr object = store_.Peek(api::ResourceOf<corev1::Service>(), fmt::format("{}/{}", ns, name));
  if (!object) return Error(Code::kNotFound, fmt::format("service \"{}\" not found", name));
  auto service = std::static_pointer_cast<const corev1::Service>(object->Decode());
  const corev1::ServiceSpec& spec = service->spec();
  if (spec.type() == "ExternalName") return Join(spec.external_name(), port);
  if (!IsRouted(spec.type())) {
    return Error(Code::kUnavailable, fmt::format("unsupported service type \"{}\"", spec.type()));
  }
  const corev1::ServicePort* found = FindPort(*service, port);
  if (!found) {
    return Error(Code::kUnavailable, fmt::format("no service port {} found for service \"{}\"", port, name));
  }
  const bool headless = spec.cluster_ip().empty() || spec.cluster_ip() == "None";
  if (routing_ == Routing::kClusterIp && !headless) return Join(spec.cluster_ip(), port);
  const std::vector<EndpointAddress> ready = ReadyEndpoints(store_, ns, name, found->name());
  if (ready.empty()) {
    return Error(Code::kUnavailable, fmt::format("no endpoints available for service \"{}\"", name));
  }
  for (const EndpointAddress& one : ready) {
    if (!preferred.empty() && one.HostPort() == preferred) return std::string(preferred);
  }
  static thread_local std::minstd_rand random(std::random_device{}());
  return ready[std::uniform_int_distribution<size_t>(0, ready.size() - 1)(random)].HostPort();
}

}  // namespace keelson::apiserver

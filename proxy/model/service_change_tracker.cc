#include "proxy/model/service_change_tracker.h"

#include <algorithm>

#include "lib/api/types.h"

namespace keelson::proxy {
namespace {

constexpr char kServiceNameLabel[] = "kubernetes.io/service-name";
constexpr char kProxyNameLabel[] = "service.kubernetes.io/service-proxy-name";
constexpr char kHeadlessLabel[] = "service.kubernetes.io/headless";
constexpr int kDefaultAffinitySeconds = 10800;

uint8_t ProtocolOf(const std::string& name) {
  if (name == "UDP") return kUdp;
  return name == "SCTP" ? kSctp : kTcp;
}

bool IsPort(int32_t number) { return number > 0 && number < 65536; }

void AddAddress(std::vector<IpAddress>& out, const std::string& text, bool v4) {
  Result<IpAddress> address = IpAddress::Parse(text);
  if (address && address->is_v4() == v4 && std::find(out.begin(), out.end(), *address) == out.end()) {
    out.push_back(*address);
  }
}

// Of overlapping ranges only the widest are kept: the kernel's interval sets hold disjoint ones.
std::vector<IpPrefix> SourceRanges(const corev1::ServiceSpec& spec, bool v4) {
  std::vector<IpPrefix> all;
  for (std::string text : spec.load_balancer_source_ranges()) {
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    Result<IpPrefix> range = IpPrefix::Parse(text);
    if (range && range->is_v4() == v4) all.push_back(range->Masked());
  }
  std::sort(all.begin(), all.end(),
            [](const IpPrefix& a, const IpPrefix& b) { return a.length() < b.length(); });
  std::vector<IpPrefix> out;
  for (const IpPrefix& range : all) {
    bool inside =
        std::any_of(out.begin(), out.end(), [&](const IpPrefix& o) { return o.Contains(range.address()); });
    if (!inside) out.push_back(range);
  }
  return out;
}

bool IsHandled(const corev1::Service& service) {
  const auto& labels = service.metadata().labels();
  const corev1::ServiceSpec& spec = service.spec();
  return spec.type() != "ExternalName" && !spec.cluster_ip().empty() && spec.cluster_ip() != "None" &&
         labels.find(kProxyNameLabel) == labels.end();
}

std::vector<ServicePort> Ports(const std::string& key, const corev1::Service& service,
                               const IpAddress& cluster_ip, bool external_ips) {
  const corev1::ServiceSpec& spec = service.spec();
  bool v4 = cluster_ip.is_v4();
  ServicePort common{.cluster_ip = cluster_ip};
  if (external_ips) {
    for (const std::string& ip : spec.external_ips()) AddAddress(common.external_ips, ip, v4);
  }
  for (const auto& ingress : service.status().load_balancer().ingress()) {
    // In Proxy mode the load balancer itself must see the traffic.
    if (ingress.ip_mode() != "Proxy") AddAddress(common.load_balancer_ips, ingress.ip(), v4);
  }
  common.source_ranges = SourceRanges(spec, v4);
  common.internal_local = spec.internal_traffic_policy() == "Local";
  common.external_local = spec.external_traffic_policy() == "Local";
  if (spec.session_affinity() == "ClientIP") {
    const auto& config = spec.session_affinity_config().client_ip();
    common.affinity = std::chrono::seconds(config.has_timeout_seconds() ? config.timeout_seconds()
                                                                        : kDefaultAffinitySeconds);
  }
  std::vector<ServicePort> out;
  for (const corev1::ServicePort& port : spec.ports()) {
    if (!IsPort(port.port()) || (port.node_port() != 0 && !IsPort(port.node_port()))) continue;
    ServicePort& added = out.emplace_back(common);
    added.name = key + ":" + port.name();
    added.protocol = ProtocolOf(port.protocol());
    added.port = static_cast<uint16_t>(port.port());
    added.node_port = static_cast<uint16_t>(port.node_port());
  }
  return out;
}

}  // namespace

ServiceChangeTracker::Service ServiceChangeTracker::Project(const std::string& key,
                                                            const corev1::Service& service) const {
  Service out;
  const corev1::ServiceSpec& spec = service.spec();
  std::vector<std::string> ips(spec.cluster_ips().begin(), spec.cluster_ips().end());
  if (ips.empty()) ips.push_back(spec.cluster_ip());
  for (const std::string& text : ips) {
    Result<IpAddress> ip = IpAddress::Parse(text);
    if (ip) (ip->is_v4() ? out.ports_v4 : out.ports_v6) = Ports(key, service, *ip, external_ips_);
  }
  if (spec.type() == "LoadBalancer" && spec.external_traffic_policy() == "Local") {
    out.health_check_port = static_cast<uint16_t>(spec.health_check_node_port());
  }
  return out;
}

bool ServiceChangeTracker::UpdateService(const std::string& key, const corev1::Service* service) {
  auto found = services_.find(key);
  if (!service || !IsHandled(*service)) {
    if (found == services_.end()) return false;
    services_.erase(found);
    health_checked_.erase(key);
  } else {
    Service projected = Project(key, *service);
    if (found != services_.end() && found->second == projected) return false;
    if (projected.health_check_port != 0) {
      health_checked_.insert(key);
    } else {
      health_checked_.erase(key);
    }
    services_[key] = std::move(projected);
  }
  changed_.insert(key);
  return true;
}

ServiceChangeTracker::Slice ServiceChangeTracker::Project(const discoveryv1::EndpointSlice& slice) const {
  Slice out;
  out.ports.reserve(static_cast<size_t>(slice.ports_size()));
  out.endpoints.reserve(static_cast<size_t>(slice.endpoints_size()));
  for (const auto& port : slice.ports()) {
    if (!port.has_port() || !IsPort(port.port())) continue;
    out.ports.push_back({port.name(), ProtocolOf(port.protocol()), static_cast<uint16_t>(port.port())});
  }
  for (const auto& endpoint : slice.endpoints()) {
    if (endpoint.addresses().empty()) continue;
    // All addresses of one endpoint are alike. Nobody can be reached at some.
    Result<IpAddress> ip = IpAddress::Parse(endpoint.addresses(0));
    if (!ip || ip->IsUnspecified() || ip->IsLoopback() || ip->IsMulticast()) continue;
    const auto& conditions = endpoint.conditions();
    Endpoint added{.ip = *ip};
    added.ready = !conditions.has_ready() || conditions.ready();
    added.serving = conditions.has_serving() ? conditions.serving() : added.ready;
    added.terminating = conditions.terminating();
    added.local = !topology_.name.empty() && endpoint.node_name() == topology_.name;
    for (const auto& zone : endpoint.hints().for_zones()) added.zone_hints.push_back(zone.name());
    for (const auto& node : endpoint.hints().for_nodes()) added.node_hints.push_back(node.name());
    out.endpoints.push_back(added);
  }
  std::sort(out.ports.begin(), out.ports.end());
  std::sort(out.endpoints.begin(), out.endpoints.end());
  return out;
}

bool ServiceChangeTracker::UpdateSlice(const std::string& key, const discoveryv1::EndpointSlice* slice) {
  std::string service_key;
  if (slice) {
    const auto& labels = slice->metadata().labels();
    auto label = labels.find(kServiceNameLabel);
    bool handled = label != labels.end() && labels.find(kHeadlessLabel) == labels.end() &&
                   labels.find(kProxyNameLabel) == labels.end() &&
                   (slice->address_type() == "IPv4" || slice->address_type() == "IPv6");
    if (handled) service_key = slice->metadata().namespace_() + "/" + label->second;
  }
  bool any = false;
  auto before = service_of_slice_.find(key);
  if (before != service_of_slice_.end() && before->second != service_key) {
    auto of_service = slices_.find(before->second);
    of_service->second.erase(key);
    if (of_service->second.empty()) slices_.erase(of_service);
    changed_.insert(before->second);
    service_of_slice_.erase(before);
    any = true;
  }
  if (service_key.empty()) return any;
  Slice projected = Project(*slice);
  auto& of_service = slices_[service_key];
  auto found = of_service.find(key);
  if (found != of_service.end() && found->second == projected) return any;
  of_service[key] = std::move(projected);
  service_of_slice_[key] = service_key;
  changed_.insert(service_key);
  return true;
}

void ServiceChangeTracker::SetNodeTopology(NodeTopology topology) {
  if (topology == topology_) return;
  topology_ = std::move(topology);
  MarkAllChanged();
}

void ServiceChangeTracker::MarkAllChanged() {
  for (const auto& [key, service] : services_) changed_.insert(key);
}

std::set<std::string> ServiceChangeTracker::TakeChanged() { return std::exchange(changed_, {}); }

std::vector<std::string> ServiceChangeTracker::Keys() const {
  std::vector<std::string> out;
  for (const auto& [key, service] : services_) out.push_back(key);
  return out;
}

std::vector<EndpointPort> ServiceChangeTracker::EndpointsOf(const std::string& service_key,
                                                            const std::string& port_name,
                                                            const ServicePort& port) const {
  std::vector<EndpointPort> out;
  auto slices = slices_.find(service_key);
  if (slices == slices_.end()) return out;
  for (const auto& [key, slice] : slices->second) {
    for (const SlicePort& number : slice.ports) {
      if (number.name != port_name || number.protocol != port.protocol) continue;
      for (const Endpoint& e : slice.endpoints) {
        if (e.ip.is_v4() == port.cluster_ip.is_v4()) out.push_back({&e, number.port});
      }
    }
  }
  return out;
}

std::vector<ResolvedPort> ServiceChangeTracker::Resolve(const std::string& service_key, bool v4) const {
  std::vector<ResolvedPort> out;
  auto found = services_.find(service_key);
  if (found == services_.end()) return out;
  const auto& ports = v4 ? found->second.ports_v4 : found->second.ports_v6;
  for (const ServicePort& port : ports) {
    ResolvedPort& resolved = out.emplace_back(ResolvedPort{.service = port});
    std::string port_name = port.name.substr(service_key.size() + 1);
    CategorizeEndpoints(EndpointsOf(service_key, port_name, port), topology_, resolved);
  }
  return out;
}

std::map<std::string, HealthCheckNodePort> ServiceChangeTracker::HealthCheckNodePorts() const {
  std::map<std::string, HealthCheckNodePort> out;
  for (const std::string& key : health_checked_) {
    std::set<IpAddress> ready;
    if (auto slices = slices_.find(key); slices != slices_.end()) {
      for (const auto& [slice_key, slice] : slices->second) {
        for (const Endpoint& e : slice.endpoints) {
          if (e.local && e.ready) ready.insert(e.ip);
        }
      }
    }
    out[key] = {services_.at(key).health_check_port, ready.size()};
  }
  return out;
}

}  // namespace keelson::proxy

// Services and their endpoints.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "lib/k8s/rule_table.h"

namespace keelson::k8s {

namespace {

constexpr std::string_view kHeadless = "None";
const std::vector<std::string_view> kProtocols = {"SCTP", "TCP", "UDP"};
const std::vector<std::string_view> kTypes = {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"};
constexpr int64_t kMaxAffinitySeconds = 86400;
constexpr int64_t kMaxEndpoints = 1000, kMaxSlicePorts = 20000, kMaxAddresses = 100;

bool IsHeadless(const corev1::ServiceSpec& spec) { return spec.cluster_ip() == kHeadless; }

void CheckServicePort(const corev1::ServicePort& port, bool name_required, std::set<std::string_view>& names,
                      const Path& path, FieldErrors& errors) {
  if (port.name().empty()) {
    if (name_required) errors.push_back(Required(path.Child("name")));
  } else {
    AddProblems(CheckDns1123Label(port.name()), port.name(), path.Child("name"), errors);
    if (!names.insert(port.name()).second) errors.push_back(Duplicate(path.Child("name"), port.name()));
  }
  CheckRange(port.port(), 1, 65535, path.Child("port"), errors);
  CheckEnum(port.protocol(), kProtocols, path.Child("protocol"), errors);
  CheckPortNumberOrName(port.target_port(), path.Child("targetPort"), errors);
  if (port.has_app_protocol()) {
    AddProblems(CheckQualifiedName(port.app_protocol()), port.app_protocol(), path.Child("appProtocol"),
                errors);
  }
}

void CheckServicePorts(const corev1::ServiceSpec& spec, const Path& path, FieldErrors& errors) {
  const Path list = path.Child("ports");
  if (spec.ports().empty() && !IsHeadless(spec) && spec.type() != "ExternalName")
    errors.push_back(Required(list));
  const bool node_ports = spec.type() == "NodePort" || spec.type() == "LoadBalancer";
  std::set<std::string_view> names;
  std::set<std::pair<std::string_view, int32_t>> ports, used_node_ports;
  for (int i = 0; i < spec.ports_size(); ++i) {
    const corev1::ServicePort& port = spec.ports(i);
    const Path item = list.Index(i);
    CheckServicePort(port, spec.ports_size() > 1, names, item, errors);
    if (!ports.emplace(port.protocol(), port.port()).second) {
      errors.push_back(DuplicateRaw(
          item, fmt::format(R"({{"port":{},"protocol":{}}})", port.port(), Quote(port.protocol()))));
    }
    if (port.node_port() == 0) continue;
    if (!node_ports) {
      errors.push_back(
          Forbidden(item.Child("nodePort"), fmt::format("may not be used when `type` is '{}'", spec.type())));
    } else if (!used_node_ports.emplace(port.protocol(), port.node_port()).second) {
      errors.push_back(DuplicateRaw(item.Child("nodePort"), std::to_string(port.node_port())));
    }
  }
}

void CheckServiceType(const corev1::ServiceSpec& spec, const Path& path, FieldErrors& errors) {
  CheckEnum(spec.type(), kTypes, path.Child("type"), errors);
  const Path cluster_ips = path.Child("clusterIPs");
  if (spec.type() == "LoadBalancer" || spec.type() == "NodePort") {
    if (IsHeadless(spec)) {
      errors.push_back(Invalid(cluster_ips.Index(0), kHeadless,
                               fmt::format("may not be set to 'None' for {} services", spec.type())));
    }
  }
  if (spec.type() != "ExternalName") return;
  if (!spec.cluster_ips().empty()) {
    errors.push_back(Forbidden(cluster_ips, "may not be set for ExternalName services"));
  }
  std::string_view name = spec.external_name();
  if (name.ends_with('.')) name.remove_suffix(1);
  CheckName(name, CheckDns1123Subdomain, path.Child("externalName"), errors);
}

void CheckAddresses(const corev1::ServiceSpec& spec, const Path& path, FieldErrors& errors) {
  const Path cluster_ips = path.Child("clusterIPs");
  for (int i = 0; i < spec.cluster_ips_size(); ++i) {
    const std::string& ip = spec.cluster_ips(i);
    if (ip == kHeadless) {
      if (i > 0) errors.push_back(Invalid(cluster_ips, ip, "'None' must be the first and only value"));
      continue;
    }
    CheckIpAddress(ip, cluster_ips.Index(i), errors);
  }
  if (!spec.cluster_ips().empty() && spec.cluster_ips(0) != spec.cluster_ip()) {
    errors.push_back(
        InvalidRaw(cluster_ips, PrintStrings(spec.cluster_ips()), "first value must match `clusterIP`"));
  }
  const Path external = path.Child("externalIPs");
  for (int i = 0; i < spec.external_ips_size(); ++i) {
    CheckIpAddress(spec.external_ips(i), external.Index(i), errors);
  }
  const Path families = path.Child("ipFamilies");
  std::set<std::string_view> seen;
  for (int i = 0; i < spec.ip_families_size(); ++i) {
    CheckEnum(spec.ip_families(i), {"IPv4", "IPv6"}, families.Index(i), errors);
    if (!seen.insert(spec.ip_families(i)).second) {
      errors.push_back(Duplicate(families.Index(i), spec.ip_families(i)));
    }
  }
  if (spec.has_ip_family_policy()) {
    CheckEnum(spec.ip_family_policy(), {"PreferDualStack", "RequireDualStack", "SingleStack"},
              path.Child("ipFamilyPolicy"), errors);
  }
}

void CheckTraffic(const corev1::ServiceSpec& spec, const Path& path, FieldErrors& errors) {
  CheckEnum(spec.session_affinity(), {"ClientIP", "None"}, path.Child("sessionAffinity"), errors);
  if (spec.session_affinity() == "ClientIP") {
    const int64_t seconds = spec.session_affinity_config().client_ip().timeout_seconds();
    const Path config = path.Child("sessionAffinityConfig");
    const Path client_ip = config.Child("clientIP");
    if (seconds <= 0 || seconds > kMaxAffinitySeconds) {
      errors.push_back(Invalid(client_ip.Child("timeoutSeconds"), seconds,
                               fmt::format("must be greater than 0 and less than {}", kMaxAffinitySeconds)));
    }
  }
  const bool balanced = spec.type() == "LoadBalancer";
  const bool external =
      balanced || spec.type() == "NodePort" || (spec.type() == "ClusterIP" && !spec.external_ips().empty());
  if (!external && !spec.external_traffic_policy().empty()) {
    errors.push_back(Invalid(path.Child("externalTrafficPolicy"), spec.external_traffic_policy(),
                             "may only be set for externally-accessible services"));
  } else if (external) {
    CheckEnum(spec.external_traffic_policy(), {"Cluster", "Local"}, path.Child("externalTrafficPolicy"),
              errors);
  }
  if (spec.has_internal_traffic_policy()) {
    CheckEnum(spec.internal_traffic_policy(), {"Cluster", "Local"}, path.Child("internalTrafficPolicy"),
              errors);
  }
  constexpr char kOnlyBalanced[] = "may only be used when `type` is 'LoadBalancer'";
  if (!balanced && spec.has_allocate_load_balancer_node_ports()) {
    errors.push_back(Forbidden(path.Child("allocateLoadBalancerNodePorts"), kOnlyBalanced));
  }
  if (!balanced && spec.has_load_balancer_class()) {
    errors.push_back(Forbidden(path.Child("loadBalancerClass"), kOnlyBalanced));
  }
  const Path ranges = path.Child("loadBalancerSourceRanges");
  if (!balanced && !spec.load_balancer_source_ranges().empty()) {
    errors.push_back(Forbidden(ranges, kOnlyBalanced));
  }
  for (int i = 0; i < spec.load_balancer_source_ranges_size(); ++i) {
    if (IsCidr(spec.load_balancer_source_ranges(i))) continue;
    errors.push_back(Invalid(ranges.Index(i), spec.load_balancer_source_ranges(i),
                             "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"));
  }
}

void CheckService(const corev1::Service& service, FieldErrors& errors) {
  const Path path("spec");
  const corev1::ServiceSpec& spec = service.spec();
  CheckServiceType(spec, path, errors);
  CheckServicePorts(spec, path, errors);
  CheckLabels(spec.selector(), path.Child("selector"), errors);
  CheckTraffic(spec, path, errors);
  CheckAddresses(spec, path, errors);
}

void CheckServiceUpdate(const corev1::Service& service, const corev1::Service& old, FieldErrors& errors) {
  const corev1::ServiceSpec& spec = service.spec();
  const corev1::ServiceSpec& before = old.spec();
  if (spec.type() == "ExternalName" || before.type() == "ExternalName" || before.cluster_ip().empty()) return;
  const Path path("spec");
  const Path cluster_ips = path.Child("clusterIPs");
  if (spec.cluster_ip().empty()) {
    errors.push_back(InvalidRaw(cluster_ips.Index(0), PrintStrings(spec.cluster_ips()),
                                "primary clusterIP can not be unset"));
  } else if (spec.cluster_ip() != before.cluster_ip()) {
    errors.push_back(
        InvalidRaw(cluster_ips.Index(0), PrintStrings(spec.cluster_ips()), "may not change once set"));
  }
}

// ---- endpoints ----

// Addresses that traffic must not be led to.
void CheckEndpointIp(const std::string& ip, const Path& path, FieldErrors& errors) {
  const size_t before = errors.size();
  CheckIpAddress(ip, path, errors);
  if (errors.size() != before) return;
  if (ip == "0.0.0.0" || ip == "::") {
    errors.push_back(Invalid(path, ip, "may not be unspecified (0.0.0.0 or ::)"));
  }
  if (ip.starts_with("127.") || ip == "::1") {
    errors.push_back(Invalid(path, ip, "may not be in the loopback range (127.0.0.0/8, ::1/128)"));
  }
  if (ip.starts_with("169.254.") || ip.starts_with("fe80:")) {
    errors.push_back(Invalid(path, ip, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
  }
  if (ip.starts_with("224.0.0.") || ip.starts_with("ff02:")) {
    errors.push_back(
        Invalid(path, ip, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"));
  }
}

void CheckEndpointAddresses(const google::protobuf::RepeatedPtrField<corev1::EndpointAddress>& addresses,
                            const Path& path, FieldErrors& errors) {
  for (int i = 0; i < addresses.size(); ++i) {
    const Path item = path.Index(i);
    CheckEndpointIp(addresses[i].ip(), item.Child("ip"), errors);
    if (!addresses[i].hostname().empty()) {
      AddProblems(CheckDns1123Label(addresses[i].hostname()), addresses[i].hostname(), item.Child("hostname"),
                  errors);
    }
    if (!addresses[i].node_name().empty()) {
      AddProblems(CheckDns1123Subdomain(addresses[i].node_name()), addresses[i].node_name(),
                  item.Child("nodeName"), errors);
    }
  }
}

void CheckEndpoints(const corev1::Endpoints& endpoints, FieldErrors& errors) {
  const Path subsets("subsets");
  for (int i = 0; i < endpoints.subsets_size(); ++i) {
    const corev1::EndpointSubset& subset = endpoints.subsets(i);
    const Path item = subsets.Index(i);
    if (subset.addresses().empty() && subset.not_ready_addresses().empty()) {
      errors.push_back(Required(item, "must specify `addresses` or `notReadyAddresses`"));
    }
    CheckEndpointAddresses(subset.addresses(), item.Child("addresses"), errors);
    CheckEndpointAddresses(subset.not_ready_addresses(), item.Child("notReadyAddresses"), errors);
    const Path ports = item.Child("ports");
    for (int j = 0; j < subset.ports_size(); ++j) {
      const corev1::EndpointPort& port = subset.ports(j);
      const Path here = ports.Index(j);
      if (port.name().empty()) {
        if (subset.ports_size() > 1) errors.push_back(Required(here.Child("name")));
      } else {
        AddProblems(CheckDns1123Label(port.name()), port.name(), here.Child("name"), errors);
      }
      CheckRange(port.port(), 1, 65535, here.Child("port"), errors);
      CheckEnum(port.protocol(), kProtocols, here.Child("protocol"), errors);
    }
  }
}

void CheckSliceAddress(const std::string& type, const std::string& address, const Path& path,
                       FieldErrors& errors) {
  if (type == "FQDN") {
    AddProblems(CheckDns1123Subdomain(address), address, path, errors);
  } else if (type == "IPv4" && !IsIpv4(address)) {
    errors.push_back(Invalid(path, address, "must be an IPv4 address"));
  } else if (type == "IPv6" && !IsIpv6(address)) {
    errors.push_back(Invalid(path, address, "must be an IPv6 address"));
  } else {
    CheckEndpointIp(address, path, errors);
  }
}

void CheckSliceEndpoints(const discoveryv1::EndpointSlice& slice, FieldErrors& errors) {
  const Path list("endpoints");
  if (slice.endpoints_size() > kMaxEndpoints) {
    errors.push_back(TooMany(list, slice.endpoints_size(), kMaxEndpoints));
    return;
  }
  for (int i = 0; i < slice.endpoints_size(); ++i) {
    const discoveryv1::Endpoint& endpoint = slice.endpoints(i);
    const Path item = list.Index(i);
    const Path addresses = item.Child("addresses");
    if (endpoint.addresses().empty()) {
      errors.push_back(Required(addresses, "must contain at least 1 address"));
    } else if (endpoint.addresses_size() > kMaxAddresses) {
      errors.push_back(TooMany(addresses, endpoint.addresses_size(), kMaxAddresses));
    }
    for (int j = 0; j < endpoint.addresses_size(); ++j) {
      CheckSliceAddress(slice.address_type(), endpoint.addresses(j), addresses.Index(j), errors);
    }
    if (endpoint.has_hostname()) {
      AddProblems(CheckDns1123Label(endpoint.hostname()), endpoint.hostname(), item.Child("hostname"),
                  errors);
    }
    if (endpoint.has_node_name()) {
      AddProblems(CheckDns1123Subdomain(endpoint.node_name()), endpoint.node_name(), item.Child("nodeName"),
                  errors);
    }
  }
}

void CheckSlice(const discoveryv1::EndpointSlice& slice, FieldErrors& errors) {
  CheckEnum(slice.address_type(), {"FQDN", "IPv4", "IPv6"}, Path("addressType"), errors);
  CheckSliceEndpoints(slice, errors);
  const Path ports("ports");
  if (slice.ports_size() > kMaxSlicePorts) {
    errors.push_back(TooMany(ports, slice.ports_size(), kMaxSlicePorts));
    return;
  }
  std::set<std::string_view> names;
  for (int i = 0; i < slice.ports_size(); ++i) {
    const discoveryv1::EndpointPort& port = slice.ports(i);
    const Path item = ports.Index(i);
    if (!port.name().empty()) {
      AddProblems(CheckDns1123Label(port.name()), port.name(), item.Child("name"), errors);
    }
    if (!names.insert(port.name()).second) errors.push_back(Duplicate(item.Child("name"), port.name()));
    CheckEnum(port.protocol(), kProtocols, item.Child("protocol"), errors);
  }
}

void CheckSliceUpdate(const discoveryv1::EndpointSlice& slice, const discoveryv1::EndpointSlice& old,
                      FieldErrors& errors) {
  CheckImmutable(slice.address_type(), old.address_type(), Path("addressType"), errors);
}

}  // namespace

void RegisterServiceRules(RuleTable& table) {
  table.Add<corev1::Service, CheckService>().name = CheckDns1035Label;
  table.AddUpdate<corev1::Service, CheckServiceUpdate>();
  table.Add<corev1::Endpoints, CheckEndpoints>();
  table.Add<discoveryv1::EndpointSlice, CheckSlice>();
  table.AddUpdate<discoveryv1::EndpointSlice, CheckSliceUpdate>();
}

}  // namespace keelson::k8s

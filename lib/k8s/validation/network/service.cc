// Services: rules for every Service, and for the status of load balancers. Rules for addresses and updates
// are in service_update.cc.
#include "lib/k8s/validation/network/service.h"

#include <set>

#include <fmt/format.h>

#include "lib/base/text.h"
#include "lib/k8s/validation/addresses.h"
#include "lib/k8s/validation/rule_table.h"
#include "lib/k8s/validation_settings.h"

namespace keelson::k8s {

namespace {

constexpr std::string_view kHeadless = "None";
const std::vector<std::string_view> kProtocols = {"SCTP", "TCP", "UDP"};
const std::vector<std::string_view> kTypes = {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"};
const std::vector<std::string_view> kTrafficPolicies = {"Cluster", "Local"};
constexpr int64_t kMaxAffinitySeconds = 86400;
constexpr char kOnlyBalanced[] = "may only be used when `type` is 'LoadBalancer'";
constexpr char kHints[] = "service.kubernetes.io/topology-aware-hints";
constexpr char kMode[] = "service.kubernetes.io/topology-mode";
constexpr char kSourceRanges[] = "service.beta.kubernetes.io/load-balancer-source-ranges";

bool IsBalanced(const corev1::ServiceSpec& spec) { return spec.type() == "LoadBalancer"; }
bool NeedsHealthCheck(const corev1::ServiceSpec& spec) {
  return IsBalanced(spec) && spec.external_traffic_policy() == "Local";
}
bool IsExternallyAccessible(const corev1::ServiceSpec& spec) {
  return IsBalanced(spec) || spec.type() == "NodePort" ||
         (spec.type() == "ClusterIP" && !spec.external_ips().empty());
}

void CheckTopologyAnnotations(const metav1::ObjectMeta& meta, FieldErrors& errors) {
  const auto hints = meta.annotations().find(kHints), mode = meta.annotations().find(kMode);
  if (hints == meta.annotations().end() || mode == meta.annotations().end()) return;
  if (hints->second == mode->second) return;
  const Path metadata("metadata");
  errors.push_back(Invalid(metadata.Child("annotations").Key(kMode), mode->second,
                           fmt::format("must match annotations[{}] when both are specified", kHints)));
}

void CheckHeadlessOf(const corev1::ServiceSpec& spec, const Path& path, FieldErrors& errors) {
  if (!IsHeadless(spec)) return;
  errors.push_back(Invalid(path.Child("clusterIPs").Index(0), kHeadless,
                           fmt::format("may not be set to 'None' for {} services", spec.type())));
}

void CheckExternalName(const corev1::ServiceSpec& spec, const Path& path, FieldErrors& errors) {
  constexpr char kNotFor[] = "may not be set for ExternalName services";
  if (!spec.cluster_ips().empty()) errors.push_back(Forbidden(path.Child("clusterIPs"), kNotFor));
  if (!spec.ip_families().empty()) errors.push_back(Forbidden(path.Child("ipFamilies"), kNotFor));
  if (spec.has_ip_family_policy()) errors.push_back(Forbidden(path.Child("ipFamilyPolicy"), kNotFor));
  // A trailing dot makes the name fully qualified.
  std::string_view name = spec.external_name();
  if (name.ends_with('.')) name.remove_suffix(1);
  CheckName(name, CheckDns1123Subdomain, path.Child("externalName"), errors);
}

void CheckPort(const corev1::ServicePort& port, bool name_required, std::set<std::string_view>& names,
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

void CheckPorts(const corev1::ServiceSpec& spec, const Path& path, FieldErrors& errors) {
  std::set<std::string_view> names;
  const Path list = path.Child("ports");
  for (int i = 0; i < spec.ports_size(); ++i) {
    const Path item = list.Index(i);
    CheckPort(spec.ports(i), spec.ports_size() > 1, names, item, errors);
  }
}

void CheckAffinity(const corev1::ServiceSpec& spec, const Path& path, FieldErrors& errors) {
  CheckEnum(spec.session_affinity(), {"ClientIP", "None"}, path.Child("sessionAffinity"), errors);
  const Path config = path.Child("sessionAffinityConfig");
  if (spec.session_affinity() == "None" && spec.has_session_affinity_config()) {
    errors.push_back(Forbidden(config, "must not be set when session affinity is None"));
  }
  if (spec.session_affinity() != "ClientIP") return;
  constexpr char kWhen[] = "when session affinity type is ClientIP";
  const Path client_ip = config.Child("clientIP");
  const Path timeout = client_ip.Child("timeoutSeconds");
  if (!spec.has_session_affinity_config()) {
    errors.push_back(Required(config, kWhen));
  } else if (!spec.session_affinity_config().has_client_ip()) {
    errors.push_back(Required(client_ip, kWhen));
  } else if (!spec.session_affinity_config().client_ip().has_timeout_seconds()) {
    errors.push_back(Required(timeout, kWhen));
  } else if (const int64_t seconds = spec.session_affinity_config().client_ip().timeout_seconds();
             seconds <= 0 || seconds > kMaxAffinitySeconds) {
    errors.push_back(Invalid(timeout, seconds,
                             fmt::format("must be greater than 0 and less than {}", kMaxAffinitySeconds)));
  }
}

void CheckExternalIps(const corev1::ServiceSpec& spec, const Strings& old, const Path& path,
                      FieldErrors& errors) {
  const Path list = path.Child("externalIPs");
  for (int i = 0; i < spec.external_ips_size(); ++i) {
    const Path item = list.Index(i);
    const size_t before = errors.size();
    CheckStrictIp(spec.external_ips(i), old, item, errors);
    if (errors.size() == before) CheckNonSpecialIp(spec.external_ips(i), item, errors);
  }
}

void CheckNodePorts(const corev1::ServiceSpec& spec, const Path& path, FieldErrors& errors) {
  const Path list = path.Child("ports");
  if (spec.type() == "ClusterIP") {
    for (int i = 0; i < spec.ports_size(); ++i) {
      if (spec.ports(i).node_port() == 0) continue;
      errors.push_back(
          Forbidden(list.Index(i).Child("nodePort"), "may not be used when `type` is 'ClusterIP'"));
    }
  }
  std::set<std::pair<std::string_view, int32_t>> node_ports, ports;
  for (int i = 0; i < spec.ports_size(); ++i) {
    const corev1::ServicePort& port = spec.ports(i);
    if (port.node_port() == 0 || node_ports.emplace(port.protocol(), port.node_port()).second) continue;
    errors.push_back(DuplicateRaw(list.Index(i).Child("nodePort"), std::to_string(port.node_port())));
  }
  for (int i = 0; i < spec.ports_size(); ++i) {
    const corev1::ServicePort& port = spec.ports(i);
    if (ports.emplace(port.protocol(), port.port()).second) continue;
    // Upstream prints the Go struct of the internal type, which has no JSON names.
    errors.push_back(DuplicateRaw(
        list.Index(i),
        fmt::format(R"({{"Name":"","Protocol":{},"AppProtocol":null,"Port":{},"TargetPort":0,"NodePort":0}})",
                    Quote(port.protocol()), port.port())));
  }
}

void CheckSourceRanges(const corev1::Service& service, const Strings& old, const Path& path,
                       FieldErrors& errors) {
  const corev1::ServiceSpec& spec = service.spec();
  if (!spec.load_balancer_source_ranges().empty()) {
    const Path ranges = path.Child("LoadBalancerSourceRanges");  // upstream's spelling
    if (!IsBalanced(spec)) errors.push_back(Forbidden(ranges, kOnlyBalanced));
    for (int i = 0; i < spec.load_balancer_source_ranges_size(); ++i) {
      const Path item = ranges.Index(i);
      CheckStrictCidr(std::string(Trim(spec.load_balancer_source_ranges(i), " \t")), old, item, errors);
    }
    return;
  }
  const auto annotation = service.metadata().annotations().find(kSourceRanges);
  if (annotation == service.metadata().annotations().end()) return;
  const Path metadata("metadata");
  const Path annotations = metadata.Child("annotations");
  const Path here = annotations.Key(kSourceRanges);
  if (!IsBalanced(spec)) errors.push_back(Forbidden(here, kOnlyBalanced));
  std::string_view rest = Trim(annotation->second, " \t");
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    CheckStrictCidr(std::string(Trim(rest.substr(0, comma), " \t")), old, here, errors);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
}

void CheckExternalTraffic(const corev1::ServiceSpec& spec, const Path& path, FieldErrors& errors) {
  const Path policy = path.Child("externalTrafficPolicy");
  if (IsExternallyAccessible(spec)) {
    CheckEnum(spec.external_traffic_policy(), kTrafficPolicies, policy, errors);
  } else if (!spec.external_traffic_policy().empty()) {
    errors.push_back(Invalid(policy, spec.external_traffic_policy(),
                             "may only be set for externally-accessible services"));
  }
  const Path port = path.Child("healthCheckNodePort");
  if (!NeedsHealthCheck(spec)) {
    if (spec.health_check_node_port() == 0) return;
    errors.push_back(
        Invalid(port, int64_t{spec.health_check_node_port()},
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"));
  } else if (spec.health_check_node_port() == 0) {
    errors.push_back(Required(port));
  } else {
    CheckRange(spec.health_check_node_port(), 1, 65535, port, errors);
  }
}

void CheckInternalTraffic(const corev1::ServiceSpec& spec, const Path& path, FieldErrors& errors) {
  const Path policy = path.Child("internalTrafficPolicy");
  if (spec.has_internal_traffic_policy()) {
    if (spec.internal_traffic_policy() != "Cluster" && spec.internal_traffic_policy() != "Local") {
      errors.push_back(NotSupported(policy, spec.internal_traffic_policy(), kTrafficPolicies));
    }
  } else if (spec.type() == "NodePort" || IsBalanced(spec) || spec.type() == "ClusterIP") {
    errors.push_back(Required(policy));
  }
  if (!spec.has_traffic_distribution()) return;
  static const std::vector<std::string_view> kKnown = {"PreferClose", "PreferSameZone", "PreferSameNode"};
  for (std::string_view known : kKnown) {
    if (spec.traffic_distribution() == known) return;
  }
  errors.push_back(NotSupported(path.Child("trafficDistribution"), spec.traffic_distribution(), kKnown));
}

// `old` is null for a new Service.
void CheckService(const corev1::Service& service, const corev1::Service* old, FieldErrors& errors) {
  const Path path("spec");
  const corev1::ServiceSpec& spec = service.spec();
  const corev1::ServiceSpec& before = old ? old->spec() : corev1::ServiceSpec::default_instance();
  CheckTopologyAnnotations(service.metadata(), errors);
  if (spec.ports().empty() && !IsHeadless(spec) && spec.type() != "ExternalName") {
    errors.push_back(Required(path.Child("ports")));
  }
  if (IsBalanced(spec) || spec.type() == "NodePort") CheckHeadlessOf(spec, path, errors);
  if (spec.type() == "ExternalName") CheckExternalName(spec, path, errors);
  CheckPorts(spec, path, errors);
  CheckLabels(spec.selector(), path.Child("selector"), errors);
  CheckAffinity(spec, path, errors);
  CheckServiceAddresses(spec, before.cluster_ips(), errors);
  CheckExternalIps(spec, before.external_ips(), path, errors);
  CheckEnum(spec.type(), kTypes, path.Child("type"), errors);
  CheckNodePorts(spec, path, errors);
  CheckSourceRanges(service, before.load_balancer_source_ranges(), path, errors);
  if (spec.has_allocate_load_balancer_node_ports() && !IsBalanced(spec)) {
    errors.push_back(Forbidden(path.Child("allocateLoadBalancerNodePorts"), kOnlyBalanced));
  }
  if (IsBalanced(spec) && !spec.has_allocate_load_balancer_node_ports()) {
    errors.push_back(Required(Path("allocateLoadBalancerNodePorts")));
  }
  if (spec.has_load_balancer_class()) {
    const Path here = path.Child("loadBalancerClass");
    if (IsBalanced(spec)) {
      AddProblems(CheckQualifiedName(spec.load_balancer_class()), spec.load_balancer_class(), here, errors);
    } else {
      errors.push_back(Forbidden(here, kOnlyBalanced));
    }
  }
  CheckExternalTraffic(spec, path, errors);
  CheckInternalTraffic(spec, path, errors);
}

void CheckNewService(const corev1::Service& service, FieldErrors& errors) {
  CheckService(service, nullptr, errors);
}

void CheckUpdatedService(const corev1::Service& service, const corev1::Service& old, FieldErrors& errors) {
  CheckServiceChange(service.spec(), old.spec(), errors);
  if (NeedsHealthCheck(service.spec()) && NeedsHealthCheck(old.spec()) &&
      service.spec().health_check_node_port() != old.spec().health_check_node_port()) {
    errors.push_back(Forbidden(Path("spec").Child("healthCheckNodePort"), kImmutable));
  }
  CheckService(service, &old, errors);
}

void CheckIngress(const corev1::LoadBalancerIngress& ingress, const Strings& old_ips, const Path& path,
                  FieldErrors& errors) {
  const Path mode = path.Child("ipMode");
  if (!ingress.ip().empty()) CheckStrictIp(ingress.ip(), old_ips, path.Child("ip"), errors);
  if (!ingress.has_ip_mode()) {
    if (!ingress.ip().empty()) errors.push_back(Required(mode, "must be specified when `ip` is set"));
  } else if (ingress.ip().empty()) {
    errors.push_back(Forbidden(mode, "may not be specified when `ip` is not set"));
  } else if (ingress.ip_mode() != "VIP" && ingress.ip_mode() != "Proxy") {
    errors.push_back(NotSupported(mode, ingress.ip_mode(), {"Proxy", "VIP"}));
  }
  if (ingress.hostname().empty()) return;
  const Path hostname = path.Child("hostname");
  AddProblems(CheckDns1123Subdomain(ingress.hostname()), ingress.hostname(), hostname, errors);
  if (CheckIp(ingress.hostname()).empty()) {
    errors.push_back(Invalid(hostname, ingress.hostname(), "must be a DNS name, not an IP address"));
  }
}

void CheckServiceStatus(const corev1::Service& service, const corev1::Service& old, FieldErrors& errors) {
  const auto& list = service.status().load_balancer().ingress();
  const Path status("status");
  const Path balancer = status.Child("loadBalancer");
  const Path path = balancer.Child("ingress");
  if (!IsBalanced(service.spec()) && !list.empty()) {
    errors.push_back(Forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'"));
    return;
  }
  Strings old_ips;
  for (const auto& ingress : old.status().load_balancer().ingress()) *old_ips.Add() = ingress.ip();
  for (int i = 0; i < list.size(); ++i) {
    const Path item = path.Index(i);
    CheckIngress(list[i], old_ips, item, errors);
  }
}

}  // namespace

Problems CheckServiceName(std::string_view name) {
  return Settings().relaxed_service_names ? CheckDns1123Label(name) : CheckDns1035Label(name);
}

bool IsHeadless(const corev1::ServiceSpec& spec) {
  return spec.cluster_ips_size() == 1 ? spec.cluster_ips(0) == kHeadless : spec.cluster_ip() == kHeadless;
}

void RegisterServiceRules(RuleTable& table) {
  table.Add<corev1::Service, CheckNewService>().name = CheckServiceName;
  table.AddUpdate<corev1::Service, CheckUpdatedService>(true);
  table.AddStatus<corev1::Service, CheckServiceStatus>();
}

}  // namespace keelson::k8s

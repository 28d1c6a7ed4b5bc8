#include "lib/k8s/validation/network/service_rules.h"

#include <fmt/format.h>

#include "lib/base/ip.h"
#include "lib/k8s/validation/addresses.h"
#include "lib/k8s/validation/network/service.h"

namespace keelson::k8s {

namespace {

constexpr char kHints[] = "service.kubernetes.io/topology-aware-hints";
constexpr char kMode[] = "service.kubernetes.io/topology-mode";

// Warns of addresses that are not in canonical form. Invalid ones are left to validation.
void WarnOfIp(const Path& path, const std::string& value, std::vector<std::string>& warnings) {
  Result<IpAddress> ip = IpAddress::Parse(value);
  if (!ip || ip->ToString() == value || ip->is_v4()) return;
  warnings.push_back(fmt::format("{}: IPv6 address {} should be in RFC 5952 canonical format ({})",
                                 path.ToString(), Quote(value), Quote(ip->ToString())));
}

void WarnOfCidr(const Path& path, const std::string& value, std::vector<std::string>& warnings) {
  Result<IpPrefix> cidr = IpPrefix::Parse(value);
  if (!cidr || cidr->ToString() == value || cidr->is_v4()) return;
  warnings.push_back(fmt::format("{}: IPv6 CIDR value {} should be in RFC 5952 canonical format ({})",
                                 path.ToString(), Quote(value), Quote(cidr->ToString())));
}

void WarnOfList(const Strings& list, const char* field,
                void (*warn)(const Path&, const std::string&, std::vector<std::string>&),
                std::vector<std::string>& warnings) {
  const Path root("spec");
  const Path path = root.Child(field);
  for (int i = 0; i < list.size(); ++i) warn(path.Index(i), list[i], warnings);
}

}  // namespace

FieldErrors CheckServiceAddresses(const corev1::ServiceSpec& spec, const corev1::ServiceSpec* old) {
  FieldErrors errors;
  CheckServiceAddresses(spec, old ? old->cluster_ips() : Strings(), errors);
  return errors;
}

std::string PrintNames(const Strings& list) { return PrintList(list); }

std::vector<std::string> ServiceWarnings(const corev1::Service& service) {
  std::vector<std::string> warnings;
  const corev1::ServiceSpec& spec = service.spec();
  if (service.metadata().annotations().contains(kHints)) {
    warnings.push_back(fmt::format("annotation {} is deprecated, please use {} instead", kHints, kMode));
  }
  const bool headless = IsHeadless(spec);
  if (spec.type() != "ExternalName" && !headless) {
    WarnOfList(spec.cluster_ips(), "clusterIPs", WarnOfIp, warnings);
  }
  if (headless) {
    if (!spec.load_balancer_ip().empty()) {
      warnings.emplace_back("spec.loadBalancerIP is ignored for headless services");
    }
    if (!spec.external_ips().empty()) {
      warnings.emplace_back("spec.externalIPs is ignored for headless services");
    }
    if (spec.session_affinity() != "None") {
      warnings.emplace_back("spec.SessionAffinity is ignored for headless services");
    }
  }
  WarnOfList(spec.external_ips(), "externalIPs", WarnOfIp, warnings);
  if (!spec.load_balancer_ip().empty()) {
    WarnOfIp(Path("spec").Child("loadBalancerIP"), spec.load_balancer_ip(), warnings);
  }
  WarnOfList(spec.load_balancer_source_ranges(), "loadBalancerSourceRanges", WarnOfCidr, warnings);
  if (spec.type() == "ExternalName" && !spec.external_ips().empty()) {
    warnings.emplace_back("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
  }
  if (spec.type() != "ExternalName" && !spec.external_name().empty()) {
    warnings.emplace_back("spec.externalName is ignored when spec.type is not \"ExternalName\"");
  }
  if (!spec.external_ips().empty()) warnings.emplace_back("spec.externalIPs is deprecated");
  if (spec.traffic_distribution() == "PreferClose") {
    warnings.emplace_back("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
  }
  return warnings;
}

}  // namespace keelson::k8s

#include "controlplane/registry/service_families.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/k8s/validation/network/service_rules.h"

namespace keelson::registry {
namespace {

using corev1::ServiceSpec;
using k8s::FieldErrors;
using k8s::Path;

constexpr char kSingle[] = "SingleStack", kRequireDual[] = "RequireDualStack",
               kPreferDual[] = "PreferDualStack";

template <typename List>
bool Same(const List& a, const List& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string Other(std::string_view family) { return std::string(family == kIpv4 ? kIpv6 : kIpv4); }

bool Has(const std::vector<std::string>& families, std::string_view family) {
  return std::find(families.begin(), families.end(), family) != families.end();
}

template <typename List>
bool Reduced(const List& now, const List& before) {
  return !now.empty() && now.size() < before.size();  // an empty list means: the server's choice
}

std::string DefaultPolicy(const ServiceSpec& spec, const ServiceSpec* old) {
  if (old && old->has_ip_family_policy()) return old->ip_family_policy();
  // A headless Service without a selector has its endpoints made by hand, maybe in both families.
  return IsHeadless(spec) && spec.selector().empty() ? kRequireDual : kSingle;
}

// Returning to one family requires the policy; with it, an unchanged second address or family goes by
// itself.
void Downgrade(ServiceSpec& spec, const ServiceSpec& old, FieldErrors& errors) {
  if (spec.ip_family_policy() == kSingle) {
    const bool same_families = SameFamilies(spec, old);
    if (SameClusterIps(spec, old) && spec.cluster_ips_size() > 1) {
      spec.mutable_cluster_ips()->DeleteSubrange(1, spec.cluster_ips_size() - 1);
    }
    if (same_families && spec.ip_families_size() > 1) {
      spec.mutable_ip_families()->DeleteSubrange(1, spec.ip_families_size() - 1);
    }
    return;
  }
  const Path root("spec");
  const Path policy = root.Child("ipFamilyPolicy");
  if (Reduced(spec.cluster_ips(), old.cluster_ips())) {
    errors.push_back(k8s::Invalid(policy, spec.ip_family_policy(),
                                  "must be 'SingleStack' to release the secondary cluster IP"));
  }
  if (Reduced(spec.ip_families(), old.ip_families())) {
    errors.push_back(k8s::Invalid(policy, spec.ip_family_policy(),
                                  "must be 'SingleStack' to release the secondary IP family"));
  }
}

void CheckSingle(const ServiceSpec& spec, FieldErrors& errors) {
  if (spec.ip_family_policy() != kSingle) return;
  const Path root("spec");
  const Path policy = root.Child("ipFamilyPolicy");
  if (spec.cluster_ips_size() == 2) {
    errors.push_back(k8s::Invalid(
        policy, kSingle,
        "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"));
  }
  if (spec.ip_families_size() == 2) {
    errors.push_back(k8s::Invalid(
        policy, kSingle,
        "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"));
  }
}

void InferFromAddresses(ServiceSpec& spec, const std::vector<std::string>& families, FieldErrors& errors) {
  const Path root("spec");
  const Path ips = root.Child("clusterIPs");
  for (int i = 0; i < spec.cluster_ips_size(); ++i) {
    if (spec.cluster_ips(i) == "None") return;
    if (i < spec.ip_families_size()) continue;
    std::string_view family = FamilyOf(spec.cluster_ips(i));
    if (Has(families, family)) {
      spec.add_ip_families(std::string(family));
    } else {
      errors.push_back(k8s::InvalidRaw(ips.Index(i), k8s::PrintNames(spec.cluster_ips()),
                                       fmt::format("{} is not configured on this cluster", family)));
    }
  }
}

void CheckConfigured(const ServiceSpec& spec, const std::vector<std::string>& families, FieldErrors& errors) {
  const Path root("spec");
  if (spec.ip_family_policy() == kRequireDual && families.size() < 2) {
    errors.push_back(k8s::Invalid(root.Child("ipFamilyPolicy"), kRequireDual,
                                  "this cluster is not configured for dual-stack services"));
  }
  const Path path = root.Child("ipFamilies");
  for (int i = 0; i < spec.ip_families_size(); ++i) {
    if (!Has(families, spec.ip_families(i))) {
      errors.push_back(k8s::Invalid(path.Index(i), spec.ip_families(i), "not configured on this cluster"));
    }
  }
}

}  // namespace

std::string_view FamilyOf(std::string_view ip) {
  return ip.find(':') == std::string_view::npos ? kIpv4 : kIpv6;
}

bool IsHeadless(const ServiceSpec& spec) { return spec.cluster_ip() == "None"; }

bool SameClusterIps(const ServiceSpec& a, const ServiceSpec& b) {
  return Same(a.cluster_ips(), b.cluster_ips());
}
bool SameFamilies(const ServiceSpec& a, const ServiceSpec& b) {
  return Same(a.ip_families(), b.ip_families());
}

bool IsSettledDualStack(const ServiceSpec& spec, const ServiceSpec& old) {
  return spec.ip_family_policy() == kPreferDual && old.ip_family_policy() == kPreferDual &&
         SameClusterIps(spec, old) && SameFamilies(spec, old);
}

FieldErrors ChooseFamilies(ServiceSpec& spec, const ServiceSpec* old,
                           const std::vector<std::string>& families) {
  FieldErrors errors;
  if (spec.type() == "ExternalName") return errors;
  if (old && IsSettledDualStack(spec, *old)) return errors;
  if (!spec.has_ip_family_policy()) spec.set_ip_family_policy(DefaultPolicy(spec, old));
  errors = k8s::CheckServiceAddresses(spec, old);
  if (!errors.empty()) return errors;
  if (old) Downgrade(spec, *old, errors);
  CheckSingle(spec, errors);
  InferFromAddresses(spec, families, errors);
  if (!errors.empty()) return errors;

  const bool any_family = IsHeadless(spec) && spec.selector().empty();
  if (!any_family) CheckConfigured(spec, families, errors);
  if (!errors.empty()) return errors;
  if (spec.ip_families_size() == 0) spec.add_ip_families(families.front());
  const bool wants_two = spec.ip_family_policy() != kSingle && spec.ip_families_size() == 1;
  if (wants_two && (any_family || families.size() == 2)) spec.add_ip_families(Other(spec.ip_families(0)));
  return errors;
}

}  // namespace keelson::registry

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "lib/k8s/validation/addresses.h"
#include "lib/k8s/validation/network/service.h"

namespace keelson::k8s {

namespace {

constexpr char kOnce[] = "may not change once set";

bool IsV6(std::string_view ip) { return ip.find(':') != std::string_view::npos; }

void CheckClusterIpsForm(const corev1::ServiceSpec& spec, const Strings& old, const Path& path,
                         FieldErrors& errors) {
  for (int i = 0; i < spec.cluster_ips_size(); ++i) {
    if (i == 0 && spec.cluster_ips(0) == "None") {
      if (spec.cluster_ips_size() > 1) {
        errors.push_back(
            InvalidRaw(path, PrintStrings(spec.cluster_ips()), "'None' must be the first and only value"));
      }
      continue;
    }
    const Path item = path.Index(i);
    CheckStrictIp(spec.cluster_ips(i), old, item, errors);
  }
  if (spec.cluster_ips_size() > 2) {
    errors.push_back(InvalidRaw(path, PrintStrings(spec.cluster_ips()), "may only hold up to 2 values"));
  }
}

void CheckFamiliesForm(const corev1::ServiceSpec& spec, const Path& path, FieldErrors& errors) {
  std::set<std::string_view> seen;
  const Path families = path.Child("ipFamilies");
  for (int i = 0; i < spec.ip_families_size(); ++i) {
    const std::string& family = spec.ip_families(i);
    if (family != "IPv4" && family != "IPv6") {
      errors.push_back(NotSupported(families.Index(i), family, {"IPv4", "IPv6"}));
    }
    if (!seen.insert(family).second) errors.push_back(Duplicate(families.Index(i), family));
  }
  if (!spec.has_ip_family_policy()) return;
  const std::string& policy = spec.ip_family_policy();
  if (policy == "SingleStack" || policy == "PreferDualStack" || policy == "RequireDualStack") return;
  errors.push_back(NotSupported(path.Child("ipFamilyPolicy"), policy,
                                {"PreferDualStack", "RequireDualStack", "SingleStack"}));
}

// A Service that releases its second address must become single-stack.
void CheckReleases(const corev1::ServiceSpec& spec, std::string_view what, const Path& path,
                   FieldErrors& errors) {
  if (spec.ip_family_policy() == "SingleStack") return;
  errors.push_back(
      Invalid(path.Child("ipFamilyPolicy"), spec.has_ip_family_policy() ? spec.ip_family_policy() : "null",
              fmt::format("must be set to 'SingleStack' when releasing the secondary {}", what)));
}

void CheckClusterIpsChange(const corev1::ServiceSpec& spec, const corev1::ServiceSpec& old,
                           FieldErrors& errors) {
  const Path root("spec");
  const Path path = root.Child("clusterIPs");
  const Strings &now = spec.cluster_ips(), &before = old.cluster_ips();
  auto wrong = [&](int index, const char* why) {
    errors.push_back(InvalidRaw(path.Index(index), PrintList(now), why));
  };
  if (now.size() == before.size()) {
    for (int i = 0; i < now.size(); ++i) {
      if (now[i] != before[i]) wrong(i, kOnce);
    }
    return;
  }
  if (now.empty()) return wrong(0, "primary clusterIP can not be unset");
  if (!before.empty() && now[0] != before[0]) wrong(0, kOnce);
  if (now.size() < before.size() && now.size() == 1) CheckReleases(spec, "clusterIP", root, errors);
}

void CheckFamiliesChange(const corev1::ServiceSpec& spec, const corev1::ServiceSpec& old,
                         FieldErrors& errors) {
  const Path root("spec");
  const Path path = root.Child("ipFamilies");
  const Strings &now = spec.ip_families(), &before = old.ip_families();
  const auto wrong = [&](const Strings& value, const char* why) {
    errors.push_back(InvalidRaw(path.Index(0), PrintList(value), why));
  };
  if (now.size() == before.size()) {
    for (int i = 0; i < now.size(); ++i) {
      if (now[i] != before[i]) wrong(now, kOnce);
    }
    return;
  }
  const bool fewer = now.size() < before.size();
  if (fewer && spec.cluster_ips().empty()) wrong(now, "primary ipFamily can not be unset");
  // Upstream prints the addresses here.
  if (!before.empty() && !now.empty() && now[0] != before[0]) wrong(spec.cluster_ips(), kOnce);
  if (fewer && now.size() == 1) CheckReleases(spec, "ipFamily", root, errors);
}

}  // namespace

void CheckServiceAddresses(const corev1::ServiceSpec& spec, const Strings& old, FieldErrors& errors) {
  if (spec.type() == "ExternalName") return;
  const size_t before = errors.size();
  const Path root("spec");
  const Path path = root.Child("clusterIPs");
  if (!spec.cluster_ip().empty()) {
    if (spec.cluster_ips().empty()) {
      errors.push_back(Required(path));
    } else if (spec.cluster_ips(0) != spec.cluster_ip()) {
      errors.push_back(
          InvalidRaw(path, PrintStrings(spec.cluster_ips()), "first value must match `clusterIP`"));
    }
  } else if (!spec.cluster_ips().empty()) {
    errors.push_back(InvalidRaw(path, PrintStrings(spec.cluster_ips()),
                                "must be empty when `clusterIP` is not specified"));
  }
  CheckFamiliesForm(spec, root, errors);
  CheckClusterIpsForm(spec, old, path, errors);
  if (errors.size() != before) return;  // more errors would only confuse
  const Strings& ips = spec.cluster_ips();
  if (ips.size() == 2 && IsV6(ips[0]) == IsV6(ips[1])) {
    errors.push_back(
        InvalidRaw(path, PrintStrings(ips), "may specify no more than one IP for each IP family"));
    return;
  }
  if (IsHeadless(spec)) return;
  for (int i = 0; i < ips.size() && i < spec.ip_families_size(); ++i) {
    const std::string& family = spec.ip_families(i);
    if (IsV6(ips[i]) == (family == "IPv6")) continue;
    errors.push_back(
        Invalid(path.Index(i), ips[i],
                fmt::format("expected an {} value as indicated by `ipFamilies[{}]`", family, i)));
  }
}

void CheckServiceChange(const corev1::ServiceSpec& spec, const corev1::ServiceSpec& old,
                        FieldErrors& errors) {
  if (spec.type() != "ExternalName" && old.type() != "ExternalName") {
    const bool was_headless = IsHeadless(old), headless = IsHeadless(spec);
    if (!was_headless || !headless) CheckClusterIpsChange(spec, old, errors);
    if (!was_headless && !headless) CheckFamiliesChange(spec, old, errors);
  }
  if (spec.type() != "LoadBalancer" || old.type() != "LoadBalancer") return;
  if (spec.has_load_balancer_class() == old.has_load_balancer_class() &&
      spec.load_balancer_class() == old.load_balancer_class()) {
    return;
  }
  errors.push_back(InvalidRaw(Path("spec").Child("loadBalancerClass"),
                              Quote(spec.has_load_balancer_class() ? spec.load_balancer_class() : "null"),
                              kOnce));
}

}  // namespace keelson::k8s

#include "kubelet/pod/admission.h"

#include <algorithm>
#include <string_view>

#include "lib/k8s/field_error.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

// Namespaced, and without effect on other pods or the node.
constexpr std::string_view kSafe[] = {
    "kernel.shm_rmid_forced",           "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",        "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",     "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",      "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",          "net.ipv4.tcp_wmem"};

enum class Namespace { kNone, kIpc, kNet };

Namespace NamespaceOf(std::string_view name) {
  for (std::string_view exact : {"kernel.sem", "kernel.shm_rmid_forced"}) {
    if (name == exact) return Namespace::kIpc;
  }
  for (std::string_view prefix : {"kernel.shm", "kernel.msg", "fs.mqueue."}) {
    if (name.starts_with(prefix)) return Namespace::kIpc;
  }
  return name.starts_with("net.") ? Namespace::kNet : Namespace::kNone;
}

bool Matches(const std::string& pattern, const std::string& name) {
  if (pattern.empty() || pattern.back() != '*') return pattern == name;
  return name.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
}

// "net/ipv4/tcp_rmem" is the same parameter; dots in names of interfaces are then slashes.
std::string WithDots(const std::string& name) {
  size_t first = name.find_first_of("./");
  if (first == std::string::npos || name[first] == '.') return name;
  std::string out = name;
  for (char& c : out) c = c == '/' ? '.' : c == '.' ? '/' : c;
  return out;
}

std::string Forbidden(const corev1::PodSpec& spec, const std::string& name,
                      const std::vector<std::string>& allowed) {
  bool listed = std::any_of(allowed.begin(), allowed.end(),
                            [&](const std::string& pattern) { return Matches(WithDots(pattern), name); });
  bool safe = std::find(std::begin(kSafe), std::end(kSafe), name) != std::end(kSafe);
  Namespace ns = NamespaceOf(name);
  if ((!listed && !safe) || ns == Namespace::kNone) return k8s::Quote(name) + " not allowlisted";
  if (ns == Namespace::kIpc && spec.host_ipc()) {
    return k8s::Quote(name) + " not allowed with host ipc enabled";
  }
  if (ns == Namespace::kNet && spec.host_network()) {
    return k8s::Quote(name) + " not allowed with host net enabled";
  }
  return "";
}

// Whether the pod or one of its containers wants a profile of AppArmor.
bool NeedsAppArmor(const corev1::PodSpec& spec) {
  auto enforced = [](const corev1::AppArmorProfile& profile) {
    return !profile.type().empty() && profile.type() != "Unconfined";
  };
  bool needs = enforced(spec.security_context().app_armor_profile());
  k8s::ForEachContainer(spec, [&](const corev1::Container& container) {
    needs = needs || enforced(container.security_context().app_armor_profile());
  });
  return needs;
}

}  // namespace

std::optional<k8s::AdmitFailure> CheckFeatures(const corev1::Pod& pod, const NodeContext& node,
                                               const std::vector<std::string>& allowed_sysctls) {
  const corev1::PodSpec& spec = pod.spec();
  if (!spec.os().name().empty() && spec.os().name() != "linux") {
    return k8s::AdmitFailure{"PodOSNotSupported",
                             "Failed to admit pod as the OS field doesn't match node OS"};
  }
  if (spec.security_context().supplemental_groups_policy() == "Strict" && !node.supplemental_groups_policy) {
    return k8s::AdmitFailure{"SupplementalGroupsPolicyNotSupported",
                             "SupplementalGroupsPolicy=Strict is not supported in this node"};
  }
  if (!node.apparmor && NeedsAppArmor(spec)) {
    return k8s::AdmitFailure{"AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host"};
  }
  for (const auto& sysctl : spec.security_context().sysctls()) {
    if (auto why = Forbidden(spec, WithDots(sysctl.name()), allowed_sysctls); !why.empty()) {
      return k8s::AdmitFailure{"SysctlForbidden", "forbidden sysctl: " + why};
    }
  }
  return std::nullopt;
}

}  // namespace keelson::kubelet

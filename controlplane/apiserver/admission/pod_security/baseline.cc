// Checks of the baseline level: known privilege escalations.
#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/pod_security/checks.h"

namespace keelson::apiserver::pod_security {
namespace {

constexpr int kEver = LevelVersion::kLatest + 1;
constexpr std::string_view kAppArmorPrefix = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view kSeccompPod = "seccomp.security.alpha.kubernetes.io/pod";
constexpr std::string_view kSeccompContainer = "container.seccomp.security.alpha.kubernetes.io/";

const Set kCapabilities = {"AUDIT_WRITE", "CHOWN",  "DAC_OVERRIDE", "FOWNER", "FSETID",
                           "KILL",        "MKNOD",  "SETFCAP",      "SETGID", "NET_BIND_SERVICE",
                           "SETPCAP",     "SETUID", "SYS_CHROOT"};

std::string Annotation(std::string_view key, const std::string& value) {
  return fmt::format("{}={}", key, k8s::Quote(value));
}

void AppArmor(const PodView& pod, Violations& out) {
  auto is_good = [](const corev1::AppArmorProfile& profile) {
    return profile.type() == "RuntimeDefault" || profile.type() == "Localhost";
  };
  Set bad_values, bad_annotations;
  bool bad_pod = false;
  Names containers;
  if (pod.security && pod.security->has_app_armor_profile() && !is_good(pod.security->app_armor_profile())) {
    bad_pod = true;
    bad_values.insert(pod.security->app_armor_profile().type());
  }
  for (const ContainerView& container : pod.containers) {
    if (!container.security || !container.security->has_app_armor_profile()) continue;
    const corev1::AppArmorProfile& profile = container.security->app_armor_profile();
    if (is_good(profile)) continue;
    containers.emplace_back(container.name);
    bad_values.insert(profile.type());
  }
  for (const auto& one : pod.meta.annotations()) {
    if (!one.first.starts_with(kAppArmorPrefix)) continue;
    if (one.second.empty() || one.second == "runtime/default" || one.second.starts_with("localhost/")) {
      continue;
    }
    bad_annotations.insert(Annotation(one.first, one.second));
    bad_values.insert(one.second);
  }
  std::string setters = Setters(bad_pod, containers);
  if (!bad_annotations.empty()) {
    setters += fmt::format("{}{} {}", setters.empty() ? "" : " and ",
                           Plural("annotation", "annotations", bad_annotations.size()),
                           fmt::join(bad_annotations, ", "));
  }
  if (setters.empty()) return;
  out.push_back(
      {std::string(Plural("forbidden AppArmor profile", "forbidden AppArmor profiles", bad_values.size())),
       fmt::format("{} must not set AppArmor profile type to {}", setters, JoinQuoted(bad_values))});
}

void AddedCapabilities(const PodView& pod, Violations& out) {
  Names containers;
  Set bad;
  for (const ContainerView& container : pod.containers) {
    if (!container.security) continue;
    bool has_bad = false;
    for (const std::string& capability : container.security->capabilities().add()) {
      if (kCapabilities.count(capability)) continue;
      has_bad = true;
      bad.insert(capability);
    }
    if (has_bad) containers.emplace_back(container.name);
  }
  if (containers.empty()) return;
  out.push_back(
      {"non-default capabilities", fmt::format("{} must not include {} in securityContext.capabilities.add",
                                               Containers(containers), JoinQuoted(bad))});
}

void HostNamespaces(const PodView& pod, Violations& out) {
  Names used;
  if (pod.spec.host_ipc()) used.push_back("hostIPC=true");
  if (pod.spec.host_network()) used.push_back("hostNetwork=true");
  if (pod.spec.host_pid()) used.push_back("hostPID=true");
  if (!used.empty()) out.push_back({"host namespaces", fmt::format("{}", fmt::join(used, ", "))});
}

void HostPathVolumes(const PodView& pod, Violations& out) {
  Names volumes;
  for (const corev1::Volume& volume : pod.spec.volumes()) {
    if (volume.volume_source().has_host_path()) volumes.push_back(volume.name());
  }
  if (volumes.empty()) return;
  out.push_back({"hostPath volumes",
                 fmt::format("{} {}", Plural("volume", "volumes", volumes.size()), JoinQuoted(volumes))});
}

void HostPorts(const PodView& pod, Violations& out) {
  Names containers;
  Set ports;
  for (const ContainerView& container : pod.containers) {
    bool uses = false;
    for (const corev1::ContainerPort& port : *container.ports) {
      if (port.host_port() == 0) continue;
      uses = true;
      ports.insert(std::to_string(port.host_port()));
    }
    if (uses) containers.emplace_back(container.name);
  }
  if (containers.empty()) return;
  out.push_back({"hostPort",
                 fmt::format("{} {} {} {}", Containers(containers), Plural("uses", "use", containers.size()),
                             Plural("hostPort", "hostPorts", ports.size()), fmt::join(ports, ", "))});
}

// A probe to an arbitrary host would give access to the node's network.
void ProbeHosts(const PodView& pod, Violations& out) {
  Set containers, hosts;
  for (const ContainerView& container : pod.containers) {
    auto look = [&](const auto& handler) {
      for (const std::string* host : {&handler.http_get().host(), &handler.tcp_socket().host()}) {
        if (host->empty()) continue;
        containers.emplace(container.name);
        hosts.insert(*host);
      }
    };
    for (const corev1::Probe* probe : container.probes) look(probe->handler());
    if (!container.lifecycle) continue;
    look(container.lifecycle->post_start());
    look(container.lifecycle->pre_stop());
  }
  if (containers.empty()) return;
  out.push_back({"probe or lifecycle host",
                 fmt::format("{} {} {} {} {}", Plural("container", "containers", containers.size()),
                             JoinQuoted(containers), Plural("uses", "use", containers.size()),
                             Plural("probe or lifecycle host", "probe or lifecycle hosts", hosts.size()),
                             JoinQuoted(hosts))});
}

void Privileged(const PodView& pod, Violations& out) {
  Names containers;
  for (const ContainerView& container : pod.containers) {
    if (container.security && container.security->privileged()) containers.emplace_back(container.name);
  }
  if (containers.empty()) return;
  out.push_back({"privileged", Containers(containers) + " must not set securityContext.privileged=true"});
}

void ProcMountButInUserNamespace(const PodView& pod, Violations& out) {
  if (!pod.HasUserNamespace()) CheckProcMount(pod, out);
}

void SeLinux(const PodView& pod, const Set& good_types, Violations& out) {
  Set bad_types;
  bool user = false, role = false;
  auto is_bad = [&](const corev1::SELinuxOptions& options) {
    const bool bad_type = !good_types.count(options.type());
    if (bad_type) bad_types.insert(options.type());
    user |= !options.user().empty();
    role |= !options.role().empty();
    return bad_type || !options.user().empty() || !options.role().empty();
  };
  const bool bad_pod = pod.security && is_bad(pod.security->se_linux_options());
  Names containers;
  for (const ContainerView& container : pod.containers) {
    if (container.security && is_bad(container.security->se_linux_options())) {
      containers.emplace_back(container.name);
    }
  }
  if (!bad_pod && containers.empty()) return;
  Names what;
  if (!bad_types.empty()) {
    what.push_back(fmt::format("{} {}", Plural("type", "types", bad_types.size()), JoinQuoted(bad_types)));
  }
  if (user) what.push_back("user may not be set");
  if (role) what.push_back("role may not be set");
  out.push_back({"seLinuxOptions", fmt::format("{} set forbidden securityContext.seLinuxOptions: {}",
                                               Setters(bad_pod, containers), fmt::join(what, "; "))});
}
void SeLinux10(const PodView& pod, Violations& out) {
  static const Set types = {"", "container_t", "container_init_t", "container_kvm_t"};
  SeLinux(pod, types, out);
}
void SeLinux131(const PodView& pod, Violations& out) {
  static const Set types = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"};
  SeLinux(pod, types, out);
}

// The annotation from before the field existed.
void SeccompAnnotations(const PodView& pod, Violations& out) {
  Set bad;
  auto look = [&](const std::string& key) {
    auto found = pod.meta.annotations().find(key);
    if (found == pod.meta.annotations().end()) return;
    const std::string& value = found->second;
    if (value == "runtime/default" || value == "docker/default" || value.starts_with("localhost/")) return;
    bad.insert(Annotation(key, value));
  };
  look(std::string(kSeccompPod));
  for (const ContainerView& container : pod.containers) {
    look(std::string(kSeccompContainer) + std::string(container.name));
  }
  if (bad.empty()) return;
  out.push_back(
      {"seccompProfile", fmt::format("forbidden {} {}", Plural("annotation", "annotations", bad.size()),
                                     fmt::join(bad, ", "))});
}

void Seccomp(const PodView& pod, Violations& out) {
  Set bad;
  const bool bad_pod = pod.security && pod.security->has_seccomp_profile() &&
                       !IsGoodSeccomp(pod.security->seccomp_profile().type());
  if (bad_pod) bad.insert(pod.security->seccomp_profile().type());
  Names containers;
  for (const ContainerView& container : pod.containers) {
    if (!container.security || !container.security->has_seccomp_profile()) continue;
    const std::string& type = container.security->seccomp_profile().type();
    if (IsGoodSeccomp(type)) continue;
    containers.emplace_back(container.name);
    bad.insert(type);
  }
  if (bad.empty()) return;
  out.push_back({"seccompProfile", fmt::format("{} must not set securityContext.seccompProfile.type to {}",
                                               Setters(bad_pod, containers), JoinQuoted(bad))});
}

// Namespaced sysctls without effect on other pods; the set grew over time.
template <int kMinor>
void Sysctls(const PodView& pod, Violations& out) {
  static const Set allowed = [] {
    Set names = {"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range",
                 "net.ipv4.ip_unprivileged_port_start", "net.ipv4.tcp_syncookies",
                 "net.ipv4.ping_group_range"};
    if (kMinor >= 27) names.insert("net.ipv4.ip_local_reserved_ports");
    if (kMinor >= 29) {
      names.insert({"net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
                    "net.ipv4.tcp_keepalive_probes"});
    }
    if (kMinor >= 32) names.insert({"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"});
    return names;
  }();
  if (!pod.security) return;
  Names bad;
  for (const corev1::Sysctl& sysctl : pod.security->sysctls()) {
    if (!allowed.count(sysctl.name())) bad.push_back(sysctl.name());
  }
  if (bad.empty()) return;
  out.push_back({std::string(Plural("forbidden sysctl", "forbidden sysctls", bad.size())),
                 fmt::format("{}", fmt::join(bad, ", "))});
}

void HostProcess(const PodView& pod, Violations& out) {
  const bool bad_pod = pod.security && pod.security->windows_options().host_process();
  Names containers;
  for (const ContainerView& container : pod.containers) {
    if (container.security && container.security->windows_options().host_process()) {
      containers.emplace_back(container.name);
    }
  }
  if (!bad_pod && containers.empty()) return;
  out.push_back({"hostProcess", Setters(bad_pod, containers) +
                                    " must not set securityContext.windowsOptions.hostProcess=true"});
}

}  // namespace

bool IsGoodSeccomp(std::string_view type) { return type == "Localhost" || type == "RuntimeDefault"; }

void CheckProcMount(const PodView& pod, Violations& out) {
  Names containers;
  Set bad;
  for (const ContainerView& container : pod.containers) {
    if (!container.security || !container.security->has_proc_mount()) continue;
    const std::string& type = container.security->proc_mount();
    if (type == "Default") continue;
    containers.emplace_back(container.name);
    bad.insert(type);
  }
  if (containers.empty()) return;
  out.push_back({"procMount", fmt::format("{} must not set securityContext.procMount to {}",
                                          Containers(containers), JoinQuoted(bad))});
}

const std::vector<Check>& BaselineChecks() {
  static const std::vector<Check> checks = {
      {0, kEver, AppArmor},
      {0, kEver, AddedCapabilities, 22},
      {0, kEver, HostNamespaces},
      {0, kEver, HostPathVolumes, 0},
      {0, kEver, HostPorts},
      {34, kEver, ProbeHosts},
      {0, kEver, Privileged},
      {0, 35, CheckProcMount},
      {35, kEver, ProcMountButInUserNamespace, 35},
      {0, 31, SeLinux10},
      {31, kEver, SeLinux131},
      {0, 19, SeccompAnnotations},
      {19, kEver, Seccomp, 19},
      {0, 27, Sysctls<0>},
      {27, 29, Sysctls<27>},
      {29, 32, Sysctls<29>},
      {32, kEver, Sysctls<32>},
      {0, kEver, HostProcess},
  };
  return checks;
}

}  // namespace keelson::apiserver::pod_security

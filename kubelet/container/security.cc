#include "kubelet/container/security.h"

#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

// What a container must not see or write below /proc and /sys unless procMount says Unmasked.
const std::vector<std::string>& MaskedPaths() {
  static const std::vector<std::string> kPaths = [] {
    std::vector<std::string> paths = {
        "/proc/asound",      "/proc/acpi",          "/proc/interrupts", "/proc/kcore",
        "/proc/keys",        "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
        "/proc/sched_debug", "/proc/scsi",          "/sys/firmware",    "/sys/devices/virtual/powercap"};
    // When a CPU is too hot tells what others compute on it.
    const std::string cpus = "/sys/devices/system/cpu";
    if (auto names = ListDir(cpus)) {
      for (const std::string& name : *names) {
        if (const std::string path = cpus + "/" + name + "/thermal_throttle"; PathExists(path)) {
          paths.push_back(path);
        }
      }
    }
    return paths;
  }();
  return kPaths;
}

const std::vector<std::string>& ReadonlyPaths() {
  static const std::vector<std::string> kPaths = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                                  "/proc/sysrq-trigger"};
  return kPaths;
}

cri::SecurityProfile Profile(const std::string& type, const std::string& localhost) {
  cri::SecurityProfile out;
  if (type == "Unconfined") out.type = cri::SecurityProfile::Type::kUnconfined;
  if (type == "Localhost") {
    out.type = cri::SecurityProfile::Type::kLocalhost;
    out.localhost_ref = localhost;
  }
  return out;
}

// Profiles of the node's own are files below one directory; nothing outside of it can be named.
Result<cri::SecurityProfile> Seccomp(const corev1::SeccompProfile& profile, const NodeContext& node) {
  if (profile.type() != "Localhost") return Profile(profile.type(), "");
  const std::string& file = profile.localhost_profile();
  if (file.empty()) {
    return Error(Code::kInvalid, "localhostProfile must be set if seccompProfile type is Localhost.");
  }
  bool leaves = file[0] == '/' || ("/" + file + "/").find("/../") != std::string::npos;
  if (leaves) {
    return Error(Code::kInvalid,
                 "localhostProfile \"" + file + "\" leaves the directory of seccomp profiles");
  }
  return Profile("Localhost", node.paths.root + "/seccomp/" + file);
}

cri::SecurityProfile DefaultSeccomp(const NodeContext& node) {
  return Profile(node.seccomp_default ? "RuntimeDefault" : "Unconfined", "");
}

cri::SeLinuxOptions SeLinux(const corev1::SELinuxOptions& in) {
  return {in.user(), in.role(), in.type(), in.level()};
}

Result<> CheckNonRoot(const corev1::Pod& pod, const corev1::Container& container, const cri::Image& image) {
  const corev1::PodSpec& spec = pod.spec();
  const auto& own = container.security_context();
  const auto& pods = spec.security_context();
  bool required = own.has_run_as_non_root() ? own.run_as_non_root() : pods.run_as_non_root();
  if (!required) return {};
  const metav1::ObjectMeta& meta = pod.metadata();
  std::string where = " (pod: \"" + meta.name() + "_" + meta.namespace_() + "(" + meta.uid() +
                      ")\", container: " + container.name() + ")";
  if (auto user = EffectiveUser(spec, container)) {
    if (*user != 0) return {};
    return Error(Code::kInvalid, "container's runAsUser breaks non-root policy" + where);
  }
  if (image.uid && *image.uid != 0) return {};
  if (image.uid || image.username.empty()) {
    return Error(Code::kInvalid, "container has runAsNonRoot and image will run as root" + where);
  }
  return Error(Code::kInvalid, "container has runAsNonRoot and image has non-numeric user (" +
                                   image.username + "), cannot verify user is non-root" + where);
}

}  // namespace

cri::NamespaceOptions PodNamespaces(const corev1::PodSpec& spec) {
  cri::NamespaceOptions out;
  if (spec.host_network()) out.network = cri::NamespaceMode::kNode;
  if (spec.host_pid()) {
    out.pid = cri::NamespaceMode::kNode;
  } else if (spec.share_process_namespace()) {
    out.pid = cri::NamespaceMode::kPod;
  }
  if (spec.host_ipc()) out.ipc = cri::NamespaceMode::kNode;
  return out;
}

bool IsPrivileged(const corev1::Container& container) { return container.security_context().privileged(); }

std::optional<int64_t> EffectiveUser(const corev1::PodSpec& spec, const corev1::Container& container) {
  if (container.security_context().has_run_as_user()) return container.security_context().run_as_user();
  if (spec.security_context().has_run_as_user()) return spec.security_context().run_as_user();
  return std::nullopt;
}

Result<> ApplySandboxSecurity(const corev1::PodSpec& spec, const NodeContext& node, cri::SandboxConfig& out) {
  out.namespaces = PodNamespaces(spec);
  const corev1::PodSecurityContext& context = spec.security_context();
  if (context.has_run_as_user()) out.run_as_user = context.run_as_user();
  if (context.has_run_as_group() && context.has_run_as_user()) out.run_as_group = context.run_as_group();
  for (int64_t group : context.supplemental_groups()) out.supplemental_groups.push_back(group);
  if (context.has_fs_group()) out.supplemental_groups.push_back(context.fs_group());
  out.strict_supplemental_groups = context.supplemental_groups_policy() == "Strict";
  if (context.has_se_linux_options()) out.selinux = SeLinux(context.se_linux_options());
  for (const auto& sysctl : context.sysctls()) out.sysctls[sysctl.name()] = sysctl.value();
  out.seccomp = Profile("RuntimeDefault", "");
  if (context.has_seccomp_profile()) {
    KEELSON_ASSIGN_OR_RETURN(out.seccomp, Seccomp(context.seccomp_profile(), node));
  }
  for (const auto& container : spec.init_containers()) out.privileged |= IsPrivileged(container);
  for (const auto& container : spec.containers()) out.privileged |= IsPrivileged(container);
  return {};
}

Result<> ApplyContainerSecurity(const corev1::Pod& pod, const corev1::Container& container,
                                const cri::Image& image, const NodeContext& node, cri::ContainerConfig& out) {
  const corev1::PodSpec& spec = pod.spec();
  const corev1::SecurityContext& own = container.security_context();
  const corev1::PodSecurityContext& pods = spec.security_context();
  KEELSON_RETURN_IF_ERROR(CheckNonRoot(pod, container, image));

  out.namespaces = PodNamespaces(spec);
  out.privileged = own.privileged();
  out.add_capabilities.assign(own.capabilities().add().begin(), own.capabilities().add().end());
  out.drop_capabilities.assign(own.capabilities().drop().begin(), own.capabilities().drop().end());
  out.readonly_rootfs = own.read_only_root_filesystem();
  out.no_new_privs = own.has_allow_privilege_escalation() && !own.allow_privilege_escalation();

  out.run_as_user = EffectiveUser(spec, container);
  if (!out.run_as_user) {
    out.run_as_user = image.uid;
    if (!image.uid) out.run_as_username = image.username;
  }
  if (own.has_run_as_group()) {
    out.run_as_group = own.run_as_group();
  } else if (pods.has_run_as_group()) {
    out.run_as_group = pods.run_as_group();
  }
  for (int64_t group : pods.supplemental_groups()) out.supplemental_groups.push_back(group);
  if (pods.has_fs_group()) out.supplemental_groups.push_back(pods.fs_group());
  out.strict_supplemental_groups = pods.supplemental_groups_policy() == "Strict";

  if (own.has_se_linux_options()) {
    out.selinux = SeLinux(own.se_linux_options());
  } else if (pods.has_se_linux_options()) {
    out.selinux = SeLinux(pods.se_linux_options());
  }
  out.seccomp = DefaultSeccomp(node);
  if (own.has_seccomp_profile()) {
    KEELSON_ASSIGN_OR_RETURN(out.seccomp, Seccomp(own.seccomp_profile(), node));
  } else if (pods.has_seccomp_profile()) {
    KEELSON_ASSIGN_OR_RETURN(out.seccomp, Seccomp(pods.seccomp_profile(), node));
  }
  if (out.privileged) out.seccomp = Profile("Unconfined", "");
  if (own.has_app_armor_profile()) {
    out.apparmor = Profile(own.app_armor_profile().type(), own.app_armor_profile().localhost_profile());
  } else if (pods.has_app_armor_profile()) {
    out.apparmor = Profile(pods.app_armor_profile().type(), pods.app_armor_profile().localhost_profile());
  }

  if (own.proc_mount() != "Unmasked" && !out.privileged) {
    out.masked_paths = MaskedPaths();
    out.readonly_paths = ReadonlyPaths();
  }
  return {};
}

}  // namespace keelson::kubelet

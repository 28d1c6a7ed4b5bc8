// Security contexts of pods and containers.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "lib/k8s/validation/pod/internal.h"
#include "lib/k8s/validation_settings.h"

namespace keelson::k8s {

namespace {

constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max();
constexpr size_t kSysctlBytes = 253;
constexpr size_t kAppArmorBytes = 4095;  // PATH_MAX less one
constexpr std::string_view kSysctlFormat =
    R"(^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$)";
const std::vector<std::string_view> kProfileTypes = {"Localhost", "RuntimeDefault", "Unconfined"};

void CheckId(int64_t id, const Path& path, FieldErrors& errors) { CheckRange(id, 0, kMaxId, path, errors); }

void CheckSeccomp(const corev1::SeccompProfile& profile, const Path& path, FieldErrors& errors) {
  if (profile.type().empty()) {
    errors.push_back(Required(path.Child("type"), "type is required when seccompProfile is set"));
  } else {
    CheckEnum(profile.type(), kProfileTypes, path.Child("type"), errors);
  }
  const Path file = path.Child("localhostProfile");
  if (profile.type() != "Localhost") {
    if (profile.has_localhost_profile()) {
      errors.push_back(InvalidObject(file, profile, "can only be set when seccomp type is Localhost"));
    }
  } else if (!profile.has_localhost_profile()) {
    errors.push_back(Required(file, "must be set when seccomp type is Localhost"));
  } else {
    CheckDescendingPath(profile.localhost_profile(), file, errors);
  }
}

bool IsSpace(char c) { return isspace(static_cast<unsigned char>(c)) != 0; }

void CheckAppArmorFile(const corev1::AppArmorProfile& profile, const Path& path, FieldErrors& errors) {
  const std::string& name = profile.localhost_profile();
  if (!profile.has_localhost_profile()) {
    errors.push_back(Required(path, "must be set when AppArmor type is Localhost"));
    return;
  }
  if (name.empty()) {
    errors.push_back(Required(path, "must be set when AppArmor type is Localhost"));
  } else if (IsSpace(name.front()) || IsSpace(name.back())) {
    errors.push_back(Invalid(path, name, "must not be padded with whitespace"));
  }
  if (name.size() > kAppArmorBytes) errors.push_back(TooLong(path, kAppArmorBytes));
}

void CheckAppArmor(const corev1::AppArmorProfile& profile, const Path& path, FieldErrors& errors) {
  const Path file = path.Child("localhostProfile");
  const std::string& type = profile.type();
  if (type == "Localhost") {
    CheckAppArmorFile(profile, file, errors);
  } else if (type == "RuntimeDefault" || type == "Unconfined") {
    if (profile.has_localhost_profile()) {
      errors.push_back(
          Invalid(file, profile.localhost_profile(), "can only be set when AppArmor type is Localhost"));
    }
  } else if (type.empty()) {
    errors.push_back(Required(path.Child("type"), "type is required when appArmorProfile is set"));
  } else {
    errors.push_back(NotSupported(path.Child("type"), type, kProfileTypes));
  }
}

// Matches kSysctlFormat.
bool IsSysctl(std::string_view name) {
  if (name.size() > kSysctlBytes) return false;
  const auto alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  for (;;) {
    const size_t end = name.find_first_of("./");
    const std::string_view part = name.substr(0, end);
    if (part.empty() || !alnum(part.front()) || !alnum(part.back())) return false;
    if (!std::all_of(part.begin(), part.end(), [&](char c) { return alnum(c) || c == '-' || c == '_'; })) {
      return false;
    }
    if (end == std::string_view::npos) return true;
    name.remove_prefix(end + 1);
  }
}

// Converts to the form with dots. If the first separator is a slash, then slashes separate and dots are
// plain characters.
std::string DottedSysctl(std::string_view name) {
  std::string out(name);
  const size_t first = out.find_first_of("./");
  if (first == std::string::npos || out[first] == '.') return out;
  for (char& c : out) {
    if (c == '/') {
      c = '.';
    } else if (c == '.') {
      c = '/';
    }
  }
  return out;
}

// A sysctl of a namespace that the pod shares with the host would change the host.
void CheckHostSysctl(const corev1::PodSpec& spec, const std::string& name, const Path& path,
                     FieldErrors& errors) {
  const std::string dotted = DottedSysctl(name);
  const bool ipc = dotted == "kernel.sem" || dotted.starts_with("kernel.shm") ||
                   dotted.starts_with("kernel.msg") || dotted.starts_with("fs.mqueue.");
  if (spec.host_network() && dotted.starts_with("net.")) {
    errors.push_back(Invalid(path, name, "may not be specified when 'hostNetwork' is true"));
  }
  if (spec.host_ipc() && ipc) {
    errors.push_back(Invalid(path, name, "may not be specified when 'hostIPC' is true"));
  }
}

void CheckSysctls(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  std::set<std::string_view> seen;
  const auto& sysctls = spec.security_context().sysctls();
  for (int i = 0; i < sysctls.size(); ++i) {
    const std::string& name = sysctls[i].name();
    const Path item = path.Index(i);
    const bool added = seen.insert(name).second;
    if (name.empty()) {
      errors.push_back(Required(item.Child("name")));
    } else if (!IsSysctl(name)) {
      errors.push_back(Invalid(
          item.Child("name"), name,
          fmt::format("must have at most {} characters and match regex {}", kSysctlBytes, kSysctlFormat)));
    } else if (!added) {
      errors.push_back(Duplicate(item.Child("name"), name));
    }
    CheckHostSysctl(spec, name, item.Child("name"), errors);
  }
}

void CheckOneOf(bool present, const std::string& value, const std::vector<std::string_view>& supported,
                const Path& path, FieldErrors& errors) {
  if (!present || std::find(supported.begin(), supported.end(), value) != supported.end()) return;
  errors.push_back(NotSupported(path, value, supported));
}

void CheckEscalation(const corev1::SecurityContext& context, const Path& path, FieldErrors& errors) {
  if (!context.has_allow_privilege_escalation() || context.allow_privilege_escalation()) return;
  if (context.privileged()) {
    errors.push_back(InvalidObject(
        path, context, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
  }
  for (const std::string& capability : context.capabilities().add()) {
    if (capability != "CAP_SYS_ADMIN") continue;
    errors.push_back(
        InvalidObject(path, context,
                      "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"));
  }
}

}  // namespace

void CheckSecurityContext(const corev1::SecurityContext& context, bool host_users, const Path& path,
                          FieldErrors& errors) {
  if (context.privileged() && !Settings().allow_privileged) {
    errors.push_back(Forbidden(path.Child("privileged"), "disallowed by cluster policy"));
  }
  if (context.has_run_as_user()) CheckId(context.run_as_user(), path.Child("runAsUser"), errors);
  if (context.has_run_as_group()) CheckId(context.run_as_group(), path.Child("runAsGroup"), errors);
  const Path proc = path.Child("procMount");
  CheckOneOf(context.has_proc_mount(), context.proc_mount(), {"Default", "Unmasked"}, proc, errors);
  if (host_users && context.proc_mount() == "Unmasked") {
    errors.push_back(Invalid(proc, context.proc_mount(), "`hostUsers` must be false to use `Unmasked`"));
  }
  if (context.has_seccomp_profile()) {
    CheckSeccomp(context.seccomp_profile(), path.Child("seccompProfile"), errors);
  }
  CheckEscalation(context, path, errors);
  if (context.has_windows_options()) {
    CheckWindowsOptions(context.windows_options(), path.Child("windowsOptions"), errors);
  }
  if (context.has_app_armor_profile()) {
    CheckAppArmor(context.app_armor_profile(), path.Child("appArmorProfile"), errors);
  }
}

void CheckPodSecurityContext(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  if (!spec.has_security_context()) return;
  const corev1::PodSecurityContext& context = spec.security_context();
  if (context.has_fs_group()) CheckId(context.fs_group(), path.Child("fsGroup"), errors);
  if (context.has_run_as_user()) CheckId(context.run_as_user(), path.Child("runAsUser"), errors);
  if (context.has_run_as_group()) CheckId(context.run_as_group(), path.Child("runAsGroup"), errors);
  const Path groups = path.Child("supplementalGroups");
  for (int i = 0; i < context.supplemental_groups_size(); ++i) {
    CheckId(context.supplemental_groups(i), groups.Index(i), errors);
  }
  if (spec.share_process_namespace() && spec.host_pid()) {
    errors.push_back(InvalidBool(path.Child("shareProcessNamespace"), true,
                                 "ShareProcessNamespace and HostPID cannot both be enabled"));
  }
  CheckSysctls(spec, path.Child("sysctls"), errors);
  CheckOneOf(context.has_fs_group_change_policy(), context.fs_group_change_policy(),
             {"Always", "OnRootMismatch"}, path.Child("fsGroupChangePolicy"), errors);
  if (context.has_seccomp_profile()) {
    CheckSeccomp(context.seccomp_profile(), path.Child("seccompProfile"), errors);
  }
  if (context.has_windows_options()) {
    CheckWindowsOptions(context.windows_options(), path.Child("windowsOptions"), errors);
  }
  if (context.has_app_armor_profile()) {
    CheckAppArmor(context.app_armor_profile(), path.Child("appArmorProfile"), errors);
  }
  CheckOneOf(context.has_supplemental_groups_policy(), context.supplemental_groups_policy(),
             {"Merge", "Strict"}, path.Child("supplementalGroupsPolicy"), errors);
  // MountOption needs a feature that is off in 1.36.
  CheckOneOf(context.has_se_linux_change_policy(), context.se_linux_change_policy(), {"Recursive"},
             path.Child("seLinuxChangePolicy"), errors);
}

}  // namespace keelson::k8s

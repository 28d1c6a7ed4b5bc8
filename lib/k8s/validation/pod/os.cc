// Rules for spec.os, and for fields that only Windows has.
#include <algorithm>

#include <fmt/format.h>

#include "lib/k8s/validation/pod/internal.h"
#include "lib/k8s/validation_settings.h"

namespace keelson::k8s {

namespace {

constexpr size_t kCredentialKib = 64;
constexpr size_t kDomainBytes = 256;
constexpr size_t kUserBytes = 104;

bool Any(std::string_view text, std::string_view of) { return text.find_first_of(of) != std::string::npos; }

bool IsNetBios(std::string_view domain) {
  if (domain.empty() || domain.size() > 15 || domain.front() == '.') return false;
  return !Any(domain, "\\/:*?\"<>|");
}

bool IsDnsDomain(std::string_view domain) {
  const auto alnum = [](char c) { return isalnum(static_cast<unsigned char>(c)) != 0; };
  for (;;) {
    const size_t dot = domain.find('.');
    const std::string_view label = domain.substr(0, dot);
    if (label.empty() || label.size() > 63 || !alnum(label.front()) || !alnum(label.back())) return false;
    if (!std::all_of(label.begin(), label.end(), [&](char c) { return alnum(c) || c == '-'; })) return false;
    if (dot == std::string_view::npos) return true;
    domain.remove_prefix(dot + 1);
  }
}

// [DOMAIN\]USER
void CheckUserName(const std::string& name, const Path& path, FieldErrors& errors) {
  const auto invalid = [&](std::string_view detail) { errors.push_back(Invalid(path, name, detail)); };
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (name.empty()) return invalid("runAsUserName cannot be an empty string");
  if (std::any_of(name.begin(), name.end(), control)) {
    return invalid("runAsUserName cannot contain control characters");
  }
  if (std::count(name.begin(), name.end(), '\\') > 1) {
    return invalid("runAsUserName cannot contain more than one backslash");
  }
  const size_t slash = name.find('\\');
  const bool has_domain = slash != std::string::npos;
  const std::string_view text = name;
  const std::string_view domain = has_domain ? text.substr(0, slash) : std::string_view();
  const std::string_view user = has_domain ? text.substr(slash + 1) : text;
  if (domain.size() >= kDomainBytes) {
    invalid(fmt::format("runAsUserName's Domain length must be under {} characters", kDomainBytes));
  }
  if (has_domain && !IsNetBios(domain) && !IsDnsDomain(domain)) {
    invalid("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
  }
  if (user.empty()) invalid("runAsUserName's User cannot be empty");
  if (user.size() > kUserBytes) {
    invalid(fmt::format("runAsUserName's User length must not be longer than {} characters", kUserBytes));
  }
  if (!user.empty() && user.find_first_not_of(". ") == std::string_view::npos) {
    invalid("runAsUserName's User cannot contain only periods or spaces");
  }
  if (Any(user, "\"/\\:;|=,+*?<>@[]")) {
    invalid(R"(runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[])");
  }
}

void CheckLinux(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  constexpr std::string_view kWhy = "windows options cannot be set for a linux pod";
  if (spec.security_context().has_windows_options()) {
    errors.push_back(Forbidden(path.Child("securityContext").Child("windowsOptions"), kWhy));
  }
  VisitContainers(spec, path, [&](const auto& container, const Path& here) {
    if (container.security_context().has_windows_options()) {
      errors.push_back(Forbidden(here.Child("securityContext").Child("windowsOptions"), kWhy));
    }
  });
}

struct Present {
  bool set;
  std::string_view field;
};

template <size_t kCount>
void ForbidOnWindows(const Present (&fields)[kCount], const Path& path, FieldErrors& errors) {
  for (const Present& one : fields) {
    if (one.set) errors.push_back(Forbidden(path.Child(one.field), "cannot be set for a windows pod"));
  }
}

void CheckWindows(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  const corev1::PodSecurityContext& pod = spec.security_context();
  const Path context = path.Child("securityContext");
  const Present first[] = {{pod.has_app_armor_profile(), "appArmorProfile"},
                           {pod.has_se_linux_options(), "seLinuxOptions"}};
  ForbidOnWindows(first, context, errors);
  const Present host[] = {
      {spec.has_host_users(), "hostUsers"}, {spec.host_pid(), "hostPID"}, {spec.host_ipc(), "hostIPC"}};
  ForbidOnWindows(host, path, errors);
  const Present second[] = {{pod.has_seccomp_profile(), "seccompProfile"},
                            {pod.has_fs_group(), "fsGroup"},
                            {pod.has_fs_group_change_policy(), "fsGroupChangePolicy"},
                            {!pod.sysctls().empty(), "sysctls"}};
  ForbidOnWindows(second, context, errors);
  const Present process[] = {{spec.has_share_process_namespace(), "shareProcessNamespace"}};
  ForbidOnWindows(process, path, errors);
  const Present third[] = {{pod.has_run_as_user(), "runAsUser"},
                           {pod.has_run_as_group(), "runAsGroup"},
                           {!pod.supplemental_groups().empty(), "supplementalGroups"},
                           {pod.has_supplemental_groups_policy(), "supplementalGroupsPolicy"},
                           {pod.has_se_linux_change_policy(), "seLinuxChangePolicy"}};
  ForbidOnWindows(third, context, errors);
  VisitContainers(spec, path, [&](const auto& container, const Path& here) {
    const corev1::SecurityContext& own = container.security_context();
    const Present fields[] = {{own.has_app_armor_profile(), "appArmorProfile"},
                              {own.has_se_linux_options(), "seLinuxOptions"},
                              {own.has_seccomp_profile(), "seccompProfile"},
                              {own.has_capabilities(), "capabilities"},
                              {own.has_read_only_root_filesystem(), "readOnlyRootFilesystem"},
                              {own.has_privileged(), "privileged"},
                              {own.has_allow_privilege_escalation(), "allowPrivilegeEscalation"},
                              {own.has_proc_mount(), "procMount"},
                              {own.has_run_as_user(), "runAsUser"},
                              {own.has_run_as_group(), "runAsGroup"}};
    ForbidOnWindows(fields, here.Child("securityContext"), errors);
  });
}

}  // namespace

void CheckWindowsOptions(const corev1::WindowsSecurityContextOptions& options, const Path& path,
                         FieldErrors& errors) {
  if (options.has_gmsa_credential_spec_name()) {
    const std::string& name = options.gmsa_credential_spec_name();
    AddProblems(CheckDns1123Subdomain(name), name, path.Child("gmsaCredentialSpecName"), errors);
  }
  if (options.has_gmsa_credential_spec()) {
    const std::string& text = options.gmsa_credential_spec();
    if (text.empty()) {
      errors.push_back(
          Invalid(path.Child("gmsaCredentialSpec"), text, "gmsaCredentialSpec cannot be an empty string"));
    } else if (text.size() > kCredentialKib * 1024) {
      errors.push_back(Invalid(path.Child("gmsaCredentialSpec"), text,
                               fmt::format("gmsaCredentialSpec size must be under {} KiB", kCredentialKib)));
    }
  }
  if (options.has_run_as_user_name()) {
    CheckUserName(options.run_as_user_name(), path.Child("runAsUserName"), errors);
  }
}

void CheckHostProcess(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  const corev1::WindowsSecurityContextOptions& pod = spec.security_context().windows_options();
  int count = 0, host = 0;
  VisitContainers(spec, path, [&](const auto& container, const Path& here) {
    const corev1::WindowsSecurityContextOptions& own = container.security_context().windows_options();
    ++count;
    if (pod.has_host_process() && own.has_host_process() && pod.host_process() != own.host_process()) {
      errors.push_back(InvalidBool(
          here.Child("securityContext").Child("windowsOptions").Child("hostProcess"), own.host_process(),
          fmt::format("pod hostProcess value must be identical if both are specified, was {}",
                      pod.host_process())));
    }
    if (own.has_host_process() ? own.host_process() : pod.host_process()) ++host;
  });
  if (host == 0) return;
  if (host != count) {
    errors.push_back(Invalid(
        path, "",
        "If pod contains any hostProcess containers then all containers must be HostProcess containers"));
  }
  if (!spec.host_network()) {
    errors.push_back(InvalidBool(path.Child("hostNetwork"), false,
                                 "hostNetwork must be true if pod contains any hostProcess containers"));
  }
  if (!Settings().allow_privileged) {
    errors.push_back(Forbidden(path, "hostProcess containers are disallowed by cluster policy"));
  }
}

void CheckOs(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  if (!spec.has_os()) return;
  const std::string& name = spec.os().name();
  if (name.empty()) {
    errors.push_back(Required(path.Child("os").Child("name"), "cannot be empty"));
  } else if (name == "linux") {
    CheckLinux(spec, path, errors);
  } else if (name == "windows") {
    CheckWindows(spec, path, errors);
  } else {
    errors.push_back(NotSupported(path.Child("os"), name, {"linux", "windows"}));
  }
}

}  // namespace keelson::k8s

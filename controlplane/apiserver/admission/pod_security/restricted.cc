// Additional checks of the restricted level: current hardening practices.
#include <fmt/format.h>

#include "controlplane/apiserver/admission/pod_security/checks.h"

namespace keelson::apiserver::pod_security {
namespace {

constexpr int kEver = LevelVersion::kLatest + 1;

void PrivilegeEscalation(const PodView& pod, Violations& out) {
  Names containers;
  for (const ContainerView& container : pod.containers) {
    const corev1::SecurityContext* security = container.security;
    if (!security || !security->has_allow_privilege_escalation() || security->allow_privilege_escalation()) {
      containers.emplace_back(container.name);
    }
  }
  if (containers.empty()) return;
  out.push_back({"allowPrivilegeEscalation != false",
                 Containers(containers) + " must set securityContext.allowPrivilegeEscalation=false"});
}

void DroppedCapabilities(const PodView& pod, Violations& out) {
  Names keep, add;
  Set bad;
  for (const ContainerView& container : pod.containers) {
    bool drops = false, adds = false;
    if (container.security) {
      for (const std::string& name : container.security->capabilities().drop()) drops |= name == "ALL";
      for (const std::string& name : container.security->capabilities().add()) {
        if (name == "NET_BIND_SERVICE") continue;
        adds = true;
        bad.insert(name);
      }
    }
    if (!drops) keep.emplace_back(container.name);
    if (adds) add.emplace_back(container.name);
  }
  Names details;
  if (!keep.empty()) {
    details.push_back(Containers(keep) + " must set securityContext.capabilities.drop=[\"ALL\"]");
  }
  if (!add.empty()) {
    details.push_back(fmt::format("{} must not include {} in securityContext.capabilities.add",
                                  Containers(add), JoinQuoted(bad)));
  }
  if (!details.empty()) {
    out.push_back({"unrestricted capabilities", fmt::format("{}", fmt::join(details, "; "))});
  }
}

void Volumes(const PodView& pod, Violations& out) {
  static const Set allowed = {"configMap", "csi",    "downwardAPI",          "emptyDir", "ephemeral", "image",
                              "projected", "secret", "persistentVolumeClaim"};
  Names volumes;
  Set types;
  for (const corev1::Volume& volume : pod.spec.volumes()) {
    const auto& source = volume.volume_source();
    std::vector<const google::protobuf::FieldDescriptor*> set;
    source.GetReflection()->ListFields(source, &set);
    const std::string type = set.empty() ? "unknown" : set.front()->json_name();
    if (allowed.count(type)) continue;
    volumes.push_back(volume.name());
    types.insert(type);
  }
  if (volumes.empty()) return;
  out.push_back({"restricted volume types",
                 fmt::format("{} {} {} {} {}", Plural("volume", "volumes", volumes.size()),
                             JoinQuoted(volumes), Plural("uses", "use", volumes.size()),
                             Plural("restricted volume type", "restricted volume types", types.size()),
                             JoinQuoted(types))});
}

void RunAsNonRoot(const PodView& pod, Violations& out) {
  const bool said = pod.security && pod.security->has_run_as_non_root();
  const bool good_pod = said && pod.security->run_as_non_root();
  Names bad, silent;
  for (const ContainerView& container : pod.containers) {
    if (container.security && container.security->has_run_as_non_root()) {
      if (!container.security->run_as_non_root()) bad.emplace_back(container.name);
    } else if (!good_pod) {
      silent.emplace_back(container.name);
    }
  }
  const bool bad_pod = said && !good_pod;
  if (bad_pod || !bad.empty()) {
    out.push_back(
        {"runAsNonRoot != true", Setters(bad_pod, bad) + " must not set securityContext.runAsNonRoot=false"});
  } else if (!silent.empty()) {
    out.push_back({"runAsNonRoot != true",
                   fmt::format("pod or {} must set securityContext.runAsNonRoot=true", Containers(silent))});
  }
}

void RunAsUser(const PodView& pod, Violations& out) {
  auto is_root = [](const auto* security) {
    return security && security->has_run_as_user() && security->run_as_user() == 0;
  };
  Names containers;
  for (const ContainerView& container : pod.containers) {
    if (is_root(container.security)) containers.emplace_back(container.name);
  }
  if (!is_root(pod.security) && containers.empty()) return;
  out.push_back({"runAsUser=0", Setters(is_root(pod.security), containers) + " must not set runAsUser=0"});
}

void Seccomp(const PodView& pod, Violations& out) {
  Set bad_types;
  const bool said = pod.security && pod.security->has_seccomp_profile();
  const bool good_pod = said && IsGoodSeccomp(pod.security->seccomp_profile().type());
  if (said && !good_pod) bad_types.insert(pod.security->seccomp_profile().type());
  Names bad, silent;
  for (const ContainerView& container : pod.containers) {
    if (container.security && container.security->has_seccomp_profile()) {
      const std::string& type = container.security->seccomp_profile().type();
      if (IsGoodSeccomp(type)) continue;
      bad.emplace_back(container.name);
      bad_types.insert(type);
    } else if (!good_pod) {
      silent.emplace_back(container.name);
    }
  }
  if (!bad_types.empty()) {
    out.push_back({"seccompProfile", fmt::format("{} must not set securityContext.seccompProfile.type to {}",
                                                 Setters(said && !good_pod, bad), JoinQuoted(bad_types))});
  } else if (!silent.empty()) {
    out.push_back(
        {"seccompProfile",
         fmt::format("pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "
                     "\"Localhost\"",
                     Containers(silent))});
  }
}

using Run = void (*)(const PodView& pod, Violations& out);
// Does not apply to Windows.
template <Run kRun>
void OnLinux(const PodView& pod, Violations& out) {
  if (!pod.IsWindows()) kRun(pod, out);
}
template <Run kRun>
void OutsideUserNamespaces(const PodView& pod, Violations& out) {
  if (!pod.HasUserNamespace()) kRun(pod, out);
}

}  // namespace

const std::vector<Check>& RestrictedChecks() {
  static const std::vector<Check> checks = {
      {8, 25, PrivilegeEscalation},
      {25, kEver, OnLinux<PrivilegeEscalation>},
      {22, 25, DroppedCapabilities},
      {25, kEver, OnLinux<DroppedCapabilities>},
      {35, kEver, CheckProcMount},
      {0, kEver, Volumes},
      {0, 35, RunAsNonRoot},
      {35, kEver, OutsideUserNamespaces<RunAsNonRoot>},
      {23, 35, RunAsUser},
      {35, kEver, OutsideUserNamespaces<RunAsUser>},
      {19, 25, Seccomp},
      {25, kEver, OnLinux<Seccomp>},
  };
  return checks;
}

}  // namespace keelson::apiserver::pod_security

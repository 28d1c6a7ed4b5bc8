// Containers of a pod: rules that regular, init and ephemeral ones share, and what each kind may not have.
#include <algorithm>

#include <fmt/format.h>

#include "lib/k8s/validation/pod/internal.h"

namespace keelson::k8s {

namespace {

const std::vector<std::string_view> kProtocols = {"SCTP", "TCP", "UDP"};
constexpr int kMaxRestartRules = 20;
constexpr int kMaxExitCodes = 255;

void CheckPorts(const corev1::Container& container, const Path& path, FieldErrors& errors) {
  std::set<std::string_view> names;
  for (int i = 0; i < container.ports_size(); ++i) {
    const corev1::ContainerPort& port = container.ports(i);
    const Path item = path.Index(i);
    if (!port.name().empty()) {
      const Problems problems = CheckPortName(port.name());
      AddProblems(problems, port.name(), item.Child("name"), errors);
      if (problems.empty() && !names.insert(port.name()).second) {
        errors.push_back(Duplicate(item.Child("name"), port.name()));
      }
    }
    if (port.container_port() == 0) {
      errors.push_back(Required(item.Child("containerPort")));
    } else {
      CheckRange(port.container_port(), 1, 65535, item.Child("containerPort"), errors);
    }
    if (port.host_port() != 0) CheckRange(port.host_port(), 1, 65535, item.Child("hostPort"), errors);
    CheckEnum(port.protocol(), kProtocols, item.Child("protocol"), errors);
  }
}

// `seen` holds protocol/ip/port.
void CheckHostPorts(const corev1::Container& container, std::set<std::string>& seen, const Path& path,
                    FieldErrors& errors) {
  for (int i = 0; i < container.ports_size(); ++i) {
    const corev1::ContainerPort& port = container.ports(i);
    if (port.host_port() == 0) continue;
    const std::string key = fmt::format("{}/{}/{}", port.protocol(), port.host_ip(), port.host_port());
    if (seen.insert(key).second) continue;
    errors.push_back(Duplicate(path.Child("ports").Index(i).Child("hostPort"), key));
  }
}

void CheckTerminationPolicy(const std::string& policy, const Path& path, FieldErrors& errors) {
  CheckEnum(policy, {"File", "FallbackToLogsOnError"}, path, errors);
}

// A template may have any image that is not empty: some clients give " " a meaning.
void CheckTrimmedImage(const corev1::Container& container, const Path& path, FieldErrors& errors) {
  const std::string& image = container.image();
  const auto space = [](char c) { return isspace(static_cast<unsigned char>(c)) != 0; };
  if (image.empty() || (!space(image.front()) && !space(image.back()))) return;
  errors.push_back(Invalid(path.Child("image"), image, "must not have leading or trailing whitespace"));
}

void CheckCommon(const corev1::Container& container, const PodScope& scope, const Path& path,
                 FieldErrors& errors) {
  CheckName(container.name(), CheckDns1123Label, path.Child("name"), errors);
  if (container.image().empty()) errors.push_back(Required(path.Child("image")));
  CheckTerminationPolicy(container.termination_message_policy(), path.Child("terminationMessagePolicy"),
                         errors);
  CheckPorts(container, path.Child("ports"), errors);
  CheckEnv(container, path, errors);
  CheckMounts(container, scope, path, errors);
  CheckPullPolicy(container.image_pull_policy(), path.Child("imagePullPolicy"), errors);
  CheckContainerResources(container.resources(), scope.claims, path.Child("resources"), errors);
  CheckResizePolicy(container, scope.spec.restart_policy(), path.Child("resizePolicy"), errors);
  if (container.has_security_context()) {
    CheckSecurityContext(container.security_context(), scope.host_users(), path.Child("securityContext"),
                         errors);
  }
}

void CheckRestartRule(const corev1::ContainerRestartRule& rule, const Path& path, FieldErrors& errors) {
  if (rule.action() != "Restart" && rule.action() != "RestartAllContainers") {
    errors.push_back(NotSupported(path.Child("action"), rule.action(), {"Restart", "RestartAllContainers"}));
  }
  const Path codes = path.Child("exitCodes");
  if (!rule.has_exit_codes()) {
    errors.push_back(Required(codes, "must be specified"));
    return;
  }
  const std::string& op = rule.exit_codes().operator_();
  if (op != "In" && op != "NotIn") {
    errors.push_back(NotSupported(codes.Child("operator"), op, {"In", "NotIn"}));
  }
  if (rule.exit_codes().values_size() > kMaxExitCodes) {
    errors.push_back(TooMany(codes.Child("values"), rule.exit_codes().values_size(), kMaxExitCodes));
  }
}

void CheckRegular(const PodScope& scope, const Path& path, FieldErrors& errors) {
  const corev1::PodSpec& spec = scope.spec;
  if (spec.containers().empty()) {
    errors.push_back(Required(path));
    return;
  }
  std::set<std::string_view> names;
  for (int i = 0; i < spec.containers_size(); ++i) {
    const corev1::Container& container = spec.containers(i);
    const Path item = path.Index(i);
    CheckCommon(container, scope, item, errors);
    if (!names.insert(container.name()).second) {
      errors.push_back(Duplicate(item.Child("name"), container.name()));
    }
    CheckLifecycle(container, spec, item, errors);
    CheckProbes(container, item, errors);
    CheckRestartRules(container, item, errors);
  }
  std::set<std::string> host_ports;
  for (int i = 0; i < spec.containers_size(); ++i) {
    CheckHostPorts(spec.containers(i), host_ports, path.Index(i), errors);
  }
}

// Init containers that end before the next one starts have no probes and no lifecycle hooks.
void ForbidForInit(const corev1::Container& container, const Path& path, FieldErrors& errors) {
  const std::pair<std::string_view, bool> fields[] = {{"lifecycle", container.has_lifecycle()},
                                                      {"livenessProbe", container.has_liveness_probe()},
                                                      {"readinessProbe", container.has_readiness_probe()},
                                                      {"startupProbe", container.has_startup_probe()}};
  for (const auto& [field, present] : fields) {
    if (!present) continue;
    errors.push_back(
        Forbidden(path.Child(field), "may not be set for init containers without restartPolicy=Always"));
  }
}

void CheckInit(const PodScope& scope, const Path& path, FieldErrors& errors) {
  const corev1::PodSpec& spec = scope.spec;
  std::set<std::string_view> names;
  for (const corev1::Container& container : spec.containers()) names.insert(container.name());
  for (int i = 0; i < spec.init_containers_size(); ++i) {
    const corev1::Container& container = spec.init_containers(i);
    const Path item = path.Index(i);
    CheckCommon(container, scope, item, errors);
    CheckRestartRules(container, item, errors);
    if (names.contains(container.name())) {
      errors.push_back(Duplicate(item.Child("name"), container.name()));
    } else if (!container.name().empty()) {
      names.insert(container.name());
    }
    // They run one after another, so their host ports do not conflict.
    std::set<std::string> host_ports;
    CheckHostPorts(container, host_ports, path.Index(0), errors);
    if (IsSidecar(container)) {
      CheckLifecycle(container, spec, item, errors);
      CheckProbes(container, item, errors);
      continue;
    }
    ForbidForInit(container, item, errors);
    if (scope.has_restarting_init) continue;
    const Path policies = item.Child("resizePolicy");
    for (int j = 0; j < container.resize_policy_size(); ++j) {
      if (container.resize_policy(j).restart_policy() != "RestartContainer") continue;
      errors.push_back(Invalid(policies.Index(j).Child("restartPolicy"), "RestartContainer",
                               "must not be set to 'RestartContainer' for non-sidecar initContainers"));
    }
  }
}

// An ephemeral container is for debugging a pod: nothing may depend on it.
void ForbidForEphemeral(const corev1::Container& container, const Path& path, FieldErrors& errors) {
  const std::pair<std::string_view, bool> fields[] = {
      {"ports", !container.ports().empty()},
      {"resources", !container.resources().limits().empty() || !container.resources().requests().empty() ||
                        !container.resources().claims().empty()},
      {"resizePolicy", !container.resize_policy().empty()},
      {"restartPolicy", container.has_restart_policy()},
      {"restartPolicyRules", !container.restart_policy_rules().empty()},
      {"livenessProbe", container.has_liveness_probe()},
      {"readinessProbe", container.has_readiness_probe()},
      {"startupProbe", container.has_startup_probe()},
      {"lifecycle", container.has_lifecycle()}};
  constexpr std::string_view kWhy = "cannot be set for an Ephemeral Container";
  for (const auto& [field, present] : fields) {
    if (present) errors.push_back(Forbidden(path.Child(field), kWhy));
  }
  const Path mounts = path.Child("volumeMounts");
  for (int i = 0; i < container.volume_mounts_size(); ++i) {
    const corev1::VolumeMount& mount = container.volume_mounts(i);
    const Path item = mounts.Index(i);
    if (!mount.sub_path().empty()) errors.push_back(Forbidden(item.Child("subPath"), kWhy));
    if (!mount.sub_path_expr().empty()) errors.push_back(Forbidden(item.Child("subPathExpr"), kWhy));
  }
}

void CheckEphemeral(const PodScope& scope, const Path& path, FieldErrors& errors) {
  const corev1::PodSpec& spec = scope.spec;
  if (spec.ephemeral_containers().empty()) return;
  std::set<std::string_view> targets;
  for (const corev1::Container& container : spec.containers()) targets.insert(container.name());
  for (const corev1::Container& container : spec.init_containers()) targets.insert(container.name());
  std::set<std::string_view> names = targets;
  for (int i = 0; i < spec.ephemeral_containers_size(); ++i) {
    const corev1::EphemeralContainer& ephemeral = spec.ephemeral_containers(i);
    const corev1::Container container = AsContainer(ephemeral.ephemeral_container_common());
    const std::string& name = ephemeral.ephemeral_container_common().name();
    const Path item = path.Index(i);
    CheckCommon(container, scope, item, errors);
    CheckTrimmedImage(container, item, errors);
    if (!names.insert(name).second) errors.push_back(Duplicate(item.Child("name"), name));
    const std::string& target = ephemeral.target_container_name();
    if (!target.empty() && !targets.contains(target)) {
      errors.push_back(NotFound(item.Child("targetContainerName"), target));
    }
    ForbidForEphemeral(container, item, errors);
  }
}

}  // namespace

corev1::Container AsContainer(const corev1::EphemeralContainerCommon& common) {
  corev1::Container out;
  out.ParsePartialFromString(common.SerializePartialAsString());
  return out;
}

void CheckPullPolicy(std::string_view policy, const Path& path, FieldErrors& errors) {
  CheckEnum(policy, {"Always", "IfNotPresent", "Never"}, path, errors);
}

void CheckRestartRules(const corev1::Container& container, const Path& path, FieldErrors& errors) {
  const auto& rules = container.restart_policy_rules();
  const std::string& policy = container.restart_policy();
  if (!container.has_restart_policy()) {
    if (rules.empty()) return;
    errors.push_back(
        Required(path.Child("restartPolicy"), "must specify restartPolicy when restart rules are used"));
  } else if (policy != "Always" && policy != "Never" && policy != "OnFailure") {
    errors.push_back(NotSupported(path.Child("restartPolicy"), policy, {"Always", "Never", "OnFailure"}));
  }
  const Path list = path.Child("restartPolicyRules");
  if (rules.size() > kMaxRestartRules) errors.push_back(TooMany(list, rules.size(), kMaxRestartRules));
  for (int i = 0; i < rules.size(); ++i) CheckRestartRule(rules[i], list.Index(i), errors);
}

void CheckResizePolicy(const corev1::Container& container, std::string_view pod_restart_policy,
                       const Path& path, FieldErrors& errors) {
  std::set<std::string_view> seen;
  for (int i = 0; i < container.resize_policy_size(); ++i) {
    const corev1::ContainerResizePolicy& policy = container.resize_policy(i);
    if (!seen.insert(policy.resource_name()).second) {
      errors.push_back(Duplicate(path.Index(i), policy.resource_name()));
    }
    CheckEnum(policy.resource_name(), {"cpu", "memory"}, path, errors);
    CheckEnum(policy.restart_policy(), {"NotRequired", "RestartContainer"}, path, errors);
    if (pod_restart_policy == "Never" && policy.restart_policy() != "NotRequired") {
      errors.push_back(Invalid(path, policy.restart_policy(),
                               "must be 'NotRequired' when pod `restartPolicy` is 'Never'"));
    }
  }
}

void CheckContainers(const PodScope& scope, const Path& path, FieldErrors& errors) {
  const Path containers = path.Child("containers"), init = path.Child("initContainers");
  CheckRegular(scope, containers, errors);
  CheckInit(scope, init, errors);
  CheckEphemeral(scope, path.Child("ephemeralContainers"), errors);
}

void CheckTrimmedImages(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  const Path containers = path.Child("containers"), init = path.Child("initContainers");
  for (int i = 0; i < spec.containers_size(); ++i) {
    CheckTrimmedImage(spec.containers(i), containers.Index(i), errors);
  }
  for (int i = 0; i < spec.init_containers_size(); ++i) {
    CheckTrimmedImage(spec.init_containers(i), init.Index(i), errors);
  }
}

}  // namespace keelson::k8s

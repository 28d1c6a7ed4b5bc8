// Containers of a pod.
#include <limits>
#include <set>

#include <fmt/format.h>

#include "lib/k8s/int_or_string.h"
#include "lib/k8s/validate_internal.h"

namespace keelson::k8s {

namespace {

const std::vector<std::string_view> kProtocols = {"SCTP", "TCP", "UDP"};
const std::vector<std::string_view> kPullPolicies = {"Always", "IfNotPresent", "Never"};
const std::vector<std::string_view> kEnvFields = {
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs",     "status.podIP", "status.podIPs"};

// What containers may refer to and must not collide with.
struct Scope {
  const corev1::PodSpec& spec;
  std::set<std::string_view> volumes;  // by name
  std::set<std::string_view> block_claims;
  std::set<std::string_view> names;  // of containers so far
  std::set<std::string> host_ports;  // protocol/ip/port of containers so far
};

void CheckPorts(const google::protobuf::RepeatedPtrField<corev1::ContainerPort>& ports, bool host_network,
                const Path& path, FieldErrors& errors) {
  std::set<std::string_view> names;
  for (int i = 0; i < ports.size(); ++i) {
    const corev1::ContainerPort& port = ports[i];
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
    if (!port.host_ip().empty()) CheckIpAddress(port.host_ip(), item.Child("hostIP"), errors);
    if (host_network && port.host_port() != port.container_port()) {
      errors.push_back(Invalid(item.Child("containerPort"), int64_t{port.container_port()},
                               "must match `hostPort` when `hostNetwork` is true"));
    }
  }
}

void CheckHostPorts(const corev1::Container& container, Scope& scope, const Path& path, FieldErrors& errors) {
  const Path ports = path.Child("ports");
  for (int i = 0; i < container.ports_size(); ++i) {
    const corev1::ContainerPort& port = container.ports(i);
    if (port.host_port() == 0) continue;
    std::string key = fmt::format("{}/{}/{}", port.protocol(), port.host_ip(), port.host_port());
    if (!scope.host_ports.insert(key).second) {
      const Path item = ports.Index(i);
      errors.push_back(Duplicate(item.Child("hostPort"), key));
    }
  }
}

template <typename Ref>
void CheckKeyRef(const Ref& ref, const Path& path, FieldErrors& errors) {
  if (ref.local_object_reference().name().empty()) errors.push_back(Required(path.Child("name")));
  CheckName(ref.key(), CheckConfigKey, path.Child("key"), errors);
}

void CheckEnvSource(const corev1::EnvVar& variable, const Path& path, FieldErrors& errors) {
  const corev1::EnvVarSource& source = variable.value_from();
  int count = 0;
  if (source.has_field_ref()) {
    ++count;
    CheckObjectField(source.field_ref(), kEnvFields, path.Child("fieldRef"), errors);
  }
  if (source.has_resource_field_ref()) {
    ++count;
    CheckResourceField(source.resource_field_ref(), false, path.Child("resourceFieldRef"), errors);
  }
  if (source.has_config_map_key_ref()) {
    ++count;
    CheckKeyRef(source.config_map_key_ref(), path.Child("configMapKeyRef"), errors);
  }
  if (source.has_secret_key_ref()) {
    ++count;
    CheckKeyRef(source.secret_key_ref(), path.Child("secretKeyRef"), errors);
  }
  if (source.has_file_key_ref()) ++count;
  if (count == 0) {
    errors.push_back(Invalid(path, "",
                             "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
                             "`secretKeyRef` or `fileKeyRef`"));
  } else if (!variable.value().empty()) {
    errors.push_back(Invalid(path, "", "may not be specified when `value` is not empty"));
  } else if (count > 1) {
    errors.push_back(Invalid(path, "", "may not have more than one field specified at a time"));
  }
}

template <typename C>
void CheckEnv(const C& container, const Path& path, FieldErrors& errors) {
  const Path env = path.Child("env");
  for (int i = 0; i < container.env_size(); ++i) {
    const corev1::EnvVar& variable = container.env(i);
    const Path item = env.Index(i);
    CheckName(variable.name(), CheckEnvVarName, item.Child("name"), errors);
    if (variable.has_value_from()) CheckEnvSource(variable, item.Child("valueFrom"), errors);
  }
  const Path list = path.Child("envFrom");
  for (int i = 0; i < container.env_from_size(); ++i) {
    const corev1::EnvFromSource& source = container.env_from(i);
    const Path item = list.Index(i);
    if (!source.prefix().empty()) {
      AddProblems(CheckEnvVarName(source.prefix()), source.prefix(), item.Child("prefix"), errors);
    }
    const int count = int{source.has_config_map_ref()} + int{source.has_secret_ref()};
    if (count == 0) errors.push_back(Invalid(item, "", "must specify one of: `configMapRef` or `secretRef`"));
    if (count > 1)
      errors.push_back(Invalid(item, "", "may not have more than one field specified at a time"));
    const Path config_map = item.Child("configMapRef"), secret = item.Child("secretRef");
    if (source.has_config_map_ref() && source.config_map_ref().local_object_reference().name().empty()) {
      errors.push_back(Required(config_map.Child("name")));
    }
    if (source.has_secret_ref() && source.secret_ref().local_object_reference().name().empty()) {
      errors.push_back(Required(secret.Child("name")));
    }
  }
}

template <typename C>
void CheckMounts(const C& container, const Scope& scope, const Path& path, FieldErrors& errors) {
  const Path list = path.Child("volumeMounts");
  std::set<std::string_view> paths;
  for (int i = 0; i < container.volume_mounts_size(); ++i) {
    const corev1::VolumeMount& mount = container.volume_mounts(i);
    const Path item = list.Index(i);
    if (mount.name().empty()) {
      errors.push_back(Required(item.Child("name")));
    } else if (!scope.volumes.contains(mount.name())) {
      errors.push_back(NotFound(item.Child("name"), mount.name()));
    }
    if (mount.mount_path().empty()) errors.push_back(Required(item.Child("mountPath")));
    if (!paths.insert(mount.mount_path()).second) {
      errors.push_back(Invalid(item.Child("mountPath"), mount.mount_path(), "must be unique"));
    }
    if (!mount.sub_path().empty()) CheckDescendingPath(mount.sub_path(), item.Child("subPath"), errors);
    if (!mount.sub_path_expr().empty()) {
      if (!mount.sub_path().empty()) {
        errors.push_back(Invalid(item.Child("subPathExpr"), mount.sub_path_expr(),
                                 "subPathExpr and subPath are mutually exclusive"));
      }
      CheckDescendingPath(mount.sub_path_expr(), item.Child("subPathExpr"), errors);
    }
    if (mount.has_mount_propagation()) {
      CheckEnum(mount.mount_propagation(), {"Bidirectional", "HostToContainer", "None"},
                item.Child("mountPropagation"), errors);
      if (mount.mount_propagation() == "Bidirectional" && !container.security_context().privileged()) {
        errors.push_back(
            Forbidden(item.Child("mountPropagation"),
                      "Bidirectional mount propagation is available only to privileged containers"));
      }
    }
  }
  const Path devices = path.Child("volumeDevices");
  for (int i = 0; i < container.volume_devices_size(); ++i) {
    const corev1::VolumeDevice& device = container.volume_devices(i);
    const Path item = devices.Index(i);
    if (device.name().empty()) {
      errors.push_back(Required(item.Child("name")));
    } else if (!scope.volumes.contains(device.name())) {
      errors.push_back(NotFound(item.Child("name"), device.name()));
    } else if (!scope.block_claims.contains(device.name())) {
      errors.push_back(
          Invalid(item.Child("name"), device.name(),
                  "can only use volume source type of PersistentVolumeClaim or Ephemeral for block "
                  "mode"));
    }
    if (device.device_path().empty()) errors.push_back(Required(item.Child("devicePath")));
    if (!paths.insert(device.device_path()).second) {
      errors.push_back(Invalid(item.Child("devicePath"), device.device_path(), "must be unique"));
    }
  }
}

void CheckHttpGet(const corev1::HTTPGetAction& action, const Path& path, FieldErrors& errors) {
  if (action.path().empty()) errors.push_back(Required(path.Child("path")));
  CheckPortNumberOrName(action.port(), path.Child("port"), errors);
  CheckEnum(action.scheme(), {"HTTP", "HTTPS"}, path.Child("scheme"), errors);
  const Path headers = path.Child("httpHeaders");
  for (const corev1::HTTPHeader& header : action.http_headers()) {
    AddProblems(CheckHttpHeaderName(header.name()), header.name(), headers, errors);
  }
}

// ProbeHandler has grpc where LifecycleHandler has sleep.
template <typename Handler>
void CheckHandler(const Handler& handler, const corev1::GRPCAction* grpc, const corev1::SleepAction* sleep,
                  const Path& path, FieldErrors& errors) {
  int count = 0;
  const auto first = [&](std::string_view field) {
    if (count++ == 0) return true;
    errors.push_back(Forbidden(path.Child(field), "may not specify more than 1 handler type"));
    return false;
  };
  if (handler.has_exec() && first("exec")) {
    const Path exec = path.Child("exec");
    if (handler.exec().command().empty()) errors.push_back(Required(exec.Child("command")));
  }
  if (handler.has_http_get() && first("httpGet")) {
    CheckHttpGet(handler.http_get(), path.Child("httpGet"), errors);
  }
  if (handler.has_tcp_socket() && first("tcpSocket")) {
    const Path tcp = path.Child("tcpSocket");
    CheckPortNumberOrName(handler.tcp_socket().port(), tcp.Child("port"), errors);
  }
  if (grpc && first("grpc")) {
    const Path child = path.Child("grpc");
    CheckRange(grpc->port(), 1, 65535, child.Child("port"), errors);
  }
  if (sleep && first("sleep")) {
    const Path child = path.Child("sleep");
    CheckNonNegative(sleep->seconds(), child.Child("seconds"), errors);
  }
  if (count == 0) errors.push_back(Required(path, "must specify a handler type"));
}

void CheckProbe(const corev1::Probe& probe, bool must_succeed_once, const Path& path, FieldErrors& errors) {
  const corev1::ProbeHandler& handler = probe.handler();
  CheckHandler(handler, handler.has_grpc() ? &handler.grpc() : nullptr, nullptr, path, errors);
  CheckNonNegative(probe.initial_delay_seconds(), path.Child("initialDelaySeconds"), errors);
  CheckNonNegative(probe.timeout_seconds(), path.Child("timeoutSeconds"), errors);
  CheckNonNegative(probe.period_seconds(), path.Child("periodSeconds"), errors);
  CheckNonNegative(probe.success_threshold(), path.Child("successThreshold"), errors);
  CheckNonNegative(probe.failure_threshold(), path.Child("failureThreshold"), errors);
  if (probe.has_termination_grace_period_seconds() && probe.termination_grace_period_seconds() <= 0) {
    errors.push_back(Invalid(path.Child("terminationGracePeriodSeconds"),
                             probe.termination_grace_period_seconds(), "must be greater than 0"));
  }
  if (must_succeed_once && probe.success_threshold() != 1) {
    errors.push_back(
        Invalid(path.Child("successThreshold"), int64_t{probe.success_threshold()}, "must be 1"));
  }
}

template <typename C>
void CheckProbes(const C& container, const Path& path, FieldErrors& errors) {
  if (container.has_lifecycle()) {
    const Path lifecycle = path.Child("lifecycle");
    const auto check = [&](const corev1::LifecycleHandler& handler, std::string_view name) {
      CheckHandler(handler, nullptr, handler.has_sleep() ? &handler.sleep() : nullptr, lifecycle.Child(name),
                   errors);
    };
    if (container.lifecycle().has_post_start()) check(container.lifecycle().post_start(), "postStart");
    if (container.lifecycle().has_pre_stop()) check(container.lifecycle().pre_stop(), "preStop");
  }
  if (container.has_liveness_probe()) {
    CheckProbe(container.liveness_probe(), true, path.Child("livenessProbe"), errors);
  }
  if (container.has_readiness_probe()) {
    CheckProbe(container.readiness_probe(), false, path.Child("readinessProbe"), errors);
  }
  if (container.has_startup_probe()) {
    CheckProbe(container.startup_probe(), true, path.Child("startupProbe"), errors);
  }
}

void CheckSecurityContext(const corev1::SecurityContext& context, const Path& path, FieldErrors& errors) {
  constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max();
  if (context.has_run_as_user())
    CheckRange(context.run_as_user(), 0, kMaxId, path.Child("runAsUser"), errors);
  if (context.has_run_as_group()) {
    CheckRange(context.run_as_group(), 0, kMaxId, path.Child("runAsGroup"), errors);
  }
  if (context.has_proc_mount()) {
    CheckEnum(context.proc_mount(), {"Default", "Unmasked"}, path.Child("procMount"), errors);
  }
  if (context.has_seccomp_profile()) {
    const Path seccomp = path.Child("seccompProfile");
    CheckEnum(context.seccomp_profile().type(), {"Localhost", "RuntimeDefault", "Unconfined"},
              seccomp.Child("type"), errors);
    if (context.seccomp_profile().type() == "Localhost" &&
        context.seccomp_profile().localhost_profile().empty()) {
      errors.push_back(
          Required(seccomp.Child("localhostProfile"), "must be set when seccomp type is Localhost"));
    }
  }
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

// What containers of all three kinds have in common.
template <typename C>
void CheckCommon(const C& container, Scope& scope, const Path& path, FieldErrors& errors) {
  CheckName(container.name(), CheckDns1123Label, path.Child("name"), errors);
  if (!container.name().empty() && !scope.names.insert(container.name()).second) {
    errors.push_back(Duplicate(path.Child("name"), container.name()));
  }
  const std::string& image = container.image();
  if (image.empty()) {
    errors.push_back(Required(path.Child("image")));
  } else if (isspace(static_cast<unsigned char>(image.front())) ||
             isspace(static_cast<unsigned char>(image.back()))) {
    errors.push_back(Invalid(path.Child("image"), image, "must not have leading or trailing whitespace"));
  }
  if (!container.termination_message_policy().empty()) {
    CheckEnum(container.termination_message_policy(), {"File", "FallbackToLogsOnError"},
              path.Child("terminationMessagePolicy"), errors);
  }
  CheckPorts(container.ports(), scope.spec.host_network(), path.Child("ports"), errors);
  CheckEnv(container, path, errors);
  CheckMounts(container, scope, path, errors);
  CheckEnum(container.image_pull_policy(), kPullPolicies, path.Child("imagePullPolicy"), errors);
  CheckResources(container.resources(), path.Child("resources"), errors);
  if (container.has_security_context()) {
    CheckSecurityContext(container.security_context(), path.Child("securityContext"), errors);
  }
  CheckProbes(container, path, errors);
}

void CheckInitContainer(const corev1::Container& container, const Path& path, FieldErrors& errors) {
  if (container.has_restart_policy()) {
    CheckEnum(container.restart_policy(), {"Always", "Never", "OnFailure"}, path.Child("restartPolicy"),
              errors);
  }
  if (IsSidecar(container)) return;
  const std::pair<std::string_view, bool> absent[] = {{"lifecycle", container.has_lifecycle()},
                                                      {"livenessProbe", container.has_liveness_probe()},
                                                      {"readinessProbe", container.has_readiness_probe()},
                                                      {"startupProbe", container.has_startup_probe()}};
  for (const auto& [field, present] : absent) {
    if (present) {
      errors.push_back(
          Forbidden(path.Child(field), "may not be set for init containers without restartPolicy=Always"));
    }
  }
}

Scope MakeScope(const corev1::PodSpec& spec) {
  Scope scope{spec, {}, {}, {}, {}};
  for (const corev1::Volume& volume : spec.volumes()) {
    scope.volumes.insert(volume.name());
    const corev1::VolumeSource& source = volume.volume_source();
    if (source.has_persistent_volume_claim() || source.has_ephemeral())
      scope.block_claims.insert(volume.name());
  }
  return scope;
}

}  // namespace

void CheckContainers(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  Scope scope = MakeScope(spec);
  const Path containers = path.Child("containers");
  if (spec.containers().empty()) errors.push_back(Required(containers));
  for (int i = 0; i < spec.containers_size(); ++i) {
    const corev1::Container& container = spec.containers(i);
    const Path item = containers.Index(i);
    CheckCommon(container, scope, item, errors);
    if (container.has_restart_policy()) {
      CheckEnum(container.restart_policy(), {"Always", "Never", "OnFailure"}, item.Child("restartPolicy"),
                errors);
    }
    CheckHostPorts(container, scope, item, errors);
  }
  const Path init = path.Child("initContainers");
  for (int i = 0; i < spec.init_containers_size(); ++i) {
    const corev1::Container& container = spec.init_containers(i);
    const Path item = init.Index(i);
    CheckCommon(container, scope, item, errors);
    CheckInitContainer(container, item, errors);
    if (IsSidecar(container)) CheckHostPorts(container, scope, item, errors);
  }
  const Path ephemeral = path.Child("ephemeralContainers");
  for (int i = 0; i < spec.ephemeral_containers_size(); ++i) {
    CheckCommon(spec.ephemeral_containers(i).ephemeral_container_common(), scope, ephemeral.Index(i), errors);
  }
}

}  // namespace keelson::k8s

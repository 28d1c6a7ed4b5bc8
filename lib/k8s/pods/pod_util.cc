#include "lib/k8s/pods/pod_util.h"

#include <set>

#include "lib/api/meta.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::k8s {

namespace {

template <typename Status>
auto* Find(const Status& status, std::string_view type) {
  const typename std::decay_t<decltype(status.conditions())>::value_type* found = nullptr;
  for (const auto& condition : status.conditions()) {
    if (condition.type() == type) found = &condition;
  }
  return found;
}

template <typename Status, typename Condition>
bool Set(Status& status, Condition condition, WallTime now) {
  for (Condition& have : *status.mutable_conditions()) {
    if (have.type() != condition.type()) continue;
    const bool same_status = have.status() == condition.status();
    const bool same =
        same_status && have.reason() == condition.reason() && have.message() == condition.message();
    if (same_status && have.has_last_transition_time()) {
      *condition.mutable_last_transition_time() = have.last_transition_time();
    } else {
      *condition.mutable_last_transition_time() = api::ToTime(now);
    }
    have = std::move(condition);
    return !same;
  }
  *condition.mutable_last_transition_time() = api::ToTime(now);
  *status.add_conditions() = std::move(condition);
  return true;
}

template <typename T>
bool IsTrue(const T* condition) {
  return condition && condition->status() == "True";
}

const std::string* Annotation(const corev1::Pod& pod, std::string_view key) {
  const auto it = pod.metadata().annotations().find(std::string(key));
  return it == pod.metadata().annotations().end() ? nullptr : &it->second;
}

using Names = std::set<std::string>;

void AddName(Names& names, const std::string& name) {
  if (!name.empty()) names.insert(name);
}

template <typename C>
void CollectEnv(const C& container, Names* config_maps, Names* secrets) {
  for (const corev1::EnvFromSource& source : container.env_from()) {
    if (config_maps && source.has_config_map_ref()) {
      AddName(*config_maps, source.config_map_ref().local_object_reference().name());
    }
    if (secrets && source.has_secret_ref()) {
      AddName(*secrets, source.secret_ref().local_object_reference().name());
    }
  }
  for (const corev1::EnvVar& variable : container.env()) {
    const corev1::EnvVarSource& source = variable.value_from();
    if (config_maps && source.has_config_map_key_ref()) {
      AddName(*config_maps, source.config_map_key_ref().local_object_reference().name());
    }
    if (secrets && source.has_secret_key_ref()) {
      AddName(*secrets, source.secret_key_ref().local_object_reference().name());
    }
  }
}

void CollectVolume(const corev1::VolumeSource& source, Names* config_maps, Names* secrets) {
  if (config_maps && source.has_config_map()) {
    AddName(*config_maps, source.config_map().local_object_reference().name());
  }
  if (secrets && source.has_secret()) AddName(*secrets, source.secret().secret_name());
  if (secrets) {
    AddName(*secrets, source.csi().node_publish_secret_ref().name());
    AddName(*secrets, source.azure_file().secret_name());
    AddName(*secrets, source.cephfs().secret_ref().name());
    AddName(*secrets, source.flex_volume().secret_ref().name());
    AddName(*secrets, source.iscsi().secret_ref().name());
    AddName(*secrets, source.rbd().secret_ref().name());
    AddName(*secrets, source.scale_io().secret_ref().name());
    AddName(*secrets, source.storageos().secret_ref().name());
  }
  for (const corev1::VolumeProjection& projection : source.projected().sources()) {
    if (config_maps && projection.has_config_map()) {
      AddName(*config_maps, projection.config_map().local_object_reference().name());
    }
    if (secrets && projection.has_secret()) {
      AddName(*secrets, projection.secret().local_object_reference().name());
    }
  }
}

std::vector<std::string> Collect(const corev1::PodSpec& spec, bool want_secrets) {
  Names names;
  Names* config_maps = want_secrets ? nullptr : &names;
  Names* secrets = want_secrets ? &names : nullptr;
  ForEachContainer(spec, [&](const corev1::Container& c) { CollectEnv(c, config_maps, secrets); });
  for (const corev1::EphemeralContainer& container : spec.ephemeral_containers()) {
    CollectEnv(container.ephemeral_container_common(), config_maps, secrets);
  }
  for (const corev1::Volume& volume : spec.volumes()) {
    CollectVolume(volume.volume_source(), config_maps, secrets);
  }
  if (secrets) {
    for (const auto& reference : spec.image_pull_secrets()) AddName(*secrets, reference.name());
  }
  return {names.begin(), names.end()};
}

}  // namespace

const corev1::PodCondition* FindCondition(const corev1::PodStatus& status, std::string_view type) {
  return Find(status, type);
}
const corev1::NodeCondition* FindCondition(const corev1::NodeStatus& status, std::string_view type) {
  return Find(status, type);
}

bool SetCondition(corev1::PodStatus& status, corev1::PodCondition condition, WallTime now) {
  return Set(status, std::move(condition), now);
}
bool SetCondition(corev1::NodeStatus& status, corev1::NodeCondition condition, WallTime now) {
  return Set(status, std::move(condition), now);
}

bool IsReady(const corev1::Pod& pod) { return IsTrue(FindCondition(pod.status(), kPodReady)); }
bool IsReady(const corev1::Node& node) { return IsTrue(FindCondition(node.status(), "Ready")); }

bool IsAvailable(const corev1::Pod& pod, int32_t min_ready_seconds, WallTime now) {
  const corev1::PodCondition* ready = FindCondition(pod.status(), kPodReady);
  if (!IsTrue(ready)) return false;
  if (min_ready_seconds == 0) return true;
  if (!ready->has_last_transition_time()) return false;
  return api::FromTime(ready->last_transition_time()) + std::chrono::seconds(min_ready_seconds) <= now;
}

bool IsTerminal(const corev1::Pod& pod) {
  return pod.status().phase() == "Succeeded" || pod.status().phase() == "Failed";
}
bool IsTerminating(const corev1::Pod& pod) { return pod.metadata().has_deletion_timestamp(); }
bool IsActive(const corev1::Pod& pod) { return !IsTerminal(pod) && !IsTerminating(pod); }
bool IsMirror(const corev1::Pod& pod) { return Annotation(pod, kMirrorAnnotation); }
bool IsStatic(const corev1::Pod& pod) {
  if (IsMirror(pod)) return true;
  const std::string* source = Annotation(pod, kConfigSourceAnnotation);
  return source && *source != "api";
}

const corev1::ContainerStatus* FindContainerStatus(const corev1::PodStatus& status, std::string_view name) {
  for (const auto* list : {&status.container_statuses(), &status.init_container_statuses(),
                           &status.ephemeral_container_statuses()}) {
    for (const corev1::ContainerStatus& container : *list) {
      if (container.name() == name) return &container;
    }
  }
  return nullptr;
}

const corev1::Container* FindContainer(const corev1::PodSpec& spec, std::string_view name) {
  for (const auto* list : {&spec.containers(), &spec.init_containers()}) {
    for (const corev1::Container& container : *list) {
      if (container.name() == name) return &container;
    }
  }
  return nullptr;
}

void ForEachContainer(const corev1::PodSpec& spec,
                      const std::function<void(const corev1::Container&)>& visit) {
  for (const corev1::Container& container : spec.init_containers()) visit(container);
  for (const corev1::Container& container : spec.containers()) visit(container);
}

std::vector<HostPort> HostPorts(const corev1::PodSpec& spec) {
  std::vector<HostPort> ports;
  const auto collect = [&](const corev1::Container& container) {
    for (const corev1::ContainerPort& port : container.ports()) {
      if (port.host_port() <= 0) continue;
      ports.push_back({port.host_ip(), port.protocol().empty() ? "TCP" : port.protocol(), port.host_port()});
    }
  };
  for (const corev1::Container& container : spec.containers()) collect(container);
  // Plain init containers end before the others start to listen.
  for (const corev1::Container& container : spec.init_containers()) {
    if (IsSidecar(container)) collect(container);
  }
  return ports;
}

int32_t ResolvePort(const corev1::PodSpec& spec, const intstr::IntOrString& port, std::string_view protocol) {
  if (!IsString(port)) return port.int_val();
  int32_t found = 0;
  const auto look = [&](const corev1::Container& container) {
    for (const corev1::ContainerPort& candidate : container.ports()) {
      const std::string_view own = candidate.protocol().empty() ? "TCP" : candidate.protocol().c_str();
      if (found == 0 && candidate.name() == port.str_val() && (protocol.empty() || own == protocol)) {
        found = candidate.container_port();
      }
    }
  };
  for (const corev1::Container& container : spec.containers()) look(container);
  for (const corev1::Container& container : spec.init_containers()) {
    if (IsSidecar(container)) look(container);
  }
  return found;
}

int32_t Priority(const corev1::PodSpec& spec) { return spec.priority(); }

std::vector<std::string> ReferencedConfigMaps(const corev1::PodSpec& spec) { return Collect(spec, false); }
std::vector<std::string> ReferencedSecrets(const corev1::PodSpec& spec) { return Collect(spec, true); }

}  // namespace keelson::k8s

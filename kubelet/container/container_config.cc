#include "kubelet/container/container_config.h"

#include <algorithm>
#include <map>

#include "kubelet/container/container_hash.h"
#include "kubelet/container/expansion.h"
#include "kubelet/container/labels.h"
#include "kubelet/container/resources.h"
#include "kubelet/container/security.h"

namespace keelson::kubelet {

namespace {

constexpr char kDefaultMessagePath[] = "/dev/termination-log";

cri::Mount::Propagation Propagation(const std::string& mode) {
  if (mode == "HostToContainer") return cri::Mount::Propagation::kHostToContainer;
  if (mode == "Bidirectional") return cri::Mount::Propagation::kBidirectional;
  return cri::Mount::Propagation::kPrivate;
}

std::function<std::optional<std::string>(const std::string&)> Lookup(const Env& env) {
  auto values = std::make_shared<std::map<std::string, std::string>>(env.begin(), env.end());
  return [values](const std::string& name) -> std::optional<std::string> {
    auto it = values->find(name);
    if (it == values->end()) return std::nullopt;
    return it->second;
  };
}

// The path below the volume, "" for the whole of it.
Result<std::string> SubPath(const corev1::VolumeMount& mount, const Env& env) {
  std::string sub = mount.sub_path();
  if (!mount.sub_path_expr().empty()) {
    std::string unknown;
    sub = Expand(mount.sub_path_expr(), Lookup(env), &unknown);
    if (!unknown.empty()) {
      return Error(Code::kInvalid,
                   "missing value for \"" + unknown + "\" in subPathExpr of volume \"" + mount.name() + "\"");
    }
  }
  if (!sub.empty() && sub[0] == '/') {
    return Error(Code::kInvalid, "error SubPath `" + sub + "` must not be an absolute path");
  }
  for (size_t begin = 0; begin <= sub.size();) {
    size_t end = std::min(sub.find('/', begin), sub.size());
    if (sub.compare(begin, end - begin, "..") == 0) {
      return Error(Code::kInvalid, "unable to provision SubPath `" + sub + "`: must not contain '..'");
    }
    begin = end + 1;
  }
  return sub;
}

Error NotMounted(const ContainerInput& input, const std::string& volume) {
  return Error(Code::kUnavailable, "volume \"" + volume + "\" of container \"" + input.container.name() +
                                       "\" is not mounted yet");
}

Result<std::string> HostPath(const ContainerInput& input, const corev1::VolumeMount& mount, int index,
                             const Env& env) {
  auto it = input.volumes.find(mount.name());
  if (it == input.volumes.end()) return NotMounted(input, mount.name());
  KEELSON_ASSIGN_OR_RETURN(std::string sub, SubPath(mount, env));
  if (sub.empty()) return it->second.path;
  return input.sub_path(it->second.path, sub, mount.name(), input.container.name(), index,
                        mount.read_only() || it->second.read_only);
}

Result<cri::Mount> VolumeMount(const ContainerInput& input, const corev1::VolumeMount& mount, int index,
                               const Env& env, const NodeContext& node) {
  cri::Mount item;
  item.container_path = mount.mount_path();
  if (!item.container_path.empty() && item.container_path[0] != '/') {
    item.container_path = "/" + item.container_path;
  }
  auto known = input.volumes.find(mount.name());
  if (known != input.volumes.end() && !known->second.image.empty()) {
    item.image = known->second.image;
    KEELSON_ASSIGN_OR_RETURN(item.image_sub_path, SubPath(mount, env));
    item.readonly = true;
    return item;
  }
  KEELSON_ASSIGN_OR_RETURN(item.host_path, HostPath(input, mount, index, env));
  const MountedVolume& volume = input.volumes.at(mount.name());
  item.readonly = mount.read_only() || volume.read_only;
  item.selinux_relabel = volume.selinux_relabel;
  item.user_ids = input.user_ids;
  KEELSON_ASSIGN_OR_RETURN(item.recursive_read_only,
                           RecursiveReadOnly(mount, node.RecursiveReadOnly(input.handler)));
  item.propagation = Propagation(mount.mount_propagation());
  return item;
}

Result<> AddDevices(const ContainerInput& input, cri::ContainerConfig& out) {
  for (const auto& device : input.container.volume_devices()) {
    auto volume = input.volumes.find(device.name());
    if (volume == input.volumes.end()) return NotMounted(input, device.name());
    out.devices.push_back(
        {device.device_path(), volume->second.path, volume->second.read_only ? "r" : "mrw"});
  }
  return {};
}

Result<> AddMounts(const ContainerInput& input, const Env& env, const NodeContext& node,
                   cri::ContainerConfig& out) {
  bool own_hosts = false;
  int index = 0;
  for (const auto& mount : input.container.volume_mounts()) {
    KEELSON_ASSIGN_OR_RETURN(cri::Mount item, VolumeMount(input, mount, index++, env, node));
    own_hosts = own_hosts || item.container_path == "/etc/hosts";
    out.mounts.push_back(std::move(item));
  }
  if (!own_hosts && !input.hosts_file.empty()) {
    cri::Mount hosts;
    hosts.container_path = "/etc/hosts";
    hosts.host_path = input.hosts_file;
    hosts.readonly = input.container.security_context().read_only_root_filesystem();
    out.mounts.push_back(std::move(hosts));
  }
  if (!input.message_file.empty()) {
    cri::Mount message;
    message.container_path = out.annotations[kMessagePathAnnotation];
    message.host_path = input.message_file;
    out.mounts.push_back(std::move(message));
  }
  return {};
}

void AddLabels(const ContainerInput& input, cri::ContainerConfig& out) {
  const metav1::ObjectMeta& meta = input.pod.metadata();
  out.labels[kContainerNameLabel] = input.container.name();
  out.labels[kPodNameLabel] = meta.name();
  out.labels[kPodNamespaceLabel] = meta.namespace_();
  out.labels[kPodUidLabel] = meta.uid();
  out.annotations[kHashAnnotation] = ContainerHash(input.container);
  out.annotations[kRestartCountAnnotation] = std::to_string(input.restart_count);
  const std::string& path = input.container.termination_message_path();
  out.annotations[kMessagePathAnnotation] = path.empty() ? kDefaultMessagePath : path;
  const std::string& policy = input.container.termination_message_policy();
  out.annotations[kMessagePolicyAnnotation] = policy.empty() ? "File" : policy;
  if (input.pod.spec().has_termination_grace_period_seconds()) {
    out.annotations[kGraceAnnotation] = std::to_string(input.pod.spec().termination_grace_period_seconds());
  }
}

// Of all the pod's volumes, not only those that the container mounts.
void AddGroups(const ContainerInput& input, cri::ContainerConfig& out) {
  std::vector<int64_t>& groups = out.supplemental_groups;
  for (const auto& [name, volume] : input.volumes) {
    if (volume.group && std::find(groups.begin(), groups.end(), *volume.group) == groups.end()) {
      groups.push_back(*volume.group);
    }
  }
}

}  // namespace

Result<cri::ContainerConfig> BuildContainerConfig(const ContainerInput& input, ObjectSource& objects,
                                                  const NodeContext& node) {
  const corev1::Container& container = input.container;
  cri::ContainerConfig out;
  out.name = container.name();
  out.attempt = static_cast<uint32_t>(input.restart_count);
  out.image = input.image_ref;
  out.user_specified_image = container.image();
  AddLabels(input, out);
  KEELSON_ASSIGN_OR_RETURN(Env env, BuildEnv(input.pod, container, objects, node, input.volumes));
  KEELSON_RETURN_IF_ERROR(AddDevices(input, out));
  KEELSON_RETURN_IF_ERROR(AddMounts(input, env, node, out));
  auto lookup = Lookup(env);
  for (const std::string& word : container.command()) out.command.push_back(Expand(word, lookup));
  for (const std::string& word : container.args()) out.args.push_back(Expand(word, lookup));
  out.envs = std::move(env);
  out.working_dir = container.working_dir();
  out.log_path = LogPath(container.name(), input.restart_count);
  out.stdin_open = container.stdin();
  out.stdin_once = container.stdin_once();
  out.tty = container.tty();
  if (node.stop_signals) out.stop_signal = container.lifecycle().stop_signal();
  out.resources = ContainerResources(input.pod, container, node);
  KEELSON_RETURN_IF_ERROR(ApplyContainerSecurity(input.pod, container, input.image, node, out));
  AddGroups(input, out);
  out.namespaces.user_ids = input.user_ids;
  if (!input.target_id.empty()) {
    out.namespaces.pid = cri::NamespaceMode::kTarget;
    out.namespaces.target_id = input.target_id;
  }
  return out;
}

Result<bool> RecursiveReadOnly(const corev1::VolumeMount& mount, bool supported) {
  const std::string& mode = mount.recursive_read_only();
  if (mode.empty() || mode == "Disabled") return false;
  std::string what = "volume \"" + mount.name() + "\" requested recursive read-only mode, but it is not ";
  if (!mount.read_only()) return Error(Code::kInvalid, what + "read-only");
  const std::string& propagation = mount.mount_propagation();
  if (!propagation.empty() && propagation != "None") {
    return Error(Code::kInvalid, what + "compatible with propagation \"" + propagation + "\"");
  }
  if (!supported && mode == "Enabled") return Error(Code::kInvalid, what + "supported by the runtime");
  return supported;
}

std::string LogPath(const std::string& container, int restart_count) {
  return container + "/" + std::to_string(restart_count) + ".log";
}

corev1::Container FromEphemeral(const corev1::EphemeralContainer& ephemeral) {
  // The two have the same fields under the same numbers.
  corev1::Container out;
  out.ParseFromString(ephemeral.ephemeral_container_common().SerializeAsString());
  return out;
}

}  // namespace keelson::kubelet

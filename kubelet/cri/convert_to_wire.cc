// What the kubelet asks of the runtime.
#include "kubelet/cri/convert.h"

namespace keelson::kubelet::cri {

namespace v1 = runtime::v1;

namespace {

template <typename Map>
void CopyTo(const Labels& in, Map* out) {
  for (const auto& [key, value] : in) (*out)[key] = value;
}

void ToWire(const IdMapping& in, v1::IDMapping& out) {
  out.set_host_id(in.host_id);
  out.set_container_id(in.container_id);
  out.set_length(in.length);
}

void ToWire(const NamespaceOptions& in, v1::NamespaceOption& out) {
  out.set_network(static_cast<v1::NamespaceMode>(in.network));
  out.set_pid(static_cast<v1::NamespaceMode>(in.pid));
  out.set_ipc(static_cast<v1::NamespaceMode>(in.ipc));
  out.set_target_id(in.target_id);
  if (!in.user_ids) return;
  auto& user = *out.mutable_userns_options();
  user.set_mode(v1::POD);
  ToWire(*in.user_ids, *user.add_uids());
  ToWire(*in.user_ids, *user.add_gids());
}

// SIGRTMIN+1 is SIGNAL_RTMINPLUS1 on the wire.
v1::Signal SignalToWire(const std::string& name) {
  v1::Signal out = v1::RUNTIME_DEFAULT;
  if (name.compare(0, 3, "SIG") != 0) return out;
  std::string wire = "SIGNAL_" + name.substr(3);
  if (size_t plus = wire.find('+'); plus != std::string::npos) wire.replace(plus, 1, "PLUS");
  if (size_t minus = wire.find('-'); minus != std::string::npos) wire.replace(minus, 1, "MINUS");
  (void)v1::Signal_Parse(wire, &out);
  return out;
}

void ToWire(const SecurityProfile& in, v1::SecurityProfile& out) {
  out.set_profile_type(static_cast<v1::SecurityProfile::ProfileType>(in.type));
  out.set_localhost_ref(in.localhost_ref);
}

void ToWire(const SeLinuxOptions& in, v1::SELinuxOption& out) {
  out.set_user(in.user);
  out.set_role(in.role);
  out.set_type(in.type);
  out.set_level(in.level);
}

void SecurityToWire(const SandboxConfig& in, v1::LinuxSandboxSecurityContext& out) {
  ToWire(in.namespaces, *out.mutable_namespace_options());
  if (in.run_as_user) out.mutable_run_as_user()->set_value(*in.run_as_user);
  if (in.run_as_group) out.mutable_run_as_group()->set_value(*in.run_as_group);
  out.set_readonly_rootfs(in.readonly_rootfs);
  out.set_privileged(in.privileged);
  for (int64_t group : in.supplemental_groups) out.add_supplemental_groups(group);
  if (in.strict_supplemental_groups) out.set_supplemental_groups_policy(v1::Strict);
  if (in.seccomp) ToWire(*in.seccomp, *out.mutable_seccomp());
  if (in.selinux) ToWire(*in.selinux, *out.mutable_selinux_options());
}

void SecurityToWire(const ContainerConfig& in, v1::LinuxContainerSecurityContext& out) {
  for (const std::string& name : in.add_capabilities) out.mutable_capabilities()->add_add_capabilities(name);
  for (const std::string& name : in.drop_capabilities) {
    out.mutable_capabilities()->add_drop_capabilities(name);
  }
  out.set_privileged(in.privileged);
  ToWire(in.namespaces, *out.mutable_namespace_options());
  if (in.selinux) ToWire(*in.selinux, *out.mutable_selinux_options());
  if (in.run_as_user) out.mutable_run_as_user()->set_value(*in.run_as_user);
  if (in.run_as_group) out.mutable_run_as_group()->set_value(*in.run_as_group);
  out.set_run_as_username(in.run_as_username);
  out.set_readonly_rootfs(in.readonly_rootfs);
  for (int64_t group : in.supplemental_groups) out.add_supplemental_groups(group);
  if (in.strict_supplemental_groups) out.set_supplemental_groups_policy(v1::Strict);
  out.set_no_new_privs(in.no_new_privs);
  for (const std::string& path : in.masked_paths) out.add_masked_paths(path);
  for (const std::string& path : in.readonly_paths) out.add_readonly_paths(path);
  if (in.seccomp) ToWire(*in.seccomp, *out.mutable_seccomp());
  if (in.apparmor) ToWire(*in.apparmor, *out.mutable_apparmor());
}

}  // namespace

void ToWire(const LinuxResources& in, v1::LinuxContainerResources& out) {
  out.set_cpu_period(in.cpu_period);
  out.set_cpu_quota(in.cpu_quota);
  out.set_cpu_shares(in.cpu_shares);
  out.set_memory_limit_in_bytes(in.memory_limit_bytes);
  out.set_memory_swap_limit_in_bytes(in.memory_swap_limit_bytes);
  out.set_oom_score_adj(in.oom_score_adj);
  out.set_cpuset_cpus(in.cpuset_cpus);
  out.set_cpuset_mems(in.cpuset_mems);
  for (const auto& [size, limit] : in.hugepage_limits) {
    auto* item = out.add_hugepage_limits();
    item->set_page_size(size);
    item->set_limit(limit);
  }
  CopyTo(in.unified, out.mutable_unified());
}

void ToWire(const SandboxConfig& in, v1::PodSandboxConfig& out) {
  auto& metadata = *out.mutable_metadata();
  metadata.set_name(in.metadata.name);
  metadata.set_uid(in.metadata.uid);
  metadata.set_namespace_(in.metadata.ns);
  metadata.set_attempt(in.metadata.attempt);
  out.set_hostname(in.hostname);
  out.set_log_directory(in.log_directory);
  auto& dns = *out.mutable_dns_config();
  for (const std::string& server : in.dns_servers) dns.add_servers(server);
  for (const std::string& search : in.dns_searches) dns.add_searches(search);
  for (const std::string& option : in.dns_options) dns.add_options(option);
  for (const PortMapping& port : in.port_mappings) {
    auto& item = *out.add_port_mappings();
    item.set_protocol(static_cast<v1::Protocol>(port.protocol));
    item.set_container_port(port.container_port);
    item.set_host_port(port.host_port);
    item.set_host_ip(port.host_ip);
  }
  CopyTo(in.labels, out.mutable_labels());
  CopyTo(in.annotations, out.mutable_annotations());
  auto& linux_config = *out.mutable_linux();
  linux_config.set_cgroup_parent(in.cgroup_parent);
  CopyTo(in.sysctls, linux_config.mutable_sysctls());
  SecurityToWire(in, *linux_config.mutable_security_context());
  ToWire(in.resources, *linux_config.mutable_resources());
  ToWire(in.overhead, *linux_config.mutable_overhead());
}

void ToWire(const ContainerConfig& in, v1::ContainerConfig& out) {
  out.mutable_metadata()->set_name(in.name);
  out.mutable_metadata()->set_attempt(in.attempt);
  out.mutable_image()->set_image(in.image);
  out.mutable_image()->set_user_specified_image(in.user_specified_image);
  for (const std::string& word : in.command) out.add_command(word);
  for (const std::string& word : in.args) out.add_args(word);
  out.set_working_dir(in.working_dir);
  for (const auto& [key, value] : in.envs) {
    auto& item = *out.add_envs();
    item.set_key(key);
    item.set_value(value);
  }
  for (const Mount& mount : in.mounts) {
    auto& item = *out.add_mounts();
    item.set_container_path(mount.container_path);
    item.set_host_path(mount.host_path);
    item.set_readonly(mount.readonly);
    item.set_recursive_read_only(mount.recursive_read_only);
    item.set_propagation(static_cast<v1::MountPropagation>(mount.propagation));
    item.set_selinux_relabel(mount.selinux_relabel);
    if (mount.user_ids) {
      ToWire(*mount.user_ids, *item.add_uidmappings());
      ToWire(*mount.user_ids, *item.add_gidmappings());
    }
    if (!mount.image.empty()) {
      item.mutable_image()->set_image(mount.image);
      item.set_image_sub_path(mount.image_sub_path);
    }
  }
  for (const Device& device : in.devices) {
    auto& item = *out.add_devices();
    item.set_container_path(device.container_path);
    item.set_host_path(device.host_path);
    item.set_permissions(device.permissions);
  }
  for (const std::string& name : in.cdi_devices) out.add_cdi_devices()->set_name(name);
  CopyTo(in.labels, out.mutable_labels());
  CopyTo(in.annotations, out.mutable_annotations());
  out.set_log_path(in.log_path);
  out.set_stdin(in.stdin_open);
  out.set_stdin_once(in.stdin_once);
  out.set_tty(in.tty);
  out.set_stop_signal(SignalToWire(in.stop_signal));
  ToWire(in.resources, *out.mutable_linux()->mutable_resources());
  SecurityToWire(in, *out.mutable_linux()->mutable_security_context());
}

void ToWire(const AuthConfig& in, v1::AuthConfig& out) {
  out.set_username(in.username);
  out.set_password(in.password);
  out.set_auth(in.auth);
  out.set_server_address(in.server_address);
  out.set_identity_token(in.identity_token);
  out.set_registry_token(in.registry_token);
}

}  // namespace keelson::kubelet::cri

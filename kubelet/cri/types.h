// Plain values for the part of CRI v1 that the kubelet uses. Without protobuf, so that the rest of the kubelet compiles
// without it; convert.h maps them to the wire.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace keelson::kubelet::cri {

using Labels = std::map<std::string, std::string>;

enum class NamespaceMode { kPod = 0, kContainer = 1, kNode = 2, kTarget = 3 };

// A range of user or group ids, as seen inside and on the host.
struct IdMapping {
  uint32_t host_id = 0, container_id = 0, length = 0;
  bool operator==(const IdMapping&) const = default;
};

struct NamespaceOptions {
  NamespaceMode network = NamespaceMode::kPod;
  NamespaceMode pid = NamespaceMode::kContainer;
  NamespaceMode ipc = NamespaceMode::kPod;
  std::string target_id;              // of kTarget
  std::optional<IdMapping> user_ids;  // a user namespace of the pod's own; users and groups alike
};

struct SecurityProfile {
  enum class Type { kRuntimeDefault = 0, kUnconfined = 1, kLocalhost = 2 };
  Type type = Type::kRuntimeDefault;
  std::string localhost_ref;
};

struct SeLinuxOptions {
  std::string user, role, type, level;
};

// Zero means "not set", as on the wire.
struct LinuxResources {
  int64_t cpu_period = 0, cpu_quota = 0, cpu_shares = 0;
  int64_t memory_limit_bytes = 0;
  int64_t memory_swap_limit_bytes = 0;  // memory and swap together; v1 only, v2 goes by `unified`
  int64_t oom_score_adj = 0;
  std::string cpuset_cpus, cpuset_mems;
  std::map<std::string, uint64_t> hugepage_limits;  // page size -> bytes
  std::map<std::string, std::string> unified;
};

struct PortMapping {
  enum class Protocol { kTcp = 0, kUdp = 1, kSctp = 2 };
  Protocol protocol = Protocol::kTcp;
  int32_t container_port = 0, host_port = 0;
  std::string host_ip;
};

struct SandboxMetadata {
  std::string name, uid, ns;
  uint32_t attempt = 0;
};

struct SandboxConfig {
  SandboxMetadata metadata;
  std::string hostname, log_directory;
  std::vector<std::string> dns_servers, dns_searches, dns_options;
  std::vector<PortMapping> port_mappings;
  Labels labels, annotations;
  // linux
  std::string cgroup_parent;
  std::map<std::string, std::string> sysctls;
  NamespaceOptions namespaces;
  std::optional<int64_t> run_as_user, run_as_group;
  bool readonly_rootfs = false;
  bool privileged = false;
  std::vector<int64_t> supplemental_groups;
  bool strict_supplemental_groups = false;
  std::optional<SecurityProfile> seccomp;
  std::optional<SeLinuxOptions> selinux;
  LinuxResources resources, overhead;
};

struct Mount {
  enum class Propagation { kPrivate = 0, kHostToContainer = 1, kBidirectional = 2 };
  std::string container_path, host_path;
  bool readonly = false;
  bool recursive_read_only = false;
  Propagation propagation = Propagation::kPrivate;
  bool selinux_relabel = false;
  std::optional<IdMapping> user_ids;  // files appear with the ids of the pod's user namespace
  std::string image, image_sub_path;  // an image volume instead of host_path
};

struct Device {
  std::string container_path, host_path, permissions;
};

struct ContainerConfig {
  std::string name;
  uint32_t attempt = 0;
  std::string image;                 // what to run: the reference that the image service gave
  std::string user_specified_image;  // as the Pod names it
  std::vector<std::string> command, args;
  std::string working_dir;
  std::vector<std::pair<std::string, std::string>> envs;
  std::vector<Mount> mounts;
  std::vector<Device> devices;
  std::vector<std::string> cdi_devices;  // fully qualified: vendor.example/class=name
  Labels labels, annotations;
  std::string log_path;  // relative to the sandbox's log_directory
  bool stdin_open = false, stdin_once = false, tty = false;
  std::string stop_signal;  // SIGUSR1; empty is the image's, or the runtime's default
  // linux
  LinuxResources resources;
  std::vector<std::string> add_capabilities, drop_capabilities;
  bool privileged = false;
  NamespaceOptions namespaces;
  std::optional<SeLinuxOptions> selinux;
  std::optional<int64_t> run_as_user, run_as_group;
  std::string run_as_username;
  bool readonly_rootfs = false;
  std::vector<int64_t> supplemental_groups;
  bool strict_supplemental_groups = false;
  bool no_new_privs = false;
  std::vector<std::string> masked_paths, readonly_paths;
  std::optional<SecurityProfile> seccomp, apparmor;
};

enum class SandboxState { kReady, kNotReady };
enum class ContainerState { kCreated, kRunning, kExited, kUnknown };

// Times are nanoseconds since the epoch, 0 when the thing has not happened.
struct Sandbox {  // as listed
  std::string id;
  SandboxMetadata metadata;
  SandboxState state = SandboxState::kNotReady;
  int64_t created_at = 0;
  Labels labels;
};

struct SandboxStatus {
  std::string id;
  SandboxMetadata metadata;
  SandboxState state = SandboxState::kNotReady;
  int64_t created_at = 0;
  std::vector<std::string> ips;
  NamespaceMode network = NamespaceMode::kPod;
  Labels labels, annotations;
};

struct Container {  // as listed
  std::string id, sandbox_id, name;
  uint32_t attempt = 0;
  std::string image, image_ref;
  ContainerState state = ContainerState::kUnknown;
  int64_t created_at = 0;
  Labels labels, annotations;
};

struct ContainerStatus {
  std::string id, name;
  uint32_t attempt = 0;
  ContainerState state = ContainerState::kUnknown;
  int64_t created_at = 0, started_at = 0, finished_at = 0;
  int32_t exit_code = 0;
  std::string image;      // as the Pod names it
  std::string image_ref;  // repository digest, or the image's id
  std::string image_id;
  std::string reason, message;
  Labels labels, annotations;
  std::vector<Mount> mounts;
  std::string log_path;
  std::string stop_signal;  // SIGTERM; empty: the runtime does not report it
  struct User {
    int64_t uid = 0, gid = 0;
    std::vector<int64_t> supplemental_groups;
  };
  std::optional<User> user;  // of the first process
};

struct Filter {
  std::string id, sandbox_id;  // sandbox_id: of containers only
  Labels labels;
};

struct ExecResult {
  std::string output;  // stdout, then stderr
  int32_t exit_code = 0;
};

struct ExecOptions {
  bool in = false, out = true, err = true, tty = false;
};

struct Image {
  std::string id;
  std::vector<std::string> repo_tags, repo_digests;
  uint64_t size = 0;
  std::optional<int64_t> uid;
  std::string username;
  bool pinned = false;
};

struct AuthConfig {
  std::string username, password, auth, server_address, identity_token, registry_token;
};

struct FilesystemUsage {
  std::string mountpoint;
  uint64_t used_bytes = 0, inodes_used = 0;
};

// `containers` holds their writable layers; the same as `images` on most runtimes.
struct ImageFilesystems {
  std::vector<FilesystemUsage> images, containers;
};

struct Version {
  std::string name, version, api_version;
};

struct RuntimeCondition {
  std::string type;  // RuntimeReady, NetworkReady
  bool status = false;
  std::string reason, message;
};

struct RuntimeHandler {
  std::string name;
  bool recursive_read_only_mounts = false, user_namespaces = false;
};

struct RuntimeStatus {
  std::vector<RuntimeCondition> conditions;
  std::vector<RuntimeHandler> handlers;
  bool supplemental_groups_policy = false;
};

// A container (or its sandbox, when the ids are equal) has changed.
struct ContainerEvent {
  enum class Type { kCreated, kStarted, kStopped, kDeleted };
  std::string container_id;
  Type type = Type::kCreated;
  std::string pod_uid;  // empty: not reported; lists may show the change a moment later
};

// Usage, from the runtime; nullopt: it does not report it.
struct ContainerStats {
  std::string id, name;
  Labels labels;
  int64_t timestamp = 0;
  std::optional<uint64_t> cpu_usage_core_nanos, memory_usage_bytes, memory_working_set_bytes,
      memory_rss_bytes, writable_layer_bytes;
};

}  // namespace keelson::kubelet::cri

// What the runtime tells.
#include <algorithm>
#include <csignal>

#include "kubelet/cri/convert.h"

namespace keelson::kubelet::cri {

namespace v1 = runtime::v1;

namespace {

template <typename Map>
Labels CopyFrom(const Map& in) {
  return Labels(in.begin(), in.end());
}

std::string SignalFromWire(v1::Signal signal) {
  std::string name = v1::Signal_Name(signal);
  if (name.compare(0, 7, "SIGNAL_") != 0) return "";
  name = "SIG" + name.substr(7);
  if (size_t plus = name.find("PLUS"); plus != std::string::npos) name.replace(plus, 4, "+");
  if (size_t minus = name.find("MINUS"); minus != std::string::npos) name.replace(minus, 5, "-");
  return name;
}

SandboxMetadata Metadata(const v1::PodSandboxMetadata& in) {
  return {in.name(), in.uid(), in.namespace_(), in.attempt()};
}

SandboxState State(v1::PodSandboxState state) {
  return state == v1::SANDBOX_READY ? SandboxState::kReady : SandboxState::kNotReady;
}

ContainerState State(v1::ContainerState state) {
  switch (state) {
    case v1::CONTAINER_CREATED:
      return ContainerState::kCreated;
    case v1::CONTAINER_RUNNING:
      return ContainerState::kRunning;
    case v1::CONTAINER_EXITED:
      return ContainerState::kExited;
    default:
      return ContainerState::kUnknown;
  }
}

template <typename Value>
std::optional<uint64_t> Number(bool has, const Value& value) {
  if (!has) return std::nullopt;
  return value.value();
}

std::vector<FilesystemUsage> Filesystems(
    const google::protobuf::RepeatedPtrField<v1::FilesystemUsage>& systems) {
  std::vector<FilesystemUsage> out;
  for (const auto& item : systems) {
    out.push_back({item.fs_id().mountpoint(), item.used_bytes().value(), item.inodes_used().value()});
  }
  return out;
}

// CRI-O writes Go's zero time, of year 1, for what has not happened.
int64_t Happened(int64_t nanos) { return std::max<int64_t>(nanos, 0); }

}  // namespace

Sandbox FromWire(const v1::PodSandbox& in) {
  return {in.id(), Metadata(in.metadata()), State(in.state()), in.created_at(), CopyFrom(in.labels())};
}

SandboxStatus FromWire(const v1::PodSandboxStatus& in) {
  SandboxStatus out;
  out.id = in.id();
  out.metadata = Metadata(in.metadata());
  out.state = State(in.state());
  out.created_at = in.created_at();
  if (!in.network().ip().empty()) out.ips.push_back(in.network().ip());
  for (const auto& ip : in.network().additional_ips()) out.ips.push_back(ip.ip());
  out.network = static_cast<NamespaceMode>(in.linux().namespaces().options().network());
  out.labels = CopyFrom(in.labels());
  out.annotations = CopyFrom(in.annotations());
  return out;
}

Container FromWire(const v1::Container& in) {
  Container out;
  out.id = in.id();
  out.sandbox_id = in.pod_sandbox_id();
  out.name = in.metadata().name();
  out.attempt = in.metadata().attempt();
  out.image = in.image().image();
  out.image_ref = in.image_ref();
  out.state = State(in.state());
  out.created_at = in.created_at();
  out.labels = CopyFrom(in.labels());
  out.annotations = CopyFrom(in.annotations());
  return out;
}

ContainerStatus FromWire(const v1::ContainerStatus& in) {
  ContainerStatus out;
  out.id = in.id();
  out.name = in.metadata().name();
  out.attempt = in.metadata().attempt();
  out.state = State(in.state());
  out.created_at = Happened(in.created_at());
  out.started_at = Happened(in.started_at());
  out.finished_at = Happened(in.finished_at());
  out.exit_code = in.exit_code();
  out.image =
      in.image().user_specified_image().empty() ? in.image().image() : in.image().user_specified_image();
  out.image_ref = in.image_ref();
  out.image_id = in.image_id();
  out.reason = in.reason();
  out.message = in.message();
  out.labels = CopyFrom(in.labels());
  out.annotations = CopyFrom(in.annotations());
  for (const auto& mount : in.mounts()) {
    Mount item;
    item.container_path = mount.container_path();
    item.host_path = mount.host_path();
    item.readonly = mount.readonly();
    item.image = mount.image().image();
    out.mounts.push_back(std::move(item));
  }
  out.log_path = in.log_path();
  out.stop_signal = SignalFromWire(in.stop_signal());
  if (in.user().has_linux()) {
    const auto& user = in.user().linux();
    out.user = ContainerStatus::User{
        user.uid(), user.gid(), {user.supplemental_groups().begin(), user.supplemental_groups().end()}};
  }
  return out;
}

void SetOomKilled(const std::function<bool(const std::string& id)>& oom_killed, ContainerStatus& status) {
  constexpr int kKilled = 128 + SIGKILL;
  const bool unexplained = status.reason.empty() || status.reason == "Error";
  if (status.state != ContainerState::kExited || status.exit_code != kKilled || !unexplained) return;
  if (oom_killed && oom_killed(status.id)) status.reason = "OOMKilled";
}

Image FromWire(const v1::Image& in) {
  Image out;
  out.id = in.id();
  out.repo_tags.assign(in.repo_tags().begin(), in.repo_tags().end());
  out.repo_digests.assign(in.repo_digests().begin(), in.repo_digests().end());
  out.size = in.size();
  if (in.has_uid()) out.uid = in.uid().value();
  out.username = in.username();
  out.pinned = in.pinned();
  return out;
}

RuntimeStatus FromWire(const v1::StatusResponse& in) {
  RuntimeStatus out;
  for (const auto& condition : in.status().conditions()) {
    out.conditions.push_back({condition.type(), condition.status(), condition.reason(), condition.message()});
  }
  for (const auto& handler : in.runtime_handlers()) {
    out.handlers.push_back({handler.name(), handler.features().recursive_read_only_mounts(),
                            handler.features().user_namespaces()});
  }
  out.supplemental_groups_policy = in.features().supplemental_groups_policy();
  return out;
}

ContainerEvent FromWire(const v1::ContainerEventResponse& in) {
  return {in.container_id(), static_cast<ContainerEvent::Type>(in.container_event_type()),
          in.pod_sandbox_status().metadata().uid()};
}

ContainerStats FromWire(const v1::ContainerStats& in) {
  ContainerStats out;
  out.id = in.attributes().id();
  out.name = in.attributes().metadata().name();
  out.labels = CopyFrom(in.attributes().labels());
  out.timestamp = in.cpu().timestamp();
  out.cpu_usage_core_nanos =
      Number(in.cpu().has_usage_core_nano_seconds(), in.cpu().usage_core_nano_seconds());
  out.memory_usage_bytes = Number(in.memory().has_usage_bytes(), in.memory().usage_bytes());
  out.memory_working_set_bytes = Number(in.memory().has_working_set_bytes(), in.memory().working_set_bytes());
  out.memory_rss_bytes = Number(in.memory().has_rss_bytes(), in.memory().rss_bytes());
  out.writable_layer_bytes = Number(in.writable_layer().has_used_bytes(), in.writable_layer().used_bytes());
  return out;
}

ImageFilesystems FromWire(const v1::ImageFsInfoResponse& in) {
  ImageFilesystems out{Filesystems(in.image_filesystems()), Filesystems(in.container_filesystems())};
  if (out.containers.empty()) out.containers = out.images;  // containerd before 1.7 reports images only
  return out;
}

}  // namespace keelson::kubelet::cri

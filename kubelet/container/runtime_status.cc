#include "kubelet/container/runtime_status.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <tuple>

#include "kubelet/container/labels.h"
#include "kubelet/metrics/buckets.h"
#include "kubelet/metrics/stopwatch.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

std::string ValueOf(const cri::Labels& labels, const char* key) {
  auto it = labels.find(key);
  return it == labels.end() ? std::string() : it->second;
}

// A start that failed before there was a process to run, for the runtime's own reasons. That is no run, and
// no failure of the container. containerd gives a start up when its caller goes, as a kubelet does that is
// killed or restarted, and ends what there may be of a process by then. And where a busy shim has not said
// for 2 s what a sandbox's process is, containerd makes the container with the namespaces of process 0, which
// the start does not find.
// Half a start that containerd 1.6 has kept is killed by the next kubelet (PodSyncTask::ForgetUnstarted).
bool IsAbandonedStart(const cri::ContainerStatus& status) {
  constexpr int kKilled = 128 + SIGKILL;
  if (status.state != cri::ContainerState::kExited || status.started_at != 0) return false;
  if (status.reason != "StartError") return status.exit_code == kKilled && status.reason != "OOMKilled";
  auto says = [&](const char* text) { return status.message.find(text) != std::string::npos; };
  return (says("failed to create") && (says("context canceled") || says("start failed: : signal: killed") ||
                                       says("lstat /proc/0/ns/"))) ||
         (says("failed to start containerd task") && says("context canceled"));
}

ContainerRecord Record(cri::ContainerStatus status, const std::string& sandbox_id) {
  ContainerRecord record;
  static_cast<cri::ContainerStatus&>(record) = std::move(status);
  if (IsAbandonedStart(record)) record.state = cri::ContainerState::kCreated;
  record.sandbox_id = sandbox_id;
  if (std::string name = ValueOf(record.labels, kContainerNameLabel); !name.empty()) record.name = name;
  record.restart_count = std::atoi(ValueOf(record.annotations, kRestartCountAnnotation).c_str());
  record.hash = ValueOf(record.annotations, kHashAnnotation);
  return record;
}

int AttemptOf(const ContainerRecord& record) { return record.restart_count; }
int AttemptOf(const cri::SandboxStatus& status) { return static_cast<int>(status.metadata.attempt); }

// By their numbers first: times come from a clock that somebody may have set back in between.
template <typename T>
void NewestFirst(std::vector<T>& items) {
  std::sort(items.begin(), items.end(), [](const T& a, const T& b) {
    return std::make_tuple(AttemptOf(a), a.created_at) > std::make_tuple(AttemptOf(b), b.created_at);
  });
}

Result<> InspectSandboxes(cri::RuntimeService& runtime, const cri::Filter& filter,
                          const PodRuntimeStatus* previous, std::stop_token stop, PodRuntimeStatus& out) {
  KEELSON_ASSIGN_OR_RETURN(auto sandboxes, runtime.ListPodSandbox(filter, stop));
  for (const cri::Sandbox& sandbox : sandboxes) {
    const cri::SandboxStatus* known = nullptr;
    if (previous) {
      for (const auto& item : previous->sandboxes) {
        if (item.id == sandbox.id && item.state == sandbox.state) known = &item;
      }
    }
    if (known && (!known->ips.empty() || known->network == cri::NamespaceMode::kNode ||
                  known->state == cri::SandboxState::kNotReady)) {
      out.sandboxes.push_back(*known);
      continue;
    }
    auto status = runtime.PodSandboxStatus(sandbox.id, stop);
    if (!status && status.error().Is(Code::kNotFound)) continue;  // removed since the list
    if (!status) return status.error();
    out.sandboxes.push_back(std::move(*status));
  }
  NewestFirst(out.sandboxes);
  return {};
}

Result<> InspectContainers(cri::RuntimeService& runtime, const cri::Filter& filter,
                           const PodRuntimeStatus* previous, std::stop_token stop, PodRuntimeStatus& out) {
  KEELSON_ASSIGN_OR_RETURN(auto containers, runtime.ListContainers(filter, stop));
  for (const cri::Container& container : containers) {
    const ContainerRecord* known = previous ? previous->ById(container.id) : nullptr;
    if (known && known->state == container.state &&
        (known->state == cri::ContainerState::kExited || known->state == cri::ContainerState::kRunning)) {
      out.containers.push_back(*known);
      continue;
    }
    auto status = runtime.GetContainerStatus(container.id, stop);
    if (!status && status.error().Is(Code::kNotFound)) continue;
    if (!status) return status.error();
    out.containers.push_back(Record(std::move(*status), container.sandbox_id));
  }
  NewestFirst(out.containers);
  return {};
}

}  // namespace

const cri::SandboxStatus* PodRuntimeStatus::ReadySandbox() const {
  if (sandboxes.empty() || sandboxes.front().state != cri::SandboxState::kReady) return nullptr;
  return &sandboxes.front();
}

const ContainerRecord* PodRuntimeStatus::Latest(std::string_view wanted) const {
  for (const ContainerRecord& record : containers) {
    if (record.name == wanted) return &record;
  }
  return nullptr;
}

const ContainerRecord* PodRuntimeStatus::Previous(std::string_view wanted) const {
  bool first = true;
  for (const ContainerRecord& record : containers) {
    if (record.name != wanted) continue;
    if (!first) return &record;
    first = false;
  }
  return nullptr;
}

const ContainerRecord* PodRuntimeStatus::ById(std::string_view id) const {
  for (const ContainerRecord& record : containers) {
    if (record.id == id) return &record;
  }
  return nullptr;
}

bool PodRuntimeStatus::AnyRunning() const {
  return std::any_of(containers.begin(), containers.end(), [](const ContainerRecord& record) {
    return record.state == cri::ContainerState::kRunning || record.state == cri::ContainerState::kUnknown;
  });
}

std::vector<std::string> PodRuntimeStatus::Ips() const {
  const cri::SandboxStatus* sandbox = ReadySandbox();
  return sandbox ? sandbox->ips : std::vector<std::string>();
}

std::vector<std::string> PodIps(const corev1::PodSpec& spec, const PodRuntimeStatus& runtime,
                                const std::vector<std::string>& node_ips) {
  return spec.host_network() ? node_ips : runtime.Ips();
}

Fingerprint FingerprintOf(const PodRuntimeStatus& status) {
  Fingerprint out;
  for (const auto& sandbox : status.sandboxes) out[sandbox.id] = static_cast<int>(sandbox.state);
  for (const auto& container : status.containers) out[container.id] = static_cast<int>(container.state);
  return out;
}

std::string EndReason(const ContainerRecord& record) {
  if (!record.reason.empty()) return record.reason;
  return record.exit_code == 0 ? "Completed" : "Error";
}

Result<PodRuntimeStatus> InspectPod(cri::RuntimeService& runtime, const std::string& uid,
                                    const PodRuntimeStatus* previous, std::stop_token stop) {
  static metrics::Histogram& duration =
      metrics::Histograms("kubelet_pleg_pod_relist_duration_seconds",
                          "Duration in seconds for relisting a single pod in PLEG.", DefaultBuckets())
          .HistogramWith();
  const Stopwatch watch;
  PodRuntimeStatus out;
  out.uid = uid;
  cri::Filter filter;
  filter.labels[kPodUidLabel] = uid;
  KEELSON_RETURN_IF_ERROR(InspectSandboxes(runtime, filter, previous, stop, out));
  KEELSON_RETURN_IF_ERROR(InspectContainers(runtime, filter, previous, stop, out));
  if (!out.sandboxes.empty()) {
    out.name = out.sandboxes.front().metadata.name;
    out.ns = out.sandboxes.front().metadata.ns;
  } else if (!out.containers.empty()) {
    out.name = ValueOf(out.containers.front().labels, kPodNameLabel);
    out.ns = ValueOf(out.containers.front().labels, kPodNamespaceLabel);
  }
  duration.Observe(watch.Seconds());
  return out;
}

Result<PodRuntimeStatus> WithSandbox(cri::RuntimeService& runtime, PodRuntimeStatus known,
                                     const std::string& id, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(cri::SandboxStatus made, runtime.PodSandboxStatus(id, stop));
  known.name = made.metadata.name;
  known.ns = made.metadata.ns;
  known.sandboxes.push_back(std::move(made));
  NewestFirst(known.sandboxes);
  return known;
}

Result<PodRuntimeStatus> WithContainers(cri::RuntimeService& runtime, PodRuntimeStatus known,
                                        const std::string& sandbox_id, const std::vector<std::string>& ids,
                                        std::stop_token stop) {
  for (const std::string& id : ids) {
    auto status = runtime.GetContainerStatus(id, stop);
    if (!status && status.error().Is(Code::kNotFound)) continue;
    if (!status) return status.error();
    known.containers.push_back(Record(std::move(*status), sandbox_id));
  }
  NewestFirst(known.containers);
  return known;
}

}  // namespace keelson::kubelet

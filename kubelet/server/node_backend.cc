#include "kubelet/server/node_backend.h"

#include <algorithm>

#include "kubelet/cm/topology/machine_topology.h"
#include "kubelet/container/labels.h"
#include "kubelet/node/machine.h"
#include "kubelet/stats/summary.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/file.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

bool HasContainer(const corev1::PodSpec& spec, const std::string& name) {
  if (k8s::FindContainer(spec, name)) return true;
  return std::any_of(spec.ephemeral_containers().begin(), spec.ephemeral_containers().end(),
                     [&](const auto& item) { return item.ephemeral_container_common().name() == name; });
}

std::string LabelOf(const cri::Labels& labels, const char* name) {
  auto it = labels.find(name);
  return it == labels.end() ? "" : it->second;
}

// Read once: it stays as it is for as long as the machine is up.
const MachineFacts& MachineOf(const std::string& root_dir) {
  static const MachineFacts facts = [&] {
    Machine machine = ReadMachine(root_dir);
    MachineFacts out{machine.cpus,
                     0,
                     0,
                     std::move(machine.machine_id),
                     std::move(machine.system_uuid),
                     std::move(machine.boot_id),
                     std::move(machine.kernel_version),
                     std::move(machine.os_image)};
    if (auto topology = MachineTopology::Read(machine.memory_bytes)) {
      out.cores = topology->Cores();
      out.sockets = topology->Sockets();
    }
    return out;
  }();
  return facts;
}

}  // namespace

std::string Backend::PodsJson() {
  corev1::PodList list;
  for (const auto& pod : workers_.Pods()) {
    corev1::Pod& item = *list.add_items();
    item = *pod;
    if (auto status = statuses_.Get(pod->metadata().uid())) *item.mutable_status() = std::move(*status);
  }
  return api::EncodeJson(list, {"", "v1", "PodList"});
}

Result<Backend::Target> Backend::Find(const server::ContainerRef& ref, std::stop_token stop) {
  PodWorkers::PodPtr pod = workers_.Find(ref.pod_namespace, ref.pod_name);
  if (!pod) return Error(Code::kNotFound, "pod does not exist");
  if (!ref.pod_uid.empty() && pod->metadata().uid() != ref.pod_uid) {
    return Error(Code::kNotFound, "pod not found");
  }
  auto known = workers_.RuntimeStatus(pod->metadata().uid());
  KEELSON_ASSIGN_OR_RETURN(PodRuntimeStatus runtime,
                           InspectPod(runtime_, pod->metadata().uid(), known.get(), stop));
  return Target{std::move(pod), std::move(runtime)};
}

Result<server::LogSource> Backend::ContainerLog(const server::ContainerRef& ref, bool previous) {
  PodWorkers::PodPtr pod = workers_.Find(ref.pod_namespace, ref.pod_name);
  if (!pod) return Error(Code::kNotFound, "pod \"" + ref.pod_name + "\" does not exist");
  if (!HasContainer(pod->spec(), ref.container)) {
    return Error(Code::kNotFound,
                 "container \"" + ref.container + "\" not found in pod \"" + ref.pod_name + "\"");
  }
  KEELSON_ASSIGN_OR_RETURN(Target target, Find(ref, {}));
  const ContainerRecord* record = target.runtime.Latest(ref.container);
  // A container that has been made and not begun yet has nothing to say; its last run has.
  if (!previous && record && record->state == cri::ContainerState::kCreated) {
    if (const ContainerRecord* last = target.runtime.Previous(ref.container)) record = last;
  }
  if (previous) {
    record = target.runtime.Previous(ref.container);
    if (!record) {
      return Error(Code::kBadRequest, "previous terminated container \"" + ref.container + "\" in pod \"" +
                                          ref.pod_name + "\" not found");
    }
  }
  if (!record) {
    std::string reason = "ContainerCreating";
    if (auto status = statuses_.Get(target.pod->metadata().uid())) {
      if (const auto* container = k8s::FindContainerStatus(*status, ref.container)) {
        if (container->state().has_waiting()) reason = container->state().waiting().reason();
      }
    }
    const std::string why = reason == "ErrImagePull"       ? "image can't be pulled"
                            : reason == "ImagePullBackOff" ? "trying and failing to pull image"
                                                           : reason;
    return Error(Code::kBadRequest, "container \"" + ref.container + "\" in pod \"" + ref.pod_name +
                                        "\" is waiting to start: " + why);
  }
  return server::LogSource{record->log_path, record->state == cri::ContainerState::kRunning};
}

Result<ContainerRecord> Backend::Running(const server::ContainerRef& ref, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(Target target, Find(ref, stop));
  const ContainerRecord* record = target.runtime.Latest(ref.container);
  // kubectl shows this text to people who ask too early or too late.
  if (!record || record->state != cri::ContainerState::kRunning) {
    return Error(Code::kInternal, "container not found (\"" + ref.container + "\")");
  }
  return *record;
}

Result<std::string> Backend::ExecUrl(const server::ContainerRef& ref, const server::ExecRequest& request,
                                     std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(ContainerRecord record, Running(ref, stop));
  return runtime_.Exec(record.id, request.command, {request.in, request.out, request.err, request.tty}, stop);
}

Result<std::string> Backend::AttachUrl(const server::ContainerRef& ref, const server::ExecRequest& request,
                                       std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(ContainerRecord record, Running(ref, stop));
  return runtime_.Attach(record.id, {request.in, request.out, request.err, request.tty}, stop);
}

Result<std::string> Backend::PortForwardUrl(const server::ContainerRef& ref,
                                            const std::vector<int32_t>& ports, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(Target target, Find(ref, stop));
  const cri::SandboxStatus* sandbox = target.runtime.ReadySandbox();
  if (!sandbox) {
    return Error(Code::kInternal, "pod not found (\"" + ref.pod_name + "_" + ref.pod_namespace + "\")");
  }
  return runtime_.PortForward(sandbox->id, ports, stop);
}

Result<server::RunResult> Backend::Run(const server::ContainerRef& ref,
                                       const std::vector<std::string>& command, std::chrono::seconds timeout,
                                       std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(ContainerRecord record, Running(ref, stop));
  KEELSON_ASSIGN_OR_RETURN(cri::ExecResult result, runtime_.ExecSync(record.id, command, timeout, stop));
  return server::RunResult{result.exit_code, std::move(result.output)};
}

Result<std::string> Backend::StatsSummaryJson(bool brief) {
  KEELSON_ASSIGN_OR_RETURN(StatsSnapshot stats, stats_.Collect({.usage = true, .files = !brief}, {}));
  return SummaryJson(stats, node_name_, brief);
}

Result<std::string> Backend::ResourceMetrics() {
  KEELSON_ASSIGN_OR_RETURN(StatsSnapshot stats, stats_.CollectUse({}));
  return ResourceMetricsText(stats);
}

Result<std::string> Backend::CadvisorMetrics() {
  KEELSON_ASSIGN_OR_RETURN(StatsSnapshot stats, stats_.Collect({.usage = true, .accounts = true}, {}));
  return CadvisorMetricsText(stats, MachineOf(settings_.flags.root_dir));
}

// As the runtime knows them, whoever asked for them.
std::string Backend::RunningPodsJson() {
  corev1::PodList list;
  auto containers = runtime_.ListContainers({}, {});
  std::map<std::string, corev1::Pod*> pods;
  for (const cri::Container& container : containers ? *containers : std::vector<cri::Container>()) {
    if (container.state != cri::ContainerState::kRunning) continue;
    const std::string uid = LabelOf(container.labels, kPodUidLabel);
    corev1::Pod*& pod = pods[uid];
    if (!pod) {
      pod = list.add_items();
      pod->mutable_metadata()->set_name(LabelOf(container.labels, kPodNameLabel));
      pod->mutable_metadata()->set_namespace_(LabelOf(container.labels, kPodNamespaceLabel));
      pod->mutable_metadata()->set_uid(uid);
    }
    corev1::Container& item = *pod->mutable_spec()->add_containers();
    item.set_name(container.name);
    item.set_image(container.image);
  }
  return api::EncodeJson(list, {"", "v1", "PodList"});
}

Result<std::string> Backend::Checkpoint(const server::ContainerRef& ref, std::stop_token stop) {
  PodWorkers::PodPtr pod = workers_.Find(ref.pod_namespace, ref.pod_name);
  if (pod && !HasContainer(pod->spec(), ref.container)) {
    return Error(Code::kNotFound, "container " + ref.container + " does not exist");
  }
  KEELSON_ASSIGN_OR_RETURN(ContainerRecord record, Running(ref, stop));
  const std::string directory = settings_.flags.root_dir + "/checkpoints";
  KEELSON_RETURN_IF_ERROR(MakeDirs(directory, 0700));
  const std::string archive =
      fmt::format("{}/checkpoint-{}_{}-{}-{}.tar", directory, ref.pod_name, ref.pod_namespace, ref.container,
                  api::FormatTime(api::ToTime(Clock::Real().Now())));
  auto made = runtime_.CheckpointContainer(record.id, archive, stop);
  if (made) return archive;
  return Error(Code::kInternal, fmt::format("checkpointing of {}/{}/{} failed ({})", ref.pod_namespace,
                                            ref.pod_name, ref.container, made.error().message()));
}

std::string Backend::ConfigzJson() { return kubelet::ConfigzJson(settings_.config); }

}  // namespace keelson::kubelet

#include "kubelet/backend.h"

#include <algorithm>
#include <boost/json.hpp>

#include "kubelet/container/labels.h"
#include "lib/api/codec.h"
#include "lib/api/meta.h"
#include "lib/k8s/pod_util.h"

namespace keelson::kubelet {

namespace json = boost::json;

namespace {

bool HasContainer(const corev1::PodSpec& spec, const std::string& name) {
  if (k8s::FindContainer(spec, name)) return true;
  return std::any_of(spec.ephemeral_containers().begin(), spec.ephemeral_containers().end(),
                     [&](const auto& item) { return item.ephemeral_container_common().name() == name; });
}

std::string TimeText(int64_t nanos) {
  return api::FormatTime(
      api::ToTime(WallTime(std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(nanos)))));
}

std::string LabelOf(const cri::Labels& labels, const char* name) {
  auto it = labels.find(name);
  return it == labels.end() ? "" : it->second;
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
  if (!pod || (!ref.pod_uid.empty() && pod->metadata().uid() != ref.pod_uid))
    return Error(Code::kNotFound, "pod \"" + ref.pod_name + "\" does not exist");
  if (!ref.container.empty() && !HasContainer(pod->spec(), ref.container))
    return Error(Code::kNotFound, "container \"" + ref.container + "\" not found in pod \"" + ref.pod_name +
                                      "_" + ref.pod_namespace + "\"");
  auto known = workers_.Runtime(pod->metadata().uid());
  ASSIGN_OR_RETURN(PodRuntimeStatus runtime,
                   InspectPod(runtime_, pod->metadata().uid(), known ? &*known : nullptr, stop));
  return Target{std::move(pod), std::move(runtime)};
}

Result<server::LogSource> Backend::ContainerLog(const server::ContainerRef& ref, bool previous) {
  ASSIGN_OR_RETURN(Target target, Find(ref, {}));
  const ContainerRecord* record = target.runtime.Latest(ref.container);
  // A container that has been made and not begun yet has nothing to say; its last run has.
  if (!previous && record && record->state == cri::ContainerState::kCreated)
    if (const ContainerRecord* last = target.runtime.Previous(ref.container)) record = last;
  if (previous) {
    record = target.runtime.Previous(ref.container);
    if (!record)
      return Error(Code::kBadRequest, "previous terminated container \"" + ref.container + "\" in pod \"" +
                                          ref.pod_name + "\" not found");
  }
  if (!record) {
    std::string reason = "ContainerCreating";
    if (auto status = statuses_.Get(target.pod->metadata().uid()))
      if (const auto* container = k8s::FindContainerStatus(*status, ref.container))
        if (container->state().has_waiting()) reason = container->state().waiting().reason();
    bool pulls = reason == "ErrImagePull" || reason == "ImagePullBackOff" || reason == "ErrImageNeverPull";
    std::string why = reason == "ErrImagePull"       ? "image can't be pulled"
                      : reason == "ImagePullBackOff" ? "trying and failing to pull image"
                      : pulls                        ? "image is not present"
                                                     : reason;
    return Error(Code::kBadRequest, "container \"" + ref.container + "\" in pod \"" + ref.pod_name +
                                        "\" is waiting to start: " + why);
  }
  return server::LogSource{record->log_path, record->state == cri::ContainerState::kRunning};
}

Result<ContainerRecord> Backend::Running(const server::ContainerRef& ref, std::stop_token stop) {
  ASSIGN_OR_RETURN(Target target, Find(ref, stop));
  const ContainerRecord* record = target.runtime.Latest(ref.container);
  if (!record) return Error(Code::kNotFound, "container not found (\"" + ref.container + "\")");
  if (record->state != cri::ContainerState::kRunning)
    return Error(Code::kBadRequest, "container " + ref.container + " is not running");
  return *record;
}

Result<std::string> Backend::ExecUrl(const server::ContainerRef& ref, const server::ExecRequest& request,
                                     std::stop_token stop) {
  ASSIGN_OR_RETURN(ContainerRecord record, Running(ref, stop));
  return runtime_.Exec(record.id, request.command, {request.in, request.out, request.err, request.tty}, stop);
}

Result<std::string> Backend::AttachUrl(const server::ContainerRef& ref, const server::ExecRequest& request,
                                       std::stop_token stop) {
  ASSIGN_OR_RETURN(ContainerRecord record, Running(ref, stop));
  return runtime_.Attach(record.id, {request.in, request.out, request.err, request.tty}, stop);
}

Result<std::string> Backend::PortForwardUrl(const server::ContainerRef& ref,
                                            const std::vector<int32_t>& ports, std::stop_token stop) {
  ASSIGN_OR_RETURN(Target target, Find(ref, stop));
  const cri::SandboxStatus* sandbox = target.runtime.ReadySandbox();
  if (!sandbox) return Error(Code::kBadRequest, "pod \"" + ref.pod_name + "\" is not running");
  return runtime_.PortForward(sandbox->id, ports, stop);
}

Result<server::RunResult> Backend::Run(const server::ContainerRef& ref,
                                       const std::vector<std::string>& command, std::chrono::seconds timeout,
                                       std::stop_token stop) {
  ASSIGN_OR_RETURN(ContainerRecord record, Running(ref, stop));
  ASSIGN_OR_RETURN(cri::ExecResult result, runtime_.ExecSync(record.id, command, timeout, stop));
  return server::RunResult{result.exit_code, std::move(result.output)};
}

Result<std::string> Backend::StatsSummaryJson() {
  ASSIGN_OR_RETURN(auto stats, runtime_.ListContainerStats({}, {}));
  std::map<std::string, json::array> by_pod;
  for (const auto& container : stats) {
    json::object item;
    std::string time = TimeText(container.timestamp);
    item["name"] = container.name;
    if (container.cpu_usage_core_nanos)
      item["cpu"] = {{"time", time}, {"usageCoreNanoSeconds", *container.cpu_usage_core_nanos}};
    json::object memory = {{"time", time}};
    if (container.memory_usage_bytes) memory["usageBytes"] = *container.memory_usage_bytes;
    if (container.memory_working_set_bytes) memory["workingSetBytes"] = *container.memory_working_set_bytes;
    if (container.memory_rss_bytes) memory["rssBytes"] = *container.memory_rss_bytes;
    item["memory"] = std::move(memory);
    by_pod[LabelOf(container.labels, kPodUidLabel)].push_back(std::move(item));
  }
  std::string now = api::FormatTime(api::ToTime(Clock::Real().Now()));
  json::array pods;
  for (const auto& pod : workers_.Pods()) {
    const metav1::ObjectMeta& meta = pod->metadata();
    json::object item;
    item["podRef"] = {{"name", meta.name()}, {"namespace", meta.namespace_()}, {"uid", meta.uid()}};
    item["startTime"] = api::FormatTime(pod->status().start_time());
    item["containers"] = by_pod[meta.uid()];
    linux::CgroupUsage usage = cgroups_.Usage(*pod);
    if (usage.cpu_nanos) item["cpu"] = {{"time", now}, {"usageCoreNanoSeconds", *usage.cpu_nanos}};
    if (usage.memory_bytes)
      item["memory"] = {{"time", now},
                        {"usageBytes", *usage.memory_bytes},
                        {"workingSetBytes", usage.memory_working_set_bytes.value_or(0)}};
    if (usage.processes) item["process_stats"] = {{"process_count", *usage.processes}};
    pods.push_back(std::move(item));
  }
  json::object summary = {{"node", {{"nodeName", node_name_}}}, {"pods", std::move(pods)}};
  return json::serialize(summary);
}

Result<std::string> Backend::ResourceMetrics() {
  ASSIGN_OR_RETURN(auto stats, runtime_.ListContainerStats({}, {}));
  std::string cpu =
      "# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in "
      "core-seconds\n# TYPE container_cpu_usage_seconds_total counter\n";
  std::string memory =
      "# HELP container_memory_working_set_bytes [STABLE] Current working set of the container in bytes\n"
      "# TYPE container_memory_working_set_bytes gauge\n";
  for (const auto& container : stats) {
    std::string labels =
        fmt::format("{{container=\"{}\",namespace=\"{}\",pod=\"{}\"}}", container.name,
                    LabelOf(container.labels, kPodNamespaceLabel), LabelOf(container.labels, kPodNameLabel));
    int64_t millis = container.timestamp / 1000000;
    if (container.cpu_usage_core_nanos)
      cpu += fmt::format("container_cpu_usage_seconds_total{} {} {}\n", labels,
                         static_cast<double>(*container.cpu_usage_core_nanos) / 1e9, millis);
    if (container.memory_working_set_bytes)
      memory += fmt::format("container_memory_working_set_bytes{} {} {}\n", labels,
                            *container.memory_working_set_bytes, millis);
  }
  return cpu + memory;
}

Result<std::string> Backend::CadvisorMetrics() { return ResourceMetrics(); }

std::string Backend::ConfigzJson() { return kubelet::ConfigzJson(config_); }

}  // namespace keelson::kubelet

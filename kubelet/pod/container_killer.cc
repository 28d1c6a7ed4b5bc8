#include "kubelet/pod/container_killer.h"

#include <algorithm>

#include "lib/k8s/pod_resources.h"
#include "lib/k8s/pod_util.h"

namespace keelson::kubelet {

using std::chrono::seconds;

namespace {

bool NeedsStop(const ContainerRecord& record) {
  return record.state == cri::ContainerState::kRunning || record.state == cri::ContainerState::kUnknown;
}

}  // namespace

Result<> ContainerKiller::Kill(const KillRequest& request, std::stop_token stop) {
  seconds left = request.grace;
  const corev1::Container* container =
      request.pod ? k8s::FindContainer(request.pod->spec(), request.container) : nullptr;
  if (request.pod)
    event_(*request.pod, request.container, "Normal", "Killing",
           request.event_message.empty() ? "Stopping container " + request.container : request.event_message);
  if (container && container->lifecycle().has_pre_stop() && left.count() > 0) {
    SteadyTime begin = clock_.SteadyNow();
    HandlerTarget target{request.pod->spec(), request.id, request.container, request.pod_ip};
    auto hook = handlers_.Run(container->lifecycle().pre_stop(), target, left, stop);
    if (!hook && !hook.error().Is(Code::kCancelled))
      event_(*request.pod, request.container, "Warning", "FailedPreStopHook",
             "PreStopHook failed: " + hook.error().message());
    left -= std::chrono::duration_cast<seconds>(clock_.SteadyNow() - begin);
    left = std::max(left, seconds(2));  // the process still gets its chance to end well
  }
  return runtime_.StopContainer(request.id, left, stop);
}

Result<> ContainerKiller::KillAll(std::vector<KillRequest> requests, std::stop_token stop) {
  std::vector<Result<>> results(requests.size());
  std::vector<std::function<void()>> tasks;
  for (size_t i = 0; i < requests.size(); ++i)
    tasks.push_back([this, &requests, &results, i, stop] { results[i] = Kill(requests[i], stop); });
  executor_.RunAll(std::move(tasks));
  for (Result<>& result : results)
    if (!result) return result;
  return {};
}

Result<> ContainerKiller::KillPod(const corev1::Pod* pod, const PodRuntimeStatus& runtime, seconds grace,
                                  std::stop_token stop) {
  std::vector<std::string> ips = runtime.Ips();
  std::vector<KillRequest> first;
  std::vector<std::vector<KillRequest>> sidecars;
  auto request = [&](const ContainerRecord& record) {
    return KillRequest{pod, record.id, record.name, ips.empty() ? "" : ips.front(), "", grace};
  };
  auto is_sidecar = [&](const std::string& name) {
    if (!pod) return false;
    return std::any_of(pod->spec().init_containers().begin(), pod->spec().init_containers().end(),
                       [&](const auto& item) { return item.name() == name && k8s::IsSidecar(item); });
  };
  for (const ContainerRecord& record : runtime.containers)
    if (NeedsStop(record) && !is_sidecar(record.name)) first.push_back(request(record));
  if (pod)
    for (int i = pod->spec().init_containers_size() - 1; i >= 0; --i)
      for (const ContainerRecord& record : runtime.containers)
        if (NeedsStop(record) && record.name == pod->spec().init_containers(i).name() &&
            is_sidecar(record.name))
          sidecars.push_back({request(record)});
  SteadyTime begin = clock_.SteadyNow();
  Result<> failed = KillAll(std::move(first), stop);
  for (auto& requests : sidecars) {
    auto spent = std::chrono::duration_cast<seconds>(clock_.SteadyNow() - begin);
    requests.front().grace = std::max(grace - spent, seconds(1));
    if (auto killed = KillAll(std::move(requests), stop); !killed && failed) failed = killed;
  }
  if (!failed) return failed;
  for (const auto& sandbox : runtime.sandboxes)
    if (sandbox.state == cri::SandboxState::kReady)
      if (auto stopped = runtime_.StopPodSandbox(sandbox.id, stop); !stopped && failed) failed = stopped;
  return failed;
}

}  // namespace keelson::kubelet

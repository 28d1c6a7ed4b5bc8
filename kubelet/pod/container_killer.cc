#include "kubelet/pod/container_killer.h"

#include <algorithm>

#include "kubelet/pod/termination_order.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/base/mutex.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

using std::chrono::seconds;

namespace {

constexpr seconds kLeastGrace(2);  // the process gets its chance to end well

bool NeedsStop(const ContainerRecord& record) {
  return record.state == cri::ContainerState::kRunning || record.state == cri::ContainerState::kUnknown;
}

}  // namespace

HandlerTarget HookTarget(const corev1::Pod& pod, const std::string& id, const std::string& container,
                         const std::string& address, const PodEvent& event) {
  return {pod.spec(), id, container, address, [&pod, &event](const std::string& host) {
            event(
                pod, "", "Warning", "LifecycleHTTPFallback",
                "request to HTTPS lifecycle hook " + host + " got HTTP response, retry with HTTP succeeded");
          }};
}

struct ContainerKiller::Hook {
  std::stop_source stop;
  Mutex mutex;
  CondVar changed;
  bool ended KEELSON_GUARDED_BY(mutex) = false;
};

std::shared_ptr<ContainerKiller::Hook> ContainerKiller::RunPreStop(const KillRequest& request,
                                                                   std::stop_token stop) {
  const corev1::Container* container =
      request.pod && request.hooks ? k8s::FindContainer(request.pod->spec(), request.container) : nullptr;
  if (!container || !container->lifecycle().has_pre_stop() || request.grace.count() <= 0) return nullptr;
  if (!container->lifecycle().pre_stop().has_exec()) {
    Run(handlers_, event_, request, request.grace, stop);
    return nullptr;
  }
  // The runtime does not report a command's timeout while its children keep its output open.
  const SteadyTime end = clock_.SteadyNow() + request.grace;
  auto hook = std::make_shared<Hook>();
  auto tell = [hook](bool ended) {
    MutexLock lock(hook->mutex);
    hook->ended = hook->ended || ended;
    hook->changed.notify_all();
  };
  auto pod = std::make_shared<const corev1::Pod>(*request.pod);
  executor_.Submit([&handlers = handlers_, event = event_, hook, tell, pod, own = request]() mutable {
    own.pod = pod.get();
    Run(handlers, event, own, seconds(0), hook->stop.get_token());
    tell(true);
  });
  std::stop_callback cancel(stop, [hook, tell] {
    hook->stop.request_stop();
    tell(false);
  });
  MutexLock lock(hook->mutex);
  while (!hook->ended && !stop.stop_requested() && clock_.SteadyNow() < end) {
    clock_.WaitUntil(hook->mutex, hook->changed, end);
  }
  return hook;
}

void ContainerKiller::Run(HandlerRunner& handlers, const Event& event, const KillRequest& request,
                          seconds timeout, const std::stop_token& stop) {
  const corev1::Container* container = k8s::FindContainer(request.pod->spec(), request.container);
  auto hook = handlers.Run(container->lifecycle().pre_stop(),
                           HookTarget(*request.pod, request.id, request.container, request.pod_ip, event),
                           timeout, stop);
  if (hook || stop.stop_requested()) return;
  log::Warn("PreStopHook failed",
            {{"pod", api::KeyOf(*request.pod)}, {"container", request.container}, {"err", hook.error()}});
  // What a server has answered may be a secret: it does not go into events.
  event(*request.pod, request.container, "Warning", "FailedPreStopHook", "PreStopHook failed");
}

Result<> ContainerKiller::Kill(const KillRequest& request, TerminationOrdering* order, std::stop_token stop) {
  if (request.pod) {
    event_(*request.pod, request.container, "Normal", "Killing",
           request.event_message.empty() ? "Stopping container " + request.container : request.event_message);
  }
  seconds left = request.grace;
  const SteadyTime begin = clock_.SteadyNow();
  const std::shared_ptr<Hook> hook = RunPreStop(request, stop);
  auto spent = [&] { return std::chrono::duration_cast<seconds>(clock_.SteadyNow() - begin); };
  if (order && left > spent()) order->WaitForTurn(request.container, left - spent(), stop);
  left = std::max(left - spent(), kLeastGrace);
  auto stopped = runtime_.StopContainer(request.id, left, stop);
  if (hook) hook->stop.request_stop();  // its container has ended
  if (order) order->ContainerTerminated(request.container);
  return stopped;
}

Result<> ContainerKiller::KillContainers(const corev1::Pod* pod, const PodRuntimeStatus& runtime,
                                         seconds grace, bool hooks, std::stop_token stop) {
  // Where hooks connect to. The status still shows the address of a sandbox that is gone.
  const std::vector<std::string> ips = PodIps(pod ? pod->spec() : corev1::PodSpec(), runtime, node_ips_);
  const std::string ip = !ips.empty() ? ips.front() : pod ? pod->status().pod_ip() : "";
  std::vector<KillRequest> requests;
  std::set<std::string> names;
  for (const ContainerRecord& record : runtime.containers) {
    if (!NeedsStop(record)) continue;
    requests.push_back({pod, record.id, record.name, ip, "", grace, hooks});
    names.insert(record.name);
  }
  TerminationOrdering order(pod ? pod->spec() : corev1::PodSpec(), names, clock_);
  std::vector<Result<>> results(requests.size());
  std::vector<std::function<void()>> tasks;
  for (size_t i = 0; i < requests.size(); ++i) {
    tasks.push_back([&, i] { results[i] = Kill(requests[i], &order, stop); });
  }
  executor_.RunAll(std::move(tasks));
  for (Result<>& result : results) {
    if (!result) return result;
  }
  return {};
}

Result<> ContainerKiller::KillPod(const corev1::Pod* pod, const PodRuntimeStatus& runtime, seconds grace,
                                  std::stop_token stop) {
  KEELSON_RETURN_IF_ERROR(KillContainers(pod, runtime, grace, true, stop));
  Result<> failed;
  for (const auto& sandbox : runtime.sandboxes) {
    if (sandbox.state == cri::SandboxState::kReady) {
      if (auto stopped = runtime_.StopPodSandbox(sandbox.id, stop); !stopped && failed) failed = stopped;
    }
  }
  return failed;
}

}  // namespace keelson::kubelet

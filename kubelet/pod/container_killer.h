// Stops containers: preStop hook, then the stop signal, SIGKILL when the grace period is over.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/container/runtime_status.h"
#include "kubelet/cri/runtime.h"
#include "kubelet/probe/handler.h"
#include "kubelet/workers/executor.h"

namespace keelson::kubelet {

class TerminationOrdering;

struct KillRequest {
  const corev1::Pod* pod = nullptr;  // null: a pod that only the runtime knows
  std::string id, container, pod_ip;
  std::string event_message;
  std::chrono::seconds grace{30};
  bool hooks = true;
};

// `container` is empty for events of the pod as a whole.
using PodEvent =
    std::function<void(const corev1::Pod& pod, const std::string& container, const std::string& type,
                       const std::string& reason, const std::string& message)>;

// The target of a lifecycle hook of the container.
HandlerTarget HookTarget(const corev1::Pod& pod, const std::string& id, const std::string& container,
                         const std::string& address, const PodEvent& event);

class ContainerKiller {  // thread safe
 public:
  using Event = PodEvent;
  // `node_ips`: where HTTP hooks of pods on the host network connect to.
  ContainerKiller(cri::RuntimeService& runtime, HandlerRunner& handlers, Executor& executor, Event event,
                  std::vector<std::string> node_ips, Clock& clock)
      : runtime_(runtime),
        handlers_(handlers),
        executor_(executor),
        event_(std::move(event)),
        node_ips_(std::move(node_ips)),
        clock_(clock) {}

  // Stops one container. Returns when it has ended.
  Result<> Kill(const KillRequest& request, std::stop_token stop) { return Kill(request, nullptr, stop); }
  // Stops all containers within `grace`, in parallel; a sidecar gets its stop signal when the containers that started
  // after it have ended. Tries all, and returns the first failure.
  Result<> KillContainers(const corev1::Pod* pod, const PodRuntimeStatus& runtime, std::chrono::seconds grace,
                          bool hooks, std::stop_token stop);
  // Stops the containers, then the sandboxes.
  Result<> KillPod(const corev1::Pod* pod, const PodRuntimeStatus& runtime, std::chrono::seconds grace,
                   std::stop_token stop);

 private:
  struct Hook;  // a running preStop hook
  Result<> Kill(const KillRequest& request, TerminationOrdering* order, std::stop_token stop);
  // Returns when the hook has ended or the grace period is over. A command that takes longer runs on until its
  // container ends. Null: there is no hook, or it has ended.
  std::shared_ptr<Hook> RunPreStop(const KillRequest& request, std::stop_token stop);
  static void Run(HandlerRunner& handlers, const Event& event, const KillRequest& request,
                  std::chrono::seconds timeout, const std::stop_token& stop);

  cri::RuntimeService& runtime_;
  HandlerRunner& handlers_;
  Executor& executor_;
  Event event_;
  const std::vector<std::string> node_ips_;
  Clock& clock_;
};

}  // namespace keelson::kubelet

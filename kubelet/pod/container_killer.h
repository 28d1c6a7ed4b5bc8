// Stops containers as their pods want it: preStop hook first, then the stop signal, SIGKILL when the time is
// up.
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
  const corev1::Pod* pod = nullptr;  // null for pods that only the runtime knows
  std::string id, container, pod_ip;
  std::string event_message;
  std::chrono::seconds grace{30};
  bool hooks = true;
};

// `container` is empty for events of the pod as a whole.
using PodEvent =
    std::function<void(const corev1::Pod& pod, const std::string& container, const std::string& type,
                       const std::string& reason, const std::string& message)>;

// What a hook of the pod's container is run at.
HandlerTarget HookTarget(const corev1::Pod& pod, const std::string& id, const std::string& container,
                         const std::string& address, const PodEvent& event);

class ContainerKiller {  // thread safe
 public:
  using Event = PodEvent;
  // node_ips: where hooks of pods on the node's network ask.
  ContainerKiller(cri::RuntimeService& runtime, HandlerRunner& handlers, Executor& executor, Event event,
                  std::vector<std::string> node_ips, Clock& clock)
      : runtime_(runtime),
        handlers_(handlers),
        executor_(executor),
        event_(std::move(event)),
        node_ips_(std::move(node_ips)),
        clock_(clock) {}

  Result<> Kill(const KillRequest& request, std::stop_token stop) { return Kill(request, nullptr, stop); }
  // All within `grace`, hooks side by side; a sidecar is asked to end when all that was started after it has
  // ended. The first failure is returned, after all have been tried.
  Result<> KillContainers(const corev1::Pod* pod, const PodRuntimeStatus& runtime, std::chrono::seconds grace,
                          bool hooks, std::stop_token stop);
  // The containers, then the sandboxes.
  Result<> KillPod(const corev1::Pod* pod, const PodRuntimeStatus& runtime, std::chrono::seconds grace,
                   std::stop_token stop);

 private:
  struct Hook;  // one that runs
  Result<> Kill(const KillRequest& request, TerminationOrdering* order, std::stop_token stop);
  // Returns when it has ended or the time is up: a command that takes longer goes on until its container
  // ends.
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

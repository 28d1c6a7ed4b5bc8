// A pod's status from what the runtime has of it. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kubelet/container/runtime_status.h"
#include "kubelet/probe/results.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::kubelet {

struct WaitingReason {
  std::string reason, message;  // CrashLoopBackOff, ErrImagePull, ...
};

struct StatusInput {
  const corev1::Pod& pod;  // with the status that the API has: what is not ours is kept
  const PodRuntimeStatus& runtime;
  const ProbeResults& probes;
  const std::map<std::string, WaitingReason>& waiting;  // why a container does not run, by its name
  bool initialized = false;
  bool terminal = false;  // no container will run again: the phase becomes Succeeded or Failed
  std::vector<std::string> node_ips;
  std::string runtime_name;  // containerd: the scheme of container ids
  // The termination message of an exited container.
  std::function<std::string(const ContainerRecord&)> message;
  WallTime now;
  bool recursive_read_only = false;  // the runtime can
  bool restarting_all = false;       // all containers are being taken down to begin anew, or about to be
  const std::map<std::string, std::string>* image_volumes = nullptr;  // volume -> reference of its image
};

corev1::PodStatus GenerateStatus(const StatusInput& input);

// Of a pod that the node does not take: phase Failed with this reason and message.
corev1::PodStatus RejectedStatus(const corev1::Pod& pod, const std::string& reason,
                                 const std::string& message, WallTime now);

// Why the node itself ended a pod.
struct PodEnding {
  std::string reason, message;
  std::string disruption;  // message of the DisruptionTarget condition; empty: none
};
// Phase Failed for that reason, whatever the containers' ends say.
void ApplyEnding(const PodEnding& ending, WallTime now, corev1::PodStatus& status);

// Whether a running container counts as started and as ready.
bool ContainerStarted(const corev1::Container& container, const std::string& id, const ProbeResults& probes);
bool ContainerReady(const corev1::Container& container, const std::string& id, const ProbeResults& probes);

}  // namespace keelson::kubelet

// Generates a pod's status from what the runtime has of it: addresses here, the rest in container_statuses, phase and
// conditions. Pure.
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
  const corev1::Pod& pod;  // with its last status: what is not the kubelet's is kept
  const PodRuntimeStatus& runtime;
  const ProbeResults& probes;
  const std::map<std::string, WaitingReason>& waiting;  // by container name: why it does not run
  bool initialized = false;
  bool terminal = false;  // no container will run again: the phase becomes Succeeded or Failed
  std::vector<std::string> node_ips;
  std::string runtime_name;  // containerd: the scheme of container ids
  // The termination message of an exited container.
  std::function<std::string(const ContainerRecord&)> message;
  WallTime now;
  bool recursive_read_only = false;  // the runtime supports it
  bool restarting_all = false;       // all containers are being restarted, or about to be
  bool more_to_do = false;  // the sync goes on: the pod has not ended, whatever its containers' states
  const std::map<std::string, std::string>* image_volumes = nullptr;  // volume -> reference of its image
  bool lacks_volumes = false;  // mounts have failed, and hold up its first container
  bool stop_signals = false;   // report containerStatuses[].stopSignal
};

corev1::PodStatus GenerateStatus(const StatusInput& input);

}  // namespace keelson::kubelet

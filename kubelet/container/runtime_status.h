// What the runtime has of one pod.
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "kubelet/cri/runtime.h"
#include "lib/api/types.h"

namespace keelson::kubelet {

struct ContainerRecord : cri::ContainerStatus {
  std::string sandbox_id;
  int restart_count = 0;
  std::string hash;  // of the spec that it was made from; empty when unknown
};

struct PodRuntimeStatus {
  std::string uid, name, ns;
  std::vector<cri::SandboxStatus> sandboxes;  // newest first
  std::vector<ContainerRecord> containers;    // newest first

  const cri::SandboxStatus* ReadySandbox() const;  // the newest if it is ready, else null
  // Null: there is none.
  const ContainerRecord* Latest(std::string_view name) const;
  const ContainerRecord* Previous(std::string_view name) const;  // the one before the latest
  const ContainerRecord* ById(std::string_view id) const;
  bool AnyRunning() const;
  std::vector<std::string> Ips() const;  // of the ready sandbox
};

// The pod's addresses, the primary one first: the node's for pods on the host network, else the sandbox's. Known
// before the API server has them.
std::vector<std::string> PodIps(const corev1::PodSpec& spec, const PodRuntimeStatus& runtime,
                                const std::vector<std::string>& node_ips);

// state.terminated.reason of an exited container: Completed, Error, OOMKilled, ...
std::string EndReason(const ContainerRecord& record);

// id -> state of a pod's sandboxes and containers, as lists show them. Equal fingerprints: nothing has changed.
using Fingerprint = std::map<std::string, int>;
Fingerprint FingerprintOf(const PodRuntimeStatus& status);

// Asks the runtime for everything it has of the pod. `previous` (may be null) saves calls for details that cannot
// have changed: of exited containers, of running ones that still run, of sandboxes in the same state.
Result<PodRuntimeStatus> InspectPod(cri::RuntimeService& runtime, const std::string& uid,
                                    const PodRuntimeStatus* previous, std::stop_token stop);
// Adds to `known` the sandbox or the containers that the caller has just made, and asks the runtime only for those.
Result<PodRuntimeStatus> WithSandbox(cri::RuntimeService& runtime, PodRuntimeStatus known,
                                     const std::string& id, std::stop_token stop);
Result<PodRuntimeStatus> WithContainers(cri::RuntimeService& runtime, PodRuntimeStatus known,
                                        const std::string& sandbox_id, const std::vector<std::string>& ids,
                                        std::stop_token stop);

}  // namespace keelson::kubelet

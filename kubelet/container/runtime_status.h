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
  const ContainerRecord* Latest(std::string_view name) const;
  const ContainerRecord* Previous(std::string_view name) const;  // the one before the latest
  const ContainerRecord* ById(std::string_view id) const;
  bool AnyRunning() const;
  std::vector<std::string> Ips() const;  // of the ready sandbox
};

// The pod's addresses, the primary one first: the node's for a pod on its network, else those of its sandbox.
// They are known here before the API shows them.
std::vector<std::string> PodIps(const corev1::PodSpec& spec, const PodRuntimeStatus& runtime,
                                const std::vector<std::string>& node_ips);

// Why a container that has exited did so, as its status says it.
std::string EndReason(const ContainerRecord& record);

// id -> state of everything of a pod, as far as lists show it: equal fingerprints, nothing to look at.
using Fingerprint = std::map<std::string, int>;
Fingerprint FingerprintOf(const PodRuntimeStatus& status);

// Asks the runtime. What `previous` (may be null) already knows and cannot have changed is not asked again:
// details of exited containers, of running ones that still run, of sandboxes in the same state.
Result<PodRuntimeStatus> InspectPod(cri::RuntimeService& runtime, const std::string& uid,
                                    const PodRuntimeStatus* previous, std::stop_token stop);
// `known` and what was made since by who asks: only that is asked for.
Result<PodRuntimeStatus> WithSandbox(cri::RuntimeService& runtime, PodRuntimeStatus known,
                                     const std::string& id, std::stop_token stop);
Result<PodRuntimeStatus> WithContainers(cri::RuntimeService& runtime, PodRuntimeStatus known,
                                        const std::string& sandbox_id, const std::vector<std::string>& ids,
                                        std::stop_token stop);

}  // namespace keelson::kubelet

// Carries out the handlers of probes and lifecycle hooks: exec, httpGet, tcpSocket, grpc, sleep.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "kubelet/cri/runtime.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

struct HandlerTarget {
  const corev1::PodSpec& spec;  // to resolve named ports
  std::string container_id;
  std::string container;  // name
  std::string pod_ip;
};

// What a probe has found. `output` tells people why.
struct ProbeOutcome {
  enum Kind { kSuccess, kFailure, kUnknown } kind = kUnknown;  // unknown: the probe could not be made
  std::string output;
};

class HandlerRunner {  // thread safe
 public:
  virtual ~HandlerRunner() = default;
  virtual ProbeOutcome Probe(const corev1::ProbeHandler& handler, const HandlerTarget& target,
                             std::chrono::seconds timeout, std::stop_token stop) = 0;
  // A hook: any failure is an error.
  virtual Result<> Run(const corev1::LifecycleHandler& handler, const HandlerTarget& target,
                       std::chrono::seconds timeout, std::stop_token stop) = 0;
};

std::unique_ptr<HandlerRunner> NewHandlerRunner(cri::RuntimeService& runtime, Clock& clock = Clock::Real());

}  // namespace keelson::kubelet

// Runs the handlers of probes and lifecycle hooks: exec, httpGet, tcpSocket, grpc, sleep.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
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
  // Called when the server of an HTTPS hook spoke plain HTTP, and the hook has succeeded over HTTP.
  std::function<void(const std::string& host)> on_http_fallback = nullptr;
};

// The result of a probe. `output` explains it to people.
struct ProbeOutcome {
  // kUnknown: the probe could not be run; kWarning: a success with a warning.
  enum Kind { kSuccess, kFailure, kUnknown, kWarning } kind = kUnknown;
  std::string output;
};

// A probe whose target and request are prepared once, and that needs no thread.
class PreparedProbe {  // thread safe
 public:
  virtual ~PreparedProbe() = default;
  // Starts the probe. `done` is called once, on another thread, and must not block.
  virtual void Make(std::chrono::seconds timeout, std::function<void(ProbeOutcome)> done) const = 0;
};

class HandlerRunner {  // thread safe
 public:
  virtual ~HandlerRunner() = default;
  // Runs a probe and blocks until its outcome is known.
  virtual ProbeOutcome Probe(const corev1::ProbeHandler& handler, const HandlerTarget& target,
                             std::chrono::seconds timeout, std::stop_token stop) = 0;
  // Prepares a probe that needs no thread. Null: call Probe instead (commands, TLS, names to look up).
  virtual std::shared_ptr<const PreparedProbe> Prepare(const corev1::ProbeHandler& /*handler*/,
                                                       const HandlerTarget& /*target*/) {
    return nullptr;
  }
  // Runs a lifecycle hook and blocks until it has ended. Any failure is an error. `timeout` 0: none.
  virtual Result<> Run(const corev1::LifecycleHandler& handler, const HandlerTarget& target,
                       std::chrono::seconds timeout, std::stop_token stop) = 0;
};

class SocketProber;
// `sockets.Run()` has to run, or prepared probes never end. References have to outlive the result.
std::unique_ptr<HandlerRunner> NewHandlerRunner(cri::RuntimeService& runtime, SocketProber& sockets,
                                                Clock& clock = Clock::Real());

}  // namespace keelson::kubelet

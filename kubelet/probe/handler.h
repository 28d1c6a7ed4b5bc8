// Carries out the handlers of probes and lifecycle hooks: exec, httpGet, tcpSocket, grpc, sleep.
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
  // An https hook was answered in plain http by host:port, and has been run that way.
  std::function<void(const std::string& host)> on_http_fallback = nullptr;
};

// What a probe has found. `output` tells people why.
struct ProbeOutcome {
  // unknown: the probe could not be made; warning: a success that people should know more of.
  enum Kind { kSuccess, kFailure, kUnknown, kWarning } kind = kUnknown;
  std::string output;
};

// What to ask of whom, put together once.
class PreparedProbe {  // thread safe
 public:
  virtual ~PreparedProbe() = default;
  // `done` is called once, on another thread, and must not block.
  virtual void Make(std::chrono::seconds timeout, std::function<void(ProbeOutcome)> done) const = 0;
};

class HandlerRunner {  // thread safe
 public:
  virtual ~HandlerRunner() = default;
  virtual ProbeOutcome Probe(const corev1::ProbeHandler& handler, const HandlerTarget& target,
                             std::chrono::seconds timeout, std::stop_token stop) = 0;
  // The same, for handlers that need no thread to wait on. Null for others (commands, TLS, names to look up):
  // then Probe is to be called.
  virtual std::shared_ptr<const PreparedProbe> Prepare(const corev1::ProbeHandler& /*handler*/,
                                                       const HandlerTarget& /*target*/) {
    return nullptr;
  }
  // A hook: any failure is an error. `timeout` 0: it may take as long as it likes, until `stop`.
  virtual Result<> Run(const corev1::LifecycleHandler& handler, const HandlerTarget& target,
                       std::chrono::seconds timeout, std::stop_token stop) = 0;
};

class SocketProber;
// `sockets`: its Run() has to run, or what waits for a peer waits for ever.
std::unique_ptr<HandlerRunner> NewHandlerRunner(cri::RuntimeService& runtime, SocketProber& sockets,
                                                Clock& clock = Clock::Real());

}  // namespace keelson::kubelet

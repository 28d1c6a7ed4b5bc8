// What the HTTPS API on port 10250 needs from the kubelet. The server authenticates, authorizes and speaks HTTP; the
// backend knows pods and the runtime.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/component/health_report.h"

namespace keelson::kubelet::server {

struct ContainerRef {
  std::string pod_namespace, pod_name;
  std::string pod_uid;    // empty: any pod of that name
  std::string container;  // empty in port-forward requests
};

struct ExecRequest {
  std::vector<std::string> command;  // empty for attach
  bool in = false, out = false, err = false, tty = false;
};

// Where a container's log is. Empty `path`: there is none yet.
struct LogSource {
  std::string path;      // the current file; <path>.<timestamp>[.gz] are older parts
  bool running = false;  // the log may grow
};

struct RunResult {
  int exit_code = 0;
  std::string output;  // stdout, then stderr
};

// Thread safe; called on worker threads, may block. Error messages go to the user. kNotFound: no such pod, or for
// logs no such container; kBadRequest: no log yet, or no previous run; kInternal: not running.
class KubeletBackend {
 public:
  virtual ~KubeletBackend() = default;

  virtual std::string PodsJson() = 0;  // v1.PodList
  // The log of the current or the `previous` instance. Called about once a second while a log is followed: once
  // `running` is false or the path differs, the follower ends after the last line.
  virtual Result<LogSource> ContainerLog(const ContainerRef& container, bool previous) = 0;
  // URLs of the runtime's streaming server.
  virtual Result<std::string> ExecUrl(const ContainerRef& container, const ExecRequest& request,
                                      std::stop_token stop) = 0;
  virtual Result<std::string> AttachUrl(const ContainerRef& container, const ExecRequest& request,
                                        std::stop_token stop) = 0;
  virtual Result<std::string> PortForwardUrl(const ContainerRef& pod, const std::vector<int32_t>& ports,
                                             std::stop_token stop) = 0;
  virtual Result<RunResult> Run(const ContainerRef& container, const std::vector<std::string>& command,
                                std::chrono::seconds timeout, std::stop_token stop) = 0;

  virtual std::vector<component::NamedCheck> HealthChecks() = 0;  // of /healthz, in upstream's order
  // /stats/summary; `brief`: CPU and memory only.
  virtual Result<std::string> StatsSummaryJson(bool brief) = 0;
  virtual Result<std::string> Metrics() = 0;          // /metrics, Prometheus text
  virtual Result<std::string> ProbeMetrics() = 0;     // /metrics/probes
  virtual Result<std::string> ResourceMetrics() = 0;  // /metrics/resource
  virtual Result<std::string> CadvisorMetrics() = 0;  // /metrics/cadvisor
  virtual std::string ConfigzJson() = 0;              // {"kubeletconfig": {...}}
  virtual std::string RunningPodsJson() = 0;          // v1.PodList of what the runtime has
  // Checkpoints the container, and returns the archive's path on the node.
  virtual Result<std::string> Checkpoint(const ContainerRef& container, std::stop_token stop) = 0;
};

}  // namespace keelson::kubelet::server

// The KubeletBackend on the kubelet's components.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kubelet/cm/cgroups/pod_cgroups.h"
#include "kubelet/config/settings.h"
#include "kubelet/cri/runtime.h"
#include "kubelet/pod/pod_workers.h"
#include "kubelet/server/backend.h"
#include "kubelet/stats/provider.h"

namespace keelson::kubelet {

class Backend : public server::KubeletBackend {  // thread safe
 public:
  Backend(PodWorkers& workers, StatusManager& statuses, ProbeManager& probes, VolumeManager& volumes,
          cri::RuntimeService& runtime, StatsProvider& stats, std::string node_name, const Settings& settings,
          std::vector<component::NamedCheck> health)
      : workers_(workers),
        statuses_(statuses),
        probes_(probes),
        volumes_(volumes),
        runtime_(runtime),
        stats_(stats),
        node_name_(std::move(node_name)),
        settings_(settings),
        health_(std::move(health)) {}

  std::string PodsJson() override;
  Result<server::LogSource> ContainerLog(const server::ContainerRef& container, bool previous) override;
  Result<std::string> ExecUrl(const server::ContainerRef& container, const server::ExecRequest& request,
                              std::stop_token stop) override;
  Result<std::string> AttachUrl(const server::ContainerRef& container, const server::ExecRequest& request,
                                std::stop_token stop) override;
  Result<std::string> PortForwardUrl(const server::ContainerRef& pod, const std::vector<int32_t>& ports,
                                     std::stop_token stop) override;
  Result<server::RunResult> Run(const server::ContainerRef& container,
                                const std::vector<std::string>& command, std::chrono::seconds timeout,
                                std::stop_token stop) override;
  std::vector<component::NamedCheck> HealthChecks() override { return health_; }
  Result<std::string> StatsSummaryJson(bool brief) override;
  Result<std::string> Metrics() override;
  Result<std::string> ProbeMetrics() override { return probes_.Metrics(); }
  Result<std::string> ResourceMetrics() override;
  Result<std::string> CadvisorMetrics() override;
  std::string ConfigzJson() override;
  std::string RunningPodsJson() override;
  Result<std::string> Checkpoint(const server::ContainerRef& container, std::stop_token stop) override;

 private:
  struct Target {
    PodWorkers::PodPtr pod;
    PodRuntimeStatus runtime;
  };
  Result<Target> Find(const server::ContainerRef& ref, std::stop_token stop);
  Result<ContainerRecord> Running(const server::ContainerRef& ref, std::stop_token stop);

  PodWorkers& workers_;
  StatusManager& statuses_;
  ProbeManager& probes_;
  VolumeManager& volumes_;
  cri::RuntimeService& runtime_;
  StatsProvider& stats_;
  const std::string node_name_;
  const Settings& settings_;
  const std::vector<component::NamedCheck> health_;
};

}  // namespace keelson::kubelet

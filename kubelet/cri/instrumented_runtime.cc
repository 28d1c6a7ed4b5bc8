#include "kubelet/cri/instrumented_runtime.h"

#include "kubelet/metrics/buckets.h"
#include "kubelet/metrics/stopwatch.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

using cri::Filter;
using std::chrono::seconds;
using Command = std::vector<std::string>;

// One call to the runtime, by upstream's name for its kind.
template <typename Call>
auto Measure(const char* operation, const Call& call) {
  static metrics::Family& total =
      metrics::Counter("kubelet_runtime_operations_total",
                       "Cumulative number of runtime operations by operation type.", {"operation_type"});
  static metrics::Family& errors = metrics::Counter(
      "kubelet_runtime_operations_errors_total",
      "Cumulative number of runtime operation errors by operation type.", {"operation_type"});
  static metrics::Family& duration =
      metrics::Histograms("kubelet_runtime_operations_duration_seconds",
                          "Duration in seconds of runtime operations. Broken down by operation type.",
                          metrics::ExponentialBuckets(.005, 2.5, 14), {"operation_type"});
  Stopwatch watch;
  total.With({operation}).Increment();
  auto result = call();
  duration.HistogramWith({operation}).Observe(watch.Seconds());
  if (!result) errors.With({operation}).Increment();
  return result;
}

class Runtime : public cri::RuntimeService {
 public:
  explicit Runtime(cri::RuntimeService& real)
      : real_(real),
        started_(metrics::Counter("kubelet_started_pods_total", "Cumulative number of pods started").With()),
        failed_(metrics::Counter("kubelet_started_pods_errors_total",
                                 "Cumulative number of errors when starting pods")
                    .With()) {}

  Result<cri::Version> GetVersion(std::stop_token stop) override {
    return Measure("version", [&] { return real_.GetVersion(stop); });
  }
  Result<cri::RuntimeStatus> Status(std::stop_token stop) override {
    return Measure("status", [&] { return real_.Status(stop); });
  }
  Result<bool> CgroupDriver(bool& systemd, std::stop_token stop) override {
    return Measure("runtime_config", [&] { return real_.CgroupDriver(systemd, stop); });
  }

  Result<std::string> RunPodSandbox(const cri::SandboxConfig& config, const std::string& handler,
                                    std::stop_token stop) override {
    static metrics::Family& duration = metrics::Histograms(
        "kubelet_run_podsandbox_duration_seconds",
        "Duration in seconds of the run_podsandbox operations. Broken down by RuntimeClass.Handler.",
        DefaultBuckets(), {"runtime_handler"});
    static metrics::Family& errors =
        metrics::Counter("kubelet_run_podsandbox_errors_total",
                         "Cumulative number of the run_podsandbox operation errors by RuntimeClass.Handler.",
                         {"runtime_handler"});
    Stopwatch watch;
    started_.Increment();
    auto id = Measure("run_podsandbox", [&] { return real_.RunPodSandbox(config, handler, stop); });
    duration.HistogramWith({handler}).Observe(watch.Seconds());
    if (!id) {
      failed_.Increment();
      errors.With({handler}).Increment();
    }
    return id;
  }
  Result<> StopPodSandbox(const std::string& id, std::stop_token stop) override {
    return Measure("stop_podsandbox", [&] { return real_.StopPodSandbox(id, stop); });
  }
  Result<> RemovePodSandbox(const std::string& id, std::stop_token stop) override {
    return Measure("remove_podsandbox", [&] { return real_.RemovePodSandbox(id, stop); });
  }
  Result<cri::SandboxStatus> PodSandboxStatus(const std::string& id, std::stop_token stop) override {
    return Measure("podsandbox_status", [&] { return real_.PodSandboxStatus(id, stop); });
  }
  Result<std::vector<cri::Sandbox>> ListPodSandbox(const Filter& filter, std::stop_token stop) override {
    return Measure("list_podsandbox", [&] { return real_.ListPodSandbox(filter, stop); });
  }

  Result<std::string> CreateContainer(const std::string& sandbox_id, const cri::ContainerConfig& config,
                                      const cri::SandboxConfig& sandbox, std::stop_token stop) override {
    return Measure("create_container",
                   [&] { return real_.CreateContainer(sandbox_id, config, sandbox, stop); });
  }
  Result<> StartContainer(const std::string& id, std::stop_token stop) override {
    return Measure("start_container", [&] { return real_.StartContainer(id, stop); });
  }
  Result<> StopContainer(const std::string& id, seconds grace, std::stop_token stop) override {
    return Measure("stop_container", [&] { return real_.StopContainer(id, grace, stop); });
  }
  Result<> RemoveContainer(const std::string& id, std::stop_token stop) override {
    return Measure("remove_container", [&] { return real_.RemoveContainer(id, stop); });
  }
  Result<cri::ContainerStatus> GetContainerStatus(const std::string& id, std::stop_token stop) override {
    return Measure("container_status", [&] { return real_.GetContainerStatus(id, stop); });
  }
  Result<std::vector<cri::Container>> ListContainers(const Filter& filter, std::stop_token stop) override {
    return Measure("list_containers", [&] { return real_.ListContainers(filter, stop); });
  }
  Result<> UpdateContainerResources(const std::string& id, const cri::LinuxResources& resources,
                                    std::stop_token stop) override {
    return Measure("update_container", [&] { return real_.UpdateContainerResources(id, resources, stop); });
  }
  Result<> CheckpointContainer(const std::string& id, const std::string& file,
                               std::stop_token stop) override {
    return Measure("checkpoint_container", [&] { return real_.CheckpointContainer(id, file, stop); });
  }
  Result<> UpdateRuntimeConfig(const std::string& pod_cidrs, std::stop_token stop) override {
    return Measure("update_runtime_config", [&] { return real_.UpdateRuntimeConfig(pod_cidrs, stop); });
  }
  Result<> ReopenContainerLog(const std::string& id, std::stop_token stop) override {
    return Measure("reopen_container_log", [&] { return real_.ReopenContainerLog(id, stop); });
  }
  Result<std::vector<cri::ContainerStats>> ListContainerStats(const Filter& filter,
                                                              std::stop_token stop) override {
    return Measure("list_container_stats", [&] { return real_.ListContainerStats(filter, stop); });
  }

  Result<cri::ExecResult> ExecSync(const std::string& id, const Command& command, seconds timeout,
                                   std::stop_token stop) override {
    return Measure("exec_sync", [&] { return real_.ExecSync(id, command, timeout, stop); });
  }
  Result<std::string> Exec(const std::string& id, const Command& command, const cri::ExecOptions& options,
                           std::stop_token stop) override {
    return Measure("exec", [&] { return real_.Exec(id, command, options, stop); });
  }
  Result<std::string> Attach(const std::string& id, const cri::ExecOptions& options,
                             std::stop_token stop) override {
    return Measure("attach", [&] { return real_.Attach(id, options, stop); });
  }
  Result<std::string> PortForward(const std::string& sandbox_id, const std::vector<int32_t>& ports,
                                  std::stop_token stop) override {
    return Measure("port_forward", [&] { return real_.PortForward(sandbox_id, ports, stop); });
  }

  // Lasts as long as the runtime does: nothing to time.
  Result<> WatchEvents(const std::function<void(const cri::ContainerEvent&)>& each,
                       std::stop_token stop) override {
    return real_.WatchEvents(each, stop);
  }

 private:
  cri::RuntimeService& real_;
  metrics::Value &started_, &failed_;
};

class Images : public cri::ImageService {
 public:
  explicit Images(cri::ImageService& real) : real_(real) {}

  Result<std::vector<cri::Image>> ListImages(std::stop_token stop) override {
    return Measure("list_images", [&] { return real_.ListImages(stop); });
  }
  Result<std::optional<cri::Image>> ImageStatus(const std::string& image, std::stop_token stop) override {
    return Measure("image_status", [&] { return real_.ImageStatus(image, stop); });
  }
  Result<std::string> PullImage(const std::string& image, const std::optional<cri::AuthConfig>& auth,
                                const cri::SandboxConfig& sandbox, std::stop_token stop) override {
    return Measure("pull_image", [&] { return real_.PullImage(image, auth, sandbox, stop); });
  }
  Result<> RemoveImage(const std::string& image, std::stop_token stop) override {
    return Measure("remove_image", [&] { return real_.RemoveImage(image, stop); });
  }
  Result<cri::ImageFilesystems> ImageFsInfo(std::stop_token stop) override {
    return Measure("image_fs_info", [&] { return real_.ImageFsInfo(stop); });
  }

 private:
  cri::ImageService& real_;
};

}  // namespace

std::unique_ptr<cri::RuntimeService> InstrumentedRuntimeService(cri::RuntimeService& real) {
  return std::make_unique<Runtime>(real);
}
std::unique_ptr<cri::ImageService> InstrumentedImageService(cri::ImageService& real) {
  return std::make_unique<Images>(real);
}

}  // namespace keelson::kubelet

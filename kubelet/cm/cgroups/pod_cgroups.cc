#include "kubelet/cm/cgroups/pod_cgroups.h"

#include <signal.h>

#include <sstream>

#include "kubelet/cm/cgroups/qos_cgroup_limits.h"
#include "kubelet/container/resources.h"
#include "lib/base/mutex.h"
#include "lib/k8s/pods/qos.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

constexpr char kPods[] = "kubepods";
constexpr std::string_view kPodPrefix = "pod";

class PodCgroupsImpl : public PodCgroups {
 public:
  PodCgroupsImpl(linux::Cgroups cgroups, std::unique_ptr<CgroupDriver> driver, const CgroupOptions& options)
      : cgroups_(std::move(cgroups)), driver_(std::move(driver)), options_(options) {
    std::istringstream in(options.root);
    for (std::string part; std::getline(in, part, '/');) {
      if (!part.empty()) root_.push_back(part);
    }
  }

  Result<> Start(const NodeContext&) override {
    for (const ReservedCgroup& reserved : options_.reserved) {
      const std::string failed =
          "failed to enforce " + reserved.what + " Cgroup Limits on \"" + reserved.path + "\"";
      if (!cgroups_.Exists(reserved.path)) {
        return Error(Code::kNotFound, failed + ": \"" + reserved.path + "\" cgroup does not exist");
      }
      if (auto held = cgroups_.Update(reserved.path, reserved.limits); !held) {
        return held.error().Wrap(failed);
      }
    }
    if (!options_.per_qos) return {};
    KEELSON_RETURN_IF_ERROR(driver_->Create(Class(k8s::kGuaranteed), options_.all_pods));
    linux::CgroupLimits least;
    least.cpu_shares = 2;
    KEELSON_RETURN_IF_ERROR(driver_->Create(Class(k8s::kBestEffort), least));
    return driver_->Create(Class(k8s::kBurstable), least);
  }

  Result<bool> UpdateQosCgroups(const std::vector<PodPtr>& pods, const NodeContext& node) override {
    if (!options_.per_qos) return false;
    const QosCgroupLimits limits =
        PlanQosCgroupLimits(pods, node, options_.memory_percent_reserved, options_.pods_memory);
    MutexLock lock(mutex_);
    if (classes_ == limits) return false;
    if (limits.all.memory_min_bytes && node.memory_qos.tiered) TellReservations(limits.all);
    KEELSON_RETURN_IF_ERROR(driver_->Create(Class(k8s::kGuaranteed), limits.all));
    KEELSON_RETURN_IF_ERROR(Limit(k8s::kBurstable, limits.burstable));
    KEELSON_RETURN_IF_ERROR(Limit(k8s::kBestEffort, limits.best_effort));
    classes_ = limits;
    return true;
  }

  Result<> Ensure(const corev1::Pod& pod, const NodeContext& node) override {
    if (!options_.per_qos) return {};
    return driver_->Create(NameOf(k8s::QosClass(pod), pod.metadata().uid()),
                           PodCgroupLimits(pod, node, options_.pod_pids_limit));
  }

  std::string Parent(const corev1::Pod& pod) const override {
    if (!options_.per_qos) return driver_->Path(root_);
    return driver_->Path(NameOf(k8s::QosClass(pod), pod.metadata().uid()));
  }

  Result<> Remove(const std::string& uid) override {
    if (!options_.per_qos) return {};
    Result<> first;
    for (std::string_view qos : kClasses) {
      const CgroupName name = NameOf(qos, uid);
      // Processes that the runtime forgot, such as those of a sandbox whose creation failed: the runtime does not end them.
      KillAll(driver_->Path(name));
      if (auto removed = driver_->Remove(name); !removed && first) first = removed;
    }
    return first;
  }

  std::set<std::string> Uids() const override {
    std::set<std::string> uids;
    if (!options_.per_qos) return uids;
    for (std::string_view qos : kClasses) {
      CgroupName parent = Class(qos);
      for (const std::string& directory : cgroups_.Children(driver_->Path(parent))) {
        auto name = driver_->LastPart(parent, directory);
        if (name && name->compare(0, kPodPrefix.size(), kPodPrefix) == 0) {
          uids.insert(name->substr(kPodPrefix.size()));
        }
      }
    }
    return uids;
  }

  linux::CgroupUsage Usage(const corev1::Pod& pod) const override {
    return options_.per_qos ? cgroups_.Usage(Parent(pod)) : linux::CgroupUsage();
  }
  linux::CgroupUsage UsageOfAll() const override {
    return options_.per_qos ? cgroups_.Usage(driver_->Path(Class(k8s::kGuaranteed))) : linux::CgroupUsage();
  }
  linux::CgroupPressure PressureOfNode() const override {
    if (!options_.pressure || !cgroups_.unified()) return {};
    return {linux::ReadPressure("/proc/pressure/cpu"), linux::ReadPressure("/proc/pressure/memory"),
            linux::ReadPressure("/proc/pressure/io")};
  }
  linux::CgroupPressure PressureOfAll() const override {
    return options_.per_qos ? Pressures(driver_->Path(Class(k8s::kGuaranteed))) : linux::CgroupPressure();
  }
  linux::CgroupPressure PressureOf(const corev1::Pod& pod) const override {
    return options_.per_qos ? Pressures(Parent(pod)) : linux::CgroupPressure();
  }
  ContainerCgroup Container(const corev1::Pod& pod, const std::string& id) const override {
    const std::string path = id.empty() ? "" : cgroups_.ChildWith(Parent(pod), id);
    if (path.empty()) return {};
    return {path, cgroups_.Usage(path), Pressures(path)};
  }
  bool KillContainer(const corev1::Pod& pod, const std::string& id) override {
    const std::string path = id.empty() ? "" : cgroups_.ChildWith(Parent(pod), id);
    return !path.empty() && KillAll(path);
  }
  linux::CgroupAccount Account(const std::string& path) const override { return cgroups_.Account(path); }
  std::unique_ptr<linux::MemoryAlarm> WatchMemory() const override {
    const std::string pods = options_.per_qos ? driver_->Path(Class(k8s::kGuaranteed)) : "";
    return std::make_unique<linux::MemoryAlarm>(cgroups_, std::vector<std::string>{"", pods});
  }
  std::optional<pid_t> AnyProcess(const corev1::Pod& pod) const override {
    if (!options_.per_qos) return std::nullopt;
    const std::vector<pid_t> processes = cgroups_.Processes(Parent(pod));
    if (processes.empty()) return std::nullopt;
    return processes.front();
  }

 private:
  static constexpr std::string_view kClasses[] = {k8s::kGuaranteed, k8s::kBurstable, k8s::kBestEffort};

  bool KillAll(const std::string& path) const {
    const std::vector<pid_t> processes = cgroups_.Processes(path);
    for (pid_t pid : processes) ::kill(pid, SIGKILL);
    return !processes.empty();
  }

  linux::CgroupPressure Pressures(const std::string& path) const {
    return options_.pressure ? cgroups_.Pressures(path) : linux::CgroupPressure();
  }

  // Below what is in use already, a class at least does not grow.
  Result<> Limit(std::string_view qos, linux::CgroupLimits limits) {
    auto done = driver_->Create(Class(qos), limits);
    if (done || !limits.memory_limit_bytes) return done;
    const auto used =
        static_cast<int64_t>(cgroups_.Usage(driver_->Path(Class(qos))).memory_bytes.value_or(0));
    if (used <= *limits.memory_limit_bytes) return done;
    limits.memory_limit_bytes = used;
    return driver_->Create(Class(qos), limits);
  }

  static void TellReservations(const linux::CgroupLimits& all) {
    metrics::Gauge("kubelet_memory_qos_node_memory_min_bytes",
                   "[ALPHA] Total memory.min in bytes for Guaranteed pods", {})
        .With({})
        .Set(static_cast<double>(all.memory_min_bytes.value_or(0)));
    metrics::Gauge("kubelet_memory_qos_node_memory_low_bytes",
                   "[ALPHA] Total memory.low in bytes for Burstable pods", {})
        .With({})
        .Set(static_cast<double>(all.memory_low_bytes.value_or(0)));
  }

  CgroupName Class(std::string_view qos) const {
    CgroupName out = root_;
    out.push_back(kPods);
    if (qos == k8s::kBurstable) out.push_back("burstable");
    if (qos == k8s::kBestEffort) out.push_back("besteffort");
    return out;
  }
  CgroupName NameOf(std::string_view qos, const std::string& uid) const {
    CgroupName out = Class(qos);
    out.push_back(std::string(kPodPrefix) + uid);
    return out;
  }

  const linux::Cgroups cgroups_;
  const std::unique_ptr<CgroupDriver> driver_;
  const CgroupOptions options_;
  CgroupName root_;
  Mutex mutex_;  // one update of the classes at a time
  std::optional<QosCgroupLimits> classes_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<PodCgroups> NewPodCgroups(linux::Cgroups cgroups, const CgroupOptions& options,
                                          std::unique_ptr<CgroupDriver> driver) {
  if (!driver) driver = NewCgroupfsDriver(cgroups);
  return std::make_unique<PodCgroupsImpl>(std::move(cgroups), std::move(driver), options);
}

}  // namespace keelson::kubelet

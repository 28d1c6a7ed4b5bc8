// Gives exclusive CPUs to containers of Guaranteed pods with integer CPU requests (KEP-3570, policy static). All
// other containers share the rest.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kubelet/cm/cpu/cpu_assignment.h"
#include "kubelet/cm/cpu/cpu_state.h"
#include "kubelet/cm/topology/provider.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

struct CpuManagerOptions {
  std::string state_file;           // <root>/cpu_manager_state
  CpuSet reserved;                  // never exclusive; empty: `reserved_count` CPUs are chosen
  int reserved_count = 0;           // of systemReserved and kubeReserved, rounded up
  bool strict_reservation = false;  // strict-cpu-reservation: reserved CPUs are not shared either
  bool full_cores_only = false;     // full-pcpus-only
  bool align_by_socket = false;     // align-by-socket
  CpuAssignOptions assign;
  std::chrono::milliseconds reconcile_period{std::chrono::seconds(10)};  // cpuManagerReconcilePeriod
};
// Parses cpuManagerPolicyOptions. kInvalid, with upstream's message: an unknown option, or two that exclude each
// other.
Result<> ParseCpuManagerOptions(const std::map<std::string, std::string>& from, CpuManagerOptions& to);

class CpuManager : public ResourceProvider {  // thread safe
 public:
  // A running container, whose shared CPUs have to follow changes.
  struct Running {
    std::string uid, container, id;
  };
  struct Runtime {
    std::function<std::vector<Running>()> containers;
    std::function<Result<>(const std::string& id, const CpuSet& cpus, std::stop_token stop)> set_cpus;
  };
  // kInvalid when nothing is reserved, or when the state file does not fit the machine or the policy.
  static Result<std::unique_ptr<CpuManager>> Make(const MachineTopology& machine,
                                                  const CpuManagerOptions& options,
                                                  Clock& clock = Clock::Real());

  TopologyHints Hints(const corev1::Pod& pod, const corev1::Container& container) override;
  TopologyHints PodHints(const corev1::Pod& pod) override;
  std::optional<k8s::AdmitFailure> Allocate(const corev1::Pod& pod, const corev1::Container& container,
                                            const TopologyHint& affinity) override;
  Result<> Configure(const corev1::Pod& pod, const corev1::Container& container, cri::ContainerConfig& config,
                     std::stop_token stop) override;
  void Release(const std::string& uid) override;
  std::set<std::string> Uids() const override;

  CpuSet Exclusive(const std::string& uid, const std::string& container) const;  // empty: none
  CpuSet Allocatable() const;                                                    // all but the reserved CPUs
  // Updates the cpusets of running containers whenever the shared CPUs change, and every reconcile_period, until
  // `stop`.
  void Run(const Runtime& runtime, std::stop_token stop);

 private:
  CpuManager(const MachineTopology& machine, const CpuManagerOptions& options, CpuAssignments state,
             Clock& clock)
      : machine_(machine), options_(options), clock_(clock), state_(std::move(state)) {
    MutexLock lock(mutex_);
    UpdateCpuPoolMetrics();
  }
  TopologyHints HintsFor(const CpuSet& available, const CpuSet& reusable, int count) const;
  CpuSet Available() const KEELSON_REQUIRES(mutex_);
  CpuSet Reusable(const corev1::Pod& pod, const std::string& except) const KEELSON_REQUIRES(mutex_);
  std::optional<k8s::AdmitFailure> CheckCores(int count, const CpuSet& free) const;
  std::optional<k8s::AdmitFailure> Pin(const corev1::Pod& pod, const corev1::Container& container,
                                       const TopologyHint& affinity, int count) KEELSON_REQUIRES(mutex_);
  Result<> Commit(CpuAssignments next) KEELSON_REQUIRES(mutex_);
  void UpdateCpuPoolMetrics() const KEELSON_REQUIRES(mutex_);
  void Reconcile(const Runtime& runtime, std::map<std::string, CpuSet>& told, std::stop_token stop);

  const MachineTopology machine_;
  const CpuManagerOptions options_;
  Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  uint64_t changes_ KEELSON_GUARDED_BY(mutex_) = 0;
  CpuAssignments state_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet

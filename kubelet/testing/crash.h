// A kubelet that dies at a chosen step. Every effect on the runtime, mounts, cgroups and the API server is a named
// step. After the fatal one nothing has any effect, and all calls fail; as after kill -9 the next kubelet has only
// files to recover from.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kubelet/cm/cgroups/pod_cgroups.h"
#include "kubelet/testing/gated_runtime.h"
#include "kubelet/volume/mounter.h"
#include "lib/base/mutex.h"
#include "lib/client/transport.h"

namespace keelson::kubelet {

class CrashPlan : public RuntimeGate {  // thread safe
 public:
  // The kubelet dies at its n-th step from now on (0: never): before its effect, or (`after`) after it, without its
  // result.
  void Arm(size_t step, bool after);
  // The same at the first step of that name.
  void ArmAt(const std::string& name, bool after);
  std::vector<std::string> Steps() const;  // since Arm
  bool dead() const;
  void AwaitDeath();
  Result<> Before(const Call& call, std::stop_token stop) override;
  Result<> After(const Call& call) override;

  // Runs an effect as a step.
  template <typename T, typename Effect>
  Result<T> Step(const std::string& name, const Effect& effect) {
    if (!Enter(name, false)) return Killed();
    Result<T> result = effect();
    if (!Enter(name, true)) return Killed();
    return result;
  }
  // A read without effect.
  template <typename T, typename Look>
  Result<T> See(const Look& look) {
    if (dead()) return Killed();
    return look();
  }

 private:
  static Error Killed() { return Error(Code::kUnavailable, "the kubelet was killed"); }
  bool Enter(const std::string& name, bool after);

  mutable Mutex mutex_;
  CondVar died_;
  size_t fatal_ KEELSON_GUARDED_BY(mutex_) = 0;
  bool after_ KEELSON_GUARDED_BY(mutex_) = false;
  bool dead_ KEELSON_GUARDED_BY(mutex_) = false;
  bool fatal_entered_ KEELSON_GUARDED_BY(mutex_) = false;
  std::string fatal_name_ KEELSON_GUARDED_BY(mutex_);
  std::vector<std::string> steps_ KEELSON_GUARDED_BY(mutex_);
};

std::unique_ptr<Mounter> CrashingMounter(Mounter& real, CrashPlan& plan);
std::unique_ptr<PodCgroups> CrashingCgroups(PodCgroups& real, CrashPlan& plan);
std::shared_ptr<client::Transport> CrashingTransport(std::shared_ptr<client::Transport> real,
                                                     CrashPlan& plan);

}  // namespace keelson::kubelet

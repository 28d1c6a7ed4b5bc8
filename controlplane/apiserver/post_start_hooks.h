// Post-start hooks: startup steps that must finish before the server is ready, with upstream's names in
// /livez and /readyz.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "controlplane/apiserver/health.h"

namespace keelson::apiserver {

enum class PostStartHook {
  kInformers,
  kFlowConsumer,
  kFlowFilter,
  kSystemNamespaces,
  kRoles,
  kPriorityClasses,
  kFlowProducer,
  kAuthenticationInfo,
  kServiceRepair,
  kKubernetesService,
};

class PostStartHooks {  // thread safe
 public:
  void Done(PostStartHook hook) { done_[static_cast<size_t>(hook)].store(true); }

  // The checks refer to this object.
  std::vector<HealthCheck> Checks() const {
    std::vector<HealthCheck> checks;
    for (size_t i = 0; i < kNames.size(); ++i) {
      checks.push_back({"poststarthook/" + std::string(kNames[i]), true, [&done = done_[i]]() -> Result<> {
                          if (done.load()) return {};
                          return Error(Code::kUnavailable, "not finished");
                        }});
    }
    return checks;
  }

 private:
  static constexpr std::array<std::string_view, 10> kNames = {
      "generic-apiserver-start-informers",
      "priority-and-fairness-config-consumer",
      "priority-and-fairness-filter",
      "start-system-namespaces-controller",
      "rbac/bootstrap-roles",
      "scheduling/bootstrap-system-priority-classes",
      "priority-and-fairness-config-producer",
      "start-cluster-authentication-info-controller",
      "start-service-ip-repair-controllers",
      "bootstrap-controller",
  };
  std::array<std::atomic<bool>, kNames.size()> done_{};
};

}  // namespace keelson::apiserver

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
  kDefinitionInformers,
  kDefinitionControllers,
  kDefinitionsKnown,
  kSystemNamespaces,
  kRoles,
  kPriorityClasses,
  kFlowProducer,
  kAuthenticationInfo,
  kLegacyTokens,
  kServiceRepair,
  kKubernetesService,
  kApiServiceInformers,
  kLocalAvailability,
  kRemoteAvailability,
  kApiServiceRegistration,
  kExtensionDiscovery,
  kAutoRegistration,
  kExtensionOpenApi,
  kExtensionOpenApiV3,
  kCount,
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
  static constexpr std::array<std::string_view, static_cast<size_t>(PostStartHook::kCount)> kNames = {
      "generic-apiserver-start-informers",
      "priority-and-fairness-config-consumer",
      "priority-and-fairness-filter",
      "start-apiextensions-informers",
      "start-apiextensions-controllers",
      "crd-informer-synced",
      "start-system-namespaces-controller",
      "rbac/bootstrap-roles",
      "scheduling/bootstrap-system-priority-classes",
      "priority-and-fairness-config-producer",
      "start-cluster-authentication-info-controller",
      "start-legacy-token-tracking-controller",
      "start-service-ip-repair-controllers",
      "bootstrap-controller",
      "start-kube-aggregator-informers",
      "apiservice-status-local-available-controller",
      "apiservice-status-remote-available-controller",
      "apiservice-registration-controller",
      "apiservice-discovery-controller",
      "kube-apiserver-autoregistration",
      "apiservice-openapi-controller",
      "apiservice-openapiv3-controller",
  };
  std::array<std::atomic<bool>, kNames.size()> done_{};
};

}  // namespace keelson::apiserver

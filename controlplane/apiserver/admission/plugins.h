// The admission plugins, in upstream's order.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/admission/admission.h"
#include "controlplane/apiserver/admission/config.h"
#include "controlplane/apiserver/authz/bootstrap_policy.h"
#include "controlplane/apiserver/webhook/service_resolver.h"
#include "controlplane/storage/store.h"

namespace keelson::apiserver {

// Plugin names for the flags, and whether a plugin is enabled by default.
std::vector<std::string_view> AdmissionPluginNames();
bool RunsByDefault(std::string_view plugin);
// True for an upstream plugin that is not implemented. It can be disabled, but not enabled.
bool IsForeignPlugin(std::string_view plugin);

// The main resource of a kind that the server serves, custom ones included; null: there is none.
using KindFinder = std::function<const api::ResourceInfo*(std::string_view group, std::string_view version,
                                                          std::string_view kind)>;

std::unique_ptr<AdmissionChain> NewAdmissionChain(const AdmissionConfig& config, storage::Store& store,
                                                  std::shared_ptr<const Authorizer> authorizer,
                                                  const ServiceResolver& services, const GateOn& gate_on,
                                                  const KindFinder& find_kind = api::FindKind);

using PluginPtr = std::unique_ptr<AdmissionPlugin>;
PluginPtr NewNamespaceLifecycle(storage::Store& store);
PluginPtr NewLimitRanger(storage::Store& store);
PluginPtr NewServiceAccountAdmission(storage::Store& store);
PluginPtr NewNodeRestriction(storage::Store& store);
PluginPtr NewTaintNodesByCondition();
PluginPtr NewPodSecurity(storage::Store& store, const PodSecurityConfig& config);
PluginPtr NewPriority(storage::Store& store);
PluginPtr NewDefaultTolerationSeconds(int64_t not_ready, int64_t unreachable);
PluginPtr NewResourceQuota(storage::Store& store, const ResourceQuotaConfig& config);
PluginPtr NewAlwaysPullImages();
PluginPtr NewEventRateLimit(const EventRateLimitConfig& config);
PluginPtr NewExtendedResourceToleration();
PluginPtr NewDefaultStorageClass(storage::Store& store);
PluginPtr NewStorageProtection();
PluginPtr NewOwnerReferences(std::shared_ptr<const Authorizer> authorizer, KindFinder find_kind);
PluginPtr NewClaimResize(storage::Store& store);
PluginPtr NewRuntimeClass(storage::Store& store);
PluginPtr NewCertificateApproval(std::shared_ptr<const Authorizer> authorizer);
PluginPtr NewCertificateSigning(std::shared_ptr<const Authorizer> authorizer);
PluginPtr NewPodCertificateSigning(std::shared_ptr<const Authorizer> authorizer);
PluginPtr NewCertificateSubjectRestriction();
PluginPtr NewDefaultIngressClass(storage::Store& store);
PluginPtr NewDenyExternalIps();
PluginPtr NewPodTopologyLabels(storage::Store& store);
PluginPtr NewNodeDeclaredFeatures(storage::Store& store);
PluginPtr NewPodResize(storage::Store& store);
PluginPtr NewDeviceClaims(std::shared_ptr<const Authorizer> authorizer, storage::Store& store,
                          const GateOn& on);
PluginPtr NewMutatingWebhooks(storage::Store& store, const ServiceResolver& services,
                              std::shared_ptr<const Authorizer> authorizer);
PluginPtr NewValidatingWebhooks(storage::Store& store, const ServiceResolver& services,
                                std::shared_ptr<const Authorizer> authorizer);
PluginPtr NewMutatingPolicies(storage::Store& store, std::shared_ptr<const Authorizer> authorizer,
                              KindFinder find_kind);
PluginPtr NewValidatingPolicies(storage::Store& store, std::shared_ptr<const Authorizer> authorizer,
                                KindFinder find_kind);
PluginPtr NewRbacEscalation(std::shared_ptr<const Authorizer> authorizer, storage::Store& store);

}  // namespace keelson::apiserver

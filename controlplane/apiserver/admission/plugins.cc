#include "controlplane/apiserver/admission/plugins.h"

#include <algorithm>

namespace keelson::apiserver {
namespace {

struct Sources {
  const AdmissionConfig& config;
  storage::Store& store;
  const std::shared_ptr<const Authorizer>& authorizer;
  const ServiceResolver& services;
  const KindFinder& find_kind;
};

struct Entry {
  std::string_view name;
  bool on;  // by default
  PluginPtr (*make)(const Sources& from);
  std::string_view gate = {};  // the plugin needs this feature gate
};

// Upstream's names and order. Unlike upstream NodeRestriction is on by default, because the Node authorizer,
// which it complements, always is.
constexpr Entry kEntries[] = {
    {"NamespaceLifecycle", true, [](const Sources& from) { return NewNamespaceLifecycle(from.store); }},
    {"LimitRanger", true, [](const Sources& from) { return NewLimitRanger(from.store); }},
    {"ServiceAccount", true, [](const Sources& from) { return NewServiceAccountAdmission(from.store); }},
    {"NodeRestriction", true, [](const Sources& from) { return NewNodeRestriction(from.store); }},
    {"TaintNodesByCondition", true, [](const Sources&) { return NewTaintNodesByCondition(); }},
    {"AlwaysPullImages", false, [](const Sources&) { return NewAlwaysPullImages(); }},
    {"PodSecurity", true,
     [](const Sources& from) { return NewPodSecurity(from.store, from.config.pod_security); }},
    {"Priority", true, [](const Sources& from) { return NewPriority(from.store); }},
    {"DefaultTolerationSeconds", true,
     [](const Sources& from) {
       return NewDefaultTolerationSeconds(from.config.not_ready_toleration_seconds,
                                          from.config.unreachable_toleration_seconds);
     }},
    {"EventRateLimit", false,
     [](const Sources& from) { return NewEventRateLimit(from.config.event_rate_limit); }},
    {"ExtendedResourceToleration", false, [](const Sources&) { return NewExtendedResourceToleration(); }},
    {"DefaultStorageClass", true, [](const Sources& from) { return NewDefaultStorageClass(from.store); }},
    {"StorageObjectInUseProtection", true, [](const Sources&) { return NewStorageProtection(); }},
    {"OwnerReferencesPermissionEnforcement", false,
     [](const Sources& from) { return NewOwnerReferences(from.authorizer, from.find_kind); }},
    {"PersistentVolumeClaimResize", true, [](const Sources& from) { return NewClaimResize(from.store); }},
    {"RuntimeClass", true, [](const Sources& from) { return NewRuntimeClass(from.store); }},
    {"CertificateApproval", true,
     [](const Sources& from) { return NewCertificateApproval(from.authorizer); }},
    {"CertificateSigning", true, [](const Sources& from) { return NewCertificateSigning(from.authorizer); }},
    {"CertificateSubjectRestriction", true,
     [](const Sources&) { return NewCertificateSubjectRestriction(); }},
    {"DefaultIngressClass", true, [](const Sources& from) { return NewDefaultIngressClass(from.store); }},
    {"DenyServiceExternalIPs", false, [](const Sources&) { return NewDenyExternalIps(); }},
    {"PodTopologyLabels", true, [](const Sources& from) { return NewPodTopologyLabels(from.store); },
     "PodTopologyLabelsAdmission"},
    {"NodeDeclaredFeatureValidator", true,
     [](const Sources& from) { return NewNodeDeclaredFeatures(from.store); }, "NodeDeclaredFeatures"},
    {"PodResizeValidator", true, [](const Sources& from) { return NewPodResize(from.store); }},
    {"MutatingAdmissionPolicy", true,
     [](const Sources& from) { return NewMutatingPolicies(from.store, from.authorizer, from.find_kind); }},
    {"MutatingAdmissionWebhook", true,
     [](const Sources& from) { return NewMutatingWebhooks(from.store, from.services, from.authorizer); }},
    {"ValidatingAdmissionPolicy", true,
     [](const Sources& from) { return NewValidatingPolicies(from.store, from.authorizer, from.find_kind); }},
    {"ValidatingAdmissionWebhook", true,
     [](const Sources& from) { return NewValidatingWebhooks(from.store, from.services, from.authorizer); }},
    // The last plugin, because it charges what it admits.
    {"ResourceQuota", true,
     [](const Sources& from) { return NewResourceQuota(from.store, from.config.resource_quota); }},
};

constexpr std::string_view kForeign[] = {"AlwaysAdmit",
                                         "NamespaceAutoProvision",
                                         "NamespaceExists",
                                         "LimitPodHardAntiAffinityTopology",
                                         "ImagePolicyWebhook",
                                         "PodNodeSelector",
                                         "PodTolerationRestriction",
                                         "PodGroupProtection",
                                         "ClusterTrustBundleAttest",
                                         "PodGroupWorkloadExists",
                                         "JobValidation",
                                         "AlwaysDeny"};

const Entry* Find(std::string_view name) {
  auto found =
      std::find_if(std::begin(kEntries), std::end(kEntries), [&](const Entry& e) { return e.name == name; });
  return found == std::end(kEntries) ? nullptr : &*found;
}

}  // namespace

std::vector<std::string_view> AdmissionPluginNames() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kEntries) names.push_back(entry.name);
  return names;
}

bool RunsByDefault(std::string_view plugin) {
  const Entry* entry = Find(plugin);
  return entry && entry->on;
}

bool IsForeignPlugin(std::string_view plugin) {
  return std::find(std::begin(kForeign), std::end(kForeign), plugin) != std::end(kForeign);
}

std::unique_ptr<AdmissionChain> NewAdmissionChain(const AdmissionConfig& config, storage::Store& store,
                                                  std::shared_ptr<const Authorizer> authorizer,
                                                  const ServiceResolver& services, const GateOn& gate_on,
                                                  const KindFinder& find_kind) {
  const Sources from{config, store, authorizer, services, find_kind};
  std::vector<PluginPtr> plugins;
  // No flag disables these: upstream runs them in the registry of their kinds, before validating plugins.
  plugins.push_back(NewRbacEscalation(authorizer, store));
  plugins.push_back(NewPodCertificateSigning(authorizer));
  plugins.push_back(NewDeviceClaims(authorizer, store, gate_on));
  for (const Entry& entry : kEntries) {
    const bool on = entry.on ? !config.disabled.count(entry.name) : config.enabled.count(entry.name) > 0;
    if (on && (entry.gate.empty() || gate_on(entry.gate))) plugins.push_back(entry.make(from));
  }
  return std::make_unique<AdmissionChain>(std::move(plugins));
}

}  // namespace keelson::apiserver

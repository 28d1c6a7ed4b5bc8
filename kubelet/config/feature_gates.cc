#include "kubelet/config/feature_gates.h"

#include <algorithm>
#include <vector>

namespace keelson::kubelet {

namespace {

struct Gate {
  std::string_view name;
  bool on = false, locked = false;
};

constexpr bool kOn = true, kOff = false, kLocked = true;

// Sorted by name.
constexpr Gate kGates[] = {
    {"APIResponseCompression", kOn},
    {"APIServerIdentity", kOn},
    {"APIServerTracing", kOn, kLocked},
    {"APIServingWithRoutine", kOff},
    {"AggregatedDiscoveryRemoveBetaType", kOn, kLocked},
    {"AllowDNSOnlyNodeCSR", kOff},
    {"AllowInsecureKubeletCertificateSigningRequests", kOff},
    {"AllowOverwriteTerminationGracePeriodSeconds", kOff, kLocked},
    {"AllowParsingUserUIDFromCertAuth", kOn},
    {"AllowUnsafeMalformedObjectDeletion", kOff},
    {"AnonymousAuthConfigurableEndpoints", kOn, kLocked},
    {"AnyVolumeDataSource", kOn, kLocked},
    {"AtomicFIFO", kOn},
    {"AuthorizeNodeWithSelectors", kOn, kLocked},
    {"AuthorizePodWebsocketUpgradeCreatePermission", kOn},
    {"AuthorizeWithSelectors", kOn, kLocked},
    {"BtreeWatchCache", kOn, kLocked},
    {"CBORServingAndStorage", kOff},
    {"CPUManagerPolicyAlphaOptions", kOff},
    {"CPUManagerPolicyBetaOptions", kOn},
    {"CPUManagerPolicyOptions", kOn, kLocked},
    {"CRDObservedGenerationTracking", kOn},
    {"CRDValidationRatcheting", kOn, kLocked},
    {"CRIListStreaming", kOff},
    {"CSIMigrationPortworx", kOn, kLocked},
    {"CSIServiceAccountTokenSecrets", kOn},
    {"CSIVolumeHealth", kOff},
    {"ChangeContainerStatusOnKubeletRestart", kOff},
    {"ClearingNominatedNodeNameAfterBinding", kOn},
    {"ClientsAllowCARotation", kOn},
    {"ClientsAllowCBOR", kOff},
    {"ClientsAllowTLSCacheGC", kOn},
    {"ClientsPreferCBOR", kOff},
    {"CloudControllerManagerWatchBasedRoutesReconciliation", kOff},
    {"CloudControllerManagerWebhook", kOff},
    {"ClusterTrustBundle", kOff},
    {"ClusterTrustBundleProjection", kOff},
    {"ComponentFlagz", kOn},
    {"ComponentStatusz", kOn},
    {"ConcurrentWatchObjectDecode", kOff},
    {"ConsistentListFromCache", kOn, kLocked},
    {"ConstrainedImpersonation", kOn},
    {"ContainerCheckpoint", kOn},
    {"ContainerRestartRules", kOn},
    {"ContainerStopSignals", kOff},
    {"ContextualLogging", kOn},
    {"ControllerManagerReleaseLeaderElectionLockOnExit", kOff},
    {"CoordinatedLeaderElection", kOff},
    {"CrossNamespaceVolumeDataSource", kOff},
    {"CustomCPUCFSQuotaPeriod", kOff},
    {"CustomResourceFieldSelectors", kOn, kLocked},
    {"DRAAdminAccess", kOn},
    {"DRAConsumableCapacity", kOn},
    {"DRADeviceBindingConditions", kOn},
    {"DRADeviceTaintRules", kOff},
    {"DRADeviceTaints", kOn},
    {"DRAExtendedResource", kOn},
    {"DRAListTypeAttributes", kOff},
    {"DRANodeAllocatableResources", kOff},
    {"DRAPartitionableDevices", kOn},
    {"DRAPrioritizedList", kOn},
    {"DRAResourceClaimDeviceStatus", kOn},
    {"DRAResourceClaimGranularStatusAuthorization", kOn},
    {"DRAResourcePoolStatus", kOff},
    {"DRASchedulerFilterTimeout", kOn},
    {"DRAWorkloadResourceClaims", kOff},
    {"DeclarativeValidation", kOn},
    {"DeclarativeValidationBeta", kOn},
    {"DeclarativeValidationTakeover", kOff},
    {"DeploymentReplicaSetTerminatingReplicas", kOn},
    {"DetectCacheInconsistency", kOn},
    {"DisableAllocatorDualWrite", kOn, kLocked},
    {"DisableCPUQuotaWithExclusiveCPUs", kOn},
    {"DisableNodeKubeProxyVersion", kOn},
    {"DynamicResourceAllocation", kOn, kLocked},
    {"EnvFiles", kOn},
    {"EventedPLEG", kOff},
    {"ExecProbeTimeout", kOn, kLocked},
    {"ExtendWebSocketsToKubelet", kOn},
    {"ExternalServiceAccountTokenSigner", kOn},
    {"GangScheduling", kOff},
    {"GenericWorkload", kOff},
    {"GitRepoVolumeDriver", kOff},
    {"GracefulNodeShutdown", kOn},
    {"GracefulNodeShutdownBasedOnPodPriority", kOn},
    {"HPAConfigurableTolerance", kOn},
    {"HPAScaleToZero", kOff},
    {"HonorPVReclaimPolicy", kOn, kLocked},
    {"HostnameOverride", kOn},
    {"ImageMaximumGCAge", kOn, kLocked},
    {"ImageVolume", kOn},
    {"ImageVolumeWithDigest", kOff},
    {"InOrderInformers", kOn},
    {"InOrderInformersBatchProcess", kOn},
    {"InPlacePodLevelResourcesVerticalScaling", kOn},
    {"InPlacePodVerticalScaling", kOn, kLocked},
    {"InPlacePodVerticalScalingAllocatedStatus", kOff},
    {"InPlacePodVerticalScalingExclusiveCPUs", kOff},
    {"InPlacePodVerticalScalingExclusiveMemory", kOff},
    {"InPlacePodVerticalScalingInitContainers", kOn},
    {"InformerResourceVersion", kOn},
    {"JobBackoffLimitPerIndex", kOn, kLocked},
    {"JobManagedBy", kOn, kLocked},
    {"JobPodReplacementPolicy", kOn, kLocked},
    {"JobSuccessPolicy", kOn, kLocked},
    {"KMSv1", kOff},
    {"KubeletCgroupDriverFromCRI", kOn, kLocked},
    {"KubeletCrashLoopBackOffMax", kOn},
    {"KubeletEnsureSecretPulledImages", kOn},
    {"KubeletFineGrainedAuthz", kOn},
    {"KubeletInUserNamespace", kOff},
    {"KubeletPSI", kOn},
    {"KubeletPodResourcesDynamicResources", kOn},
    {"KubeletPodResourcesGet", kOn},
    {"KubeletPodResourcesListUseActivePods", kOn},
    {"KubeletRegistrationGetOnExistsOnly", kOff},
    {"KubeletSeparateDiskGC", kOn},
    {"KubeletServiceAccountTokenForCredentialProviders", kOn},
    {"KubeletTracing", kOn, kLocked},
    {"ListFromCacheSnapshot", kOn},
    {"LocalStorageCapacityIsolationFSQuotaMonitoring", kOff},
    {"LogarithmicScaleDown", kOn, kLocked},
    {"LoggingAlphaOptions", kOff},
    {"LoggingBetaOptions", kOn},
    {"ManifestBasedAdmissionControlConfig", kOff},
    {"MatchLabelKeysInPodAffinity", kOn, kLocked},
    {"MatchLabelKeysInPodTopologySpread", kOn},
    {"MatchLabelKeysInPodTopologySpreadSelectorMerge", kOn},
    {"MaxUnavailableStatefulSet", kOff},
    {"MemoryManager", kOn, kLocked},
    {"MemoryQoS", kOff},
    {"MultiCIDRServiceAllocator", kOn, kLocked},
    {"MutableCSINodeAllocatableCount", kOn},
    {"MutablePVNodeAffinity", kOff},
    {"MutablePodResourcesForSuspendedJobs", kOn},
    {"MutableSchedulingDirectivesForSuspendedJobs", kOn},
    {"MutatingAdmissionPolicy", kOn},
    {"NFTablesProxyMode", kOn, kLocked},
    {"NativeHistograms", kOff},
    {"NodeDeclaredFeatures", kOn},
    {"NodeInclusionPolicyInPodTopologySpread", kOn, kLocked},
    {"NodeLogQuery", kOn},
    {"NodeSwap", kOn, kLocked},
    {"NominatedNodeNameForExpectation", kOn},
    {"OpenAPIEnums", kOn},
    {"OpportunisticBatching", kOn},
    {"OrderedNamespaceDeletion", kOn, kLocked},
    {"PLEGOnDemandRelist", kOn},
    {"PersistentVolumeClaimUnusedSinceTime", kOff},
    {"PodAndContainerStatsFromCRI", kOff},
    {"PodCertificateRequest", kOff},
    {"PodDeletionCost", kOn},
    {"PodLevelResourceManagers", kOff},
    {"PodLevelResources", kOn},
    {"PodLifecycleSleepAction", kOn, kLocked},
    {"PodLifecycleSleepActionAllowZero", kOn, kLocked},
    {"PodLogsQuerySplitStreams", kOff},
    {"PodObservedGenerationTracking", kOn, kLocked},
    {"PodReadyToStartContainersCondition", kOn},
    {"PodSchedulingReadiness", kOn, kLocked},
    {"PodTopologyLabelsAdmission", kOn},
    {"PodsAPI", kOff},
    {"PortForwardWebsockets", kOn},
    {"PreferSameTrafficDistribution", kOn, kLocked},
    {"PreventStaticPodAPIReferences", kOn},
    {"ProcMountType", kOn},
    {"QOSReserved", kOff},
    {"RecoverVolumeExpansionFailure", kOn, kLocked},
    {"RecursiveReadOnlyMounts", kOn, kLocked},
    {"ReduceDefaultCrashLoopBackOffDecay", kOff},
    {"RelaxedDNSSearchValidation", kOn, kLocked},
    {"RelaxedEnvironmentVariableValidation", kOn, kLocked},
    {"RelaxedServiceNameValidation", kOn},
    {"ReloadKubeletClientCAFile", kOn},
    {"ReloadKubeletServerCertificateFile", kOn},
    {"RemoteRequestHeaderUID", kOn},
    {"ResilientWatchCacheInitialization", kOn, kLocked},
    {"ResourceHealthStatus", kOn},
    {"ResourceHealthStatusMessage", kOn},
    {"RestartAllContainersOnContainerExits", kOn},
    {"RetryGenerateName", kOn, kLocked},
    {"RotateKubeletServerCertificate", kOn},
    {"RuntimeClassInImageCriApi", kOff},
    {"SELinuxChangePolicy", kOn},
    {"SELinuxMount", kOff},
    {"SELinuxMountReadWriteOncePod", kOn},
    {"SchedulerAsyncAPICalls", kOff},
    {"SchedulerAsyncPreemption", kOn},
    {"SchedulerPopFromBackoffQ", kOn},
    {"SchedulerQueueingHints", kOn, kLocked},
    {"SeparateCacheWatchRPC", kOff},
    {"SeparateTaintEvictionController", kOn, kLocked},
    {"ServiceAccountNodeAudienceRestriction", kOn},
    {"ServiceAccountTokenJTI", kOn, kLocked},
    {"ServiceAccountTokenNodeBinding", kOn, kLocked},
    {"ServiceAccountTokenNodeBindingValidation", kOn, kLocked},
    {"ServiceAccountTokenPodNodeInfo", kOn, kLocked},
    {"ServiceTrafficDistribution", kOn, kLocked},
    {"ShardedListAndWatch", kOff},
    {"SidecarContainers", kOn, kLocked},
    {"SizeBasedListCostEstimate", kOn},
    {"StaleControllerConsistencyDaemonSet", kOn},
    {"StaleControllerConsistencyJob", kOn},
    {"StaleControllerConsistencyReplicaSet", kOn},
    {"StaleControllerConsistencyStatefulSet", kOn},
    {"StatefulSetSemanticRevisionComparison", kOn},
    {"StorageCapacityScoring", kOff},
    {"StorageNamespaceIndex", kOn},
    {"StorageVersionAPI", kOff},
    {"StorageVersionHash", kOn},
    {"StorageVersionMigrator", kOff},
    {"StreamingCollectionEncodingToJSON", kOn, kLocked},
    {"StreamingCollectionEncodingToProtobuf", kOn, kLocked},
    {"StrictIPCIDRValidation", kOn},
    {"StructuredAuthenticationConfiguration", kOn, kLocked},
    {"StructuredAuthenticationConfigurationEgressSelector", kOn},
    {"StructuredAuthenticationConfigurationJWKSMetrics", kOn},
    {"StructuredAuthorizationConfiguration", kOn, kLocked},
    {"SupplementalGroupsPolicy", kOn, kLocked},
    {"SystemdWatchdog", kOn, kLocked},
    {"TaintTolerationComparisonOperators", kOff},
    {"TokenRequestServiceAccountUIDValidation", kOn},
    {"TopologyAwareHints", kOn, kLocked},
    {"TopologyAwareWorkloadScheduling", kOff},
    {"TopologyManagerPolicyAlphaOptions", kOff},
    {"TopologyManagerPolicyBetaOptions", kOn},
    {"TopologyManagerPolicyOptions", kOn},
    {"TranslateStreamCloseWebsocketRequests", kOn},
    {"UnauthenticatedHTTP2DOSMitigation", kOn},
    {"UnknownVersionInteroperabilityProxy", kOn},
    {"UnlockWhileProcessingFIFO", kOn},
    {"UserNamespacesHostNetworkSupport", kOff},
    {"UserNamespacesSupport", kOn},
    {"VolumeAttributesClass", kOn, kLocked},
    {"VolumeLimitScaling", kOff},
    {"WatchCacheInitializationPostStartHook", kOn},
    {"WatchList", kOn},
    {"WatchListClient", kOn},
    {"WinDSR", kOn, kLocked},
    {"WinOverlay", kOn, kLocked},
    {"WindowsCPUAndMemoryAffinity", kOff},
    {"WindowsGracefulNodeShutdown", kOn},
    {"WindowsHostNetwork", kOff},
    {"WorkloadAwarePreemption", kOff},
    {"WorkloadWithJob", kOff},
};

// Whose stage does not follow from their default: most features are off while alpha, on from beta on, and
// locked when they are done.
constexpr std::string_view kOffBetas[] = {"ClusterTrustBundle",
                                          "ClusterTrustBundleProjection",
                                          "ConcurrentWatchObjectDecode",
                                          "CoordinatedLeaderElection",
                                          "DRADeviceTaintRules",
                                          "LocalStorageCapacityIsolationFSQuotaMonitoring",
                                          "MaxUnavailableStatefulSet",
                                          "PodCertificateRequest",
                                          "SELinuxMount",
                                          "SchedulerAsyncAPICalls",
                                          "StorageVersionMigrator"};
// Done in 1.36, and not locked by us: what can do without them may.
constexpr std::string_view kDone[] = {"CSIServiceAccountTokenSecrets",
                                      "DRAAdminAccess",
                                      "DRAPrioritizedList",
                                      "DeclarativeValidation",
                                      "DisableCPUQuotaWithExclusiveCPUs",
                                      "ExternalServiceAccountTokenSigner",
                                      "ImageVolume",
                                      "InOrderInformers",
                                      "InformerResourceVersion",
                                      "KubeletFineGrainedAuthz",
                                      "KubeletPSI",
                                      "KubeletPodResourcesDynamicResources",
                                      "KubeletPodResourcesGet",
                                      "MutableCSINodeAllocatableCount",
                                      "MutatingAdmissionPolicy",
                                      "NodeLogQuery",
                                      "ProcMountType",
                                      "SELinuxChangePolicy",
                                      "SELinuxMountReadWriteOncePod",
                                      "TopologyManagerPolicyOptions",
                                      "UserNamespacesSupport"};
constexpr std::string_view kDeprecated[] = {
    "AllowDNSOnlyNodeCSR", "AllowInsecureKubeletCertificateSigningRequests", "DisableNodeKubeProxyVersion",
    "GitRepoVolumeDriver", "InPlacePodVerticalScalingAllocatedStatus",       "KMSv1"};

template <size_t N>
bool Has(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

const char* StageOf(const Gate& gate) {
  if (Has(kDeprecated, gate.name) || (gate.locked && !gate.on)) return "DEPRECATED";
  if (gate.locked || Has(kDone, gate.name)) return "";
  return gate.on || Has(kOffBetas, gate.name) ? "BETA" : "ALPHA";
}

const Gate* Find(std::string_view name) {
  const Gate* it = std::lower_bound(std::begin(kGates), std::end(kGates), name,
                                    [](const Gate& gate, std::string_view key) { return gate.name < key; });
  return it != std::end(kGates) && it->name == name ? it : nullptr;
}

}  // namespace

Result<> CheckFeatureGates(const std::map<std::string, bool>& gates) {
  for (const auto& [name, value] : gates) {
    // Turns whole stages on or off; the features here do not hang on it.
    if (name == "AllAlpha" || name == "AllBeta") continue;
    const Gate* gate = Find(name);
    if (!gate) return Error(Code::kInvalid, "unrecognized feature gate: " + name);
    if (gate->locked && gate->on != value)
      return Error(Code::kInvalid, "cannot set feature gate " + name + " to " + (value ? "true" : "false") +
                                       ", feature is locked to " + (gate->on ? "true" : "false"));
  }
  return {};
}

bool FeatureEnabled(const std::map<std::string, bool>& gates, std::string_view name) {
  if (auto it = gates.find(std::string(name)); it != gates.end()) return it->second;
  const Gate* gate = Find(name);
  return gate && gate->on;
}

std::vector<FeatureState> Features(const std::map<std::string, bool>& gates) {
  std::vector<FeatureState> out;
  for (const Gate& gate : kGates)
    out.push_back({std::string(gate.name), StageOf(gate), FeatureEnabled(gates, gate.name)});
  return out;
}

}  // namespace keelson::kubelet

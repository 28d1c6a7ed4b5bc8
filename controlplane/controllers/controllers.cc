#include "controlplane/controllers/controllers.h"

#include <algorithm>
#include <memory>
#include <set>
#include <thread>

#include "controlplane/controllers/attachdetach/controller.h"
#include "controlplane/controllers/bootstraptokens/controllers.h"
#include "controlplane/controllers/certificates/approver.h"
#include "controlplane/controllers/certificates/cleaner.h"
#include "controlplane/controllers/certificates/pod_request_cleaner.h"
#include "controlplane/controllers/certificates/signer.h"
#include "controlplane/controllers/clusterroleaggregation/controller.h"
#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/common/metrics.h"
#include "controlplane/controllers/cronjob/controller.h"
#include "controlplane/controllers/daemonset/controller.h"
#include "controlplane/controllers/deployment/controller.h"
#include "controlplane/controllers/disruption/controller.h"
#include "controlplane/controllers/disruption/stale_conditions.h"
#include "controlplane/controllers/endpoints/endpoints_controller.h"
#include "controlplane/controllers/endpoints/slice_controller.h"
#include "controlplane/controllers/ephemeralvolume/controller.h"
#include "controlplane/controllers/garbagecollector/garbage_collector.h"
#include "controlplane/controllers/job/controller.h"
#include "controlplane/controllers/job/orphans.h"
#include "controlplane/controllers/loadbalancer/controller.h"
#include "controlplane/controllers/mirroring/controller.h"
#include "controlplane/controllers/namespaces/namespace_controller.h"
#include "controlplane/controllers/namespaces/root_ca_publisher.h"
#include "controlplane/controllers/namespaces/service_account_controller.h"
#include "controlplane/controllers/node/node_ipam.h"
#include "controlplane/controllers/node/node_lifecycle.h"
#include "controlplane/controllers/node/node_ttl.h"
#include "controlplane/controllers/node/pod_gc.h"
#include "controlplane/controllers/node/taint_eviction.h"
#include "controlplane/controllers/podautoscaler/controller.h"
#include "controlplane/controllers/replicaset/controller.h"
#include "controlplane/controllers/resourceclaim/controller.h"
#include "controlplane/controllers/resourcequota/controller.h"
#include "controlplane/controllers/serviceaccounttokens/cleaner.h"
#include "controlplane/controllers/servicecidrs/controller.h"
#include "controlplane/controllers/statefulset/controller.h"
#include "controlplane/controllers/storageprotection/classes.h"
#include "controlplane/controllers/storageprotection/controller.h"
#include "controlplane/controllers/storageversionmigrator/controller.h"
#include "controlplane/controllers/ttlafterfinished/controller.h"
#include "controlplane/controllers/validatingadmissionpolicystatus/controller.h"
#include "controlplane/controllers/volumebinding/claims.h"
#include "controlplane/controllers/volumebinding/volumes.h"
#include "controlplane/controllers/volumeexpand/controller.h"
#include "lib/base/log.h"
#include "lib/client/discovered_informers.h"

namespace keelson::controllers {
namespace {

// Everything that Run() creates, in order of dependency.
struct Manager {
  Manager(client::RestClient a, Clock& c) : api(std::move(a)), clock(c), informers(api, clock) {}

  client::RestClient api;
  Clock& clock;
  client::InformerFactory informers;
  std::unique_ptr<client::DiscoveredInformers> discovered;  // null: no controller needs it
  std::vector<std::unique_ptr<client::EventRecorder>> recorders;
  std::unique_ptr<EndpointPods> endpoint_pods;
  struct Running {
    std::unique_ptr<Controller> controller;
    int workers;  // 0: the default
  };
  std::vector<Running> controllers;
  std::set<std::string> names;

  template <typename T, typename... Args>
  void Add(const Options& options, std::string_view name, const char* event_source, Args&&... args) {
    if (!options.selection.Has(name)) return;
    names.insert(std::string(name));
    const std::string account = AccountOf(name);
    const client::RestClient own = options.client_for && !account.empty() ? options.client_for(account) : api;
    recorders.push_back(std::make_unique<client::EventRecorder>(own, event_source, "", clock));
    auto workers = options.workers.find(name);
    controllers.push_back(
        {std::make_unique<T>(own, informers, *recorders.back(), clock, std::forward<Args>(args)...),
         workers == options.workers.end() ? 0 : workers->second});
  }
};

void Work(const Manager::Running& one, std::stop_token stop) {
  if (one.workers == 0) return one.controller->Run(stop);
  client::RunWorkers(
      one.controller->queue(), one.workers, stop,
      [&one](const std::string& key, std::stop_token s) { return one.controller->Reconcile(key, s); });
}

// The controllers of all kinds, custom ones included.
void BuildGeneric(Manager& manager, const Options& options) {
  constexpr std::string_view kNames[] = {"namespace-controller", "resourcequota-controller",
                                         "garbage-collector-controller"};
  const bool any = std::any_of(std::begin(kNames), std::end(kNames),
                               [&](std::string_view name) { return options.selection.Has(name); });
  if (!any) return;
  manager.discovered =
      std::make_unique<client::DiscoveredInformers>(manager.api, manager.informers, manager.clock);
  manager.Add<NamespaceController>(options, kNames[0], "namespace-controller", *manager.discovered);
  manager.Add<ResourceQuotaController>(options, kNames[1], "resourcequota-controller", *manager.discovered,
                                       options.resource_quota_sync_period);
  manager.Add<GarbageCollector>(options, kNames[2], "garbage-collector-controller", *manager.discovered);
}

Result<> Build(Manager& manager, const Options& options) {
  const bool slices = options.selection.Has("endpointslice-controller"),
             endpoints = options.selection.Has("endpoints-controller");
  if (slices || endpoints) manager.endpoint_pods = std::make_unique<EndpointPods>(manager.informers);
  BuildGeneric(manager, options);
  manager.Add<ServiceAccountController>(options, "serviceaccount-controller", "serviceaccount-controller");
  if (!options.root_ca_pem.empty()) {
    manager.Add<RootCaPublisher>(options, "root-ca-certificate-publisher-controller",
                                 "root-ca-cert-publisher", options.root_ca_pem);
  }
  if (options.aggregate_cluster_roles) {
    manager.Add<ClusterRoleAggregationController>(options, "clusterrole-aggregation-controller",
                                                  "clusterrole-aggregation-controller");
  }
  manager.Add<DaemonSetController>(options, "daemonset-controller", "daemonset-controller");
  manager.Add<DeploymentController>(options, "deployment-controller", "deployment-controller");
  manager.Add<ReplicaSetController>(options, "replicaset-controller", "replicaset-controller");
  manager.Add<JobController>(options, "job-controller", "job-controller");
  manager.Add<JobOrphanController>(options, "job-controller", "job-controller");
  manager.Add<CronJobController>(options, "cronjob-controller", "cronjob-controller");
  manager.Add<ReplicationControllerController>(options, "replicationcontroller-controller",
                                               "replication-controller");
  manager.Add<StatefulSetController>(options, "statefulset-controller", "statefulset-controller");
  manager.Add<PodAutoscalerController>(options, "horizontal-pod-autoscaler-controller",
                                       "horizontal-pod-autoscaler", options.pod_autoscaler);
  manager.Add<DisruptionController>(options, "disruption-controller", "controllermanager");
  manager.Add<StaleDisruptionController>(options, "disruption-controller", "controllermanager");
  manager.Add<ServiceCidrController>(options, "service-cidr-controller", "service-cidr-controller");
  Result<AddressPool> pool = AddressPool::Parse(options.load_balancer_addresses);
  if (!pool) return pool.error().Wrap("--load-balancer-addresses");
  manager.Add<LoadBalancerController>(options, "service-lb-controller", "service-controller",
                                      *std::move(pool));
  manager.Add<ClaimProtectionController>(options, "persistentvolumeclaim-protection-controller",
                                         "pvc-protection-controller");
  manager.Add<VolumeProtectionController>(options, "persistentvolume-protection-controller",
                                          "pv-protection-controller");
  manager.Add<ClassProtectionController>(options, "volumeattributesclass-protection-controller",
                                         "volumeattributesclass-protection-controller");
  manager.Add<ClaimBinder>(options, "persistentvolume-binder-controller", "persistentvolume-controller");
  manager.Add<VolumeBinder>(options, "persistentvolume-binder-controller", "persistentvolume-controller");
  manager.Add<VolumeExpandController>(options, "persistentvolume-expander-controller", "volume_expand");
  manager.Add<AttachDetachController>(
      options, "persistentvolume-attach-detach-controller", "attachdetach-controller",
      options.disable_force_detach ? std::chrono::seconds(0) : kForceDetachAfter);
  manager.Add<EphemeralVolumeController>(options, "ephemeral-volume-controller", "ephemeral_volume");
  manager.Add<ResourceClaimController>(options, "resourceclaim-controller", "resource_claim");
  manager.Add<NodeLifecycleController>(options, "node-lifecycle-controller", "node-controller", options);
  manager.Add<TaintEvictionController>(options, "taint-eviction-controller", "taint-eviction-controller");
  manager.Add<PodGcController>(options, "pod-garbage-collector-controller", "pod-garbage-collector",
                               options.terminated_pod_gc_threshold);
  manager.Add<CertificateApprover>(options, "certificatesigningrequest-approving-controller",
                                   "certificate-controller");
  manager.Add<CertificateCleaner>(options, "certificatesigningrequest-cleaner-controller",
                                  "certificate-controller");
  if (options.pod_certificates) {
    manager.Add<PodCertificateRequestCleaner>(options, "podcertificaterequest-cleaner-controller",
                                              "podcertificaterequestcleaner");
  }
  if (!options.signing.authorities.empty()) {
    manager.Add<CertificateSigner>(options, "certificatesigningrequest-signing-controller",
                                   "certificate-controller", options.signing);
  }
  if (slices) {
    manager.Add<EndpointSliceController>(options, "endpointslice-controller", "endpoint-slice-controller",
                                         *manager.endpoint_pods,
                                         static_cast<size_t>(options.max_endpoints_per_slice));
  }
  if (endpoints) {
    manager.Add<EndpointsController>(options, "endpoints-controller", "endpoint-controller",
                                     *manager.endpoint_pods);
  }
  manager.Add<EndpointSliceMirroringController>(options, "endpointslice-mirroring-controller",
                                                "endpoint-slice-mirroring-controller",
                                                options.max_mirrored_per_subset);
  manager.Add<TtlAfterFinishedController>(options, "ttl-after-finished-controller",
                                          "ttl-after-finished-controller");
  manager.Add<NodeTtlController>(options, "ttl-controller", "ttl-controller");
  manager.Add<ValidatingAdmissionPolicyStatusController>(
      options, "validatingadmissionpolicy-status-controller", "validatingadmissionpolicy-status-controller");
  if (options.storage_migrations) {
    manager.Add<StorageVersionMigrator>(options, "storage-version-migrator-controller",
                                        "storage-version-migrator-controller");
  }
  manager.Add<BootstrapSigner>(options, "bootstrap-signer-controller", "bootstrap-signer");
  manager.Add<TokenCleaner>(options, "token-cleaner-controller", "token-cleaner");
  manager.Add<LegacyTokenCleaner>(options, "legacy-serviceaccount-token-cleaner-controller",
                                  "legacy-service-account-token-cleaner", options.legacy_token_period);
  if (!options.service_account_key_pem.empty()) {
    auto keys = crypto::SigningKey::FromPem(options.service_account_key_pem);
    if (!keys) return keys.error().Wrap("key of service account tokens");
    if (!keys->front().is_private()) {
      return Error(Code::kInvalid, "key of service account tokens: no private key");
    }
    manager.Add<ServiceAccountTokensController>(options, "serviceaccount-token-controller",
                                                "tokens-controller", keys->front(), options.root_ca_pem);
  }
  if (options.allocate_node_cidrs && options.selection.Has("node-ipam-controller")) {
    KEELSON_ASSIGN_OR_RETURN(std::vector<CidrPool> pools, NodeIpamController::MakePools(options));
    manager.Add<NodeIpamController>(options, "node-ipam-controller", "cidrAllocator", std::move(pools));
  }
  return {};
}

}  // namespace

Result<> Run(client::RestClient api, const Options& options, std::stop_token stop,
             std::function<void()> ready, Clock& clock) {
  Manager manager(std::move(api), clock);
  KEELSON_RETURN_IF_ERROR(Build(manager, options));

  // The informer thread is joined last, so informers outlive the workers.
  std::vector<std::jthread> threads;
  for (auto& recorder : manager.recorders) {
    threads.emplace_back([&recorder, stop] { recorder->Run(stop); });
  }
  // Nobody waits for custom resources here: the controllers that need them know what is missing.
  if (manager.discovered) {
    threads.emplace_back([&manager, stop] { (void)manager.discovered->Run(stop, nullptr); });
  }
  std::vector<std::jthread> workers;
  metrics::Family& running = TheMetrics().running_controllers;
  Result<> result = manager.informers.Run(stop, [&] {
    for (const std::string& name : manager.names) running.With({name, "kube-controller-manager"}).Set(1);
    for (const Manager::Running& one : manager.controllers) {
      workers.emplace_back([&one, stop] { Work(one, stop); });
    }
    log::Info("Controllers started", {{"count", manager.controllers.size()}});
    if (ready) ready();
  });
  workers.clear();
  threads.clear();
  return result;
}

}  // namespace keelson::controllers

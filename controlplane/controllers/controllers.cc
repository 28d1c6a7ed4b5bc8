#include "controlplane/controllers/controllers.h"

#include <memory>
#include <thread>

#include "controlplane/controllers/attachdetach/controller.h"
#include "controlplane/controllers/bootstraptokens/controllers.h"
#include "controlplane/controllers/certificates/approver.h"
#include "controlplane/controllers/certificates/cleaner.h"
#include "controlplane/controllers/certificates/pod_request_cleaner.h"
#include "controlplane/controllers/certificates/signer.h"
#include "controlplane/controllers/controller.h"
#include "controlplane/controllers/cronjob/controller.h"
#include "controlplane/controllers/daemonset/controller.h"
#include "controlplane/controllers/deployment/controller.h"
#include "controlplane/controllers/disruption/controller.h"
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
#include "controlplane/controllers/node/pod_gc.h"
#include "controlplane/controllers/node/taint_eviction.h"
#include "controlplane/controllers/podautoscaler/controller.h"
#include "controlplane/controllers/replicaset/controller.h"
#include "controlplane/controllers/resourcequota/controller.h"
#include "controlplane/controllers/serviceaccounttokens/cleaner.h"
#include "controlplane/controllers/servicecidrs/controller.h"
#include "controlplane/controllers/statefulset/controller.h"
#include "controlplane/controllers/storageprotection/controller.h"
#include "controlplane/controllers/ttlafterfinished/controller.h"
#include "controlplane/controllers/volumebinding/claims.h"
#include "controlplane/controllers/volumebinding/volumes.h"
#include "controlplane/controllers/volumeexpand/controller.h"
#include "lib/base/log.h"

namespace keelson::controllers {
namespace {

// Everything that Run() builds; declared in the order that it depends on each other.
struct Manager {
  Manager(client::RestClient a, Clock& c) : api(std::move(a)), clock(c), informers(api, clock) {}

  client::RestClient api;
  Clock& clock;
  client::InformerFactory informers;
  std::vector<std::unique_ptr<client::EventRecorder>> recorders;
  std::unique_ptr<EndpointPods> endpoint_pods;
  std::vector<std::unique_ptr<Controller>> controllers;

  template <typename T, typename... Args>
  void Add(const Options& options, const char* name, const char* event_source, Args&&... args) {
    if (options.disabled.count(name)) return;
    recorders.push_back(std::make_unique<client::EventRecorder>(api, event_source, "", clock));
    controllers.push_back(
        std::make_unique<T>(api, informers, *recorders.back(), clock, std::forward<Args>(args)...));
  }
};

Result<> Build(Manager& manager, const Options& options) {
  const bool slices = !options.disabled.count("endpointslice"),
             endpoints = !options.disabled.count("endpoints");
  if (slices || endpoints) manager.endpoint_pods = std::make_unique<EndpointPods>(manager.informers);
  manager.Add<NamespaceController>(options, "namespace", "namespace-controller");
  manager.Add<ServiceAccountController>(options, "serviceaccount", "serviceaccount-controller");
  if (!options.root_ca_pem.empty()) {
    manager.Add<RootCaPublisher>(options, "root-ca-publisher", "root-ca-cert-publisher", options.root_ca_pem);
  }
  manager.Add<DaemonSetController>(options, "daemonset", "daemonset-controller");
  manager.Add<DeploymentController>(options, "deployment", "deployment-controller");
  manager.Add<ReplicaSetController>(options, "replicaset", "replicaset-controller");
  manager.Add<JobController>(options, "job", "job-controller");
  manager.Add<JobOrphanController>(options, "job", "job-controller");
  manager.Add<CronJobController>(options, "cronjob", "cronjob-controller");
  manager.Add<ReplicationControllerController>(options, "replicationcontroller", "replication-controller");
  manager.Add<StatefulSetController>(options, "statefulset", "statefulset-controller");
  manager.Add<PodAutoscalerController>(options, "horizontalpodautoscaling", "horizontal-pod-autoscaler",
                                       options.pod_autoscaler);
  manager.Add<DisruptionController>(options, "disruption", "controllermanager");
  manager.Add<ServiceCidrController>(options, "service-cidr", "service-cidr-controller");
  Result<AddressPool> pool = AddressPool::Parse(options.load_balancer_addresses);
  if (!pool) return pool.error().Wrap("--load-balancer-addresses");
  manager.Add<LoadBalancerController>(options, "service-lb", "service-controller", *std::move(pool));
  manager.Add<ResourceQuotaController>(options, "resourcequota", "resourcequota-controller");
  manager.Add<ClaimProtectionController>(options, "pvc-protection", "pvc-protection-controller");
  manager.Add<VolumeProtectionController>(options, "pv-protection", "pv-protection-controller");
  manager.Add<ClaimBinder>(options, "persistentvolume-binder", "persistentvolume-controller");
  manager.Add<VolumeBinder>(options, "persistentvolume-binder", "persistentvolume-controller");
  manager.Add<VolumeExpandController>(options, "persistentvolume-expander", "volume_expand");
  manager.Add<AttachDetachController>(options, "attachdetach", "attachdetach-controller");
  manager.Add<EphemeralVolumeController>(options, "ephemeral-volume", "ephemeral_volume");
  manager.Add<GarbageCollector>(options, "garbage-collector", "garbage-collector-controller");
  manager.Add<NodeLifecycleController>(options, "node-lifecycle", "node-controller", options);
  manager.Add<TaintEvictionController>(options, "taint-eviction", "taint-eviction-controller");
  manager.Add<PodGcController>(options, "pod-garbage-collector", "pod-garbage-collector",
                               options.terminated_pod_gc_threshold);
  manager.Add<CertificateApprover>(options, "csrapproving", "certificate-controller");
  manager.Add<CertificateCleaner>(options, "csrcleaner", "certificate-controller");
  manager.Add<PodCertificateRequestCleaner>(options, "podcertificaterequestcleaner",
                                            "podcertificaterequestcleaner");
  if (!options.signing.authorities.empty()) {
    manager.Add<CertificateSigner>(options, "csrsigning", "certificate-controller", options.signing);
  }
  if (slices) {
    manager.Add<EndpointSliceController>(options, "endpointslice", "endpoint-slice-controller",
                                         *manager.endpoint_pods);
  }
  if (endpoints) {
    manager.Add<EndpointsController>(options, "endpoints", "endpoint-controller", *manager.endpoint_pods);
  }
  manager.Add<EndpointSliceMirroringController>(options, "endpointslicemirroring",
                                                "endpoint-slice-mirroring-controller");
  manager.Add<TtlAfterFinishedController>(options, "ttl-after-finished", "ttl-after-finished-controller");
  manager.Add<BootstrapSigner>(options, "bootstrapsigner", "bootstrap-signer");
  manager.Add<TokenCleaner>(options, "tokencleaner", "token-cleaner");
  manager.Add<LegacyTokenCleaner>(options, "legacy-serviceaccount-token-cleaner",
                                  "legacy-service-account-token-cleaner", options.legacy_token_period);
  if (!options.service_account_key_pem.empty()) {
    auto keys = http::SigningKey::FromPem(options.service_account_key_pem);
    if (!keys) return keys.error().Wrap("key of service account tokens");
    if (!keys->front().is_private())
      return Error(Code::kInvalid, "key of service account tokens: no private key");
    manager.Add<ServiceAccountTokensController>(options, "serviceaccount-token", "tokens-controller",
                                                keys->front(), options.root_ca_pem);
  }
  if (options.allocate_node_cidrs && !options.disabled.count("node-ipam")) {
    ASSIGN_OR_RETURN(std::vector<CidrPool> pools, NodeIpamController::MakePools(options));
    manager.Add<NodeIpamController>(options, "node-ipam", "node-ipam-controller", std::move(pools));
  }
  return {};
}

}  // namespace

std::vector<std::string> ControllerNames() {
  return {"attachdetach",
          "bootstrapsigner",
          "cronjob",
          "csrapproving",
          "csrcleaner",
          "csrsigning",
          "daemonset",
          "deployment",
          "disruption",
          "endpoints",
          "endpointslice",
          "endpointslicemirroring",
          "ephemeral-volume",
          "garbage-collector",
          "horizontalpodautoscaling",
          "job",
          "legacy-serviceaccount-token-cleaner",
          "namespace",
          "node-ipam",
          "node-lifecycle",
          "persistentvolume-binder",
          "persistentvolume-expander",
          "pod-garbage-collector",
          "podcertificaterequestcleaner",
          "pv-protection",
          "pvc-protection",
          "replicaset",
          "replicationcontroller",
          "resourcequota",
          "root-ca-publisher",
          "service-cidr",
          "service-lb",
          "serviceaccount",
          "serviceaccount-token",
          "statefulset",
          "taint-eviction",
          "tokencleaner",
          "ttl-after-finished"};
}

Result<> Run(client::RestClient api, const Options& options, std::stop_token stop,
             std::function<void()> ready, Clock& clock) {
  for (const std::string& name : options.disabled) {
    std::vector<std::string> known = ControllerNames();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Error(Code::kInvalid, "no such controller: " + name);
    }
  }
  Manager manager(std::move(api), clock);
  RETURN_IF_ERROR(Build(manager, options));

  // The informers outlive the workers: their thread is joined last.
  std::vector<std::jthread> threads;
  for (auto& recorder : manager.recorders) {
    threads.emplace_back([&recorder, stop] { recorder->Run(stop); });
  }
  std::vector<std::jthread> workers;
  Result<> result = manager.informers.Run(stop, [&] {
    for (auto& controller : manager.controllers) {
      workers.emplace_back([&controller, stop] { controller->Run(stop); });
    }
    log::Info("Controllers started", {{"count", manager.controllers.size()}});
    if (ready) ready();
  });
  workers.clear();
  threads.clear();
  return result;
}

}  // namespace keelson::controllers

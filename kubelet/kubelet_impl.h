// What a kubelet consists of: kubelet.cc makes the parts, kubelet_wiring.cc says what they ask of each other,
// and kubelet_services.cc which of them run, in which order.
#pragma once

#include <algorithm>
#include <thread>

#include "kubelet/admission/admission.h"
#include "kubelet/cm/node_setup.h"
#include "kubelet/gc/containers.h"
#include "kubelet/gc/images.h"
#include "kubelet/gc/log_rotation.h"
#include "kubelet/housekeeping.h"
#include "kubelet/kubelet.h"
#include "kubelet/metrics/pod_starts.h"
#include "kubelet/node/event_reporter.h"
#include "kubelet/node/node_manager.h"
#include "kubelet/node/pod_cidr.h"
#include "kubelet/objects/api_objects.h"
#include "kubelet/pod/pleg.h"
#include "kubelet/pod/pod_workers.h"
#include "kubelet/pod/runtime_features.h"
#include "kubelet/probe/socket_prober.h"
#include "kubelet/server/node_backend.h"
#include "kubelet/server/usage.h"
#include "kubelet/shutdown/manager.h"
#include "kubelet/staticpod/static_pods.h"
#include "kubelet/volume/token_cache.h"
#include "lib/api/proto/node_v1.pb.h"
#include "lib/client/informer.h"

namespace keelson::kubelet {

struct Kubelet::Impl {
  Impl(KubeletParts given, const Settings& given_settings, Clock& given_clock);
  std::vector<k8s::NamedCheck> HealthChecks();
  PodCertificates::Dependencies CertificateDependencies();
  AccountSource Accounts();
  std::optional<std::string> OwnUid() const;
  // Mirrors are static pods' business. Of the others nothing is begun before the node is known to the API.
  void PodChanged(const client::Change<corev1::Pod>& change);
  void TakeApiPods();
  void UpdatePod(const std::shared_ptr<const corev1::Pod>& pod);
  void RemovePod(const std::string& uid);
  PodWorkers::Options WorkerOptions();
  // What the node's resources are spoken for by: pods as they were granted, not as they wish to be.
  std::vector<Admission::PodPtr> Granted(const std::string& except_uid) const;
  std::vector<ContainerLog> RunningLogs() const;
  NodeRoom RoomFor(const std::string& uid) const;
  StaticPods::Dependencies StaticDependencies();
  EvictionManager::Dependencies EvictionDependencies();
  ShutdownManager::Dependencies ShutdownDependencies();
  void RunShutdown(std::stop_token stop);
  void CollectDead(const ContainerGcOptions& options, std::stop_token stop);
  void Preempt(const corev1::Pod& pod);
  PodSyncer::Dependencies Dependencies();
  void ConnectResources();
  // The runtime's own name of what a RuntimeClass stands for.
  Result<std::string> HandlerOf(const std::string& name);
  std::optional<k8s::AdmitFailure> Admit(const corev1::Pod& pod);
  NodeFacts Facts(std::stop_token stop);
  // Together: the probes wait for those under way, whose sockets have to hear of the stop as well.
  Result<> RunProbes(std::stop_token stop);
  void RunOomWatch(std::stop_token stop);
  Result<> RunContainerGc(std::stop_token stop);
  void RunFiles(std::stop_token stop);
  void RunUrl(std::stop_token stop);

  KubeletParts parts;
  const Settings settings;
  Clock& clock;
  const NodeOptions node_options;
  // At kubeAPIQPS. Node, Lease and pods' statuses, for which others wait, go by parts.api.
  const client::RestClient api;
  EventReporter events;
  client::InformerFactory informers;
  client::Informer<corev1::Pod>& pods;
  client::Informer<corev1::Node>& nodes;
  client::Informer<api::node::v1::RuntimeClass>& runtime_classes;
  ApiObjects objects;
  TokenCache image_tokens;  // for providers of registries' credentials
  NodeManager node;
  const NodeContext context;
  RuntimeFeatures features;
  PodCidr pod_cidr;
  UserNamespaces user_namespaces;
  PodStarts starts;
  SocketProber sockets;
  std::unique_ptr<HandlerRunner> handlers;
  ImageManager images;
  VolumeManager volumes;
  StatusManager statuses;
  Executor executor;
  StartGate start_gate{std::max(10u, 4 * std::thread::hardware_concurrency())};
  ProbeManager probes;
  Pleg pleg;
  UsageReader usage;
  LogRotator log_rotator;
  ImageGc image_gc;
  EvictionManager evictions;
  Admission admission;
  Allocations allocations;
  ResizeQueue resizes;
  PodSyncer syncer;
  PodWorkers workers;
  ShutdownManager shutdown;
  StaticPods static_pods;
  Housekeeping housekeeping;
  Mutex mutex;
  bool takes_api_pods GUARDED_BY(mutex) = false;
  StatsProvider stats;
  Backend backend;
};

}  // namespace keelson::kubelet

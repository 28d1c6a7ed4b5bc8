// The kubelet's components: kubelet.cc makes them, kubelet_wiring.cc connects them, kubelet_services.cc says which of
// them run as services, and in which order.
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>

#include "kubelet/admission/admission.h"
#include "kubelet/cm/node_setup.h"
#include "kubelet/eviction/signal_observer.h"
#include "kubelet/gc/containers.h"
#include "kubelet/gc/images.h"
#include "kubelet/gc/log_rotation.h"
#include "kubelet/housekeeping.h"
#include "kubelet/kubelet.h"
#include "kubelet/metrics/pod_startup_latency_tracker.h"
#include "kubelet/node/event_reporter.h"
#include "kubelet/node/node_manager.h"
#include "kubelet/node/pod_cidr.h"
#include "kubelet/objects/api_object_source.h"
#include "kubelet/pod/pleg.h"
#include "kubelet/pod/pod_workers.h"
#include "kubelet/pod/runtime_features.h"
#include "kubelet/probe/socket_prober.h"
#include "kubelet/server/node_backend.h"
#include "kubelet/shutdown/manager.h"
#include "kubelet/staticpod/static_pods.h"
#include "kubelet/volume/csi/registration.h"
#include "kubelet/volume/token_cache.h"
#include "kubelet/volume/volume_meter.h"
#include "lib/api/proto/node_v1.pb.h"
#include "lib/client/informer.h"

namespace keelson::kubelet {

struct Kubelet::Impl {
  Impl(KubeletDependencies given, const Settings& given_settings, Clock& given_clock);
  std::vector<component::NamedCheck> HealthChecks();
  PodCertificates::Dependencies CertificateDependencies();
  AccountSource Accounts();
  std::optional<std::string> OwnUid() const;
  // Mirror pods go to StaticPods. Other pods wait until the node is registered.
  void PodChanged(const client::Change<corev1::Pod>& change);
  void TakeApiPods();
  void UpdatePod(const std::shared_ptr<const corev1::Pod>& pod);
  void RemovePod(const std::string& uid);
  PodWorkers::Options WorkerOptions();
  // Active pods with the resources that are allocated to them, which a pending resize does not change.
  std::vector<Admission::PodPtr> Granted(const std::string& except_uid) const;
  std::vector<ContainerLog> RunningLogs() const;
  NodeRoom RoomFor(const std::string& uid) const;
  StaticPods::Dependencies StaticDependencies();
  EvictionManager::Dependencies EvictionDependencies();
  ShutdownManager::Dependencies ShutdownDependencies();
  void RunShutdown(std::stop_token stop);
  void CollectDead(const ContainerGcOptions& options, std::stop_token stop);
  void Preempt(const corev1::Pod& pod);
  PodSyncer::Dependencies SyncerDependencies();
  void ConnectContainerManager();
  std::vector<std::unique_ptr<VolumePlugin>> VolumePlugins();
  csi::Registration::Dependencies CsiDependencies();
  // Events of pods whose volumes are not in order; empty: they are not wanted.
  VolumeMeter::TellAbnormal TellAbnormalVolumes();
  // Usage of a volume, by its plugin or its file system.
  SlowVolumes::Measure MeasureVolumes() const;
  // The node takes pods once its CSINode exists: the scheduler counts volumes by that.
  void InitializeCsiNode(NodeFacts& facts, std::stop_token stop);
  void WakePodsThatWaitForAttach(const client::Change<corev1::Node>& change);
  // The runtime handler of a RuntimeClass; "" for "".
  Result<std::string> HandlerOf(const std::string& name);
  std::optional<k8s::AdmitFailure> Admit(const corev1::Pod& pod);
  NodeFacts Facts(std::stop_token stop);
  // Runs prober and probe manager together: the manager waits for probes under way, whose sockets have to be
  // stopped too.
  Result<> RunProbes(std::stop_token stop);
  void RunOomWatch(std::stop_token stop);
  Result<> RunContainerGc(std::stop_token stop);
  // Asks drivers for the condition of volumes, also when nothing reads statistics.
  void RunVolumeHealth(std::stop_token stop);
  void RunFiles(std::stop_token stop);
  void RunUrl(std::stop_token stop);

  KubeletDependencies deps;
  const Settings settings;
  Clock& clock;
  const NodeOptions node_options;
  // Limited to kubeAPIQPS. Node, Lease, pod statuses, and reads of volumes use deps.api, which has no limit.
  const client::RestClient api;
  EventReporter events;
  client::InformerFactory informers;
  client::Informer<corev1::Pod>& pods;
  client::Informer<corev1::Node>& nodes;
  client::Informer<api::node::v1::RuntimeClass>& runtime_classes;
  client::Informer<api::storage::v1::CSIDriver>& csi_driver_objects;
  ApiObjectSource objects;
  TokenCache image_tokens;  // for image credential providers
  NodeManager node;
  const NodeContext context;
  RuntimeFeatures features;
  PodCidr pod_cidr;
  UserNamespaces user_namespaces;
  PodStartupLatencyTracker startup_latency;
  SocketProber sockets;
  std::unique_ptr<HandlerRunner> handlers;
  ImageManager images;
  csi::Drivers csi_drivers;
  csi::NodeInfoManager csi_node;
  csi::Registration csi_registration;
  std::atomic<bool> csi_node_initialized{false};
  VolumeManager volumes;
  StatusManager statuses;
  Executor executor;
  ContainerStartLimiter start_limiter{std::max(10u, 4 * std::thread::hardware_concurrency())};
  ProbeManager probes;
  Pleg pleg;
  SignalObserver signals;
  LogRotator log_rotator;
  ImageGc image_gc;
  EvictionManager evictions;
  Admission admission;
  Allocations allocations;
  ResizeQueue resizes;
  PodSyncer syncer;
  PodWorkers workers;
  VolumeMeter volume_meter;
  ShutdownManager shutdown;
  StaticPods static_pods;
  Housekeeping housekeeping;
  Mutex mutex;
  bool takes_api_pods KEELSON_GUARDED_BY(mutex) = false;
  StatsProvider stats;
  Backend backend;
};

}  // namespace keelson::kubelet

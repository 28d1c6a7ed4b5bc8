// Options of the kubelet's components, made from its settings. Pure, except that MakeImageManagerOptions reads $HOME.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "kubelet/config/settings.h"
#include "kubelet/gc/containers.h"
#include "kubelet/gc/images.h"
#include "kubelet/gc/log_rotation.h"
#include "kubelet/image/image_manager.h"
#include "kubelet/metrics/pod_startup_latency_tracker.h"
#include "kubelet/node/node_status.h"
#include "kubelet/pod/pod_syncer.h"

namespace keelson::kubelet {

// The sources of static pods that are configured: "file", "http".
std::set<std::string> StaticPodSources(const KubeletConfig& config);
// The memory that all pods together may have: the limit of the kubepods cgroup.
int64_t PodsMemory(const Machine& machine, Reservations reservations);
LogRotationOptions MakeLogRotationOptions(const KubeletConfig& config);
ImageGcOptions MakeImageGcOptions(const Settings& settings, ImageManager& images);
ContainerGcOptions MakeContainerGcOptions(const KubeletFlags& flags);
PodSyncer::Options MakePodSyncerOptions(const Settings& settings, const std::string& runtime_name);
// The options refer to `startup_latency`, which has to outlive them.
ImageManager::Options MakeImageManagerOptions(const Settings& settings,
                                              std::shared_ptr<CredentialProviders> providers,
                                              AccountSource accounts,
                                              PodStartupLatencyTracker& startup_latency);

}  // namespace keelson::kubelet

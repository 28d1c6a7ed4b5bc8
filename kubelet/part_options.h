// What the kubelet's parts need to know of its settings. Pure, but for $HOME.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "kubelet/config/settings.h"
#include "kubelet/gc/containers.h"
#include "kubelet/gc/images.h"
#include "kubelet/gc/log_rotation.h"
#include "kubelet/image/image_manager.h"
#include "kubelet/metrics/pod_starts.h"
#include "kubelet/node/node_status.h"
#include "kubelet/pod/pod_syncer.h"

namespace keelson::kubelet {

std::set<std::string> StaticSources(const KubeletConfig& config);  // that are asked: "file", "http"
// What all pods together may have: their cgroup's limit.
int64_t MemoryOfPods(const Machine& machine, Reservations reservations);
LogRotationOptions MakeLogOptions(const KubeletConfig& config);
ImageGcOptions MakeImageGcOptions(const Settings& settings, ImageManager& images);
ContainerGcOptions MakeContainerGcOptions(const KubeletFlags& flags);
PodSyncer::Options MakeSyncOptions(const Settings& settings, const std::string& runtime_name);
ImageManager::Options MakeImageOptions(const Settings& settings,
                                       std::shared_ptr<CredentialProviders> providers, AccountSource accounts,
                                       PodStarts& starts);

}  // namespace keelson::kubelet

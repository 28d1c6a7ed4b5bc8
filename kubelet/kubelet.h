// The kubelet between its API client and its container runtime. services.cc gives it the real ones, tests give it
// fakes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kubelet/cm/cgroups/pod_cgroups.h"
#include "kubelet/cm/container_manager.h"
#include "kubelet/config/settings.h"
#include "kubelet/cri/runtime.h"
#include "kubelet/image/credential_provider.h"
#include "kubelet/server/backend.h"
#include "kubelet/volume/plugin.h"
#include "lib/base/clock.h"
#include "lib/base/service_group.h"
#include "lib/client/rest.h"
#include "lib/linux/logind.h"

namespace keelson::kubelet {

struct KubeletDependencies {
  client::RestClient api;
  cri::RuntimeService& runtime;
  cri::ImageService& images;
  PodCgroups& cgroups;
  Mounter& mounter;
  bool cgroup_v2 = false;
  std::string runtime_name, runtime_version;  // containerd, 1.6.20
  bool standalone = false;                    // no API server: static pods only
  std::shared_ptr<CredentialProviders> credential_providers = nullptr;
  // Connects to logind, which announces shutdowns and delays them; empty: the kubelet ignores shutdowns.
  std::function<Result<std::unique_ptr<linux::Logind>>()> logind;
  ContainerManager* container_manager = nullptr;  // null: no CPU, memory or device manager
  // An error if an address of --node-ip cannot be the node's; empty: no check.
  std::function<Result<>(const std::string& ip)> check_node_ip = nullptr;
};

class Kubelet {
 public:
  // References in `deps` have to outlive the kubelet.
  Kubelet(KubeletDependencies deps, const Settings& settings, Clock& clock = Clock::Real());
  ~Kubelet();
  // Adds the kubelet's services, in two parts. Those of the node: cgroups, probes, runtime-events, pods, static pods,
  // eviction, ... The group waits for the API server before it starts what comes after the second part: informers,
  // node, housekeeping, ...
  void AddNodeServices(ServiceGroup& group);
  void AddApiServices(ServiceGroup& group);
  server::KubeletBackend& backend();
  const std::string& node_name() const;
  std::vector<corev1::NodeAddress> Addresses() const;  // as in the Node object; empty: not known yet

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::kubelet

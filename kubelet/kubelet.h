// The kubelet without its outside: everything between an API client and a container runtime. main.cc gives it
// the real ones, tests fakes.
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

struct KubeletParts {
  client::RestClient api;
  cri::RuntimeService& runtime;
  cri::ImageService& images;
  PodCgroups& cgroups;
  Mounter& mounter;
  bool cgroup_v2 = false;
  std::string runtime_name, runtime_version;  // containerd, 1.6.20
  bool standalone = false;                    // no API server: static pods only
  std::shared_ptr<CredentialProviders> credential_providers = nullptr;
  // What tells of the system's shutdown, and waits with it; empty: nothing.
  std::function<Result<std::unique_ptr<linux::Logind>>()> logind;
  NodeResources* resources = nullptr;  // null: containers get nothing of their own
  // Whether an address of --node-ip can be the node's; empty: all can.
  std::function<Result<>(const std::string& ip)> check_node_ip = nullptr;
};

class Kubelet {
 public:
  Kubelet(KubeletParts parts, const Settings& settings, Clock& clock = Clock::Real());
  ~Kubelet();
  // In the order of their needs: runtime events, informers, status writer, probes, node, pods, ...
  void AddServices(ServiceGroup& group);
  server::KubeletBackend& backend();
  const std::string& node_name() const;
  std::vector<corev1::NodeAddress> Addresses() const;  // as the API has them; none: not yet

 private:
  struct Impl;
  void AddApiServices(ServiceGroup& group);
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::kubelet

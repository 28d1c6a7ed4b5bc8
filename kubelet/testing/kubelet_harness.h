// A kubelet on an API server in memory, for tests: with a runtime in memory or a real one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "kubelet/kubelet.h"
#include "kubelet/testing/crash.h"
#include "lib/client/testing/fake_api.h"

namespace keelson::kubelet {

class NoMounts : public Mounter {  // remembers mount points only
 public:
  Result<> MountTmpfs(const std::string& target, const std::string&) override;
  Result<> Bind(const std::string&, const std::string& target, bool) override;
  Result<> Mount(const std::string&, const std::string& target, const std::string&,
                 const std::vector<std::string>&, std::stop_token) override;
  Result<bool> IsMountPoint(const std::string& path) override;
  Result<> MakeShared(const std::string&) override { return {}; }
  Result<> Unmount(const std::string& target, bool) override;
  Disks& disks() override { return *disks_; }
  Result<std::vector<std::string>> MountPointsUnder(const std::string& prefix) override;

 private:
  Mutex mutex_;
  std::set<std::string> mounts_ KEELSON_GUARDED_BY(mutex_);
  const std::unique_ptr<Disks> disks_ = NewDisks();
};

// A temporary directory, an API server in memory and settings. Start and Stop may be called repeatedly.
class KubeletHarness {
 public:
  KubeletHarness(cri::RuntimeService& runtime, cri::ImageService& images, PodCgroups& cgroups,
                 Mounter& mounter, std::string dir, const std::string& node_ip, Clock& clock = Clock::Real());
  ~KubeletHarness();

  // The kubelet's transport to the API server, from its next start on; the test itself uses wire().
  void ReachApiBy(std::shared_ptr<client::Transport> way) {
    kubelet_api_ = client::RestClient(std::move(way));
  }
  std::shared_ptr<client::Transport> wire() { return fake_; }
  void CrashBy(CrashPlan& plan) { ReachApiBy(CrashingTransport(fake_, plan)); }
  void Start(bool standalone = false);  // returns when the node is registered and pods are watched
  void Stop();
  corev1::Pod Create(const std::string& json);  // defaulted and bound to this node
  // Blocks until the pod in the API satisfies `condition` (null: the pod is gone). False after 60 s.
  bool Await(const std::string& name, const std::function<bool(const corev1::Pod*)>& condition);
  corev1::Pod Get(const std::string& name);
  // The condition now, for tests with a fake clock.
  bool Sees(const std::string& name, const std::function<bool(const corev1::Pod*)>& condition);
  void Delete(const std::string& name, int64_t grace);

  client::RestClient& api() { return api_; }
  client::FakeApi& fake_api() { return *fake_; }
  Settings& settings() { return settings_; }
  // Adds a container manager, from the next start on.
  void ManageResources() { has_container_manager_ = true; }
  // From the next start on.
  void AskForCredentials(std::shared_ptr<CredentialProviders> providers) {
    credential_providers_ = std::move(providers);
  }
  void set_cgroup_v2(bool v2) { cgroup_v2_ = v2; }
  server::KubeletBackend& backend() { return kubelet_->backend(); }

 private:
  cri::RuntimeService& runtime_;
  cri::ImageService& images_;
  PodCgroups& cgroups_;
  Mounter& mounter_;
  Clock& clock_;
  Settings settings_;
  bool cgroup_v2_ = false;
  std::shared_ptr<client::FakeApi> fake_;
  client::RestClient api_, kubelet_api_;
  std::shared_ptr<CredentialProviders> credential_providers_;
  bool has_container_manager_ = false;
  std::unique_ptr<ContainerManager> container_manager_;
  std::unique_ptr<Kubelet> kubelet_;
  std::jthread thread_;
};

bool IsPodReady(const corev1::Pod* pod);

}  // namespace keelson::kubelet

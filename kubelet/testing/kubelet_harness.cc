#include "kubelet/testing/kubelet_harness.h"

#include <cstdio>
#include <cstdlib>

#include "kubelet/cm/node_setup.h"
#include "lib/api/codec/codec.h"
#include "lib/base/file.h"
#include "lib/k8s/defaulting/defaulting.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

constexpr char kNode[] = "node-under-test";

Result<> NoMounts::MountTmpfs(const std::string& target, const std::string&) {
  MutexLock lock(mutex_);
  mounts_.insert(target);
  return {};
}

Result<> NoMounts::Bind(const std::string&, const std::string& target, bool) {
  return MountTmpfs(target, "");
}

Result<> NoMounts::Mount(const std::string&, const std::string& target, const std::string&,
                         const std::vector<std::string>&, std::stop_token) {
  return MountTmpfs(target, "");
}

Result<bool> NoMounts::IsMountPoint(const std::string& path) {
  MutexLock lock(mutex_);
  return mounts_.count(path) > 0;
}

Result<> NoMounts::Unmount(const std::string& target, bool) {
  MutexLock lock(mutex_);
  mounts_.erase(target);
  return {};
}

Result<std::vector<std::string>> NoMounts::MountPointsUnder(const std::string& prefix) {
  MutexLock lock(mutex_);
  std::vector<std::string> out;
  for (const std::string& point : mounts_) {
    if (point.compare(0, prefix.size(), prefix) == 0) out.push_back(point);
  }
  return out;
}

KubeletHarness::KubeletHarness(cri::RuntimeService& runtime, cri::ImageService& images, PodCgroups& cgroups,
                               Mounter& mounter, std::string dir, const std::string& node_ip, Clock& clock)
    : runtime_(runtime),
      images_(images),
      cgroups_(cgroups),
      mounter_(mounter),
      clock_(clock),
      fake_(std::make_shared<client::FakeApi>(clock)),
      api_(fake_),
      kubelet_api_(fake_) {
  settings_.flags.root_dir = dir + "/kubelet";
  settings_.flags.hostname_override = kNode;
  settings_.flags.node_ip = node_ip;
  settings_.config.pod_logs_dir = dir + "/logs";
  settings_.config.resolv_conf = "";
  settings_.config.eviction_hard.clear();
  settings_.config.image_gc_high_threshold_percent = 100;
}

KubeletHarness::~KubeletHarness() { Stop(); }

void KubeletHarness::Start(bool standalone) {
  KubeletDependencies deps{kubelet_api_, runtime_,     images_, cgroups_,   mounter_,
                           cgroup_v2_,   "containerd", "0",     standalone, credential_providers_};
  if (has_container_manager_) {
    auto made = MakeDirs(settings_.flags.root_dir)
                    ? ContainerManager::Make(
                          settings_, MakeReservations(settings_, ReadMachine(settings_.flags.root_dir)),
                          runtime_, clock_)
                    : Error(Code::kInternal, "cannot make " + settings_.flags.root_dir);
    if (!made) {
      std::fprintf(stderr, "%s\n", made.error().message().c_str());
      std::abort();
    }
    container_manager_ = std::move(*made);
    deps.container_manager = container_manager_.get();
  }
  kubelet_ = std::make_unique<Kubelet>(std::move(deps), settings_, clock_);
  Mutex mutex;
  CondVar cv;
  bool up = false;
  thread_ = std::jthread([&, standalone, kubelet = kubelet_.get()](std::stop_token stop) {
    ServiceGroup group;
    kubelet->AddNodeServices(group);
    kubelet->AddApiServices(group);
    group.Add({"up",
               {standalone ? "pods" : "api-pods"},
               [&](std::stop_token token, ServiceGroup::Ready ready) -> Result<> {
                 ready();
                 {
                   MutexLock lock(mutex);
                   up = true;
                   cv.notify_all();
                 }
                 Mutex own;
                 CondVar wait;
                 MutexLock lock(own);
                 wait.wait(own, token, [] { return false; });
                 return {};
               }});
    if (auto ended = group.Run(stop); !ended) {
      std::fprintf(stderr, "kubelet ended: %s\n", ended.error().message().c_str());
      std::abort();
    }
  });
  MutexLock lock(mutex);
  while (!up) cv.wait(mutex);
}

void KubeletHarness::Stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  kubelet_.reset();
  container_manager_.reset();
}

corev1::Pod KubeletHarness::Create(const std::string& json) {
  corev1::Pod pod;
  if (auto decoded = api::DecodeJson(json, pod); !decoded) {
    std::fprintf(stderr, "%s\n", decoded.error().message().c_str());
    std::abort();
  }
  pod.mutable_metadata()->set_namespace_("default");
  pod.mutable_spec()->set_node_name(kNode);
  k8s::SetDefaults(pod);
  return *api_.Create(pod);
}

bool KubeletHarness::Await(const std::string& name,
                           const std::function<bool(const corev1::Pod*)>& condition) {
  std::stop_source late;
  std::jthread timer([&late](std::stop_token done) {
    Mutex mutex;
    CondVar cv;
    MutexLock lock(mutex);
    cv.wait_for(mutex, done, std::chrono::seconds(60), [] { return false; });
    late.request_stop();
  });
  client::ListOptions options;
  options.field_selector = "metadata.name=" + name;
  while (!late.stop_requested()) {
    std::string version;
    corev1::Pod pod;
    bool exists = false;
    auto listed = api_.ListEach(api::ResourceOf<corev1::Pod>(), "default", options, &version,
                                [&](std::string_view raw) {
                                  exists = true;
                                  return client::RestClient::DecodeInto(raw, pod);
                                });
    if (listed && condition(exists ? &pod : nullptr)) return true;
    client::ListOptions from = options;
    from.resource_version = version;
    auto stream = api_.Watch(api::ResourceOf<corev1::Pod>(), "default", from);
    if (!stream) continue;
    while (true) {
      auto event = (*stream)->Next(late.get_token());
      if (!event) break;
      if (event->type == client::WatchEvent::Type::kBookmark) continue;
      bool deleted = event->type == client::WatchEvent::Type::kDeleted;
      if (!deleted && !client::RestClient::DecodeInto(event->raw, pod)) break;
      if (condition(deleted ? nullptr : &pod)) return true;
    }
  }
  return false;
}

corev1::Pod KubeletHarness::Get(const std::string& name) { return *api_.Get<corev1::Pod>("default", name); }

bool KubeletHarness::Sees(const std::string& name, const std::function<bool(const corev1::Pod*)>& condition) {
  auto pod = api_.Get<corev1::Pod>("default", name);
  return condition(pod ? &*pod : nullptr);
}

void KubeletHarness::Delete(const std::string& name, int64_t grace) {
  client::DeleteOptions options;
  options.grace_period_seconds = grace;
  (void)api_.Delete<corev1::Pod>("default", name, options);
}

bool IsPodReady(const corev1::Pod* pod) { return pod && k8s::IsReady(*pod); }

}  // namespace keelson::kubelet

// The cost of many objects for controllers, scheduler and API server, with fake nodes: Deployments until all
// pods are Ready, a rest, a rolling update, deletion of a full namespace. One line per measurement:
//   NAME COUNT SECONDS PER_SECOND WRITES_EACH CONTROL_PLANE_CPU_MS_EACH ETCD_CPU_MS_EACH RESIDENT_MB
// followed by the writes, by verb and resource.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "lib/base/log.h"
#include "lib/client/informer.h"
#include "lib/event/loop.h"
#include "lib/k8s/pods/pod_util.h"
#include "tests/fake_kubelet/control_plane.h"

namespace keelson::fake_kubelet {
namespace {

using std::chrono::steady_clock;

struct LoadOptions {
  int deployments = 1000, replicas = 10, rollout = 1000, objects = 10000, nodes = 100, rest_seconds = 30;
};

appsv1::Deployment DeploymentOf(const std::string& ns, const std::string& name, int replicas,
                                const std::string& image) {
  appsv1::Deployment out;
  out.mutable_metadata()->set_namespace_(ns);
  out.mutable_metadata()->set_name(name);
  appsv1::DeploymentSpec& spec = *out.mutable_spec();
  spec.set_replicas(replicas);
  (*spec.mutable_selector()->mutable_match_labels())["app"] = name;
  (*spec.mutable_template_()->mutable_metadata()->mutable_labels())["app"] = name;
  corev1::Container& container = *spec.mutable_template_()->mutable_spec()->add_containers();
  container.set_name("main");
  container.set_image(image);
  (*container.mutable_resources()->mutable_requests())["cpu"].set_string("10m");
  return out;
}

// Counts the pods with a condition, from a watch.
class PodCount {
 public:
  PodCount(const client::RestClient& api, const std::string& ns,
           std::function<bool(const corev1::Pod&)> which)
      : informers_(api), which_(std::move(which)) {
    informers_.Get<corev1::Pod>({}, ns).AddHandler([this](const client::Change<corev1::Pod>& change) {
      MutexLock lock(mutex_);
      for (auto [pod, by] : {std::pair(change.old_object.get(), -1), {change.new_object.get(), 1}}) {
        if (!pod) continue;
        all_ += by;
        if (which_(*pod)) matching_ += by;
        if (k8s::IsActive(*pod)) active_ += by;
      }
      most_ = std::max(most_, active_);
      changed_.notify_all();
    });
    runner_ = std::jthread([this](std::stop_token stop) { (void)informers_.Run(stop, [] {}); });
  }
  // False after ten minutes.
  bool Await(int matching, int all) {
    MutexLock lock(mutex_);
    return changed_.wait_for(mutex_, std::chrono::minutes(10),
                             [&] { return matching_ == matching && all_ == all; });
  }
  int most() {
    MutexLock lock(mutex_);
    return most_;
  }

 private:
  client::InformerFactory informers_;
  const std::function<bool(const corev1::Pod&)> which_;
  Mutex mutex_;
  CondVar changed_;
  int matching_ = 0, all_ = 0, active_ = 0, most_ = 0;
  std::jthread runner_;
};

class Load {
 public:
  explicit Load(const LoadOptions& options) : options_(options), plane_({}, NodesOf(options)) {}

  Result<> Run() {
    KEELSON_RETURN_IF_ERROR(Deployments());
    KEELSON_RETURN_IF_ERROR(Rest());
    KEELSON_RETURN_IF_ERROR(Rollout());
    return FullNamespace();
  }

 private:
  static Options NodesOf(const LoadOptions& options) {
    Options out;
    out.nodes = options.nodes;
    return out;
  }

  Result<> MakeNamespace(const std::string& name) {
    corev1::Namespace ns;
    ns.mutable_metadata()->set_name(name);
    KEELSON_RETURN_IF_ERROR(plane_.api().Create(ns));
    for (int i = 0; i < 600; ++i) {
      if (plane_.api().Get<corev1::ServiceAccount>(name, "default")) return {};
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return Error(Code::kTimeout, "no default ServiceAccount in " + name);
  }

  // Calls each(i) for 0 <= i < count from eight threads.
  static Result<> Many(int count, const std::function<Result<>(int)>& each) {
    std::atomic<int> next{0};
    std::vector<Result<>> results(8);
    {
      std::vector<std::jthread> threads;
      for (Result<>& result : results) {
        threads.emplace_back([&] {
          for (int i; (i = next.fetch_add(1)) < count && result;) result = each(i);
        });
      }
    }
    for (const Result<>& result : results) KEELSON_RETURN_IF_ERROR(result);
    return {};
  }

  Result<> Time(const std::string& name, int count, const std::function<Result<>()>& work) {
    const auto writes = plane_.CountWrites();
    const double cpu = plane_.CpuSeconds(), etcd = plane_.EtcdCpuSeconds();
    const auto begin = steady_clock::now();
    KEELSON_RETURN_IF_ERROR(work());
    const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
    Print(name, count, seconds, writes, cpu, etcd);
    return {};
  }

  void Print(const std::string& name, int count, double seconds, const ControlPlane::Writes& before,
             double cpu, double etcd) {
    const auto writes = ControlPlane::Difference(plane_.CountWrites(), before);
    fmt::print(
        "{:<42} {:>6} {:>7.1f} s {:>7.0f}/s {:>6.2f} writes each  cpu {:>6.2f} ms each  etcd {:>6.2f} ms "
        "each {:>5} MB\n",
        name, count, seconds, count / seconds, static_cast<double>(ControlPlane::Sum(writes)) / count,
        (plane_.CpuSeconds() - cpu) * 1e3 / count, (plane_.EtcdCpuSeconds() - etcd) * 1e3 / count,
        plane_.ResidentMb());
    for (const auto& [what, number] : writes) fmt::print("    {:<40} {}\n", what, number);
    std::fflush(stdout);
  }

  Result<> Deployments() {
    KEELSON_RETURN_IF_ERROR(MakeNamespace("load"));
    const int pods = options_.deployments * options_.replicas;
    PodCount count(plane_.api(), "load", [](const corev1::Pod& pod) { return k8s::IsReady(pod); });
    return Time(
        fmt::format("{} Deployments x {}", options_.deployments, options_.replicas), pods, [&]() -> Result<> {
          KEELSON_RETURN_IF_ERROR(Many(options_.deployments, [&](int i) -> Result<> {
            KEELSON_RETURN_IF_ERROR(
                plane_.api().Create(DeploymentOf("load", fmt::format("d{}", i), options_.replicas, "one")));
            return {};
          }));
          if (!count.Await(pods, pods)) return Error(Code::kTimeout, "pods are not ready");
          return {};
        });
  }

  // Events are sent one by one after other requests. Returns false after two minutes.
  bool AwaitQuiet() {
    const auto begin = steady_clock::now();
    auto writes = plane_.CountWrites(), first = writes;
    for (int i = 0; i < 40; ++i) {
      std::this_thread::sleep_for(std::chrono::seconds(3));
      auto now = plane_.CountWrites();
      if (now == writes) {
        fmt::print("    quiet {:.0f} s later, after {} more events\n",
                   std::chrono::duration<double>(steady_clock::now() - begin).count() - 3,
                   now["POST events"] - first["POST events"]);
        return true;
      }
      writes = std::move(now);
    }
    return false;
  }

  Result<> Rest() {
    if (!AwaitQuiet()) return Error(Code::kTimeout, "writes go on and on");
    const auto writes = plane_.CountWrites();
    const double cpu = plane_.CpuSeconds(), etcd = plane_.EtcdCpuSeconds();
    std::this_thread::sleep_for(std::chrono::seconds(options_.rest_seconds));
    Print("at rest, a second", options_.rest_seconds, options_.rest_seconds, writes, cpu, etcd);
    return {};
  }

  Result<> Rollout() {
    const int pods = options_.rollout;
    KEELSON_RETURN_IF_ERROR(MakeNamespace("rollout"));
    PodCount count(plane_.api(), "rollout", [](const corev1::Pod& pod) {
      return k8s::IsReady(pod) && pod.spec().containers(0).image() == "two";
    });
    PodCount first(plane_.api(), "rollout", [](const corev1::Pod& pod) { return k8s::IsReady(pod); });
    KEELSON_RETURN_IF_ERROR(Time(fmt::format("one Deployment x {}", pods), pods, [&]() -> Result<> {
      KEELSON_RETURN_IF_ERROR(plane_.api().Create(DeploymentOf("rollout", "big", pods, "one")));
      if (!first.Await(pods, pods)) return Error(Code::kTimeout, "pods are not ready");
      return {};
    }));
    KEELSON_RETURN_IF_ERROR(Time(fmt::format("its rolling update", pods), pods, [&]() -> Result<> {
      auto change = [](appsv1::Deployment& deployment) -> Result<bool> {
        deployment.mutable_spec()->mutable_template_()->mutable_spec()->mutable_containers(0)->set_image(
            "two");
        return true;
      };
      KEELSON_RETURN_IF_ERROR(
          client::UpdateWithRetry<appsv1::Deployment>(plane_.api(), "rollout", "big", "", change));
      if (!count.Await(pods, pods)) return Error(Code::kTimeout, "the rollout has not ended");
      return {};
    }));
    fmt::print("    at most {} pods that are not on their way out; 25 % may be beyond {}\n", count.most(),
               pods);
    return {};
  }

  Result<> FullNamespace() {
    KEELSON_RETURN_IF_ERROR(MakeNamespace("full"));
    KEELSON_RETURN_IF_ERROR(Many(options_.objects, [&](int i) -> Result<> {
      corev1::ConfigMap map;
      map.mutable_metadata()->set_namespace_("full");
      map.mutable_metadata()->set_name(fmt::format("c{}", i));
      (*map.mutable_data())["key"] = "value";
      KEELSON_RETURN_IF_ERROR(plane_.api().Create(map));
      return {};
    }));
    KEELSON_RETURN_IF_ERROR(RemoveNamespace(
        "full", fmt::format("namespace of {} ConfigMaps removed", options_.objects), options_.objects));
    return RemoveNamespace("load", "namespace of the Deployments removed, a pod",
                           options_.deployments * options_.replicas);
  }

  Result<> RemoveNamespace(const std::string& name, const std::string& title, int count) {
    return Time(title, count, [&]() -> Result<> {
      KEELSON_RETURN_IF_ERROR(plane_.api().Delete<corev1::Namespace>("", name));
      for (int i = 0; i < 12000; ++i) {
        auto left = plane_.api().Get<corev1::Namespace>("", name);
        if (!left && left.error().Is(Code::kNotFound)) return {};
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      return Error(Code::kTimeout, "namespace is still there: " + name);
    });
  }

  const LoadOptions options_;
  ControlPlane plane_;
};

}  // namespace
}  // namespace keelson::fake_kubelet

int main(int argc, char** argv) {
  keelson::event::LoopsOfProcess loops;
  keelson::fake_kubelet::LoadOptions options;
  CLI::App app("Load for controllers");
  app.add_option("--deployments", options.deployments)->capture_default_str();
  app.add_option("--replicas", options.replicas, "of each")->capture_default_str();
  app.add_option("--rollout", options.rollout, "replicas of the one that is rolled")->capture_default_str();
  app.add_option("--objects", options.objects, "in the namespace that is removed")->capture_default_str();
  app.add_option("--nodes", options.nodes)->capture_default_str();
  app.add_option("--rest", options.rest_seconds, "seconds")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  keelson::log::SetLevel(keelson::log::Level::kWarn);
  if (std::string missing = keelson::apiserver::TestCluster::Missing(); !missing.empty()) {
    return fmt::print(stderr, "{}\n", missing), 1;
  }
  fmt::print("cores: {}\n", std::thread::hardware_concurrency());
  keelson::fake_kubelet::Load load(options);
  keelson::Result<> result = load.Run();
  if (!result) fmt::print(stderr, "{}\n", result.error().message());
  return result ? 0 : 1;
}

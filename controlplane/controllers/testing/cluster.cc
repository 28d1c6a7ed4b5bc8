#include "controlplane/controllers/testing/cluster.h"

#include <algorithm>
#include <latch>

#include <gtest/gtest.h>

#include "lib/api/meta.h"
#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/k8s/defaulting/defaulting.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {

TestCluster::TestCluster() = default;
TestCluster::~TestCluster() = default;

void TestCluster::Deny(const std::string& what) { ADD_FAILURE() << what; }

client::DiscoveredInformers& TestCluster::discovered() {
  if (!discovered_) discovered_ = std::make_unique<client::DiscoveredInformers>(api, informers);
  return *discovered_;
}

void TestCluster::ServeCustom(const client::FakeApi::Custom& custom) {
  fake->Serve(custom);
  const std::string name = custom.resource + "." + custom.group;
  if (custom.versions.empty()) {
    custom_.erase(name);
  } else {
    custom_.insert(name);
  }
  if (!discovered_runner_.joinable()) return;
  // The fake makes nothing of a definition; its change is what counts.
  api::apiextensions::v1::CustomResourceDefinition definition;
  definition.mutable_metadata()->set_name(name);
  (void)fake->Put(definition);
  auto known = [&] {
    if (discovered_->size() != custom_.size() || !discovered_->settled()) return false;
    const auto found = discovered_->discovered();
    return std::all_of(custom.versions.begin(), custom.versions.end(), [&](const std::string& version) {
      return found->FindKind(custom.group, version, custom.kind) != nullptr;
    });
  };
  while (!known()) std::this_thread::yield();
}

void TestCluster::Start() {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  runner_ = std::jthread([&, this](std::stop_token stop) {
    (void)informers.Run(stop, [&] {
      MutexLock lock(mutex);
      ready = true;
      changed.notify_all();
    });
  });
  {
    MutexLock lock(mutex);
    while (!ready) changed.wait(mutex);
  }
  if (discovered_) {
    std::latch settled(1);
    discovered_runner_ = std::jthread(
        [&, this](std::stop_token stop) { (void)discovered_->Run(stop, [&] { settled.count_down(); }); });
    settled.wait();
  }
  Settle();
}

void TestCluster::Stop() {
  discovered_runner_ = std::jthread();
  runner_ = std::jthread();
  discovered_.reset();
  owned_.clear();
  std::destroy_at(&informers);
  std::construct_at(&informers, api, clock);
}

void TestCluster::Settle() { fake->AwaitIdle(informers.size() + (discovered_ ? discovered_->size() : 0)); }

void TestCluster::Drain(const std::vector<Controller*>& controllers) {
  for (bool busy = true; busy;) {
    busy = false;
    Settle();
    for (Controller* controller : controllers) {
      client::WorkQueue& queue = controller->queue();
      for (size_t n = queue.size(); n > 0; --n) {
        busy = true;
        std::string key = *queue.Get(std::stop_token());
        Result<Requeue> result = controller->Reconcile(key, std::stop_token());
        queue.Done(key);
        if (result) {
          queue.Forget(key);
          if (result->after) queue.AddAfter(key, *result->after);
        } else if (result.error().Is(Code::kConflict)) {
          queue.Add(key);
        } else {
          errors.push_back(controller->name() + ": " + result.error().message());
          queue.AddRateLimited(key);
        }
      }
    }
  }
}

void TestCluster::Advance(std::chrono::nanoseconds by, const std::vector<Controller*>& controllers) {
  clock.Advance(by);
  Drain(controllers);
}

int TestCluster::RunPods(const std::string& node) {
  int touched = 0;
  for (corev1::Pod pod : List<corev1::Pod>()) {
    const metav1::ObjectMeta& meta = pod.metadata();
    if (k8s::IsTerminating(pod)) {
      (void)api.Delete<corev1::Pod>(meta.namespace_(), meta.name(), {.grace_period_seconds = 0});
      ++touched;
      continue;
    }
    if (k8s::IsReady(pod)) continue;
    if (pod.spec().node_name().empty()) pod.mutable_spec()->set_node_name(node);
    if (pod.status().pod_ips_size() == 0) {
      pod.mutable_status()->add_pod_ips()->set_ip("10.1.0." + std::to_string(next_address_++));
    }
    MakeReady(pod, clock.Now());
    fake->Put(pod);
    ++touched;
  }
  return touched;
}

std::vector<std::string> TestCluster::Events() {
  // Waits for a last event of its own: all earlier events are written then.
  corev1::ObjectReference end;
  end.set_kind("Node");
  end.set_name("end-of-events");
  events.Record(end, "Normal", "End", "end");
  std::jthread runner([this](std::stop_token stop) { events.Run(stop); });
  for (;;) {
    std::vector<std::string> out;
    bool complete = false;
    for (const auto& event : List<corev1::Event>()) {
      if (event.reason() == "End") {
        complete = true;
      } else {
        out.push_back(event.reason() + ": " + event.message());
      }
    }
    if (complete) {
      std::sort(out.begin(), out.end());
      return out;
    }
    std::this_thread::yield();
  }
}

corev1::Pod PodNamed(const std::string& name, const std::map<std::string, std::string>& labels,
                     const std::string& node) {
  corev1::Pod pod;
  pod.mutable_metadata()->set_name(name);
  pod.mutable_metadata()->set_namespace_("default");
  for (const auto& [key, value] : labels) (*pod.mutable_metadata()->mutable_labels())[key] = value;
  if (!node.empty()) pod.mutable_spec()->set_node_name(node);
  corev1::Container& container = *pod.mutable_spec()->add_containers();
  container.set_name("main");
  container.set_image("example/image");
  return pod;
}

void MakeReady(corev1::Pod& pod, WallTime since) {
  pod.mutable_status()->set_phase("Running");
  corev1::PodCondition condition;
  condition.set_type("Ready");
  condition.set_status("True");
  k8s::SetCondition(*pod.mutable_status(), std::move(condition), since);
}

appsv1::Deployment DeploymentNamed(const std::string& name, int32_t replicas) {
  appsv1::Deployment deployment;
  deployment.mutable_metadata()->set_name(name);
  deployment.mutable_metadata()->set_namespace_("default");
  appsv1::DeploymentSpec& spec = *deployment.mutable_spec();
  spec.set_replicas(replicas);
  (*spec.mutable_selector()->mutable_match_labels())["app"] = name;
  (*spec.mutable_template_()->mutable_metadata()->mutable_labels())["app"] = name;
  *spec.mutable_template_()->mutable_spec() = PodNamed("x").spec();
  k8s::SetDefaults(deployment);
  return deployment;
}

corev1::Node NodeNamed(const std::string& name, const char* ready) {
  corev1::Node node;
  node.mutable_metadata()->set_name(name);
  corev1::NodeCondition& condition = *node.mutable_status()->add_conditions();
  condition.set_type("Ready");
  condition.set_status(ready);
  condition.set_reason("KubeletReady");
  return node;
}

}  // namespace keelson::controllers

#include "kubelet/testing/kubelet_test.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {
namespace {

class ResizeTest : public KubeletTest {
 protected:
  // Both limits and requests of the container "c".
  void Ask(const std::string& cpu) {
    corev1::Pod pod = harness_->Get("web");
    auto& resources = *pod.mutable_spec()->mutable_containers(0)->mutable_resources();
    (*resources.mutable_requests())["cpu"].set_string(cpu);
    (*resources.mutable_limits())["cpu"].set_string(cpu);
    auto stored = harness_->api().Update(pod);
    ASSERT_TRUE(stored) << stored.error().message();
  }
  void Begin(const std::string& policy) {
    harness_->Start();
    harness_->Create(R"({"metadata":{"name":"web"},"spec":{"containers":[{"name":"c","image":"img:1",
      "resizePolicy":[{"resourceName":"cpu","restartPolicy":")" +
                     policy + R"("},{"resourceName":"memory","restartPolicy":"NotRequired"}],
      "resources":{"requests":{"cpu":"100m"},"limits":{"cpu":"100m"}}}]}})");
    ASSERT_TRUE(harness_->Await("web", IsPodReady));
  }
  static std::string Has(const corev1::Pod* pod) {
    if (!pod || pod->status().container_statuses().empty()) return "";
    const auto& limits = pod->status().container_statuses(0).resources().limits();
    auto it = limits.find("cpu");
    return it == limits.end() ? "" : it->second.string();
  }
};

TEST_F(ResizeTest, InPlaceWithoutARestart) {
  Begin("NotRequired");
  Ask("200m");
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* pod) { return Has(pod) == "200m"; }));
  EXPECT_EQ(runtime_.Count("UpdateContainerResources c"), 1u);
  EXPECT_EQ(runtime_.Count("StopContainer c"), 0u);
  EXPECT_EQ(harness_->Get("web").status().container_statuses(0).allocated_resources().at("cpu").string(),
            "200m");
  // A new kubelet knows what the container has.
  harness_->Stop();
  harness_->Start();
  Ask("300m");
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* pod) { return Has(pod) == "300m"; }));
  EXPECT_EQ(runtime_.Count("UpdateContainerResources c"), 2u);
}

TEST_F(ResizeTest, WithARestartWhereThePolicyWantsOne) {
  Begin("RestartContainer");
  Ask("200m");
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* pod) {
    return Has(pod) == "200m" && pod->status().container_statuses(0).restart_count() == 1;
  }));
  EXPECT_EQ(runtime_.Count("UpdateContainerResources c"), 0u);
}

TEST_F(ResizeTest, AnInitContainerWhileItRuns) {
  harness_->Start();
  harness_->Create(R"({"metadata":{"name":"web"},"spec":{"containers":[{"name":"c","image":"img:1"}],
      "initContainers":[{"name":"first","image":"img:1",
        "resources":{"requests":{"cpu":"100m"},"limits":{"cpu":"100m"}}}]}})");
  auto limit = [](const corev1::Pod* pod) -> std::string {
    if (!pod || pod->status().init_container_statuses().empty()) return "";
    const corev1::ContainerStatus& status = pod->status().init_container_statuses(0);
    return status.state().has_running() ? status.resources().limits().at("cpu").string() : "";
  };
  ASSERT_TRUE(harness_->Await("web", [&](const corev1::Pod* pod) { return limit(pod) == "100m"; }));
  corev1::Pod pod = harness_->Get("web");
  auto& resources = *pod.mutable_spec()->mutable_init_containers(0)->mutable_resources();
  for (auto* list : {resources.mutable_requests(), resources.mutable_limits()}) {
    (*list)["cpu"].set_string("200m");
  }
  ASSERT_TRUE(harness_->api().Update(pod));
  ASSERT_TRUE(harness_->Await("web", [&](const corev1::Pod* now) { return limit(now) == "200m"; }));
  EXPECT_EQ(runtime_.Count("UpdateContainerResources first"), 1u);
  EXPECT_EQ(runtime_.Count("CreateContainer first"), 1u);
  runtime_.ExitContainer(pod.metadata().uid(), "first", 0);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
}

TEST_F(ResizeTest, ThePodAsAWhole) {
  harness_->Start();
  harness_->Create(R"({"metadata":{"name":"web"},"spec":{
      "resources":{"requests":{"cpu":"100m"},"limits":{"cpu":"200m"}},"containers":[
        {"name":"c","image":"img:1"},
        {"name":"again","image":"img:1","resizePolicy":[{"resourceName":"cpu","restartPolicy":"RestartContainer"}]},
        {"name":"own","image":"img:1","resources":{"requests":{"cpu":"10m"},"limits":{"cpu":"20m"}}}]}})");
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  auto has = [](const corev1::Pod* pod, const std::string& requests, const std::string& limits) {
    const corev1::PodStatus& status = pod->status();
    return status.allocated_resources().at("cpu").string() == requests &&
           status.resources().requests().at("cpu").string() == requests &&
           status.resources().limits().at("cpu").string() == limits;
  };
  corev1::Pod pod = harness_->Get("web");
  EXPECT_TRUE(has(&pod, "100m", "200m"));
  auto ask = [&](const std::string& requests, const std::string& limits) {
    pod = harness_->Get("web");
    auto& resources = *pod.mutable_spec()->mutable_resources();
    (*resources.mutable_requests())["cpu"].set_string(requests);
    (*resources.mutable_limits())["cpu"].set_string(limits);
    ASSERT_TRUE(harness_->api().Update(pod));
    ASSERT_TRUE(harness_->Await("web", [&](const corev1::Pod* now) { return has(now, requests, limits); }));
  };
  ask("150m", "200m");  // requests do not change the container
  EXPECT_EQ(runtime_.Count("UpdateContainerResources"), 0u);
  ask("150m", "300m");
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* now) {
    return IsPodReady(now) && now->status().container_statuses(1).restart_count() == 1;
  }));
  EXPECT_EQ(runtime_.Count("UpdateContainerResources c"), 1u);
  EXPECT_EQ(runtime_.Count("UpdateContainerResources own"), 0u);
  EXPECT_EQ(runtime_.LastConfig("c").resources.cpu_quota, 30000);
  EXPECT_EQ(runtime_.LastConfig("again").resources.cpu_quota, 30000);
  // A new kubelet has nothing to do, and works normally.
  harness_->Stop();
  harness_->Start();
  ask("150m", "400m");
  EXPECT_EQ(runtime_.Count("UpdateContainerResources c"), 2u);
}

TEST_F(ResizeTest, WhatTheNodeDoesNotHaveWaits) {
  Begin("NotRequired");
  auto pending = [](const corev1::Pod* pod) -> std::string {
    const corev1::PodCondition* condition =
        pod ? k8s::FindCondition(pod->status(), "PodResizePending") : nullptr;
    return condition ? condition->reason() : "";
  };
  Ask("100k");
  ASSERT_TRUE(harness_->Await("web", [&](const corev1::Pod* pod) { return pending(pod) == "Infeasible"; }));
  const corev1::Pod waiting = harness_->Get("web");
  EXPECT_EQ(Has(&waiting), "100m");
  Ask("150m");
  ASSERT_TRUE(harness_->Await(
      "web", [&](const corev1::Pod* pod) { return pending(pod).empty() && Has(pod) == "150m"; }));
}

}  // namespace
}  // namespace keelson::kubelet

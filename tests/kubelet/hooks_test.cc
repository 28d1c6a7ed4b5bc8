// Unresponsive servers in pods: hooks and probes of a whole kubelet.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>

#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/testing/cgroup_names.h"
#include "kubelet/testing/kubelet_harness.h"
#include "kubelet/testing/one_shot_server.h"
#include "lib/base/file.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {
namespace {

using std::chrono::seconds;

class HooksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/kubelet_hooks.XXXXXX";
    dir_ = ::mkdtemp(name);
    runtime_.AddImage("img:1");
    harness_ = std::make_unique<KubeletHarness>(runtime_, runtime_, cgroups_, mounter_, dir_, "10.7.0.1");
    harness_->Start();
  }
  void TearDown() override {
    harness_.reset();
    (void)RemoveTree(dir_);
  }
  // A pod whose container has `what`, with % replaced by the server's address.
  void Create(const std::string& what) {
    const std::string address =
        R"("httpGet":{"host":"127.0.0.1","port":)" + std::to_string(silent_.port()) + "}";
    std::string text = what;
    text.replace(text.find('%'), 1, address);
    harness_->Create(R"({"metadata":{"name":"web"},"spec":{"containers":[{"name":"main","image":"img:1",)" +
                     text + "}]}}");
  }
  // Events of `reason`.
  std::vector<std::string> Events(const std::string& reason) {
    std::vector<std::string> out;
    auto listed = harness_->api().List<corev1::Event>("default");
    for (const corev1::Event& event : *listed) {
      if (event.reason() == reason) out.push_back(event.message());
    }
    return out;
  }
  static seconds Since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration_cast<seconds>(std::chrono::steady_clock::now() - begin);
  }

  std::string dir_;
  cri::FakeRuntime runtime_;
  NoMounts mounter_;
  CgroupNames cgroups_;
  OneShotServer silent_;
  std::unique_ptr<KubeletHarness> harness_;
};

TEST_F(HooksTest, PostStartHoldsUpNoDeletion) {
  Create(R"("lifecycle":{"postStart":{%}})");
  UniqueFd asked = silent_.Accept();
  const auto begin = std::chrono::steady_clock::now();
  harness_->Delete("web", 30);
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* gone) { return gone == nullptr; }));
  EXPECT_LT(Since(begin), seconds(10));
  EXPECT_EQ(Events("FailedPostStartHook"), std::vector<std::string>()) << "nothing has failed";
}

TEST_F(HooksTest, PreStopHasTheGracePeriod) {
  Create(R"("lifecycle":{"preStop":{%}})");
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  const auto begin = std::chrono::steady_clock::now();
  harness_->Delete("web", 2);
  UniqueFd asked = silent_.Accept();
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* gone) { return gone == nullptr; }));
  EXPECT_GE(Since(begin), seconds(1));
  EXPECT_LT(Since(begin), seconds(10));
  EXPECT_EQ(runtime_.Count("StopContainer main"), 1u);
}

TEST_F(HooksTest, HowFarAPodsEndHasComeIsTold) {
  std::atomic<int> answer{0};
  runtime_.SetExec([&](const std::string&, const std::vector<std::string>&) -> Result<cri::ExecResult> {
    return cri::ExecResult{"", answer};
  });
  harness_->Create(
      R"({"metadata":{"name":"web"},"spec":{"containers":[{"name":"quick","image":"img:1"},
          {"name":"slow","image":"img:1","lifecycle":{"preStop":{"httpGet":{"host":"127.0.0.1","port":)" +
      std::to_string(silent_.port()) +
      R"(}}},"readinessProbe":{"exec":{"command":["look"]},"periodSeconds":1,"failureThreshold":1}}]}})");
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  harness_->Delete("web", 60);
  UniqueFd asked = silent_.Accept();
  const auto shows = [&](bool quick_ended, bool slow_ready) {
    return harness_->Await("web", [=](const corev1::Pod* pod) {
      if (!pod) return false;
      const auto& quick = pod->status().container_statuses(0);
      const auto& slow = pod->status().container_statuses(1);
      return quick.state().has_terminated() == quick_ended && quick.ready() != quick_ended &&
             slow.state().has_running() && slow.ready() == slow_ready &&
             k8s::FindCondition(pod->status(), k8s::kPodReady)->status() == "False";
    });
  };
  EXPECT_TRUE(shows(true, true));
  answer = 1;
  EXPECT_TRUE(shows(true, false));
  asked.Reset();  // the hook fails, and what it held up goes on
  EXPECT_TRUE(harness_->Await("web", [](const corev1::Pod* gone) { return gone == nullptr; }));
}

TEST_F(HooksTest, APodThatTheNodeEndsHasNotFailedBeforeItsContainers) {
  harness_->Create(
      R"({"metadata":{"name":"web"},"spec":{"activeDeadlineSeconds":1,"terminationGracePeriodSeconds":60,
          "containers":[{"name":"quick","image":"img:1"},
          {"name":"slow","image":"img:1","lifecycle":{"preStop":{"httpGet":{"host":"127.0.0.1","port":)" +
      std::to_string(silent_.port()) + "}}}}]}}");
  UniqueFd asked = silent_.Accept();
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* pod) {
    return pod->status().container_statuses_size() == 2 &&
           pod->status().container_statuses(0).state().has_terminated();
  }));
  const corev1::PodStatus ending = harness_->Get("web").status();
  EXPECT_TRUE(ending.container_statuses(1).state().has_running());
  EXPECT_EQ(ending.phase(), "Running") << "others may not take what it has for free";
  EXPECT_EQ(ending.reason(), "");
  EXPECT_EQ(k8s::FindCondition(ending, k8s::kPodReady)->status(), "False");
  asked.Reset();
  EXPECT_TRUE(harness_->Await("web", [](const corev1::Pod* pod) {
    return pod->status().phase() == "Failed" && pod->status().reason() == "DeadlineExceeded" &&
           k8s::FindCondition(pod->status(), k8s::kPodReady)->reason() == "PodFailed";
  }));
}

TEST_F(HooksTest, APodHasNotEndedBeforeItsSidecars) {
  harness_->Create(
      R"({"metadata":{"name":"web"},"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"img:1"}],
          "initContainers":[{"name":"side","image":"img:1","restartPolicy":"Always","lifecycle":{"preStop":{
            "httpGet":{"host":"127.0.0.1","port":)" +
      std::to_string(silent_.port()) + R"(}}}}]}})");
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  runtime_.ExitContainer(harness_->Get("web").metadata().uid(), "main", 0);
  UniqueFd asked = silent_.Accept();
  EXPECT_TRUE(harness_->Await("web", [](const corev1::Pod* pod) {
    return pod->status().container_statuses(0).state().has_terminated();
  }));
  EXPECT_EQ(harness_->Get("web").status().phase(), "Running");
  asked.Reset();
  EXPECT_TRUE(
      harness_->Await("web", [](const corev1::Pod* pod) { return pod->status().phase() == "Succeeded"; }));
}

TEST_F(HooksTest, ProbesHoldUpNoShutdown) {
  Create(R"("readinessProbe":{"timeoutSeconds":60,"failureThreshold":1,%})");
  UniqueFd asked = silent_.Accept();
  const auto begin = std::chrono::steady_clock::now();
  harness_->Stop();
  EXPECT_LT(Since(begin), seconds(10));
  EXPECT_EQ(Events("Unhealthy"), std::vector<std::string>());
}

}  // namespace
}  // namespace keelson::kubelet

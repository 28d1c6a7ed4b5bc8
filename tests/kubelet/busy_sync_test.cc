// The status of a pod while its sync is blocked in a slow call.
#include "kubelet/testing/fault_test.h"

namespace keelson::kubelet {
namespace {

using std::chrono::seconds;

constexpr char kHook[] = "hook";

class BusySyncTest : public FaultTest {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    runtime_.SetPullable("pulled:1");
    runtime_.SetExec([this](const std::string&, const std::vector<std::string>& command) {
      MutexLock lock(mutex_);
      while (command[0] == kHook && held_) changed_.wait(mutex_);
      return Result<cri::ExecResult>(cri::ExecResult{"", command[0] == kHook ? 0 : web_});
    });
    harness_->Start();
  }
  void TearDown() override {
    LetGo();
    FaultTest::TearDown();
  }

  // The result of the probes of `web` from now on.
  void Answer(int exit_code) {
    MutexLock lock(mutex_);
    web_ = exit_code;
  }
  void Hold(const std::string& call) {
    if (call != kHook) return faults_.Hang(call);
    MutexLock lock(mutex_);
    held_ = true;
  }
  void LetGo() {
    faults_.Heal();
    MutexLock lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }

  // Creates a pod with `web`, which has a probe of this kind, and `side`; returns when both run.
  corev1::Pod CreateBoth(const std::string& kind, int failure_threshold) {
    corev1::Pod pod = harness_->Create(
        R"({"metadata":{"name":"pod"},"spec":{"containers":[{"name":"web","image":"img:1",")" + kind +
        R"(":{"exec":{"command":["look"]},"periodSeconds":1,"failureThreshold":)" +
        std::to_string(failure_threshold) +
        R"(}},{"name":"side","image":"pulled:1","imagePullPolicy":"Always",
              "lifecycle":{"postStart":{"exec":{"command":["hook"]}}}}]}})");
    EXPECT_TRUE(PassUntil(seconds(10), "pod",
                          [](const corev1::Pod* shown) { return shown->status().phase() == "Running"; }));
    return pod;
  }
  // Ends `side` and blocks its restart in `call`; returns when the API has the end of `side`.
  bool EndsAndIsHeldAt(const corev1::Pod& pod, const std::string& call) {
    Hold(call);
    runtime_.ExitContainer(pod.metadata().uid(), "side", 1);
    return PassUntil(seconds(5), "pod", [](const corev1::Pod* shown) {
      return shown->status().container_statuses(1).state().has_terminated();
    });
  }
  // The sync that holds `side` is still the one that has found its end, and `web` counts as...
  bool Shows(bool started, bool ready) {
    return PassUntil(seconds(5), "pod", [&](const corev1::Pod* shown) {
      const auto& web = shown->status().container_statuses(0);
      const auto* condition = k8s::FindCondition(shown->status(), k8s::kContainersReady);
      return shown->status().container_statuses(1).state().has_terminated() && web.started() == started &&
             web.ready() == ready && !k8s::IsReady(*shown) &&
             condition->message() ==
                 std::string("containers with unready status: [") + (ready ? "side]" : "web side]");
    });
  }
  void ExpectBothReadyInTheEnd() {
    EXPECT_TRUE(PassUntil(seconds(30), "pod", IsPodReady)) << harness_->Get("pod").ShortDebugString();
    const corev1::Pod shown = harness_->Get("pod");
    EXPECT_EQ(shown.status().container_statuses(0).restart_count(), 0);
    EXPECT_EQ(shown.status().container_statuses(1).restart_count(), 1);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int web_ KEELSON_GUARDED_BY(mutex_) = 0;
  bool held_ KEELSON_GUARDED_BY(mutex_) = false;
};

class ReadinessWhileBusyTest : public BusySyncTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ReadinessWhileBusyTest, FollowsTheProbe) {
  const corev1::Pod pod = CreateBoth("readinessProbe", 1);
  ASSERT_TRUE(PassUntil(seconds(5), "pod", IsPodReady));
  ASSERT_TRUE(EndsAndIsHeldAt(pod, GetParam())) << harness_->Get("pod").ShortDebugString();
  for (bool ready : {true, false, true}) {
    Answer(ready ? 0 : 1);
    EXPECT_TRUE(Shows(true, ready)) << ready << harness_->Get("pod").ShortDebugString();
  }
  LetGo();
  ExpectBothReadyInTheEnd();
}

INSTANTIATE_TEST_SUITE_P(At, ReadinessWhileBusyTest,
                         ::testing::Values("PullImage", "CreateContainer side", "StartContainer", kHook),
                         [](const auto& call) {
                           const std::string name = call.param;
                           return name.substr(0, name.find(' '));
                         });

TEST_F(BusySyncTest, AStartupProbeIsFollowedToo) {
  Answer(1);
  const corev1::Pod pod = CreateBoth("startupProbe", 1000);
  ASSERT_TRUE(EndsAndIsHeldAt(pod, "PullImage")) << harness_->Get("pod").ShortDebugString();
  EXPECT_TRUE(Shows(false, false)) << harness_->Get("pod").ShortDebugString();
  Answer(0);
  EXPECT_TRUE(Shows(true, true)) << harness_->Get("pod").ShortDebugString();
  LetGo();
  ExpectBothReadyInTheEnd();
}

TEST_F(BusySyncTest, AKubeletThatComesBackTellsToo) {
  const corev1::Pod pod = CreateBoth("readinessProbe", 1);
  ASSERT_TRUE(PassUntil(seconds(5), "pod", IsPodReady));
  ASSERT_TRUE(EndsAndIsHeldAt(pod, "PullImage"));
  harness_->Stop();
  harness_->Start();
  EXPECT_TRUE(Shows(true, true));
  Answer(1);
  EXPECT_TRUE(Shows(true, false)) << harness_->Get("pod").ShortDebugString();
  Answer(0);
  LetGo();
  ExpectBothReadyInTheEnd();
}

// The status has the containers' ends immediately, and the pod's end only when it is complete.
TEST_F(BusySyncTest, APodHasNotEndedBeforeItsSidecarsHave) {
  runtime_.ExitOnStart("job", 0);
  harness_->Create(R"({"metadata":{"name":"pod"},"spec":{"restartPolicy":"Never",
      "initContainers":[{"name":"side","image":"img:1","restartPolicy":"Always",
                         "lifecycle":{"preStop":{"exec":{"command":["hook"]}}}}],
      "containers":[{"name":"job","image":"img:1"}]}})");
  Hold(kHook);
  EXPECT_TRUE(PassUntil(seconds(10), "pod", [](const corev1::Pod* shown) {
    const corev1::PodStatus& status = shown->status();
    return status.container_statuses_size() > 0 && status.container_statuses(0).state().has_terminated();
  })) << harness_->Get("pod").ShortDebugString();
  const corev1::PodStatus status = harness_->Get("pod").status();
  EXPECT_TRUE(status.init_container_statuses(0).state().has_running());
  EXPECT_NE(status.phase(), "Succeeded");
  LetGo();
  EXPECT_TRUE(PassUntil(seconds(10), "pod", [](const corev1::Pod* shown) {
    return shown->status().phase() == "Succeeded";
  })) << harness_->Get("pod").ShortDebugString();
}

}  // namespace
}  // namespace keelson::kubelet

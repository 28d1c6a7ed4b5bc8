// A runtime that hangs, fails, is slow or absent, and the kubelet on it.
#include "kubelet/testing/fault_test.h"

namespace keelson::kubelet {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class RuntimeFaultsTest : public FaultTest {
 protected:
  // The containers that run, by pod's uid; none was ever another one.
  void ExpectRuns(const corev1::Pod& pod, const std::string& id) {
    EXPECT_EQ(runtime_.RunningContainer(pod.metadata().uid(), "main"), id);
    EXPECT_EQ(harness_->Get(pod.metadata().name()).status().container_statuses(0).restart_count(), 0);
  }
};

TEST_F(RuntimeFaultsTest, ACallThatHangsHoldsUpItsOwnPodOnly) {
  harness_->Start();
  faults_.Hang("CreateContainer stuck");
  Create("one", "stuck");
  Create("two");
  EXPECT_TRUE(PassUntil(seconds(5), "two", IsPodReady));
  harness_->Delete("two", 1);
  EXPECT_TRUE(PassUntil(seconds(5), "two", IsGone)) << Leftovers();
  EXPECT_EQ(WhyNotReady(), "");
  // The call's deadline expires, and the reason is reported.
  EXPECT_TRUE(PassUntil(minutes(3), "one", [](const corev1::Pod* pod) {
    return WaitingFor(pod) == "CreateContainerError" &&
           pod->status().container_statuses(0).state().waiting().message() == "Deadline Exceeded";
  }));
  faults_.Heal();
  EXPECT_TRUE(PassUntil(minutes(1), "one", IsPodReady));
}

TEST_F(RuntimeFaultsTest, ARuntimeThatHangsMakesTheNodeNotReadyAndEndsNoPod) {
  harness_->Start();
  corev1::Pod pod = Create("web");
  ASSERT_TRUE(PassUntil(seconds(5), "web", IsPodReady));
  const std::string id = runtime_.RunningContainer(pod.metadata().uid(), "main");
  faults_.Hang("");
  Create("late");
  // Upstream's patience with the runtime's event loop, one round of relisting and one of the node's status.
  ASSERT_TRUE(PassUntil(minutes(4), [&] {
    return WhyNotReady().find("PLEG is not healthy: pleg was last seen active 3m") != std::string::npos;
  })) << WhyNotReady();
  EXPECT_NE(WhyNotReady().find("threshold is 3m0s"), std::string::npos);
  EXPECT_NE(WhyNotReady().find("container runtime is down"), std::string::npos);
  EXPECT_TRUE(harness_->Sees("web", IsPodReady));
  faults_.Heal();
  EXPECT_TRUE(PassUntil(seconds(30), [&] { return WhyNotReady().empty(); })) << WhyNotReady();
  EXPECT_TRUE(PassUntil(seconds(30), "late", IsPodReady));
  ExpectRuns(pod, id);
}

// Hanging pod terminations do not block the kubelet's shutdown.
TEST_F(RuntimeFaultsTest, TheKubeletEndsWhileTheRuntimeHangs) {
  harness_->Start();
  Create("web");
  ASSERT_TRUE(PassUntil(seconds(5), "web", IsPodReady));
  faults_.Hang("");
  Create("late");
  harness_->Delete("web", 5);
  Pass(seconds(5));
  harness_->Stop();
  faults_.Heal();
  harness_->Start();
  EXPECT_TRUE(PassUntil(seconds(30), "late", IsPodReady));
  EXPECT_TRUE(PassUntil(seconds(30), "web", IsGone));
}

TEST_F(RuntimeFaultsTest, AnErrorOfEachCallIsGotOver) {
  const char* kLife =
      R"({"metadata":{"name":"web"},"spec":{"initContainers":[{"name":"init","image":"img:1"}],
      "containers":[{"name":"main","image":"pulled:1","imagePullPolicy":"Always"}],
      "volumes":[{"name":"fast","emptyDir":{"medium":"Memory"}}]}})";
  runtime_.ExitOnStart("init", 0);
  runtime_.SetPullable("pulled:1");
  harness_->Start();
  for (const char* call : {"GetVersion", "Status", "ListPodSandbox", "ListContainers", "PodSandboxStatus",
                           "GetContainerStatus", "ListImages", "ImageStatus", "ImageFsInfo", "PullImage",
                           "RunPodSandbox", "CreateContainer init", "CreateContainer main", "StartContainer",
                           "StopContainer", "StopPodSandbox", "RemoveContainer", "RemovePodSandbox"}) {
    for (int times : {1, 3}) {
      SCOPED_TRACE(std::string(call) + " fails " + std::to_string(times) + " times");
      faults_.Fail(call, Error(Code::kInternal, "out of sorts"), times);
      harness_->Create(kLife);
      ASSERT_TRUE(PassUntil(minutes(3), "web", IsPodReady)) << harness_->Get("web").ShortDebugString();
      EXPECT_EQ(harness_->Get("web").status().container_statuses(0).restart_count(), 0);
      EXPECT_EQ(runtime_.ListPodSandbox({}, {})->size(), 1u);
      harness_->Delete("web", 1);
      ASSERT_TRUE(PassUntil(minutes(3), "web", IsGone));
      ASSERT_TRUE(PassUntil(minutes(3), [&] { return Leftovers().empty(); })) << Leftovers();
      faults_.Heal();
    }
  }
  EXPECT_TRUE(PassUntil(seconds(15), [&] { return WhyNotReady().empty(); })) << WhyNotReady();
}

// Given up with a kubelet that was killed in the middle of it, or made of what a busy shim did not say.
TEST_F(RuntimeFaultsTest, AStartThatWasGivenUpIsNoRun) {
  const std::string no_init_process =
      "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create "
      "failed: lstat /proc/0/ns/ipc: no such file or directory: unknown";
  const std::string said_by_containerd[] = {
      "failed to create containerd task: failed to create shim task: context canceled: unknown",
      "failed to create containerd task: failed to create shim: start failed: : signal: killed: unknown",
      no_init_process, "failed to start containerd task \"8af2\": context canceled: unknown"};
  harness_->Start();
  size_t made = 0;
  for (const std::string& message : said_by_containerd) {
    const std::string name = "web-" + std::to_string(made++);
    runtime_.AbandonStart("main", message);
    harness_->Create(R"({"metadata":{"name":")" + name + R"("},"spec":{"restartPolicy":"Never",
        "containers":[{"name":"main","image":"img:1"}]}})");
    ASSERT_TRUE(PassUntil(seconds(10), name, IsPodReady)) << harness_->Get(name).ShortDebugString();
    EXPECT_EQ(harness_->Get(name).status().container_statuses(0).restart_count(), 0);
    EXPECT_EQ(runtime_.ListContainers({}, {})->size(), made);
  }
}

TEST_F(RuntimeFaultsTest, HalfAStartThatTheRuntimeKeepsIsEndedAndIsNoRun) {
  cgroups_.KillBy([this](const std::string& id) { return runtime_.KillProcesses(id); });
  harness_->Start();
  runtime_.KeepHalfStart("main");
  harness_->Create(R"({"metadata":{"name":"web"},"spec":{"restartPolicy":"Never",
      "containers":[{"name":"main","image":"img:1"}]}})");
  ASSERT_TRUE(PassUntil(seconds(8), "web", IsPodReady)) << harness_->Get("web").ShortDebugString();
  EXPECT_EQ(harness_->Get("web").status().container_statuses(0).restart_count(), 0);
  auto left = runtime_.ListContainers({}, {});
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ(left->front().attempt, 0u);
}

TEST_F(RuntimeFaultsTest, AStartThatWasGivenUpAndCannotBeRemovedHoldsNobodyUp) {
  harness_->Start();
  runtime_.AbandonStart("main", "failed to start containerd task \"8af2\": context canceled: unknown");
  faults_.Fail("RemoveContainer", Error(Code::kInternal, "container is in starting state, can't be removed"));
  harness_->Create(R"({"metadata":{"name":"web"},"spec":{"restartPolicy":"Never",
      "containers":[{"name":"main","image":"img:1"}]}})");
  ASSERT_TRUE(PassUntil(minutes(1), "web", IsPodReady)) << harness_->Get("web").ShortDebugString();
  std::set<uint32_t> attempts;
  for (const cri::Container& made : *runtime_.ListContainers({}, {})) attempts.insert(made.attempt);
  EXPECT_EQ(attempts, (std::set<uint32_t>{0, 1})) << "a name that is taken was asked for again";
  faults_.Heal();
}

TEST_F(RuntimeFaultsTest, ARuntimeThatComesBackIsFollowedAgain) {
  runtime_.SupportEvents();
  harness_->Start();
  runtime_.AwaitStreams(1);
  corev1::Pod steady = Create("steady"), crashed = Create("crashed"), deleted = Create("deleted");
  for (const char* name : {"steady", "crashed", "deleted"}) {
    ASSERT_TRUE(PassUntil(seconds(5), name, IsPodReady)) << name;
  }
  const std::string id = runtime_.RunningContainer(steady.metadata().uid(), "main");

  faults_.Fail("", Error(Code::kUnavailable, "connect: connection refused"));
  runtime_.BreakEvents();
  ASSERT_TRUE(PassUntil(seconds(30), [&] {
    return WhyNotReady().find("container runtime is down") != std::string::npos;
  })) << WhyNotReady();
  runtime_.ExitContainer(crashed.metadata().uid(), "main", 1);  // while no relist runs
  harness_->Delete("deleted", 1);
  Create("created");
  Pass(minutes(10), seconds(5));
  EXPECT_TRUE(harness_->Sees("steady", IsPodReady));

  faults_.Heal();
  ASSERT_TRUE(PassUntil(
      seconds(5), [&] { return !runtime_.RunningContainer(crashed.metadata().uid(), "main").empty(); }));
  EXPECT_TRUE(PassUntil(seconds(15), "created", IsPodReady));
  EXPECT_TRUE(PassUntil(seconds(15), "deleted", IsGone));
  EXPECT_TRUE(PassUntil(seconds(15), [&] { return WhyNotReady().empty(); })) << WhyNotReady();
  ExpectRuns(steady, id);
  // The event stream is open again: changes are noticed immediately, without a relist.
  runtime_.AwaitStreams(2);
  runtime_.ExitContainer(steady.metadata().uid(), "main", 1);
  runtime_.Await([&] { return !runtime_.RunningContainer(steady.metadata().uid(), "main").empty(); });
}

TEST_F(RuntimeFaultsTest, ASlowRuntimeServesPodsSideBySide) {
  harness_->Start();
  faults_.Slow("", seconds(3));
  for (int i = 0; i < 10; ++i) Create("web-" + std::to_string(i));
  const SteadyTime begin = clock_.SteadyNow();
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(PassUntil(minutes(2), "web-" + std::to_string(i), IsPodReady)) << i;
  }
  EXPECT_LT(clock_.SteadyNow() - begin, minutes(2)) << "as long as one pod, not as ten";
  EXPECT_EQ(WhyNotReady(), "");
}

}  // namespace
}  // namespace keelson::kubelet

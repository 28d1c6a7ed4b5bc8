#include "kubelet/pod/pleg.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/testing/metric_value.h"

namespace keelson::kubelet {
namespace {

class CountingRuntime : public cri::FakeRuntime {
 public:
  Result<std::vector<cri::Sandbox>> ListPodSandbox(const cri::Filter& filter, std::stop_token stop) override {
    ++lists;
    return FakeRuntime::ListPodSandbox(filter, stop);
  }
  Result<std::vector<cri::Container>> ListContainers(const cri::Filter& filter,
                                                     std::stop_token stop) override {
    auto list = FakeRuntime::ListContainers(filter, stop);
    for (auto& container : *list) {
      if (late) container.state = cri::ContainerState::kRunning;
    }
    return list;
  }
  std::atomic<int> lists = 0;
  std::atomic<bool> late = false;  // an end is not listed yet
};

// A pod with one container that runs, and a Pleg whose clock stands still.
class PlegTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cri::SandboxConfig sandbox;
    sandbox.metadata = {"web", "u", "default", 0};
    sandbox.labels["io.kubernetes.pod.uid"] = "u";
    std::string id = *runtime_.RunPodSandbox(sandbox, "", {});
    cri::ContainerConfig config;
    config.name = "main";
    config.labels["io.kubernetes.pod.uid"] = "u";
    (void)runtime_.StartContainer(*runtime_.CreateContainer(id, config, sandbox, {}), {});
  }
  void Start() {
    thread_ = std::jthread([this](std::stop_token stop) {
      pleg_.Run(stop, [this] {
        MutexLock lock(mutex_);
        ready_ = true;
        changed_.notify_all();
      });
    });
    MutexLock lock(mutex_);
    while (!ready_) changed_.wait(mutex_);
    told_ = 0;  // what the first look has found
  }
  void AwaitTold() {
    MutexLock lock(mutex_);
    while (told_ == 0) changed_.wait(mutex_);
    told_ = 0;
  }
  CountingRuntime runtime_;
  FakeClock clock_;
  Mutex mutex_;
  CondVar changed_;
  bool ready_ KEELSON_GUARDED_BY(mutex_) = false;
  int told_ KEELSON_GUARDED_BY(mutex_) = 0;
  Pleg pleg_{runtime_,
             [this](const std::string& uid) {
               EXPECT_EQ(uid, "u");
               MutexLock lock(mutex_);
               ++told_;
               changed_.notify_all();
             },
             clock_};
  std::jthread thread_;
};

TEST_F(PlegTest, TheStreamTellsAtOnce) {
  const double stood = MetricValue("kubelet_evented_pleg_connection_success_count");
  runtime_.SupportEvents();
  Start();
  runtime_.AwaitStreams(1);
  runtime_.ExitContainer("u", "main", 1);
  AwaitTold();  // no list is made: time stands still
  EXPECT_EQ(MetricValue("kubelet_evented_pleg_connection_success_count"), stood + 1);
}

TEST_F(PlegTest, EventsWithoutAPodHastenLists) {
  runtime_.SupportEvents(/*name_pods=*/false);
  Start();
  runtime_.AwaitStreams(1);
  runtime_.ExitContainer("u", "main", 1);
  clock_.AwaitWaiters(1);
  clock_.Advance(std::chrono::seconds(1));
  AwaitTold();
  for (int i = 0; i < 3; ++i) {  // what the event told may be seen later only
    clock_.AwaitWaiters(1);
    clock_.Advance(std::chrono::seconds(1));
  }
  clock_.AwaitWaiters(1);
  const int lists = runtime_.lists;
  EXPECT_GE(lists, 3);
  clock_.Advance(std::chrono::seconds(20));
  clock_.AwaitWaiters(1);
  EXPECT_EQ(runtime_.lists, lists) << "nothing has happened";
}

// As a runtime's on a machine that is very busy.
TEST_F(PlegTest, AnEndThatListsDoNotShowYetIsAwaited) {
  runtime_.SupportEvents(/*name_pods=*/false);
  Start();
  runtime_.AwaitStreams(1);
  runtime_.late = true;
  runtime_.ExitContainer("u", "main", 1);
  for (int i = 0; i < 20; ++i) {
    clock_.AwaitWaiters(1);
    clock_.Advance(std::chrono::seconds(1));
  }
  clock_.AwaitWaiters(1);
  runtime_.late = false;
  clock_.Advance(std::chrono::seconds(1));
  AwaitTold();
  clock_.AwaitWaiters(1);
  const int lists = runtime_.lists;
  clock_.Advance(std::chrono::seconds(20));
  clock_.AwaitWaiters(1);
  EXPECT_EQ(runtime_.lists, lists) << "it is awaited no longer";
}

TEST_F(PlegTest, WithoutAStreamListsAreCompared) {
  Start();
  runtime_.ExitContainer("u", "main", 1);
  clock_.AwaitWaiters(1);
  clock_.Advance(std::chrono::seconds(1));
  AwaitTold();
}

TEST_F(PlegTest, AStreamThatBreaksIsOpenedAgain) {
  runtime_.SupportEvents();
  Start();
  runtime_.AwaitStreams(1);
  const double broke = MetricValue("kubelet_evented_pleg_connection_error_count");
  runtime_.BreakEvents();
  clock_.AwaitWaiters(2);
  EXPECT_EQ(MetricValue("kubelet_evented_pleg_connection_error_count"), broke + 1);
  clock_.Advance(std::chrono::seconds(1));
  runtime_.AwaitStreams(2);
  runtime_.ExitContainer("u", "main", 1);
  AwaitTold();
}

TEST_F(PlegTest, SilenceIsUnhealthy) {
  Start();
  EXPECT_FALSE(pleg_.Unhealthy());
  runtime_.Fail("ListPodSandbox", Error(Code::kUnavailable, "connection refused"), false);
  clock_.AwaitWaiters(1);
  clock_.Advance(std::chrono::minutes(4));
  ASSERT_TRUE(pleg_.Unhealthy());
  EXPECT_EQ(*pleg_.Unhealthy(), "PLEG is not healthy: pleg was last seen active 4m0s ago; threshold is 3m0s");
}

}  // namespace
}  // namespace keelson::kubelet

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <thread>

#include "kubelet/shutdown/manager.h"
#include "lib/base/file.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {
namespace {

using std::chrono::seconds;
using PodPtr = std::shared_ptr<const corev1::Pod>;

PodPtr PodOf(const std::string& name, int32_t priority, int64_t grace = 30) {
  auto pod = std::make_shared<corev1::Pod>();
  pod->mutable_metadata()->set_name(name);
  pod->mutable_metadata()->set_uid(name);
  pod->mutable_spec()->set_priority(priority);
  pod->mutable_spec()->set_termination_grace_period_seconds(grace);
  return pod;
}

TEST(ShutdownPlan, PeriodsOfTheTwoFormsOfConfiguration) {
  KubeletConfig config;
  EXPECT_TRUE(ShutdownPeriods(config).empty());
  config.shutdown_grace_period = seconds(30);
  config.shutdown_grace_period_critical_pods = seconds(10);
  EXPECT_EQ(ShutdownPeriods(config), (std::vector<ShutdownPeriod>{{0, 20}, {2'000'000'000, 10}}));
  EXPECT_EQ(TotalOf(ShutdownPeriods(config)), seconds(30));
  config = {};
  config.shutdown_grace_period_by_pod_priority = {{1000, 5}, {0, 7}};
  EXPECT_EQ(ShutdownPeriods(config), (std::vector<ShutdownPeriod>{{0, 7}, {1000, 5}}));
}

TEST(ShutdownPlan, WhichGroupAPodIsIn) {
  const std::vector<ShutdownPeriod> periods = {{0, 20}, {1000, 15}, {2'000'000'000, 10}};
  struct {
    int32_t priority;
    size_t group;
  } cases[] = {{-5, 0},   {0, 0},          {999, 0},           {1000, 1},
               {1001, 1}, {1999999999, 1}, {2'000'000'000, 2}, {2'000'001'000, 2}};
  for (const auto& one : cases) {
    auto groups = GroupByPriority(periods, {PodOf("p", one.priority)});
    ASSERT_EQ(groups.size(), 3u);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(groups[i].pods.size(), i == one.group ? 1u : 0u) << one.priority;
  }
  const ShutdownGroup group{seconds(20), {}};
  EXPECT_EQ(GraceIn(group, *PodOf("p", 0, 5)), seconds(5));
  EXPECT_EQ(GraceIn(group, *PodOf("p", 0, 60)), seconds(20));
}

// logind and the pods of a node, in memory.
struct World {
  Mutex mutex;
  CondVar changed;
  std::vector<std::string> log KEELSON_GUARDED_BY(mutex);
  std::vector<PodPtr> pods KEELSON_GUARDED_BY(mutex);
  std::vector<bool> words KEELSON_GUARDED_BY(mutex);  // of logind, not yet heard
  seconds delay KEELSON_GUARDED_BY(mutex){5};
  seconds after_reload KEELSON_GUARDED_BY(mutex){60};
  bool ends_at_once KEELSON_GUARDED_BY(mutex) = true;

  void Have(std::vector<PodPtr> some, bool end_at_once = true) {
    MutexLock lock(mutex);
    pods = std::move(some);
    ends_at_once = end_at_once;
  }
  void SetDelayAfterReload(seconds next) {
    MutexLock lock(mutex);
    after_reload = next;
  }
  void Note(const std::string& line) {
    MutexLock lock(mutex);
    log.push_back(line);
    changed.notify_all();
  }
  void Say(bool begins) {
    MutexLock lock(mutex);
    words.push_back(begins);
    changed.notify_all();
  }
  // Blocks until `line` was noted; all lines until then.
  std::vector<std::string> Until(const std::string& line) KEELSON_NO_THREAD_SAFETY_ANALYSIS {
    MutexLock lock(mutex);
    while (std::find(log.begin(), log.end(), line) == log.end()) changed.wait(mutex);
    return std::exchange(log, {});
  }
};

class FakeLogind : public linux::Logind {
 public:
  explicit FakeLogind(World& world) : world_(world) {}
  Result<std::chrono::microseconds> InhibitDelay() override {
    MutexLock lock(world_.mutex);
    return std::chrono::microseconds(world_.delay);
  }
  Result<> Reload() override {
    MutexLock lock(world_.mutex);
    world_.delay = world_.after_reload;
    return {};
  }
  Result<UniqueFd> DelayShutdown(const std::string& who, const std::string&) override {
    world_.Note("lock by " + who);
    return UniqueFd(dup(STDERR_FILENO));
  }
  Result<bool> NextShutdown(std::stop_token stop) override KEELSON_NO_THREAD_SAFETY_ANALYSIS {
    world_.Note("waiting");
    MutexLock lock(world_.mutex);
    world_.changed.wait(world_.mutex, stop,
                        [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return !world_.words.empty(); });
    if (world_.words.empty()) return Error(Code::kCancelled, "stopped");
    const bool word = world_.words.front();
    world_.words.erase(world_.words.begin());
    return word;
  }

 private:
  World& world_;
};

class ShutdownTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/shutdown.XXXXXX";
    dir_ = mkdtemp(name);
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_)); }

  ShutdownManager::Dependencies Dependencies() {
    return {
        [this]() -> Result<std::unique_ptr<linux::Logind>> { return std::make_unique<FakeLogind>(world_); },
        [this] {
          MutexLock lock(world_.mutex);
          return world_.pods;
        },
        [this](const corev1::Pod& pod, seconds grace) {
          world_.Note("end " + pod.metadata().name() + " in " + std::to_string(grace.count()));
          MutexLock lock(world_.mutex);
          if (!world_.ends_at_once) return;
          std::erase_if(world_.pods,
                        [&](const PodPtr& one) { return one->metadata().uid() == pod.metadata().uid(); });
        },
        [this](const std::string& message) { world_.Note(message); }, [this] { world_.Note("status"); }};
  }

  std::string dir_;
  World world_;
  FakeClock clock_;
  const std::vector<ShutdownPeriod> periods_ = {{0, 20}, {2'000'000'000, 10}};
};

TEST_F(ShutdownTest, EndsPodsInOrderAndLetsGo) {
  world_.Have({PodOf("critical", 2'000'001'000), PodOf("web", 0, 5), PodOf("db", 100, 60)});
  ShutdownManager manager(Dependencies(), periods_, dir_, clock_);
  std::jthread runner([&](std::stop_token stop) { EXPECT_TRUE(manager.Run(stop)); });
  world_.Until("waiting");
  EXPECT_EQ(*ReadFile(dir_ + "/99-kubelet.conf"),
            "# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=30\n");
  EXPECT_FALSE(manager.Admit());
  world_.Say(true);
  EXPECT_EQ(world_.Until("waiting"),
            (std::vector<std::string>{"Shutdown manager detected shutdown event", "status", "end web in 5",
                                      "end db in 20", "end critical in 10", "waiting"}));
  ASSERT_TRUE(manager.Admit());
  EXPECT_EQ(manager.Admit()->reason, "NodeShutdown");
  EXPECT_EQ(manager.Admit()->message, "Pod was rejected as the node is shutting down.");
  world_.Say(false);
  EXPECT_EQ(world_.Until("waiting"), (std::vector<std::string>{"Shutdown manager detected cancelled event",
                                                               "status", "lock by kubelet", "waiting"}));
  EXPECT_FALSE(manager.shutting_down());
}

TEST_F(ShutdownTest, NoGroupTakesMoreThanItsTime) {
  world_.Have({PodOf("stuck", 0), PodOf("critical", 2'000'000'000)}, false);
  ShutdownManager manager(Dependencies(), periods_, dir_, clock_);
  std::jthread runner([&](std::stop_token stop) { EXPECT_TRUE(manager.Run(stop)); });
  world_.Say(true);
  world_.Until("end stuck in 20");
  clock_.AwaitWaiters(1);
  clock_.Advance(seconds(20));
  world_.Until("end critical in 10");
  clock_.AwaitWaiters(1);
  clock_.Advance(seconds(10));
  world_.Until("waiting");
}

TEST_F(ShutdownTest, SaysWhenTheSystemDoesNotWaitLongEnough) {
  world_.SetDelayAfterReload(seconds(5));
  ShutdownManager manager(Dependencies(), periods_, dir_, clock_);
  std::jthread time([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      clock_.Advance(seconds(1));
      std::this_thread::yield();
    }
  });
  auto run = manager.Run({});
  ASSERT_FALSE(run);
  EXPECT_NE(run.error().message().find("is less than requested ShutdownGracePeriod"), std::string::npos);
}

TEST(ShutdownManager, IsOffWithoutPeriods) {
  EXPECT_FALSE(ShutdownManager({}, {}).enabled());
  EXPECT_TRUE(ShutdownManager({}, {{0, 1}}).enabled());
}

}  // namespace
}  // namespace keelson::kubelet

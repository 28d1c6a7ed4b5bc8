#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/probe/manager.h"
#include "kubelet/probe/socket_prober.h"
#include "kubelet/testing/one_shot_server.h"
#include "lib/api/codec/codec.h"

namespace keelson::kubelet {
namespace {

using std::chrono::seconds;

class FakeRunner : public HandlerRunner {
 public:
  ProbeOutcome Probe(const corev1::ProbeHandler& handler, const HandlerTarget& target, seconds,
                     std::stop_token) override {
    MutexLock lock(mutex_);
    const std::string what = handler.has_exec() ? handler.exec().command(0) : target.pod_ip;
    ++count_[what];
    changed_.notify_all();
    if (errors_[what] > 0) {
      --errors_[what];
      return {ProbeOutcome::kUnknown, "away"};
    }
    return {good_[what] ? ProbeOutcome::kSuccess : ProbeOutcome::kFailure, "why"};
  }
  Result<> Run(const corev1::LifecycleHandler&, const HandlerTarget&, seconds, std::stop_token) override {
    return {};
  }

  void Set(const std::string& what, bool good) {
    MutexLock lock(mutex_);
    good_[what] = good;
  }
  // So many tries of it cannot be made.
  void SetErrors(const std::string& what, int count) {
    MutexLock lock(mutex_);
    errors_[what] = count;
  }
  void Await(const std::string& what, int count) {
    MutexLock lock(mutex_);
    while (count_[what] < count) changed_.wait(mutex_);
  }
  int Count(const std::string& what) {
    MutexLock lock(mutex_);
    return count_[what];
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, bool> good_;
  std::map<std::string, int> count_, errors_;
};

class ProbeTest : public ::testing::Test {
 protected:
  void Start(const std::string& probes) { Start(manager_, probes); }
  void Start(ProbeManager& manager, const std::string& probes) {
    auto pod = std::make_shared<corev1::Pod>();
    ASSERT_TRUE(api::DecodeJson(
        R"({"metadata":{"name":"p","uid":"u"},"spec":{"containers":[{"name":"c",)" + probes + "}]}}", *pod));
    pod_ = pod;
    ContainerRecord record;
    record.id = "id";
    record.name = "c";
    record.state = cri::ContainerState::kRunning;
    record.started_at =
        std::chrono::duration_cast<std::chrono::nanoseconds>((clock_.Now() + seconds(1)).time_since_epoch())
            .count();
    runtime_.containers = {record};
    thread_ = std::jthread([&manager](std::stop_token stop) { manager.Run(stop); });
    manager.Update(pod_, runtime_, {});
  }
  // Moves time second by second; between steps the manager has looked and the probes have answered.
  void Step(int count, const std::string& what, int want) {
    for (int i = 0; i < count; ++i) {
      clock_.AwaitWaiters(1);
      clock_.Advance(seconds(1));
    }
    runner_.Await(what, want);
  }
  void AwaitResult(ProbeKind kind, bool want) {
    MutexLock lock(mutex_);
    while (manager_.Get(kind, "id") != std::optional<bool>(want)) {
      changed_.wait_for(mutex_, std::chrono::milliseconds(20));
    }
  }

  FakeClock clock_;
  FakeRunner runner_;
  Executor executor_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> events_;
  const ProbeManager::ChangeFunction on_change_ = [this](const std::string&) {
    MutexLock lock(mutex_);
    changed_.notify_all();
  };
  const ProbeManager::EventFunction on_event_ =
      [this](const corev1::Pod&, const std::string&, const std::string& reason, const std::string& message) {
        MutexLock lock(mutex_);
        events_.push_back(reason + ": " + message);
      };
  ProbeManager manager_{runner_, executor_, on_change_, on_event_, clock_};
  std::shared_ptr<const corev1::Pod> pod_;
  PodRuntimeStatus runtime_;
  std::jthread thread_;
};

TEST_F(ProbeTest, ThresholdsDecide) {
  runner_.Set("ready", true);
  Start(R"("readinessProbe":{"exec":{"command":["ready"]},"periodSeconds":1,"failureThreshold":2})");
  AwaitResult(ProbeKind::kReadiness, true);
  runner_.Set("ready", false);
  int seen = runner_.Count("ready");
  Step(1, "ready", seen + 1);
  EXPECT_EQ(manager_.Get(ProbeKind::kReadiness, "id"), true) << "one failure is not enough";
  Step(1, "ready", seen + 2);
  AwaitResult(ProbeKind::kReadiness, false);
  MutexLock lock(mutex_);
  EXPECT_EQ(events_.front(), "Unhealthy: Readiness probe failed: why");
}

TEST_F(ProbeTest, WhatCannotBeMadeIsTriedThreeTimes) {
  runner_.Set("ready", true);
  runner_.SetErrors("ready", 2);
  Start(R"("readinessProbe":{"exec":{"command":["ready"]},"periodSeconds":1,"failureThreshold":1})");
  AwaitResult(ProbeKind::kReadiness, true);
  EXPECT_EQ(runner_.Count("ready"), 3);
  runner_.SetErrors("ready", 3);
  Step(1, "ready", 6);
  Step(1, "ready", 7);
  EXPECT_EQ(manager_.Get(ProbeKind::kReadiness, "id"), true) << "errors say nothing of the container";
  MutexLock lock(mutex_);
  EXPECT_EQ(events_, std::vector<std::string>{
                         "Unhealthy: Readiness probe errored and resulted in unknown state: away"});
  EXPECT_EQ(manager_.Metrics().find("result=\"unknown\""), std::string::npos);
}

TEST_F(ProbeTest, WhatHasFailedIsNotAskedAgain) {
  runner_.Set("ready", true);
  runner_.Set("live", false);
  Start(R"("livenessProbe":{"exec":{"command":["live"]},"periodSeconds":1,"failureThreshold":1},
           "readinessProbe":{"exec":{"command":["ready"]},"periodSeconds":1})");
  AwaitResult(ProbeKind::kLiveness, false);
  AwaitResult(ProbeKind::kReadiness, true);
  const int asked = runner_.Count("live"), seen = runner_.Count("ready");
  for (int i = 1; i <= 3; ++i) Step(1, "ready", seen + i);
  EXPECT_EQ(runner_.Count("live"), asked);
}

TEST_F(ProbeTest, LivenessWaitsForStartup) {
  runner_.Set("live", true);
  Start(R"("startupProbe":{"exec":{"command":["up"]},"periodSeconds":1,"failureThreshold":30},
           "livenessProbe":{"exec":{"command":["live"]},"periodSeconds":1})");
  runner_.Await("up", 1);
  EXPECT_EQ(runner_.Count("live"), 0);
  runner_.Set("up", true);
  Step(1, "up", 2);
  AwaitResult(ProbeKind::kStartup, true);
  runner_.Await("live", 1);
  AwaitResult(ProbeKind::kLiveness, true);
}

TEST_F(ProbeTest, ExitedContainersAreForgotten) {
  runner_.Set("ready", true);
  Start(R"("readinessProbe":{"exec":{"command":["ready"]}})");
  AwaitResult(ProbeKind::kReadiness, true);
  runtime_.containers[0].state = cri::ContainerState::kExited;
  manager_.Update(pod_, runtime_, {});
  EXPECT_EQ(manager_.Get(ProbeKind::kReadiness, "id"), std::nullopt);
}

TEST_F(ProbeTest, WhomToAskIsKnownBeforeTheApiShowsIt) {
  const struct {
    const char *spec, *status;
    std::vector<std::string> sandbox, node;
    const char* asked;
  } cases[] = {
      // On the node's network, with nothing in the API yet; also where a host is named with no text.
      {R"("hostNetwork":true)", "{}", {}, {"10.7.0.1"}, "10.7.0.1"},
      {R"("hostNetwork":true)", "{}", {}, {"10.7.0.2", "fd00::7"}, "10.7.0.2"},
      {R"("hostNetwork":true)", "{}", {}, {"fd00::8", "10.7.0.3"}, "fd00::8"},
      {R"("hostNetwork":true)", R"({"hostIP":"10.9.9.9","podIP":"10.9.9.9"})", {}, {"10.7.0.4"}, "10.7.0.4"},
      {R"("hostNetwork":false)", "{}", {"10.1.0.5", "fd00:1::5"}, {"10.7.0.5"}, "10.1.0.5"},
      {R"("hostNetwork":false)", R"({"podIP":"10.9.9.9"})", {"10.1.0.6"}, {"10.7.0.6"}, "10.1.0.6"},
  };
  thread_ = std::jthread([this](std::stop_token stop) { manager_.Run(stop); });
  int number = 0;
  for (const auto& c : cases) {
    for (const char* handler : {R"("httpGet":{"port":1})", R"("httpGet":{"port":1,"host":""})",
                                R"("tcpSocket":{"port":1,"host":""})", R"("grpc":{"port":1})"}) {
      const std::string uid = "u" + std::to_string(++number);
      auto pod = std::make_shared<corev1::Pod>();
      ASSERT_TRUE(api::DecodeJson(R"({"metadata":{"name":"p","uid":")" + uid + R"("},"status":)" + c.status +
                                      R"(,"spec":{)" + c.spec +
                                      R"(,"containers":[{"name":"c","readinessProbe":{)" + handler + "}}]}}",
                                  *pod));
      PodRuntimeStatus runtime;
      cri::SandboxStatus sandbox;
      sandbox.state = cri::SandboxState::kReady;
      sandbox.ips = c.sandbox;
      runtime.sandboxes = {sandbox};
      ContainerRecord record;
      record.id = "id-" + uid;
      record.name = "c";
      record.state = cri::ContainerState::kRunning;
      runtime.containers = {record};
      const int before = runner_.Count(c.asked);
      manager_.Update(pod, runtime, c.node);
      clock_.Advance(seconds(10));  // those of an earlier kubelet are spread over a period
      runner_.Await(c.asked, before + 1);
      manager_.Remove(*pod);
    }
  }
}

// Writes down when each scheme's probe is made.
class TimingRunner : public FakeRunner {
 public:
  explicit TimingRunner(const Clock& clock) : clock_(clock) {}
  std::shared_ptr<const PreparedProbe> Prepare(const corev1::ProbeHandler& handler,
                                               const HandlerTarget&) override {
    return std::make_shared<const Timed>(*this, handler.http_get().scheme());
  }
  std::vector<int64_t> Times(const std::string& scheme) {
    MutexLock lock(mutex_);
    return times_[scheme];
  }
  void AwaitTimes(const std::string& scheme, size_t count) {
    MutexLock lock(mutex_);
    while (times_[scheme].size() < count) changed_.wait(mutex_);
  }

 private:
  struct Timed : PreparedProbe {
    Timed(TimingRunner& all, std::string what) : runner(all), scheme(std::move(what)) {}
    void Make(seconds, std::function<void(ProbeOutcome)> done) const override {
      {
        MutexLock lock(runner.mutex_);
        runner.times_[scheme].push_back(
            std::chrono::duration_cast<std::chrono::milliseconds>(runner.clock_.SteadyNow() - runner.start_)
                .count());
        runner.changed_.notify_all();
      }
      done({ProbeOutcome::kSuccess, ""});
    }
    TimingRunner& runner;
    const std::string scheme;
  };
  const Clock& clock_;
  const SteadyTime start_ = clock_.SteadyNow();
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::vector<int64_t>> times_;
};

TEST_F(ProbeTest, TheCheapOnesAreMadeTogether) {
  TimingRunner runner(clock_);
  ProbeManager manager(runner, executor_, on_change_, on_event_, clock_);
  clock_.Advance(std::chrono::milliseconds(130));
  Start(manager, R"("readinessProbe":{"httpGet":{"port":1,"scheme":"HTTP"},"periodSeconds":1},
                    "livenessProbe":{"httpGet":{"port":1,"scheme":"HTTPS"},"periodSeconds":1})");
  // The manager may still wait as it did before it knew of the pod.
  runner.AwaitTimes("HTTP", 1);
  runner.AwaitTimes("HTTPS", 1);
  for (int i = 0; i < 230; ++i) {
    clock_.AwaitWaiters(1);
    clock_.Advance(std::chrono::milliseconds(10));
  }
  clock_.AwaitWaiters(1);
  EXPECT_EQ(runner.Times("HTTP"), (std::vector<int64_t>{130, 1250, 2250}));
  EXPECT_EQ(runner.Times("HTTPS"), (std::vector<int64_t>{130, 1130, 2130}));
  thread_.request_stop();
  thread_.join();
}

// Commands go on until they are stopped; what is asked over sockets is asked.
class EndlessRunner : public FakeRunner {
 public:
  explicit EndlessRunner(HandlerRunner& sockets) : sockets_(sockets) {}
  ProbeOutcome Probe(const corev1::ProbeHandler&, const HandlerTarget&, seconds,
                     std::stop_token stop) override {
    began_.set_value();
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait(lock, stop, [] { return false; });
    return {ProbeOutcome::kUnknown, "context canceled"};
  }
  std::shared_ptr<const PreparedProbe> Prepare(const corev1::ProbeHandler& handler,
                                               const HandlerTarget& target) override {
    return sockets_.Prepare(handler, target);
  }
  void AwaitBegin() { began_.get_future().wait(); }

 private:
  HandlerRunner& sockets_;
  std::promise<void> began_;
};

TEST_F(ProbeTest, WhatTheStopCutsShortSaysNothing) {
  cri::FakeRuntime runtime;
  SocketProber sockets;
  std::jthread answers([&sockets](std::stop_token stop) { EXPECT_TRUE(sockets.Run(stop)); });
  auto asking = NewHandlerRunner(runtime, sockets);
  EndlessRunner runner(*asking);
  ProbeManager manager(runner, executor_, on_change_, on_event_, clock_);
  OneShotServer silent;
  Start(
      manager,
      R"("readinessProbe":{"failureThreshold":1,"timeoutSeconds":60,"httpGet":{"host":"127.0.0.1","port":)" +
          std::to_string(silent.port()) +
          R"(}},"livenessProbe":{"failureThreshold":1,"timeoutSeconds":60,"exec":{"command":["x"]}})");
  UniqueFd peer = silent.Accept();
  runner.AwaitBegin();
  thread_.request_stop();
  answers.request_stop();
  thread_.join();
  MutexLock lock(mutex_);
  EXPECT_EQ(events_, std::vector<std::string>());
  EXPECT_EQ(manager.Get(ProbeKind::kReadiness, "id"), std::nullopt);
  EXPECT_EQ(manager.Get(ProbeKind::kLiveness, "id"), std::nullopt);
  EXPECT_EQ(manager.Metrics().find("prober_probe_total{"), std::string::npos);
}

}  // namespace
}  // namespace keelson::kubelet

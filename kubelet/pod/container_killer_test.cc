#include "kubelet/pod/container_killer.h"

#include <gtest/gtest.h>

#include <atomic>

#include "kubelet/cri/testing/fake_runtime.h"
#include "lib/api/codec/codec.h"

namespace keelson::kubelet {
namespace {

// Hooks that take as long as the test wants.
class Hooks : public HandlerRunner {
 public:
  ProbeOutcome Probe(const corev1::ProbeHandler&, const HandlerTarget&, std::chrono::seconds,
                     std::stop_token) override {
    return {};
  }
  Result<> Run(const corev1::LifecycleHandler&, const HandlerTarget& target, std::chrono::seconds,
               std::stop_token stop) override {
    ++ran;
    asked = target.pod_ip;
    clock->Advance(takes);
    if (!until_stopped) return {};
    std::atomic<bool> stopped{false};
    std::stop_callback wake(stop, [&] {
      stopped = true;
      stopped.notify_all();
    });
    stopped.wait(false);
    cut_short = true;
    cut_short.notify_all();
    return Error(Code::kCancelled, "cut short");
  }
  bool until_stopped = false;
  std::atomic<bool> cut_short{false};
  FakeClock* clock = nullptr;
  std::chrono::seconds takes{0};
  std::atomic<int> ran{0};
  std::string asked;  // where
};

class KillerTest : public ::testing::Test {
 protected:
  void Pod(const std::string& spec) {
    pod_.Clear();
    ASSERT_TRUE(api::DecodeJson(R"({"metadata":{"name":"p","uid":"u"},"spec":)" + spec + "}", pod_));
    cri::SandboxConfig sandbox;
    sandbox.metadata = {"p", "u", "default", 0};
    sandbox.labels["io.kubernetes.pod.uid"] = "u";
    std::string sandbox_id = *runtime_.RunPodSandbox(sandbox, "", {});
    auto start = [&](const corev1::Container& container) {
      cri::ContainerConfig config;
      config.name = container.name();
      config.labels = {{"io.kubernetes.pod.uid", "u"}, {"io.kubernetes.container.name", container.name()}};
      (void)runtime_.StartContainer(*runtime_.CreateContainer(sandbox_id, config, sandbox, {}), {});
    };
    for (const auto& container : pod_.spec().init_containers()) start(container);
    for (const auto& container : pod_.spec().containers()) start(container);
    status_ = *InspectPod(runtime_, "u", nullptr, {});
  }
  Result<> Kill(std::chrono::seconds grace) { return killer_.KillPod(&pod_, status_, grace, {}); }
  std::vector<std::string> Stops() {
    std::vector<std::string> out;
    for (const std::string& call : runtime_.Calls()) {
      if (call.compare(0, 4, "Stop") == 0) out.push_back(call);
    }
    return out;
  }
  FakeClock clock_;
  cri::FakeRuntime runtime_;
  Hooks hooks_;
  Executor executor_;
  corev1::Pod pod_;
  PodRuntimeStatus status_;
  ContainerKiller killer_{runtime_, hooks_, executor_, [](auto&&...) {}, {"10.7.0.1"}, clock_};
};

TEST_F(KillerTest, SidecarsOutliveWhatCameAfterThem) {
  Pod(R"({"initContainers":[{"name":"one","restartPolicy":"Always"},{"name":"two","restartPolicy":"Always"}],
          "containers":[{"name":"main"}]})");
  ASSERT_TRUE(Kill(std::chrono::seconds(30)));
  EXPECT_EQ(Stops(), (std::vector<std::string>{"StopContainer main", "StopContainer two", "StopContainer one",
                                               "StopPodSandbox p"}));
}

TEST_F(KillerTest, HooksTakeFromTheGrace) {
  hooks_.clock = &clock_;
  struct Case {
    int grace, hook, left;
  };
  for (const Case& c : {Case{30, 0, 30}, {30, 10, 20}, {5, 10, 2}, {1, 0, 2}}) {
    hooks_.takes = std::chrono::seconds(c.hook);
    Pod(R"({"containers":[{"name":"main","lifecycle":{"preStop":{"exec":{"command":["x"]}}}}]})");
    ASSERT_TRUE(Kill(std::chrono::seconds(c.grace)));
    EXPECT_EQ(runtime_.LastGrace(), std::chrono::seconds(c.left)) << c.grace << " " << c.hook;
  }
  EXPECT_EQ(hooks_.ran, 4);
  Pod(R"({"containers":[{"name":"main","lifecycle":{"preStop":{"exec":{"command":["x"]}}}}]})");
  ASSERT_TRUE(killer_.KillContainers(&pod_, status_, std::chrono::seconds(9), false, {}));
  EXPECT_EQ(hooks_.ran, 4) << "hooks are left out on demand";
}

TEST_F(KillerTest, ACommandThatTakesTooLongIsNotWaitedFor) {
  hooks_.clock = &clock_;
  hooks_.takes = std::chrono::seconds(5);
  hooks_.until_stopped = true;  // what it has started holds on to its output
  Pod(R"({"containers":[{"name":"main","lifecycle":{"preStop":{"exec":{"command":["x"]}}}}]})");
  ASSERT_TRUE(Kill(std::chrono::seconds(5)));
  EXPECT_EQ(runtime_.LastGrace(), std::chrono::seconds(2));
  EXPECT_EQ(Stops().front(), "StopContainer main");
  hooks_.cut_short.wait(false);
}

TEST_F(KillerTest, HooksAskWhereThePodIs) {
  hooks_.clock = &clock_;
  const struct {
    const char *spec, *told, *asked;
  } cases[] = {{R"("hostNetwork":true)", "", "10.7.0.1"},  // static pods have no status either
               {R"("hostNetwork":true)", "10.9.9.9", "10.7.0.1"},
               {R"("hostNetwork":false)", "10.9.9.9", "10.9.9.9"}};  // the sandbox is gone
  for (const auto& c : cases) {
    Pod(std::string("{") + c.spec +
        R"(,"containers":[{"name":"main","lifecycle":{"preStop":{"httpGet":{"host":"","port":1}}}}]})");
    pod_.mutable_status()->set_pod_ip(c.told);
    status_.sandboxes.clear();
    ASSERT_TRUE(Kill(std::chrono::seconds(30)));
    EXPECT_EQ(hooks_.asked, c.asked) << c.spec << c.told;
  }
}

}  // namespace
}  // namespace keelson::kubelet

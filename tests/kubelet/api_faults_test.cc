// An API server outage of an hour: the node's behavior during and after it.
#include "kubelet/testing/fault_test.h"

namespace keelson::kubelet {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr char kReader[] =
    R"({"metadata":{"name":"reader"},"spec":{"containers":[{"name":"main","image":"img:1",
    "envFrom":[{"configMapRef":{"name":"settings"}}],
    "volumeMounts":[{"name":"all","mountPath":"/all"}]}],
    "volumes":[{"name":"all","projected":{"sources":[{"configMap":{"name":"settings"}},
      {"serviceAccountToken":{"path":"token","expirationSeconds":7200}}]}}]}})";
constexpr char kProbed[] =
    R"({"metadata":{"name":"probed"},"spec":{"containers":[{"name":"checked","image":"img:1",
    "livenessProbe":{"exec":{"command":["check"]},"periodSeconds":5,"failureThreshold":1}}]}})";

// Connection refused, or no response.
class ApiFaultsTest : public FaultTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    manifests_ = dir_ + "/manifests";
    ASSERT_TRUE(MakeDirs(manifests_));
    harness_->settings().config.static_pod_path = manifests_;
    corev1::ConfigMap map;
    map.mutable_metadata()->set_name("settings");
    map.mutable_metadata()->set_namespace_("default");
    (*map.mutable_data())["COLOR"] = "blue";
    ASSERT_TRUE(harness_->api().Create(map));
    corev1::ServiceAccount account;
    account.mutable_metadata()->set_name("default");
    account.mutable_metadata()->set_namespace_("default");
    ASSERT_TRUE(harness_->api().Create(account));
    runtime_.SetExec([this](const std::string&, const std::vector<std::string>&) {
      return cri::ExecResult{"", healthy_.exchange(true) ? 0 : 1};  // ill once
    });
    harness_->Start();
  }
  void GoAway() {
    api_->Off(GetParam());
    harness_->fake_api().EndWatches();
  }
  std::string Running(const corev1::Pod& pod) {
    return runtime_.RunningContainer(pod.metadata().uid(), pod.spec().containers(0).name());
  }
  // Waits until a container other than `before` runs in the pod.
  bool IsRestarted(const corev1::Pod& pod, const std::string& before, seconds most) {
    return PassUntil(most, [&] {
      const std::string now = Running(pod);
      return !now.empty() && now != before;
    });
  }
  static bool RestartedOnce(const corev1::Pod* pod) {
    return IsPodReady(pod) && pod->status().container_statuses(0).restart_count() == 1;
  }

  std::string manifests_;
  std::atomic<bool> healthy_ = true;
};

TEST_P(ApiFaultsTest, PodsGoOnForAnHour) {
  corev1::Pod reader = harness_->Create(kReader), probed = harness_->Create(kProbed),
              deleted = Create("deleted"), steady = Create("steady");
  for (const char* name : {"reader", "probed", "deleted", "steady"}) {
    ASSERT_TRUE(PassUntil(seconds(10), name, IsPodReady)) << name;
  }
  const std::string first = Running(reader), token_file = dir_ + "/kubelet/pods/" + reader.metadata().uid() +
                                                          "/volumes/kubernetes.io~projected/all/token";
  const auto token = ReadFile(token_file);
  ASSERT_TRUE(token) << token.error().message();
  const std::string probed_first = Running(probed), steady_first = Running(steady);

  GoAway();
  Pass(minutes(5), seconds(5));
  runtime_.ExitContainer(reader.metadata().uid(), "main", 1);
  EXPECT_TRUE(IsRestarted(reader, first, minutes(1))) << "what was read before is good enough";
  EXPECT_EQ(runtime_.LastConfig("main").envs.front().second, "blue");

  healthy_ = false;
  EXPECT_TRUE(PassUntil(minutes(1), [&] { return runtime_.Count("StopContainer checked") == 1; }));
  EXPECT_TRUE(IsRestarted(probed, probed_first, minutes(1)));

  ASSERT_TRUE(WriteFileAtomic(
      manifests_ + "/own.yaml",
      "{apiVersion: v1, kind: Pod, metadata: {name: own}, spec: {containers: [{name: c, image: 'img:1'}]}}"));
  runtime_.Await([&] { return runtime_.Count("StartContainer c") == 1; });
  ASSERT_TRUE(RemoveFile(manifests_ + "/own.yaml"));
  runtime_.Await([&] { return runtime_.Count("StopContainer c") == 1; });

  // Changes by other clients meanwhile.
  harness_->Delete("deleted", 1);
  Create("created");
  const size_t before = api_->Requests();
  Pass(minutes(50), seconds(5));
  EXPECT_LT(api_->Requests() - before, 50u * 60) << "less than one knock a second";
  EXPECT_EQ(*ReadFile(token_file), *token) << "it still holds";
  EXPECT_EQ(Running(steady), steady_first);
  EXPECT_EQ(runtime_.Count("StopContainer main"), 0u);
  EXPECT_EQ(runtime_.Count("StopPodSandbox deleted"), 0u) << "nobody could tell";

  api_->On();
  const SteadyTime back = clock_.SteadyNow();
  EXPECT_TRUE(PassUntil(seconds(75), "reader", RestartedOnce));
  EXPECT_TRUE(PassUntil(seconds(75), "probed", RestartedOnce));
  EXPECT_TRUE(PassUntil(seconds(75), "created", IsPodReady));
  EXPECT_TRUE(PassUntil(seconds(75), "deleted", IsGone));
  EXPECT_TRUE(PassUntil(seconds(75), "own-node-under-test", IsGone));
  EXPECT_TRUE(PassUntil(minutes(1), [&] {
    auto lease = harness_->api().Get<coordinationv1::Lease>("kube-node-lease", "node-under-test");
    return lease && clock_.Now() - api::FromMicroTime(lease->spec().renew_time()) < seconds(20);
  }));
  EXPECT_EQ(WhyNotReady(), "");
  EXPECT_LT(clock_.SteadyNow() - back, seconds(90)) << "clients knock every 30 to 60 s by then";
  // In time the token is a new one.
  EXPECT_TRUE(PassUntil(minutes(50), [&] { return *ReadFile(token_file) != *token; }));
  harness_->Delete("steady", 1);
  EXPECT_TRUE(PassUntil(seconds(10), "steady", IsGone));
}

INSTANTIATE_TEST_SUITE_P(Api, ApiFaultsTest, ::testing::Values(false, true),
                         [](const auto& tested) { return tested.param ? "Silent" : "Refusing"; });

}  // namespace
}  // namespace keelson::kubelet

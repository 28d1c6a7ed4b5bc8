// Wall clock jumps of a day, forward and back: intervals are not affected.
#include "kubelet/testing/fault_test.h"

namespace keelson::kubelet {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

class ClockFaultsTest : public FaultTest, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    corev1::ServiceAccount account;
    account.mutable_metadata()->set_name("default");
    account.mutable_metadata()->set_namespace_("default");
    ASSERT_TRUE(harness_->api().Create(account));
  }
  void Jump() { clock_.SetForward(hours(GetParam())); }
};

TEST_P(ClockFaultsTest, CrashBackOffIsAsLongAsEver) {
  runtime_.FollowClock();
  harness_->Start();
  runtime_.ExitOnStart("main", 1);
  Create("web");
  auto starts = [&] { return runtime_.Count("StartContainer main"); };
  ASSERT_TRUE(PassUntil(minutes(1), [&] { return starts() == 3; }));
  Jump();  // while it waits for 20 s
  ASSERT_TRUE(PassUntil(seconds(21), [&] { return starts() == 4; }));
  EXPECT_FALSE(PassUntil(seconds(38), [&] { return starts() > 4; })) << "40 s are not over";
  ASSERT_TRUE(PassUntil(seconds(4), [&] { return starts() == 5; }));
  EXPECT_EQ(harness_->Get("web").status().container_statuses(0).restart_count(), 4);
}

// The jump happens while the container runs: its last run is identified although its time may precede earlier
// ones.
TEST_P(ClockFaultsTest, TheLatestRunIsKnown) {
  harness_->Start();
  corev1::Pod pod = Create("web");
  ASSERT_TRUE(PassUntil(seconds(5), "web", IsPodReady));
  runtime_.FollowClock();
  Jump();
  runtime_.ExitContainer(pod.metadata().uid(), "main", 1);
  ASSERT_TRUE(PassUntil(seconds(5), "web", [](const corev1::Pod* p) {
    return IsPodReady(p) && p->status().container_statuses(0).restart_count() == 1;
  })) << harness_->Get("web").ShortDebugString();
  Pass(minutes(10), seconds(5));
  EXPECT_EQ(runtime_.Count("StartContainer main"), 2u);
  EXPECT_TRUE(harness_->Sees("web", IsPodReady));
  harness_->Delete("web", 1);
  EXPECT_TRUE(PassUntil(seconds(10), "web", IsGone));
}

TEST_P(ClockFaultsTest, ProbesKeepTheirPace) {
  std::atomic<int> probes = 0;
  runtime_.SetExec([&](const std::string&, const std::vector<std::string>&) {
    ++probes;
    return cri::ExecResult{"", 0};
  });
  harness_->Start();
  harness_->Create(R"({"metadata":{"name":"web"},"spec":{"containers":[{"name":"main","image":"img:1",
      "livenessProbe":{"exec":{"command":["check"]},"periodSeconds":10}}]}})");
  ASSERT_TRUE(PassUntil(seconds(5), "web", IsPodReady));
  Pass(minutes(1));
  Jump();
  probes = 0;
  Pass(minutes(1));
  EXPECT_GE(probes, 5);
  EXPECT_LE(probes, 7);
}

TEST_P(ClockFaultsTest, LeaseAndTokensAreRenewed) {
  harness_->Start();
  corev1::Pod pod = harness_->Create(R"({"metadata":{"name":"web"},"spec":{"containers":[{"name":"main",
      "image":"img:1","volumeMounts":[{"name":"t","mountPath":"/t"}]}],"volumes":[{"name":"t",
      "projected":{"sources":[{"serviceAccountToken":{"path":"token","expirationSeconds":3600}}]}}]}})");
  ASSERT_TRUE(PassUntil(seconds(5), "web", IsPodReady));
  auto tokens = [&] { return api_->Requests("POST", "/serviceaccounts/default/token"); };
  auto leases = [&] { return api_->Requests("PUT", "/leases/"); };
  ASSERT_EQ(tokens(), 1u);
  Jump();
  const size_t before = leases();
  Pass(minutes(5), seconds(5));
  EXPECT_GE(leases() - before, 28u) << "every ten seconds";
  EXPECT_LE(leases() - before, 32u);
  EXPECT_LE(tokens(), 2u) << "one may look expired";
  Pass(minutes(60), seconds(5));
  EXPECT_GE(tokens(), 2u) << "an hour is over, whatever the wall clock says";
  EXPECT_LE(tokens(), 3u);
  EXPECT_EQ(WhyNotReady(), "");
  EXPECT_TRUE(harness_->Sees("web", IsPodReady));
}

INSTANTIATE_TEST_SUITE_P(Clock, ClockFaultsTest, ::testing::Values(24, -24),
                         [](const auto& tested) { return tested.param > 0 ? "Forward" : "Back"; });

}  // namespace
}  // namespace keelson::kubelet

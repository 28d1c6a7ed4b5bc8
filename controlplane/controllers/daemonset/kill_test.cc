// Kills the controller after each of its writes. The next one must finish: one pod per node, one revision per
// template, and never more than maxUnavailable pods missing.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "controlplane/controllers/daemonset/controller.h"
#include "controlplane/controllers/daemonset/testing/daemon_sets.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

// Two controllers on one cluster. The second takes over after the first one's last write.
class Takeover {
 public:
  explicit Takeover(int writes) {
    left_ = std::make_shared<std::atomic<int>>(writes);
    guarded_ = std::make_shared<std::atomic<bool>>(false);
    cluster.fake->SetInterceptor([left = left_, guarded = guarded_](const client::ApiRequest& request)
                                     -> std::optional<Result<client::ApiResponse>> {
      if (!*guarded || request.method == "GET" || (*left)-- > 0) return std::nullopt;
      return client::FakeApi::Refuse(Error(Code::kUnavailable, "killed"));
    });
  }

  bool Died() const { return *left_ <= 0; }
  // Runs the controllers, then scheduler and kubelet.
  void Round() {
    if (!Died()) {
      *guarded_ = true;
      cluster.Drain({&first_});
      *guarded_ = false;
    } else {
      cluster.Drain({&second_});
    }
    std::set<std::string> nodes;
    int ready = 0;
    for (corev1::Pod pod : cluster.List<corev1::Pod>()) {
      if (k8s::IsTerminating(pod)) {
        ASSERT_TRUE(
            cluster.api.Delete<corev1::Pod>("default", pod.metadata().name(), {.grace_period_seconds = 0}));
        continue;
      }
      EXPECT_TRUE(nodes.insert(TargetNodeOf(pod)).second) << "two on " << TargetNodeOf(pod);
      ready += k8s::IsReady(pod);
      if (k8s::IsReady(pod)) continue;
      pod.mutable_spec()->set_node_name(TargetNodeOf(pod));
      MakeReady(pod, cluster.clock.Now());
      cluster.fake->Put(pod);
    }
    EXPECT_GE(ready, least_ready);
  }

  TestCluster cluster;
  int least_ready = 0;

 private:
  DaemonSetController& first_ = cluster.Make<DaemonSetController>();
  DaemonSetController& second_ = cluster.Make<DaemonSetController>();
  std::shared_ptr<std::atomic<int>> left_;
  std::shared_ptr<std::atomic<bool>> guarded_;
};

TEST(DaemonSetKillTest, EndsTheSameAfterAnyWrite) {
  for (int writes = 1;; ++writes) {
    SCOPED_TRACE(writes);
    Takeover world(writes);
    TestCluster& cluster = world.cluster;
    for (const char* node : {"n1", "n2", "n3"}) ASSERT_TRUE(cluster.api.Create(NodeNamed(node)));
    ASSERT_TRUE(cluster.api.Create(DaemonSetNamed("agent")));
    cluster.Start();
    for (int i = 0; i < 6; ++i) world.Round();
    world.least_ready = 2;
    appsv1::DaemonSet set = cluster.Get<appsv1::DaemonSet>("default", "agent");
    set.mutable_spec()->mutable_template_()->mutable_spec()->mutable_containers(0)->set_image("v2");
    ASSERT_TRUE(cluster.api.Update(set));
    for (int i = 0; i < 16; ++i) world.Round();

    const std::vector<corev1::Pod> pods = cluster.List<corev1::Pod>();
    EXPECT_EQ(pods.size(), 3u);
    for (const corev1::Pod& pod : pods) EXPECT_EQ(pod.spec().containers(0).image(), "v2");
    std::multiset<int64_t> numbers;
    for (const auto& revision : cluster.List<appsv1::ControllerRevision>()) {
      numbers.insert(revision.revision());
    }
    EXPECT_EQ(numbers, (std::multiset<int64_t>{1, 2}));
    const appsv1::DaemonSetStatus status = cluster.Get<appsv1::DaemonSet>("default", "agent").status();
    EXPECT_EQ(status.updated_number_scheduled(), 3);
    EXPECT_EQ(status.number_available(), 3);
    EXPECT_EQ(status.observed_generation(), 2);
    if (::testing::Test::HasFailure()) return;
    if (!world.Died()) {
      EXPECT_GT(writes, 12);  // or this tests nothing
      return;
    }
  }
}

}  // namespace
}  // namespace keelson::controllers

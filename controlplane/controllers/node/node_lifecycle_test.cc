#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/node/node_lifecycle.h"
#include "controlplane/controllers/node/taint_eviction.h"
#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;

class NodeLifecycleTest : public ::testing::Test {
 protected:
  void Heartbeat(const std::string& name) {
    coordinationv1::Lease lease;
    lease.mutable_metadata()->set_name(name);
    lease.mutable_metadata()->set_namespace_("kube-node-lease");
    *lease.mutable_spec()->mutable_renew_time() = api::ToMicroTime(cluster_.clock.Now());
    cluster_.fake->Put(lease);
  }
  void Pass(int seconds, const std::vector<std::string>& alive) {
    for (int i = 0; i < seconds; i += 5) {
      for (const std::string& name : alive) Heartbeat(name);
      cluster_.Advance(5s, {&lifecycle_, &eviction_});
    }
  }
  std::string Ready(const std::string& name) {
    auto node = cluster_.Get<corev1::Node>("", name);
    const auto* ready = k8s::FindCondition(node.status(), "Ready");
    return ready ? ready->status() : "none";
  }
  bool HasTaint(const std::string& name, const std::string& key, const std::string& effect) {
    const auto node = cluster_.Get<corev1::Node>("", name);
    for (const auto& taint : node.spec().taints()) {
      if (taint.key() == "node.kubernetes.io/" + key && taint.effect() == effect) return true;
    }
    return false;
  }

  TestCluster cluster_;
  Options options_;
  NodeLifecycleController& lifecycle_ = cluster_.Make<NodeLifecycleController>(options_);
  TaintEvictionController& eviction_ = cluster_.Make<TaintEvictionController>();
};

TEST_F(NodeLifecycleTest, SilentNodeIsUnreachableAndItsPodsLeave) {
  for (const char* name : {"alive", "silent"}) {
    cluster_.fake->Put(NodeNamed(name));
    Heartbeat(name);
  }
  corev1::Pod pod = PodNamed("a", {}, "silent");
  auto& toleration = *pod.mutable_spec()->add_tolerations();
  toleration.set_key(kUnreachable);
  toleration.set_operator_("Exists");
  toleration.set_effect("NoExecute");
  toleration.set_toleration_seconds(20);
  MakeReady(pod, cluster_.clock.Now());
  cluster_.fake->Put(pod);
  cluster_.Start();
  cluster_.Drain({&lifecycle_, &eviction_});

  Pass(50, {"alive"});
  EXPECT_EQ(Ready("silent"), "True");
  Pass(10, {"alive"});
  EXPECT_EQ(Ready("silent"), "Unknown");
  EXPECT_EQ(Ready("alive"), "True");
  EXPECT_TRUE(HasTaint("silent", "unreachable", "NoSchedule"));
  EXPECT_TRUE(HasTaint("silent", "unreachable", "NoExecute"));
  EXPECT_FALSE(HasTaint("alive", "unreachable", "NoSchedule"));
  auto marked = cluster_.Get<corev1::Pod>("default", "a");
  EXPECT_FALSE(k8s::IsReady(marked));
  EXPECT_FALSE(marked.metadata().has_deletion_timestamp());

  Pass(25, {"alive"});
  auto evicted = cluster_.Get<corev1::Pod>("default", "a");
  EXPECT_TRUE(evicted.metadata().has_deletion_timestamp());
  const auto* target = k8s::FindCondition(evicted.status(), "DisruptionTarget");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->reason(), "DeletionByTaintManager");
}

TEST_F(NodeLifecycleTest, ComingAndGoingAreTold) {
  cluster_.fake->Put(NodeNamed("n1"));
  cluster_.Start();
  cluster_.Drain({&lifecycle_, &eviction_});
  ASSERT_TRUE(cluster_.api.Delete<corev1::Node>("", "n1"));
  cluster_.Drain({&lifecycle_, &eviction_});
  EXPECT_THAT(cluster_.Events(), ::testing::IsSupersetOf({"RegisteredNode: Registered Node n1 in Controller",
                                                          "RemovingNode: Removing Node n1 from Controller"}));
}

TEST_F(NodeLifecycleTest, StartupGraceCountsFromCreation) {
  for (const auto& [name, age] : std::map<std::string, std::chrono::seconds>{{"new", 0s}, {"older", 45s}}) {
    corev1::Node node = NodeNamed(name);
    node.mutable_status()->clear_conditions();
    *node.mutable_metadata()->mutable_creation_timestamp() = api::ToTime(cluster_.clock.Now() - age);
    cluster_.fake->Put(node);
  }
  cluster_.fake->Put(NodeNamed("alive"));
  cluster_.Start();
  Pass(15, {"alive"});
  EXPECT_EQ(Ready("older"), "none");
  Pass(10, {"alive"});
  EXPECT_EQ(Ready("older"), "Unknown");
  EXPECT_EQ(Ready("new"), "none");
  Pass(45, {"alive"});
  EXPECT_EQ(Ready("new"), "Unknown");
}

TEST_F(NodeLifecycleTest, ComesBack) {
  for (const char* name : {"alive", "silent"}) cluster_.fake->Put(NodeNamed(name));
  cluster_.Start();
  Heartbeat("silent");
  Pass(70, {"alive"});
  ASSERT_EQ(Ready("silent"), "Unknown");
  auto node = cluster_.Get<corev1::Node>("", "silent");
  for (auto& condition : *node.mutable_status()->mutable_conditions()) {
    if (condition.type() == "Ready") {
      condition.set_status("True");
      condition.set_reason("KubeletReady");
    }
  }
  cluster_.fake->Put(node);
  Pass(5, {"alive", "silent"});
  EXPECT_EQ(Ready("silent"), "True");
  EXPECT_FALSE(HasTaint("silent", "unreachable", "NoSchedule"));
  EXPECT_FALSE(HasTaint("silent", "unreachable", "NoExecute"));
}

TEST_F(NodeLifecycleTest, NobodyIsEvictedWhenAllAreSilent) {
  for (const char* name : {"a", "b"}) cluster_.fake->Put(NodeNamed(name));
  cluster_.Start();
  Heartbeat("a");
  Heartbeat("b");
  Pass(120, {});
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(Ready(name), "Unknown");
    EXPECT_TRUE(HasTaint(name, "unreachable", "NoSchedule"));
    EXPECT_FALSE(HasTaint(name, "unreachable", "NoExecute"));
  }
}

TEST_F(NodeLifecycleTest, EvictionsAreRateLimited) {
  const std::vector<std::string> alive = {"a1", "a2", "a3", "a4"}, silent = {"s1", "s2", "s3"};
  for (const std::string& name : alive) cluster_.fake->Put(NodeNamed(name));
  for (const std::string& name : silent) cluster_.fake->Put(NodeNamed(name, "False"));
  cluster_.Start();
  cluster_.Drain({&lifecycle_});
  auto tainted = [&] {
    int count = 0;
    for (const std::string& name : silent) count += HasTaint(name, "not-ready", "NoExecute");
    return count;
  };
  std::vector<std::string> all = alive;
  all.insert(all.end(), silent.begin(), silent.end());
  EXPECT_EQ(tainted(), 1);
  Pass(10, all);
  EXPECT_EQ(tainted(), 2);
  Pass(10, all);
  EXPECT_EQ(tainted(), 3);
}

TEST_F(NodeLifecycleTest, ASmallZoneThatMostlyFailsIsLeftAlone) {
  for (const char* name : {"a1", "a2"}) cluster_.fake->Put(NodeNamed(name));
  for (const char* name : {"s1", "s2", "s3"}) cluster_.fake->Put(NodeNamed(name, "False"));
  cluster_.Start();
  cluster_.Drain({&lifecycle_});
  Pass(100, {"a1", "a2", "s1", "s2", "s3"});
  for (const char* name : {"s1", "s2", "s3"}) {
    EXPECT_TRUE(HasTaint(name, "not-ready", "NoSchedule"));
    EXPECT_FALSE(HasTaint(name, "not-ready", "NoExecute"));
  }
}

// After a control plane outage, a node without a heartbeat yet gets a full grace period.
TEST_F(NodeLifecycleTest, TimeBeginsAnewWhenSomebodyIsBack) {
  for (const char* name : {"a", "b", "c"}) cluster_.fake->Put(NodeNamed(name));
  cluster_.Start();
  for (const char* name : {"a", "b", "c"}) Heartbeat(name);
  Pass(120, {});
  ASSERT_EQ(Ready("a"), "Unknown");
  for (const char* name : {"a", "b"}) {
    auto node = cluster_.Get<corev1::Node>("", name);
    *node.mutable_status() = NodeNamed(name).status();
    cluster_.fake->Put(node);
  }
  Pass(30, {"a"});
  EXPECT_EQ(Ready("a"), "True");
  EXPECT_EQ(Ready("b"), "True") << "it has not been silent for the grace period since";
  EXPECT_TRUE(HasTaint("c", "unreachable", "NoExecute"));
  Pass(60, {"a"});
  EXPECT_EQ(Ready("b"), "Unknown");
}

TEST_F(NodeLifecycleTest, UntoleratedTaintEvictsAtOnce) {
  cluster_.fake->Put(NodeNamed("n1"));
  corev1::Pod pod = PodNamed("a", {}, "n1");
  cluster_.fake->Put(pod);
  cluster_.Start();
  cluster_.Drain({&lifecycle_, &eviction_});
  auto node = cluster_.Get<corev1::Node>("", "n1");
  auto& taint = *node.mutable_spec()->add_taints();
  taint.set_key("maintenance");
  taint.set_effect("NoExecute");
  ASSERT_TRUE(cluster_.api.Update(node));
  cluster_.Drain({&lifecycle_, &eviction_});
  EXPECT_TRUE(cluster_.Get<corev1::Pod>("default", "a").metadata().has_deletion_timestamp());
}

TEST_F(NodeLifecycleTest, TolerationsDelayAndTaintsThatGoCancel) {
  corev1::Node node = NodeNamed("n1");
  cluster_.fake->Put(node);
  for (const auto& [name, seconds] : std::map<std::string, int>{{"short", 20}, {"long", 60}, {"ever", 0}}) {
    corev1::Pod pod = PodNamed(name, {}, "n1");
    corev1::Toleration& toleration = *pod.mutable_spec()->add_tolerations();
    toleration.set_key("maintenance");
    toleration.set_operator_("Exists");
    if (seconds > 0) toleration.set_toleration_seconds(seconds);
    cluster_.fake->Put(pod);
  }
  cluster_.Start();
  cluster_.Drain({&eviction_});
  const auto taint = [&](bool on) {
    node = cluster_.Get<corev1::Node>("", "n1");
    node.mutable_spec()->clear_taints();
    if (on) {
      auto& one = *node.mutable_spec()->add_taints();
      one.set_key("maintenance");
      one.set_effect("NoExecute");
      // What a taint says of its age does not count.
      *one.mutable_time_added() = api::ToTime(cluster_.clock.Now() - 1h);
    }
    ASSERT_TRUE(cluster_.api.Update(node));
    cluster_.Drain({&eviction_});
  };
  const auto left = [&] {
    std::set<std::string> out;
    for (const auto& pod : cluster_.List<corev1::Pod>()) {
      if (!pod.metadata().has_deletion_timestamp()) out.insert(pod.metadata().name());
    }
    return out;
  };
  taint(true);
  cluster_.Advance(19s, {&eviction_});
  EXPECT_EQ(left().size(), 3u);
  cluster_.Advance(2s, {&eviction_});
  EXPECT_EQ(left(), (std::set<std::string>{"long", "ever"}));
  const auto gone = cluster_.Get<corev1::Pod>("default", "short");
  const corev1::PodCondition* target = k8s::FindCondition(gone.status(), "DisruptionTarget");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->reason() + ": " + target->message(),
            "DeletionByTaintManager: Taint manager: deleting due to NoExecute taint");
  taint(false);
  cluster_.Advance(60s, {&eviction_});
  EXPECT_EQ(left(), (std::set<std::string>{"long", "ever"}));
  // The next taint starts the time again.
  taint(true);
  cluster_.Advance(59s, {&eviction_});
  EXPECT_EQ(left(), (std::set<std::string>{"long", "ever"}));
  cluster_.Advance(2s, {&eviction_});
  EXPECT_EQ(left(), (std::set<std::string>{"ever"}));
  EXPECT_THAT(cluster_.Events(),
              ::testing::ElementsAre("RegisteredNode: Registered Node n1 in Controller",
                                     "TaintManagerEviction: Cancelling deletion of Pod default/long",
                                     "TaintManagerEviction: Marking for deletion Pod default/long",
                                     "TaintManagerEviction: Marking for deletion Pod default/short"));
}

}  // namespace
}  // namespace keelson::controllers

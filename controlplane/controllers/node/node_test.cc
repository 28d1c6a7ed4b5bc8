#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/node/node_ipam.h"
#include "controlplane/controllers/node/node_lifecycle.h"
#include "controlplane/controllers/node/node_ttl.h"
#include "controlplane/controllers/node/pod_gc.h"
#include "controlplane/controllers/node/taint_eviction.h"
#include "controlplane/controllers/testing.h"
#include "lib/api/meta.h"
#include "lib/k8s/pod_util.h"

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

// After an outage of ours, who has not been heard of yet is not at once taken for dead.
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
  // Time begins anew with the next taint.
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

TEST(PodGcTest, RemovesWhatNobodyElseWill) {
  TestCluster cluster;
  PodGcController& gc = cluster.Make<PodGcController>(1);
  cluster.fake->Put(NodeNamed("n1"));
  cluster.fake->Put(PodNamed("stays", {}, "n1"));
  cluster.fake->Put(PodNamed("lost", {}, "gone"));
  corev1::Pod unscheduled = PodNamed("unscheduled");
  *unscheduled.mutable_metadata()->mutable_deletion_timestamp() = api::ToTime(cluster.clock.Now());
  cluster.fake->Put(unscheduled);
  for (int i = 0; i < 3; ++i) {
    corev1::Pod done = PodNamed("done-" + std::to_string(i), {}, "n1");
    *done.mutable_metadata()->mutable_creation_timestamp() = api::ToTime(cluster.clock.Now() + 1s * i);
    done.mutable_status()->set_phase("Succeeded");
    cluster.fake->Put(done);
  }
  cluster.Start();
  cluster.Drain({&gc});
  auto names = [&] {
    std::set<std::string> out;
    for (const auto& pod : cluster.List<corev1::Pod>()) out.insert(pod.metadata().name());
    return out;
  };
  EXPECT_EQ(names(), (std::set<std::string>{"stays", "lost", "done-2"}))
      << "a missing node has its quarantine";
  cluster.Advance(20s, {&gc});
  EXPECT_EQ(names().count("lost"), 1u);
  cluster.Advance(20s, {&gc});
  EXPECT_EQ(names(), (std::set<std::string>{"stays", "done-2"}));
}

TEST(PodGcTest, FourKindsAndWhatTheyAreTold) {
  TestCluster cluster;
  PodGcController& gc = cluster.Make<PodGcController>(1);
  corev1::Node broken = NodeNamed("broken", "False");
  auto& taint = *broken.mutable_spec()->add_taints();
  taint.set_key("node.kubernetes.io/out-of-service");
  taint.set_effect("NoExecute");
  cluster.fake->Put(broken);
  cluster.fake->Put(NodeNamed("n1"));
  const auto put = [&](const std::string& name, const std::string& node, bool going, const char* phase,
                       const char* reason = "") {
    corev1::Pod pod = PodNamed(name, {}, node);
    pod.mutable_metadata()->add_finalizers("example.com/keep");  // so that they can be looked at
    if (going) *pod.mutable_metadata()->mutable_deletion_timestamp() = api::ToTime(cluster.clock.Now());
    pod.mutable_status()->set_phase(phase);
    if (*reason) pod.mutable_status()->set_reason(reason);
    cluster.fake->Put(pod);
  };
  put("orphaned", "gone", false, "Running");
  put("unscheduled", "", true, "Pending");
  put("out-of-service", "broken", true, "Running");
  put("stays-on-broken", "broken", false, "Running");
  put("going", "n1", true, "Running");
  put("done-a", "n1", false, "Succeeded");
  put("done-b", "", false, "Failed");
  put("evicted", "n1", false, "Failed", "Evicted");
  cluster.Start();
  for (int i = 0; i < 4; ++i) cluster.Advance(20s, {&gc});
  std::map<std::string, std::string> told;
  for (const auto& pod : cluster.List<corev1::Pod>()) {
    const corev1::PodCondition* target = k8s::FindCondition(pod.status(), "DisruptionTarget");
    told[pod.metadata().name()] = pod.status().phase() + (k8s::IsTerminating(pod) ? " going" : "") +
                                  (target ? " " + target->reason() + ": " + target->message() : "");
  }
  EXPECT_EQ(told, (std::map<std::string, std::string>{
                      {"orphaned", "Failed going DeletionByPodGC: PodGC: node no longer exists"},
                      {"unscheduled", "Failed going"},
                      {"out-of-service", "Failed going"},
                      {"stays-on-broken", "Running"},
                      {"going", "Running going"},
                      {"done-a", "Succeeded going"},  // the older of two by name; the evicted one went first
                      {"done-b", "Failed"},
                      {"evicted", "Failed going"}}));
}

TEST(NodeTtlTest, FollowsTheSizeOfTheClusterWithoutFlapping) {
  TtlBySize ttl;
  for (const auto& [nodes, seconds] : std::vector<std::pair<int, int>>{{0, 0},
                                                                       {100, 0},
                                                                       {101, 15},
                                                                       {100, 15},
                                                                       {90, 15},
                                                                       {89, 0},
                                                                       {501, 15 * 2},
                                                                       {450, 30},
                                                                       {449, 15},
                                                                       {1001, 60},
                                                                       {5000, 300},
                                                                       {1800, 300},
                                                                       {1799, 60},
                                                                       {3, 0}})
    EXPECT_EQ(ttl.Seconds(nodes), seconds) << nodes;
}

TEST(NodeTtlTest, EveryNodeIsToldOnce) {
  TestCluster cluster;
  auto& ttl = cluster.Make<NodeTtlController>();
  for (int i = 0; i < 100; ++i) cluster.fake->Put(NodeNamed("n" + std::to_string(i)));
  corev1::Node odd = NodeNamed("n0");
  (*odd.mutable_metadata()->mutable_annotations())[kTtlAnnotation] = "soon";
  cluster.fake->Put(odd);
  cluster.Start();
  cluster.Drain({&ttl});
  auto told = [&](const char* name) {
    return cluster.Get<corev1::Node>("", name).metadata().annotations().at(kTtlAnnotation);
  };
  EXPECT_EQ(told("n0"), "0");
  EXPECT_EQ(told("n99"), "0");
  cluster.fake->ForgetRequests();
  corev1::Node node = cluster.Get<corev1::Node>("", "n7");
  node.mutable_status()->mutable_node_info()->set_kernel_version("6");
  cluster.fake->Put(node);
  cluster.Drain({&ttl});
  for (const std::string& request : cluster.fake->Requests())
    EXPECT_FALSE(request.starts_with("PATCH")) << request;
  cluster.fake->Put(NodeNamed("n100"));  // one too many
  cluster.Drain({&ttl});
  EXPECT_EQ(told("n100"), "15");
  EXPECT_EQ(told("n7"), "0");  // not before it reports
  node.mutable_status()->mutable_node_info()->set_kernel_version("7");
  cluster.fake->Put(node);
  cluster.Drain({&ttl});
  EXPECT_EQ(told("n7"), "15");
  EXPECT_TRUE(cluster.errors.empty());
}

TEST(NodeIpamTest, GivesEveryNodeItsBlock) {
  TestCluster cluster;
  Options options;
  options.cluster_cidrs = {"10.244.0.0/16", "fd00::/56"};
  auto pools = NodeIpamController::MakePools(options);
  ASSERT_TRUE(pools) << pools.error().message();
  NodeIpamController& ipam = cluster.Make<NodeIpamController>(*pools);
  corev1::Node taken = NodeNamed("a-taken");
  taken.mutable_spec()->set_pod_cidr("10.244.0.0/24");
  taken.mutable_spec()->add_pod_cidrs("10.244.0.0/24");
  taken.mutable_spec()->add_pod_cidrs("fd00::/64");
  cluster.fake->Put(taken);
  cluster.fake->Put(NodeNamed("b-new"));
  cluster.Start();
  cluster.Drain({&ipam});
  auto node = cluster.Get<corev1::Node>("", "b-new");
  EXPECT_EQ(node.spec().pod_cidr(), "10.244.1.0/24");
  ASSERT_EQ(node.spec().pod_cidrs_size(), 2);
  EXPECT_EQ(node.spec().pod_cidrs(1), "fd00:0:0:1::/64");
  EXPECT_TRUE(cluster.errors.empty());
}

// Blocks of other sizes than today's, and of several nodes within one of today's.
TEST(NodeIpamTest, WhatNodesHaveIsNotGivenOutAgainWhateverItsSize) {
  TestCluster cluster;
  Options options;
  options.cluster_cidrs = {"10.244.0.0/21"};  // eight blocks
  auto pools = NodeIpamController::MakePools(options);
  ASSERT_TRUE(pools) << pools.error().message();
  NodeIpamController& ipam = cluster.Make<NodeIpamController>(*pools);
  auto put = [&](const std::string& name, const std::string& block) {
    corev1::Node node = NodeNamed(name);
    if (!block.empty()) {
      node.mutable_spec()->set_pod_cidr(block);
      node.mutable_spec()->add_pod_cidrs(block);
    }
    cluster.fake->Put(node);
  };
  auto block_of = [&](const std::string& name) {
    return cluster.Get<corev1::Node>("", name).spec().pod_cidr();
  };
  put("small-1", "10.244.0.0/25");
  put("small-2", "10.244.0.128/25");
  put("large", "10.244.2.0/23");
  put("elsewhere", "192.168.0.0/24");
  put("new-1", "");
  put("new-2", "");
  cluster.Start();
  cluster.Drain({&ipam});
  EXPECT_EQ(block_of("new-1"), "10.244.1.0/24");
  EXPECT_EQ(block_of("new-2"), "10.244.4.0/24");
  for (const char* gone : {"small-1", "large"}) ASSERT_TRUE(cluster.api.Delete<corev1::Node>("", gone));
  cluster.Drain({&ipam});
  for (const char* name : {"new-3", "new-4", "new-5", "new-6", "new-7"}) put(name, "");
  cluster.Drain({&ipam});
  EXPECT_EQ(block_of("new-6"), "10.244.2.0/24");
  EXPECT_EQ(block_of("new-7"), "10.244.3.0/24");
  EXPECT_TRUE(cluster.errors.empty());
  put("too-many", "");  // 10.244.0.0/24 is used by half
  cluster.Drain({&ipam});
  EXPECT_EQ(block_of("too-many"), "");
  ASSERT_TRUE(cluster.api.Delete<corev1::Node>("", "small-2"));
  cluster.Drain({&ipam});
  cluster.Advance(std::chrono::minutes(20), {&ipam});
  EXPECT_EQ(block_of("too-many"), "10.244.0.0/24");
}

TEST(NodeIpamTest, NodeThatGoesGetsNothing) {
  TestCluster cluster;
  Options options;
  options.cluster_cidrs = {"10.244.0.0/16"};
  NodeIpamController& ipam = cluster.Make<NodeIpamController>(*NodeIpamController::MakePools(options));
  corev1::Node node = NodeNamed("n");
  node.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(1);
  cluster.fake->Put(node);
  cluster.Start();
  cluster.Drain({&ipam});
  EXPECT_EQ(cluster.Get<corev1::Node>("", "n").spec().pod_cidr(), "");
}

TEST(NodeIpamTest, TellsWhatFails) {
  TestCluster cluster;
  Options options;
  options.cluster_cidrs = {"10.244.0.0/24"};
  auto pools = NodeIpamController::MakePools(options);
  ASSERT_TRUE(pools) << pools.error().message();
  NodeIpamController& ipam = cluster.Make<NodeIpamController>(*pools);
  cluster.fake->Put(NodeNamed("first"));
  cluster.fake->SetInterceptor(
      [](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
        if (request.method != "PATCH" || request.target.find("nodes/first") == std::string::npos)
          return std::nullopt;
        return Error(Code::kForbidden, "not today");
      });
  cluster.Start();
  cluster.Drain({&ipam});
  cluster.fake->Put(NodeNamed("second"));  // the only block is kept for the first
  cluster.Drain({&ipam});
  EXPECT_THAT(cluster.Events(),
              ::testing::IsSupersetOf({"CIDRAssignmentFailed: Node first status is now: CIDRAssignmentFailed",
                                       "CIDRNotAvailable: Node second status is now: CIDRNotAvailable"}));
}

TEST(NodeIpamTest, Flags) {
  struct Case {
    std::vector<std::string> ranges;
    int one, v4, v6;
    const char* want;  // the first blocks, or the error
  };
  for (const Case& c :
       {Case{{"10.0.0.0/16"}, 0, 0, 0, "10.0.0.0/24"},
        {{"10.0.0.0/16"}, 26, 0, 0, "10.0.0.0/26"},
        {{"10.0.0.0/16"}, 0, 25, 0, "10.0.0.0/25"},
        {{"fd00::/48"}, 0, 0, 0, "fd00::/64"},
        {{"fd00::/48"}, 60, 0, 0, "fd00::/60"},
        {{"10.0.0.0/16", "fd00::/48"}, 0, 0, 0, "10.0.0.0/24 fd00::/64"},
        {{"fd00::/48", "10.0.0.0/16"}, 0, 22, 56, "fd00::/56 10.0.0.0/22"},
        {{"10.0.0.0/16", "fd00::/48"},
         24,
         0,
         0,
         "usage of --node-cidr-mask-size is not allowed with dual-stack clusters"},
        {{"10.0.0.0/16"},
         0,
         0,
         64,
         "usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster"},
        {{"fd00::/48"},
         0,
         24,
         0,
         "usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster"},
        {{"10.0.0.0/16"},
         24,
         24,
         0,
         "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if "
         "--node-cidr-mask-size is set. For dual-stack clusters please unset it."},
        {{"10.0.0.0/16", "10.1.0.0/16"},
         0,
         0,
         0,
         "len of ClusterCIDRs==2 and they are not configured as dual stack (at least one from each "
         "IPFamily)"},
        {{"10.0.0.0/16", "fd00::/48", "fd01::/48"},
         0,
         0,
         0,
         "len of ClusterCIDRs is:3 > more than max allowed of 2"}}) {
    Options options;
    options.cluster_cidrs = c.ranges;
    options.node_cidr_mask_size = c.one;
    options.node_cidr_mask_size_ipv4 = c.v4;
    options.node_cidr_mask_size_ipv6 = c.v6;
    auto pools = NodeIpamController::MakePools(options);
    std::string got = pools ? "" : pools.error().message();
    if (pools) {
      for (CidrPool& pool : *pools) got += (got.empty() ? "" : " ") + pool.Allocate().value_or("none");
    }
    EXPECT_EQ(got, c.want);
  }
}

TEST(NodeIpamTest, ServicesKeepTheirRange) {
  struct Case {
    const char *range, *services, *first;
  };
  for (const Case& c : {Case{"10.0.0.0/16", "10.0.0.0/20", "10.0.16.0/24"},
                        {"10.0.0.0/16", "10.0.0.64/26", "10.0.1.0/24"},
                        {"10.0.0.0/16", "10.0.1.0/24", "10.0.0.0/24"},
                        {"10.0.0.0/16", "10.0.0.0/8", "none"},
                        {"10.0.0.0/16", "10.96.0.0/12", "10.0.0.0/24"},
                        {"10.0.0.0/16", "fd00::/108", "10.0.0.0/24"}}) {
    Options options;
    options.cluster_cidrs = {c.range};
    options.service_cidrs = {c.services};
    auto pools = NodeIpamController::MakePools(options);
    ASSERT_TRUE(pools);
    EXPECT_EQ(pools->front().Allocate().value_or("none"), c.first) << c.services;
  }
}

}  // namespace
}  // namespace keelson::controllers

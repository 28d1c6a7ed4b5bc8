#include "controlplane/controllers/node/node_plan.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/node/node_ipam.h"
#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;
using Names = std::set<std::string>;

const WallTime kNow{std::chrono::seconds(1'800'000'000)};

Names TaintNames(const TaintList& taints) {
  Names names;
  for (const auto& taint : taints) {
    const std::string& key = taint.key();
    names.insert(key.substr(key.find('/') + 1) + ":" + taint.effect());
  }
  return names;
}

void SetCondition(corev1::Node& node, const char* type, const char* status) {
  auto& condition = *node.mutable_status()->add_conditions();
  condition.set_type(type);
  condition.set_status(status);
}

void AddTaint(corev1::Node& node, const char* key, const char* effect) {
  auto& taint = *node.mutable_spec()->add_taints();
  taint.set_key(key);
  taint.set_effect(effect);
}

TEST(PlanTaintsTest, ByHealth) {
  struct Case {
    const char* ready;
    Eviction eviction;
    Names want;
  };
  for (const Case& c :
       {Case{"True", Eviction::kStart, {}}, Case{"False", Eviction::kKeep, {"not-ready:NoSchedule"}},
        Case{"False", Eviction::kStart, {"not-ready:NoSchedule", "not-ready:NoExecute"}},
        Case{"Unknown", Eviction::kStart, {"unreachable:NoSchedule", "unreachable:NoExecute"}}}) {
    EXPECT_EQ(TaintNames(PlanTaints(NodeNamed("n", c.ready), c.eviction, kNow)), c.want) << c.ready;
  }
  corev1::Node silent;
  EXPECT_EQ(TaintNames(PlanTaints(silent, Eviction::kKeep, kNow)), Names{"not-ready:NoSchedule"});
}

TEST(PlanTaintsTest, PressureAndCordon) {
  corev1::Node node = NodeNamed("n");
  SetCondition(node, "MemoryPressure", "True");
  SetCondition(node, "DiskPressure", "True");
  SetCondition(node, "PIDPressure", "False");
  SetCondition(node, "NetworkUnavailable", "True");
  node.mutable_spec()->set_unschedulable(true);
  EXPECT_EQ(TaintNames(PlanTaints(node, Eviction::kKeep, kNow)),
            (Names{"memory-pressure:NoSchedule", "disk-pressure:NoSchedule", "network-unavailable:NoSchedule",
                   "unschedulable:NoSchedule"}));
}

TEST(PlanTaintsTest, KeepsOthersAndRemovesOurs) {
  corev1::Node node = NodeNamed("n");
  AddTaint(node, "node.kubernetes.io/not-ready", "NoSchedule");
  AddTaint(node, "node.kubernetes.io/unreachable", "NoExecute");
  AddTaint(node, "node.kubernetes.io/out-of-service", "NoExecute");
  AddTaint(node, "dedicated", "NoSchedule");
  EXPECT_EQ(TaintNames(PlanTaints(node, Eviction::kKeep, kNow)),
            (Names{"out-of-service:NoExecute", "dedicated:NoSchedule"}));
}

TEST(PlanTaintsTest, EvictionGoesOnWhenTheKindOfTroubleChanges) {
  corev1::Node node = NodeNamed("n", "Unknown");
  AddTaint(node, "node.kubernetes.io/not-ready", "NoExecute");
  EXPECT_EQ(TaintNames(PlanTaints(node, Eviction::kKeep, kNow)),
            (Names{"unreachable:NoSchedule", "unreachable:NoExecute"}));
  EXPECT_EQ(TaintNames(PlanTaints(node, Eviction::kCancel, kNow)), Names{"unreachable:NoSchedule"});
}

TEST(PlanTaintsTest, TimesStay) {
  corev1::Node node = NodeNamed("n", "False");
  *node.mutable_spec()->mutable_taints() = PlanTaints(node, Eviction::kStart, kNow);
  for (const auto& taint : PlanTaints(node, Eviction::kStart, kNow + 60s)) {
    EXPECT_EQ(taint.time_added().seconds(), api::ToTime(kNow).seconds());
  }
}

TEST(MarkUnknownTest, OnceAndWithTheRightReason) {
  corev1::Node node = NodeNamed("n");
  EXPECT_TRUE(MarkUnknown(*node.mutable_status(), kNow - 1h, kNow));
  EXPECT_EQ(node.status().conditions_size(), 4);
  for (const auto& condition : node.status().conditions()) {
    EXPECT_EQ(condition.status(), "Unknown");
    EXPECT_EQ(condition.reason(),
              condition.type() == "Ready" ? "NodeStatusUnknown" : "NodeStatusNeverUpdated");
  }
  EXPECT_FALSE(MarkUnknown(*node.mutable_status(), kNow - 1h, kNow + 5s));
}

TEST(PatienceTest, FirstTolerationOfEachTaintAndTheShortestOfAll) {
  corev1::Node node;
  AddTaint(node, kNotReady, "NoExecute");
  *node.mutable_spec()->mutable_taints(0)->mutable_time_added() = api::ToTime(kNow - 1h);  // of no interest
  AddTaint(node, "scheduling-only", "NoSchedule");
  auto pod_with = [](std::vector<std::pair<const char*, int64_t>> tolerations) {
    corev1::Pod pod;
    for (const auto& [key, seconds] : tolerations) {
      auto& toleration = *pod.mutable_spec()->add_tolerations();
      if (*key) toleration.set_key(key);
      toleration.set_operator_("Exists");
      if (seconds != -1) toleration.set_toleration_seconds(seconds);
    }
    return pod;
  };
  struct Case {
    const char* what;
    corev1::Pod pod;
    std::optional<std::chrono::seconds> one, both;  // with one taint, and a second one
  };
  for (const Case& c :
       {Case{"none", pod_with({}), 0s, 0s},
        Case{"for ever", pod_with({{"", -1}}), std::nullopt, std::nullopt},
        Case{"five minutes", pod_with({{kNotReady, 300}}), 300s, 0s},
        Case{"less than nothing", pod_with({{kNotReady, -5}}), 0s, 0s},
        Case{"the first one", pod_with({{kNotReady, 300}, {"", 60}}), 300s, 60s},
        Case{"the first is for ever", pod_with({{"", -1}, {kNotReady, 60}}), std::nullopt, std::nullopt},
        Case{"one for ever, one not", pod_with({{kNotReady, -1}, {"", 60}}), std::nullopt, 60s},
        Case{"another taint's", pod_with({{"other", -1}}), 0s, 0s}}) {
    corev1::Node two = node;
    AddTaint(two, "second", "NoExecute");
    EXPECT_EQ(Patience(c.pod, node.spec().taints()), c.one) << c.what;
    EXPECT_EQ(Patience(c.pod, two.spec().taints()), c.both) << c.what;
  }
}

TEST(CidrPoolTest, HandsOutAndTakesBack) {
  auto pool = CidrPool::Parse("10.244.0.0/22", 24);
  ASSERT_TRUE(pool) << pool.error().message();
  EXPECT_TRUE(pool->Reserve("10.244.1.0/24"));
  EXPECT_FALSE(pool->Reserve("10.245.1.0/24"));
  EXPECT_FALSE(pool->Reserve("fd00::/64"));
  EXPECT_EQ(pool->Allocate(), "10.244.0.0/24");
  EXPECT_EQ(pool->Allocate(), "10.244.2.0/24");
  EXPECT_EQ(pool->Allocate(), "10.244.3.0/24");
  EXPECT_EQ(pool->Allocate(), std::nullopt);
  pool->Release("10.244.2.0/24");
  EXPECT_EQ(pool->Allocate(), "10.244.2.0/24");
}

TEST(CidrPoolTest, Ipv6AndErrors) {
  auto pool = CidrPool::Parse("fd00:10::/56", 64);
  ASSERT_TRUE(pool);
  EXPECT_EQ(pool->Allocate(), "fd00:10::/64");
  EXPECT_EQ(pool->Allocate(), "fd00:10:0:1::/64");
  for (auto [range, bits] :
       {std::pair("10.0.0.0", 24), {"10.0.0.0/33", 24}, {"10.0.0.0/24", 16}, {"10.0.0.0/4", 24}}) {
    EXPECT_FALSE(CidrPool::Parse(range, bits)) << range;
  }
}

}  // namespace
}  // namespace keelson::controllers

// Cache, queue and algorithm.
#include <gtest/gtest.h>

#include "controlplane/scheduler/algorithm/algorithm.h"
#include "controlplane/scheduler/cache/cache.h"
#include "controlplane/scheduler/config/profile.h"
#include "controlplane/scheduler/queue/queue.h"
#include "controlplane/scheduler/testing/objects.h"

namespace keelson::scheduler {
namespace {

using testing::Info;
using testing::MakeNode;
using testing::MakePod;
using namespace std::chrono_literals;

class CacheTest : public ::testing::Test {
 protected:
  void SetNode(const corev1::Node& node) {
    cache_.SetNode(std::make_shared<const NodeFacts>(node, words_.resources));
  }
  PodPtr On(const std::string& name, const std::string& node, const std::string& cpu) {
    corev1::Pod pod = MakePod(name, cpu);
    pod.mutable_spec()->set_node_name(node);
    return Info(pod, words_);
  }
  // Milli CPU in use on a node; -1 when there is none.
  int64_t Used(const std::string& node) {
    cache_.UpdateSnapshot(snapshot_);
    const auto it = snapshot_.slots.find(node);
    return it == snapshot_.slots.end() ? -1 : snapshot_.nodes[it->second].requested.milli_cpu;
  }

  Vocabulary words_;
  Cache cache_;
  Snapshot snapshot_{words_};
};

TEST_F(CacheTest, CountsPodsOnNodes) {
  SetNode(MakeNode("a"));
  EXPECT_EQ(Used("a"), 0);
  cache_.SetPod(On("p", "a", "1"));
  EXPECT_EQ(Used("a"), 1000);
  cache_.SetPod(On("p", "a", "2"));  // resized
  EXPECT_EQ(Used("a"), 2000);
  EXPECT_TRUE(cache_.RemovePod("default/p"));
  EXPECT_FALSE(cache_.RemovePod("default/p"));
  EXPECT_EQ(Used("a"), 0);
}

TEST_F(CacheTest, PodsMayComeBeforeTheirNode) {
  cache_.SetPod(On("p", "a", "1"));
  EXPECT_EQ(Used("a"), -1);
  SetNode(MakeNode("a"));
  EXPECT_EQ(Used("a"), 1000);
  cache_.RemoveNode("a");
  EXPECT_EQ(Used("a"), -1);
  EXPECT_EQ(snapshot_.count(), 0u);
  SetNode(MakeNode("a"));
  EXPECT_EQ(Used("a"), 1000);
}

TEST_F(CacheTest, AssumedPodsCountUntilForgotten) {
  SetNode(MakeNode("a"));
  const PodPtr pod = Info(MakePod("p", "1"), words_);
  EXPECT_TRUE(cache_.AssumePod(pod, "a"));
  EXPECT_FALSE(cache_.AssumePod(pod, "a"));
  EXPECT_EQ(Used("a"), 1000);
  cache_.ForgetPod("default/p");
  EXPECT_EQ(Used("a"), 0);
}

TEST_F(CacheTest, ConfirmedPodsAreNotForgotten) {
  SetNode(MakeNode("a"));
  SetNode(MakeNode("b"));
  cache_.AssumePod(Info(MakePod("p", "1"), words_), "a");
  cache_.SetPod(On("p", "a", "1"));
  EXPECT_FALSE(cache_.IsAssumedPod("default/p"));
  cache_.ForgetPod("default/p");
  EXPECT_EQ(Used("a"), 1000);
  // Somebody else was quicker.
  cache_.AssumePod(Info(MakePod("q", "1"), words_), "a");
  cache_.SetPod(On("q", "b", "1"));
  EXPECT_EQ(Used("a"), 1000);
  EXPECT_EQ(Used("b"), 1000);
}

TEST_F(CacheTest, SlotsAreUsedAgain) {
  for (int i = 0; i < 5; ++i) {
    SetNode(MakeNode("n" + std::to_string(i)));
    EXPECT_EQ(Used("n" + std::to_string(i)), 0);
    cache_.RemoveNode("n" + std::to_string(i));
  }
  SetNode(MakeNode("a"));
  SetNode(MakeNode("b"));
  cache_.RemoveNode("a");
  SetNode(MakeNode("c"));
  EXPECT_EQ(Used("b"), 0);
  EXPECT_EQ(Used("c"), 0);
  EXPECT_EQ(snapshot_.count(), 2u);
  EXPECT_EQ(snapshot_.nodes.size(), 2u);
}

class QueueTest : public ::testing::Test {
 protected:
  PodPtr Pod(const std::string& name, int32_t priority = 0) {
    corev1::Pod pod = MakePod(name);
    pod.mutable_spec()->set_priority(priority);
    return Info(pod, words_);
  }
  std::string Pop() {
    const std::optional<PodPtr> pod = queue_.Pop(stop_.get_token());
    return pod ? (*pod)->name : "";
  }
  std::string Sizes() {
    const SchedulingQueue::Sizes sizes = queue_.sizes();
    return std::to_string(sizes.active) + "/" + std::to_string(sizes.backoff) + "/" +
           std::to_string(sizes.unschedulable) + "/" + std::to_string(sizes.gated);
  }
  void Advance(std::chrono::nanoseconds by) {
    clock_.Advance(by);
    queue_.Flush();
  }

  Vocabulary words_;
  FakeClock clock_;
  std::stop_source stop_;
  bool hint_ = true;
  SchedulingQueue queue_{clock_,
                         QueueOptions(),
                         {[this](const auto&, const auto&, const auto&) { return hint_; }, nullptr, nullptr}};
  const ClusterEvent event_{ClusterEvent::Kind::kUnschedulableTimeout, nullptr, nullptr, nullptr, nullptr};
};

TEST_F(QueueTest, PriorityThenAge) {
  queue_.AddOrUpdate(Pod("a"), false);
  queue_.AddOrUpdate(Pod("b", 10), false);
  queue_.AddOrUpdate(Pod("c"), false);
  EXPECT_EQ(Pop(), "b");
  EXPECT_EQ(Pop(), "a");
  EXPECT_EQ(Pop(), "c");
  stop_.request_stop();
  EXPECT_EQ(Pop(), "");
}

TEST_F(QueueTest, UnschedulablePodsWaitForAnEventThatMayHelp) {
  queue_.AddOrUpdate(Pod("a"), false);
  Pop();
  queue_.AddUnschedulablePodIfNotPresent(Pod("a"), {"NodeResourcesFit"});
  EXPECT_EQ(Sizes(), "0/0/1/0");
  hint_ = false;
  clock_.Advance(2s);
  queue_.MoveAllToActiveOrBackoffQueue(event_);
  EXPECT_EQ(Sizes(), "0/0/1/0");
  hint_ = true;
  queue_.MoveAllToActiveOrBackoffQueue(event_);
  EXPECT_EQ(Sizes(), "1/0/0/0");
}

TEST_F(QueueTest, BackoffDoublesUpToTheLimit) {
  queue_.AddOrUpdate(Pod("a"), false);
  for (std::chrono::seconds wait : {1s, 2s, 4s, 8s, 10s, 10s}) {
    EXPECT_EQ(Pop(), "a");
    queue_.AddUnschedulablePodIfNotPresent(Pod("a"), {"x"});
    queue_.MoveAllToActiveOrBackoffQueue(event_);
    EXPECT_EQ(Sizes(), "0/1/0/0");
    Advance(wait - 1ms);
    EXPECT_EQ(Sizes(), "0/1/0/0") << wait.count();
    Advance(1ms);
    EXPECT_EQ(Sizes(), "1/0/0/0") << wait.count();
  }
}

TEST_F(QueueTest, ErrorsAndRejectionsBackOffApart) {
  queue_.AddOrUpdate(Pod("a"), false);
  const auto waits = [&](std::chrono::seconds wait) {
    EXPECT_EQ(Sizes(), "0/1/0/0");
    Advance(wait - 1ms);
    EXPECT_EQ(Sizes(), "0/1/0/0") << wait.count();
    Advance(1ms);
    EXPECT_EQ(Sizes(), "1/0/0/0") << wait.count();
  };
  const auto reject = [&](std::chrono::seconds wait) {
    Pop();
    queue_.AddUnschedulablePodIfNotPresent(Pod("a"), {"x"});
    queue_.MoveAllToActiveOrBackoffQueue(event_);
    waits(wait);
  };
  const auto fail = [&](std::chrono::seconds wait) {
    Pop();
    queue_.RetryAfterError(Pod("a"));
    waits(wait);
  };
  reject(1s);
  reject(2s);
  fail(1s);
  fail(2s);
  reject(4s);  // the third
  fail(1s);    // errors count from the last rejection
  // A binding that fails comes back with what the pod has been through.
  Pop();
  const AttemptCounts before = queue_.Done("default/a");
  EXPECT_EQ(before.attempts, 7);
  queue_.RetryAfterError(Pod("a"), before);
  waits(2s);
}

TEST_F(QueueTest, EventsDuringTheAttemptCount) {
  queue_.AddOrUpdate(Pod("a"), false);
  Pop();
  queue_.MoveAllToActiveOrBackoffQueue(event_);
  queue_.AddUnschedulablePodIfNotPresent(Pod("a"), {"x"});
  EXPECT_EQ(Sizes(), "0/1/0/0");
}

TEST_F(QueueTest, FlushAfterFiveMinutes) {
  queue_.AddOrUpdate(Pod("a"), false);
  Pop();
  queue_.AddUnschedulablePodIfNotPresent(Pod("a"), {"x"});
  Advance(5min - 1s);
  EXPECT_EQ(Sizes(), "0/0/1/0");
  Advance(1s);
  EXPECT_EQ(Sizes(), "1/0/0/0");
}

TEST_F(QueueTest, GatedPodsWaitForTheirGates) {
  corev1::Pod pod = MakePod("a");
  pod.mutable_spec()->add_scheduling_gates()->set_name("wait");
  queue_.AddOrUpdate(Info(pod, words_), false);
  queue_.MoveAllToActiveOrBackoffQueue(event_);
  Advance(6min);
  EXPECT_EQ(Sizes(), "0/0/0/1");
  queue_.AddOrUpdate(Pod("a"), true);
  EXPECT_EQ(Sizes(), "1/0/0/0");
}

TEST_F(QueueTest, StatusUpdatesDoNotWake) {
  queue_.AddOrUpdate(Pod("a"), false);
  Pop();
  queue_.AddUnschedulablePodIfNotPresent(Pod("a"), {"x"});
  queue_.AddOrUpdate(Pod("a"), false);
  EXPECT_EQ(Sizes(), "0/0/1/0");
  clock_.Advance(2s);
  queue_.AddOrUpdate(Pod("a"), true);
  EXPECT_EQ(Sizes(), "1/0/0/0");
}

TEST_F(QueueTest, FailedBindingsComeBack) {
  queue_.AddOrUpdate(Pod("a"), false);
  Pop();
  queue_.Done("default/a");
  EXPECT_EQ(Sizes(), "0/0/0/0");
  queue_.RetryAfterError(Pod("a"));
  EXPECT_EQ(Sizes(), "0/1/0/0");
  Advance(1s);
  EXPECT_EQ(Pop(), "a");
  queue_.Delete("default/a");
  queue_.AddUnschedulablePodIfNotPresent(Pod("a"), {"x"});  // gone meanwhile
  EXPECT_EQ(Sizes(), "0/0/0/0");
}

class AlgorithmTest : public ::testing::Test {
 protected:
  AlgorithmTest() : framework_(*MakeFramework(Profile(), FrameworkHandle{reasons_, words_})) {}
  void Add(const corev1::Node& node) {
    cache_.SetNode(std::make_shared<const NodeFacts>(node, words_.resources));
  }
  // The node's name, or why there is none.
  std::string Schedule(const corev1::Pod& pod) {
    cache_.UpdateSnapshot(snapshot_);
    CycleState state;
    const ScheduleResult result = algorithm_.SchedulePod(state, Info(pod, words_), snapshot_);
    if (result.suggested_host.empty()) return result.fit_error.Message(reasons_);
    return std::string(result.suggested_host);
  }
  std::string Place(const corev1::Pod& pod) {
    std::string node = Schedule(pod);
    if (snapshot_.slots.contains(node)) cache_.AssumePod(Info(pod, words_), node);
    return node;
  }

  Vocabulary words_;
  Reasons reasons_;
  const std::unique_ptr<Framework> framework_;
  Cache cache_;
  Snapshot snapshot_{words_};
  Algorithm algorithm_{*framework_, reasons_, {.percentage_of_nodes_to_score = 0, .seed = 7}};
};

TEST_F(AlgorithmTest, SaysWhyAsUpstream) {
  EXPECT_EQ(Schedule(MakePod("p")), "no nodes available to schedule pods");
  Add(MakeNode("a", "1"));
  corev1::Node cordoned = MakeNode("b");
  cordoned.mutable_spec()->set_unschedulable(true);
  Add(cordoned);
  Add(MakeNode("c", "1", "1Mi"));
  EXPECT_EQ(
      Schedule(MakePod("p", "2", "1Gi")),
      "0/3 nodes are available: 1 Insufficient memory, 1 node(s) were unschedulable, 2 Insufficient cpu.");
}

TEST_F(AlgorithmTest, SpreadsByFreeRoom) {
  for (int i = 0; i < 4; ++i) Add(MakeNode("n" + std::to_string(i), "4", "8Gi"));
  std::map<std::string, int> placed;
  for (int i = 0; i < 16; ++i) ++placed[Place(MakePod("p" + std::to_string(i), "1", "2Gi"))];
  EXPECT_EQ(placed.size(), 4u);
  for (const auto& [node, count] : placed) EXPECT_EQ(count, 4) << node;
  EXPECT_EQ(Schedule(MakePod("last", "1", "2Gi")),
            "0/4 nodes are available: 4 Insufficient cpu, 4 Insufficient memory.");
}

TEST_F(AlgorithmTest, RemembersResultsOnlyWhileNodesStay) {
  Add(MakeNode("a", "1"));
  EXPECT_EQ(Schedule(MakePod("p", "2")), "0/1 nodes are available: 1 Insufficient cpu.");
  EXPECT_EQ(Schedule(MakePod("q", "2")), "0/1 nodes are available: 1 Insufficient cpu.");
  Add(MakeNode("a", "4"));
  EXPECT_EQ(Schedule(MakePod("r", "2")), "a");
}

TEST_F(AlgorithmTest, ManyShapesOfPodsDoNotMix) {
  Add(MakeNode("small", "1"));
  Add(MakeNode("large", "4"));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 40; ++i) {
      const std::string milli = std::to_string(1001 + i) + "m";
      EXPECT_EQ(Schedule(MakePod("p", milli)), "large");
      EXPECT_EQ(Schedule(MakePod("q", std::to_string(4001 + i) + "m")),
                "0/2 nodes are available: 2 Insufficient cpu.");
    }
  }
}

TEST_F(AlgorithmTest, PodsThatNameOneNodeLookAtNoOther) {
  for (int i = 0; i < 5; ++i) Add(MakeNode("n" + std::to_string(i)));
  corev1::Pod pod = MakePod("p");
  auto& field = *pod.mutable_spec()
                     ->mutable_affinity()
                     ->mutable_node_affinity()
                     ->mutable_required_during_scheduling_ignored_during_execution()
                     ->add_node_selector_terms()
                     ->add_match_fields();
  field.set_key("metadata.name");
  field.set_operator_("In");
  field.add_values("n3");
  cache_.UpdateSnapshot(snapshot_);
  CycleState state;
  const ScheduleResult result = algorithm_.SchedulePod(state, Info(pod, words_), snapshot_);
  EXPECT_EQ(result.suggested_host, "n3");
  EXPECT_EQ(result.evaluated_nodes, 1u);
}

TEST(NumFeasibleNodesToFind, ShrinksWithTheCluster) {
  EXPECT_EQ(Algorithm::NumFeasibleNodesToFind(50, 0), 50u);
  EXPECT_EQ(Algorithm::NumFeasibleNodesToFind(100, 0), 100u);
  EXPECT_EQ(Algorithm::NumFeasibleNodesToFind(1000, 0), 420u);
  EXPECT_EQ(Algorithm::NumFeasibleNodesToFind(5000, 0), 500u);
  EXPECT_EQ(Algorithm::NumFeasibleNodesToFind(10000, 0), 500u);
  EXPECT_EQ(Algorithm::NumFeasibleNodesToFind(5000, 40), 2000u);
  EXPECT_EQ(Algorithm::NumFeasibleNodesToFind(5000, 100), 5000u);
}

}  // namespace
}  // namespace keelson::scheduler

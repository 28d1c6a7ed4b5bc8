// A small cluster for tests of plugins that depend on other pods, on volumes or on the whole cluster.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "controlplane/scheduler/algorithm/algorithm.h"
#include "controlplane/scheduler/cache/cache.h"
#include "controlplane/scheduler/config/profile.h"
#include "controlplane/scheduler/preemption/executor.h"
#include "controlplane/scheduler/testing/objects.h"
#include "controlplane/scheduler/volumes/volumes.h"

namespace keelson::scheduler {

using testing::Info;
using testing::MakeNode;
using testing::MakePod;

class FakePreemptionExecutor : public PreemptionExecutor {
 public:
  std::shared_ptr<const std::vector<DisruptionBudget>> DisruptionBudgets() override {
    return std::make_shared<const std::vector<DisruptionBudget>>(budgets_);
  }
  void PrepareCandidateAsync(const PodPtr&, const std::string& node, std::vector<PodPtr> victims,
                             std::vector<PodPtr>) override {
    evicted_ = node + ":";
    for (const PodPtr& victim : victims) evicted_ += " " + victim->name;
  }
  bool IsPodRunningPreemption(const PodInfo&) const override { return false; }
  bool ExtendersSupportPreemption(const PodInfo&) const override { return call_extenders_ != nullptr; }
  Result<> CallExtenders(const PodInfo&, const Snapshot&, NodeToVictims& victims) override {
    return call_extenders_(victims);
  }

  std::function<Result<>(NodeToVictims&)> call_extenders_;
  std::vector<DisruptionBudget> budgets_;
  std::string evicted_;
};

class ClusterPluginTest : public ::testing::Test {
 protected:
  ClusterPluginTest() {
    FrameworkHandle handle{reasons_, words_};
    handle.volumes = &volumes_;
    handle.preemption_executor = &executor_;
    framework_ = *MakeFramework(Profile(), handle);
    algorithm_ = std::make_unique<Algorithm>(
        *framework_, reasons_, AlgorithmOptions{.percentage_of_nodes_to_score = 100, .seed = 3});
  }

  corev1::Node& Zoned(const std::string& name, const std::string& zone, const std::string& cpu = "4") {
    corev1::Node& node = nodes_[name] = MakeNode(name, cpu);
    auto& labels = *node.mutable_metadata()->mutable_labels();
    labels["kubernetes.io/hostname"] = name;
    if (!zone.empty()) labels["topology.kubernetes.io/zone"] = zone;
    return node;
  }
  void SetNodes() {
    for (const auto& [name, node] : nodes_) {
      cache_.SetNode(std::make_shared<const NodeFacts>(node, words_.resources));
    }
  }
  static corev1::Pod App(const std::string& name, const std::string& app, const std::string& cpu = "") {
    corev1::Pod pod = MakePod(name, cpu);
    (*pod.mutable_metadata()->mutable_labels())["app"] = app;
    return pod;
  }
  static corev1::TopologySpreadConstraint Spread(const char* when, int max_skew = 1) {
    corev1::TopologySpreadConstraint constraint;
    constraint.set_max_skew(max_skew);
    constraint.set_topology_key("topology.kubernetes.io/zone");
    constraint.set_when_unsatisfiable(when);
    (*constraint.mutable_label_selector()->mutable_match_labels())["app"] = "web";
    return constraint;
  }
  static corev1::PodAffinityTerm Term(const std::string& app,
                                      const char* key = "topology.kubernetes.io/zone") {
    corev1::PodAffinityTerm term;
    (*term.mutable_label_selector()->mutable_match_labels())["app"] = app;
    term.set_topology_key(key);
    return term;
  }
  void Place(const corev1::Pod& pod, const std::string& node) { cache_.SetPod(Info(pod, node, words_)); }

  // The node, or why there is none.
  std::string Schedule(const corev1::Pod& pod) {
    cache_.UpdateSnapshot(snapshot_);
    CycleState state;
    const ScheduleResult result = algorithm_->SchedulePod(state, Info(pod, words_), snapshot_);
    if (!result.error.empty()) return "error: " + result.error;
    return result.suggested_host.empty() ? result.fit_error.Message(reasons_)
                                         : std::string(result.suggested_host);
  }
  template <typename T>
  static std::shared_ptr<const T> Shared(const T& object) {
    return std::make_shared<const T>(object);
  }

  Vocabulary words_;
  Reasons reasons_;
  VolumeCatalog volumes_;
  FakePreemptionExecutor executor_;
  Cache cache_;
  Snapshot snapshot_{words_};
  std::unique_ptr<Framework> framework_;
  std::unique_ptr<Algorithm> algorithm_;
  std::map<std::string, corev1::Node> nodes_;
};

inline constexpr char kNotHelpful[] =
    " preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.";

}  // namespace keelson::scheduler

// A small cluster for tests of plugins that look at other pods, at volumes or at the whole cluster.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "controlplane/scheduler/algorithm/algorithm.h"
#include "controlplane/scheduler/cache/cache.h"
#include "controlplane/scheduler/config/profile.h"
#include "controlplane/scheduler/framework/evictor.h"
#include "controlplane/scheduler/testing/objects.h"
#include "controlplane/scheduler/volumes/volumes.h"

namespace keelson::scheduler {

using testing::Info;
using testing::MakeNode;
using testing::MakePod;

class Wishes : public Evictor {
 public:
  std::shared_ptr<const std::vector<Budget>> Budgets() override {
    return std::make_shared<const std::vector<Budget>>(budgets_);
  }
  void Evict(const PodPtr&, const std::string& node, std::vector<PodPtr> victims,
             std::vector<PodPtr>) override {
    evicted_ = node + ":";
    for (const PodPtr& victim : victims) evicted_ += " " + victim->name;
  }
  bool Busy(const PodInfo&) const override { return false; }
  bool Consults(const PodInfo&) const override { return consult_ != nullptr; }
  Result<> Consult(const PodInfo&, const Snapshot&, VictimsBySlot& victims) override {
    return consult_(victims);
  }

  std::function<Result<>(VictimsBySlot&)> consult_;
  std::vector<Budget> budgets_;
  std::string evicted_;
};

class RelatedTest : public ::testing::Test {
 protected:
  RelatedTest() {
    PluginParts parts{reasons_, words_};
    parts.volumes = &volumes_;
    parts.evictor = &wishes_;
    framework_ = *MakeFramework(Profile(), parts);
    algorithm_ =
        std::make_unique<Algorithm>(*framework_, reasons_, AlgorithmOptions{.percentage = 100, .seed = 3});
  }

  corev1::Node& Zoned(const std::string& name, const std::string& zone, const std::string& cpu = "4") {
    corev1::Node& node = nodes_[name] = MakeNode(name, cpu);
    auto& labels = *node.mutable_metadata()->mutable_labels();
    labels["kubernetes.io/hostname"] = name;
    if (!zone.empty()) labels["topology.kubernetes.io/zone"] = zone;
    return node;
  }
  void SetNodes() {
    for (const auto& [name, node] : nodes_)
      cache_.SetNode(std::make_shared<const NodeFacts>(node, words_.resources));
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
    cache_.Update(snapshot_);
    CycleState state;
    const Decision decision = algorithm_->Schedule(state, Info(pod, words_), snapshot_);
    if (!decision.error.empty()) return "error: " + decision.error;
    return decision.node.empty() ? decision.diagnosis.Message(reasons_) : std::string(decision.node);
  }
  template <typename T>
  static std::shared_ptr<const T> Shared(const T& object) {
    return std::make_shared<const T>(object);
  }

  Vocabulary words_;
  Reasons reasons_;
  VolumeCatalog volumes_;
  Wishes wishes_;
  Cache cache_;
  Snapshot snapshot_{words_};
  std::unique_ptr<Framework> framework_;
  std::unique_ptr<Algorithm> algorithm_;
  std::map<std::string, corev1::Node> nodes_;
};

inline constexpr char kNotHelpful[] =
    " preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.";

}  // namespace keelson::scheduler

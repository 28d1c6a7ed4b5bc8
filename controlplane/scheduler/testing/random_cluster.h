// For tests: a cluster whose nodes, pods, budgets, volumes and Services come, change and go as the dice fall;
// told to what the scheduler knows, and to the plain reference.
#pragma once

#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/scheduler/cache/cache.h"
#include "controlplane/scheduler/config/profile.h"
#include "controlplane/scheduler/preemption/executor.h"
#include "controlplane/scheduler/testing/reference.h"
#include "controlplane/scheduler/volumes/volumes.h"

namespace keelson::scheduler::testing {

inline constexpr char kZone[] = "topology.kubernetes.io/zone";
inline constexpr char kDriver[] = "example.com/csi";

// Remembers what preemption wants.
class FakePreemptionExecutor : public PreemptionExecutor {
 public:
  std::shared_ptr<const std::vector<DisruptionBudget>> DisruptionBudgets() override { return budgets_; }
  void PrepareCandidateAsync(const PodPtr&, const std::string& node, std::vector<PodPtr> victims,
                             std::vector<PodPtr>) override {
    node_ = node;
    victims_ = std::move(victims);
  }
  bool IsPodRunningPreemption(const PodInfo&) const override { return false; }

  std::string node_;
  std::vector<PodPtr> victims_;
  std::shared_ptr<const std::vector<DisruptionBudget>> budgets_ =
      std::make_shared<const std::vector<DisruptionBudget>>();
};

// Pods with some labels "app" are parts of Services.
class Services : public DefaultSelectors {
 public:
  std::optional<metav1::LabelSelector> DefaultSelector(const PodInfo& pod) const override {
    const auto app = pod.pod_class->labels.find("app");
    if (app == pod.pod_class->labels.end() || !known_.contains({pod.ns, app->second})) return std::nullopt;
    metav1::LabelSelector selector;
    (*selector.mutable_match_labels())["app"] = app->second;
    return selector;
  }
  uint64_t epoch() const override { return epoch_; }
  void Set(std::set<std::pair<std::string, std::string>> known) {
    known_ = std::move(known);
    ++epoch_;
  }

 private:
  std::set<std::pair<std::string, std::string>> known_;
  uint64_t epoch_ = 1;
};

class RandomCluster {
 public:
  RandomCluster(uint64_t seed, int nodes);

 protected:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  template <typename T>
  const T& Any(const std::vector<T>& items) {
    return items[static_cast<size_t>(Below(static_cast<int>(items.size())))];
  }
  // Something that others do; or nothing.
  void Change();
  corev1::Pod RandomPod();
  // As the controllers of claims do it.
  void Bind(corev1::PersistentVolumeClaim claim, corev1::PersistentVolume volume);
  void SetClaim(corev1::PersistentVolumeClaim claim);

  std::mt19937_64 random_;
  Vocabulary words_;
  FakePreemptionExecutor executor_;
  Services services_;
  VolumeCatalog catalog_;
  Cache cache_;
  Reference reference_;
  int made_ = 0;
  int64_t version_ = 0;  // of claims and volumes

 private:
  void SetNode(const corev1::Node& node);
  void Furnish(corev1::Node& node);
  void AddNode();
  void ChangeNode();
  void RemoveNode();
  void RemovePod();
  void TerminatePod();
  void SetServices();
  void SetBudgets();
  // One whose volumes are there, one whose driver makes them, and one whose claims are bound by themselves.
  void MakeClasses();
  // What the driver says of a zone, or says no more.
  void SetRoom();
  void SetVolume(corev1::PersistentVolume volume);
  // Acts as a provisioner that provisions or gives up; a claim without a provisioner is bound.
  void BindSomeClaim();
  std::string SomeSize() { return std::to_string(1 + Below(3)) + "Gi"; }
  corev1::PersistentVolume SomeVolume(const std::string& storage_class);
  // A claim, and most often a volume: bound to each other, or free.
  void AddClaim();
  // One or two of the pod's namespace.
  void UseClaims(corev1::Pod& pod);
  metav1::LabelSelector Selector();
  corev1::PodAffinityTerm Term();
};

}  // namespace keelson::scheduler::testing

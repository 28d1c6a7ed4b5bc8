// For tests: the scheduler's decisions made again in the plainest way, from whole objects, each time from the
// beginning and with nothing remembered. Slow, and short enough to be compared with the rules by eye.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "lib/api/types.h"

namespace keelson::scheduler::testing {

struct Reference {
  std::vector<corev1::Node> nodes;  // in the order in which they are looked at
  std::vector<corev1::Pod> pods;    // all with spec.nodeName
  std::vector<std::pair<corev1::Pod, std::string>> nominated;
  std::map<std::string, std::map<std::string, std::string>> namespaces;  // labels
  // Services by namespace and the label "app" that they select.
  std::set<std::pair<std::string, std::string>> services;
  struct Budget {
    std::string ns;
    metav1::LabelSelector selector;
    int allowed;
    std::string disrupted;  // a pod whose eviction counts already
  };
  std::vector<Budget> budgets;
  std::map<std::string, corev1::PersistentVolumeClaim> claims;  // by "namespace/name"
  std::map<std::string, corev1::PersistentVolume> volumes;      // by name
  std::map<std::string, int> volume_limits;                     // of the one driver, by node
  struct StorageClass {
    bool waits;                   // for a first consumer; else somebody binds its claims sometime
    bool provisions = false;      // by the one driver, which says how much room it has
    std::set<std::string> zones;  // where; empty: everywhere
  };
  std::map<std::string, StorageClass> classes;
  struct Room {
    std::string zone;
    int64_t size;  // of the largest volume
  };
  std::map<std::string, Room> rooms;  // of the one class that provisions, by name

  // Why the pod cannot be anywhere; "": it may.
  std::string Problem(const corev1::Pod& pod) const;
  // Why the node is refused, "" if it is not; reasons of one filter have commas between them. `beside` is
  // what nominated pods make of it.
  std::string Refusal(const corev1::Pod& pod, const corev1::Node& node) const;
  std::string RefusalWithNominatedPods(const corev1::Pod& pod, const corev1::Node& node) const;
  // Weighted sums of the default profile, one of each of `feasible`.
  std::vector<int64_t> Totals(const corev1::Pod& pod, const std::vector<const corev1::Node*>& feasible) const;
  struct Victims {
    std::vector<std::string> names;  // in no order; empty: it does not help
    // Budgets broken, highest priority, sum of priorities, how many, and since when the first of the highest
    // runs, negated.
    std::tuple<size_t, int32_t, int64_t, size_t, int64_t> missed;
  };
  // The pods that must leave `node` for `pod`.
  Victims VictimsOn(const corev1::Pod& pod, const corev1::Node& node) const;
  // Which volume each claim of the pod that waits for its node would get there; "": none that is there.
  std::map<std::string, std::string> VolumesFor(const corev1::Pod& pod, const corev1::Node& node) const;

 private:
  std::vector<const corev1::Pod*> On(const corev1::Node& node) const;
  bool Matches(const corev1::PodAffinityTerm& term, const corev1::Pod& owner, const corev1::Pod& other) const;
  const corev1::Node* NodeOf(const corev1::Pod& pod) const;
  std::string Spread(const corev1::Pod& pod, const corev1::Node& node) const;
  std::string Volumes(const corev1::Pod& pod, const corev1::Node& node) const;
  const StorageClass& ClassOf(const corev1::PersistentVolumeClaim& claim) const;
  // Why the claim could not get a new volume there.
  std::string WhyNotMade(const corev1::PersistentVolumeClaim& claim, const corev1::Node& node) const;
  // Constraints that score: those of the pod, or, `by_default`, what a part of a Service gets.
  std::vector<corev1::TopologySpreadConstraint> Wished(const corev1::Pod& pod, bool& by_default) const;
  std::string InterPod(const corev1::Pod& pod, const corev1::Node& node) const;
  std::vector<int64_t> SpreadScores(const corev1::Pod& pod,
                                    const std::vector<const corev1::Node*>& nodes) const;
  std::vector<int64_t> InterPodScores(const corev1::Pod& pod,
                                      const std::vector<const corev1::Node*>& nodes) const;
  int64_t ImageScore(const corev1::Pod& pod, const corev1::Node& node) const;
};

}  // namespace keelson::scheduler::testing

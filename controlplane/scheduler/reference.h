// For tests: the scheduler's decisions made again in the plainest way, from whole objects, each time from the
// beginning and with nothing remembered. Slow, and short enough to be compared with the rules by eye.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/api/types.h"

namespace keelson::scheduler::testing {

struct Reference {
  std::vector<corev1::Node> nodes;  // in the order in which they are looked at
  std::vector<corev1::Pod> pods;    // all with spec.nodeName
  std::vector<std::pair<corev1::Pod, std::string>> nominated;
  std::map<std::string, std::map<std::string, std::string>> namespaces;  // labels

  // Why the node is refused, "" if it is not; reasons of one filter have commas between them. `beside` is
  // what nominated pods make of it.
  std::string Refusal(const corev1::Pod& pod, const corev1::Node& node) const;
  std::string RefusalBeside(const corev1::Pod& pod, const corev1::Node& node) const;
  // Weighted sums of the default profile, one of each of `feasible`.
  std::vector<int64_t> Totals(const corev1::Pod& pod, const std::vector<const corev1::Node*>& feasible) const;
  // Names of pods that have to leave `node` for `pod`, in no order; empty: that does not help.
  std::vector<std::string> Victims(const corev1::Pod& pod, const corev1::Node& node) const;

 private:
  std::vector<const corev1::Pod*> On(const corev1::Node& node) const;
  bool Matches(const corev1::PodAffinityTerm& term, const corev1::Pod& owner, const corev1::Pod& other) const;
  const corev1::Node* NodeOf(const corev1::Pod& pod) const;
  std::string Spread(const corev1::Pod& pod, const corev1::Node& node) const;
  std::string InterPod(const corev1::Pod& pod, const corev1::Node& node) const;
  std::vector<int64_t> SpreadScores(const corev1::Pod& pod,
                                    const std::vector<const corev1::Node*>& nodes) const;
  std::vector<int64_t> InterPodScores(const corev1::Pod& pod,
                                      const std::vector<const corev1::Node*>& nodes) const;
  int64_t ImageScore(const corev1::Pod& pod, const corev1::Node& node) const;
};

}  // namespace keelson::scheduler::testing

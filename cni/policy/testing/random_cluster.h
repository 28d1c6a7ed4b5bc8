// For tests: random objects, small enough that selectors, addresses and ports meet often.
#pragma once

#include <random>
#include <string>

#include "cni/policy/objects.h"
#include "cni/policy/testing/naive.h"

namespace keelson::cni::policy {

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool Odds(int of_ten) { return Below(10) < of_ten; }
  template <typename T>
  T Of(std::initializer_list<T> choices) {
    return *(choices.begin() + Below(static_cast<int>(choices.size())));
  }

 private:
  std::minstd_rand random_;
};

// The address with this number on node `node`.
IpAddress Address(bool v4, int node, int number);
Labels RandomLabels(Dice& dice);
Selector RandomSelector(Dice& dice);
Rule RandomRule(Dice& dice);
// Pod `number`; those on node 1 are named "n1".
Pod RandomPod(Dice& dice, int number);
Policy RandomPolicy(Dice& dice, int number);
ClusterPolicy RandomClusterPolicy(Dice& dice, int number);
ClusterNodes RandomNodes(Dice& dice);  // "n1" always, "n2" often
Cluster RandomCluster(Dice& dice);
// Answers of the cluster's DNS, for names that the policies name and for others.
ResolvedNames RandomNames(Dice& dice);

}  // namespace keelson::cni::policy

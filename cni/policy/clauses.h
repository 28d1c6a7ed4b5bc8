// What the policies that select a pod say, as clauses: a packet that matches one meets its action.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/policy/objects.h"
#include "cni/policy/sets.h"

namespace keelson::cni::policy {

struct Clause {
  SetRef peers = {};  // of the other side. Null: any address
  SetRef ports = {};  // of the packet's destination. Null: any port of any protocol
  // What `peers` holds.
  enum class Form {
    kAddresses,       // address
    kBlocks,          // ranges of address . protocol
    kBlocksAndPorts,  // ranges of address . protocol . port; `ports` is null
    kNamedPorts,      // address . protocol . port of pods; `ports` is null
  } form = Form::kAddresses;
  enum class Action {
    kReturn,  // the packet passes this direction
    kDrop,
    kNextChain,
  } action = Action::kReturn;
  // The rule that it is from: "NAMESPACE/NAME ingress[0]", "NAME egress[0] to *.example.com"
  std::string note = {};
};

// Sorts, and makes one clause of those that match the same packets.
void Normalize(std::vector<Clause>& clauses);

// Builds clauses of one family.
class ClauseBuilder {
 public:
  explicit ClauseBuilder(bool v4) : sets_(v4) {}

  // Appends what the policy permits to a pod that it selects.
  void Add(const Policy& policy, const Pod& pod, Direction direction, std::vector<Clause>& out);
  // Appends one rule of a ClusterNetworkPolicy, in order; `number` is its place in the policy.
  void Add(const ClusterPolicy& policy, size_t number, const Pod& pod, Direction direction,
           std::vector<Clause>& out);
  // Whether what the policy permits depends on the pod: it has the named ports.
  static bool DependsOnPod(const Policy& policy, Direction direction);

 private:
  void AddRule(const Policy& policy, const Rule& rule, const Pod& pod, Direction direction, std::string note,
               std::vector<Clause>& out);
  SetMaker sets_;
};

}  // namespace keelson::cni::policy

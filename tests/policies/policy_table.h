// Reads policies.txt, whose head describes its lines, and tables like it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cni/agent/policy/cluster_policy.h"
#include "lib/base/error.h"

namespace keelson::policies {

// From and to are places, "*" for all pods, or "x/*". A pod and itself are meant only when both name it.
struct Expectation {
  std::string from = {}, to = {};
  bool open = false;
};

struct Step {
  enum Kind {
    kPolicy,
    kClusterPolicy,
    kDelete,
    kDeleteClusterPolicy,
    kLabelNamespace,
    kLabelPod,
    kProbe
  } kind = kProbe;
  int line = 0;
  std::string name = {}, spec = {};  // of policies
  cni::agent::ClusterPolicyKind cluster_kind = cni::agent::ClusterPolicyKind::kClusterNetworkPolicy;
  std::map<std::string, std::string> labels = {};  // of the namespace or pod `name`
  uint8_t protocol = 6;                            // of probes
  uint16_t port = 0;
  std::vector<Expectation> expected = {};  // a later one overrides; at first all is open
};

struct PolicyCase {
  int line = 0;
  std::string name = {};
  std::vector<std::string> places = {};
  std::vector<Step> steps = {};
};

Result<std::vector<PolicyCase>> ReadPolicyTable(const std::string& path);

// Whether the step expects an answer from `to`.
bool IsOpen(const Step& step, const std::string& from, const std::string& to);

}  // namespace keelson::policies

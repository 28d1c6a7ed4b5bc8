// Tells people about policies that cannot be enforced as written, and about pods that wait for their rules: in the
// log, by metrics, and by events on the pods.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "cni/policy/incremental.h"
#include "lib/base/error.h"

namespace keelson::cni::agent {

// A Warning on a pod of this node.
using PodEvent =
    std::function<void(const policy::Pod& pod, std::string_view reason, const std::string& message)>;

inline constexpr char kInvalidPolicy[] = "InvalidNetworkPolicy";
inline constexpr char kPolicyNotApplied[] = "NetworkPolicyNotApplied";

// Reports each problem once for each pod that it concerns. Not thread safe.
class PolicyProblems {
 public:
  explicit PolicyProblems(PodEvent event) : event_(std::move(event)) {}

  // After a change of policies, or of the pods of this node if `pods_changed`.
  void Report(const policy::Incremental& plan, bool pods_changed);
  // A sync has failed: pods of this node that are not ready wait. `ready`: the addresses that are.
  void ReportFailure(const policy::Incremental& plan, const policy::Attachments& ready, const Error& error);
  void Recovered() { waiting_.clear(); }

 private:
  void TellPods(const policy::Incremental& plan);

  const PodEvent event_;
  uint64_t version_ = 0;  // of the policies
  std::set<std::string> logged_;
  std::set<std::pair<std::string, std::string>> told_, waiting_;  // UID, message
};

}  // namespace keelson::cni::agent

#include "cni/agent/policy/problems.h"

#include <vector>

#include "lib/base/log.h"
#include "lib/metrics/metrics.h"

namespace keelson::cni::agent {
namespace {

struct Metrics {
  metrics::Value& policies =
      metrics::Gauge("keelson_cni_network_policies", "NetworkPolicies of the cluster.").With();
  metrics::Value& cluster_policies =
      metrics::Gauge("keelson_cni_cluster_network_policies",
                     "ClusterNetworkPolicies and AdminNetworkPolicies of the cluster.")
          .With();
  metrics::Value& problems = metrics::Gauge("keelson_cni_network_policy_problems",
                                            "Parts of network policies that are not enforced as written.")
                                 .With();
};

Metrics& M() {
  static auto* metrics = new Metrics;
  return *metrics;
}

}  // namespace

void PolicyProblems::Report(const policy::Incremental& plan, bool pods_changed) {
  if (version_ != plan.policies_version()) {
    version_ = plan.policies_version();
    std::set<std::string> now;
    for (const auto& [key, policy] : plan.cluster().policies) {
      for (const std::string& problem : policy.problems) now.insert(key + ": " + problem);
    }
    for (const auto& [name, policy] : plan.cluster().cluster_policies) {
      for (const std::string& problem : policy.problems) now.insert(name + ": " + problem);
    }
    for (const std::string& problem : now) {
      if (!logged_.contains(problem)) {
        log::Warn("A network policy is not enforced as written", {{"problem", problem}});
      }
    }
    logged_ = std::move(now);
    M().policies.Set(static_cast<double>(plan.cluster().policies.size()));
    M().cluster_policies.Set(static_cast<double>(plan.cluster().cluster_policies.size()));
    M().problems.Set(static_cast<double>(logged_.size()));
  } else if (!pods_changed) {
    return;
  }
  if (logged_.empty()) {
    told_.clear();
  } else {
    TellPods(plan);
  }
}

void PolicyProblems::TellPods(const policy::Incremental& plan) {
  std::set<std::pair<std::string, std::string>> now;
  plan.ForEachLocalPod([&](const policy::Pod& pod) {
    auto tell = [&](const std::string& policy, const std::vector<std::string>& problems) {
      for (const std::string& problem : problems) {
        std::string message = policy + ": " + problem;
        if (!told_.contains({pod.uid, message})) event_(pod, kInvalidPolicy, message);
        now.emplace(pod.uid, std::move(message));
      }
    };
    const policy::Cluster& cluster = plan.cluster();
    const auto& policies = cluster.policies;
    for (auto at = policies.lower_bound(pod.ns + "/"); at != policies.end() && at->second.ns == pod.ns;
         ++at) {
      if (at->second.pods.Matches(pod.labels)) tell("NetworkPolicy " + at->first, at->second.problems);
    }
    auto labels = cluster.namespaces.find(pod.ns);
    for (const auto& [name, policy] : cluster.cluster_policies) {
      const bool selects =
          policy.Selects(pod.labels, labels == cluster.namespaces.end() ? nullptr : &labels->second);
      if (selects) tell(policy.Title(), policy.problems);
    }
  });
  told_ = std::move(now);
}

void PolicyProblems::ReportFailure(const policy::Incremental& plan, const policy::Attachments& ready,
                                   const Error& error) {
  std::set<std::string> uids;
  for (const auto& [address, attachment] : ready) uids.insert(attachment.uid);
  const std::string message =
      "network policies cannot be applied, the pod has no network: " + error.message();
  plan.ForEachLocalPod([&](const policy::Pod& pod) {
    if (uids.contains(pod.uid) || uids.contains(pod.static_uid)) return;
    if (waiting_.emplace(pod.uid, message).second) event_(pod, kPolicyNotApplied, message);
  });
}

}  // namespace keelson::cni::agent

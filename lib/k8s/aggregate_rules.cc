#include "lib/k8s/aggregate_rules.h"

#include <algorithm>
#include <set>

#include "lib/api/codec/codec.h"
#include "lib/api/selector.h"

namespace keelson::k8s {

PolicyRules AggregateRules(const rbacv1::ClusterRole& role, const ClusterRoles& all) {
  PolicyRules out;
  std::set<std::string> seen;
  for (const metav1::LabelSelector& wanted : role.aggregation_rule().cluster_role_selectors()) {
    Result<api::LabelSelector> selector = api::LabelSelector::From(wanted);
    if (!selector) continue;
    for (const auto& [name, other] : all) {
      if (name == role.metadata().name() || !selector->Matches(other->metadata().labels())) continue;
      for (const rbacv1::PolicyRule& rule : other->rules()) {
        if (seen.insert(api::EncodeRaw(rule)).second) *out.Add() = rule;
      }
    }
  }
  return out;
}

bool SameRules(const PolicyRules& a, const PolicyRules& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return api::EncodeRaw(x) == api::EncodeRaw(y); });
}

}  // namespace keelson::k8s

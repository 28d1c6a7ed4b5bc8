#include "controlplane/scheduler/testing/reference.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "lib/api/meta.h"
#include "lib/api/selector.h"
#include "lib/k8s/pods/node_affinity.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/tolerations.h"

namespace keelson::scheduler::testing {

namespace {

// "" and false when absent.
bool Label(const corev1::Node& node, const std::string& key, std::string& value) {
  const auto it = node.metadata().labels().find(key);
  value = it == node.metadata().labels().end() ? "" : it->second;
  return it != node.metadata().labels().end();
}

bool Matches(const metav1::LabelSelector& selector, const corev1::Pod& pod) {
  return api::LabelSelector::From(selector)->Matches(pod.metadata().labels());
}

bool HasAllKeys(const std::vector<corev1::TopologySpreadConstraint>& constraints, const corev1::Node& node) {
  std::string value;
  return std::all_of(constraints.begin(), constraints.end(),
                     [&](const auto& constraint) { return Label(node, constraint.topology_key(), value); });
}

std::vector<corev1::TopologySpreadConstraint> Own(const corev1::Pod& pod, const char* when) {
  std::vector<corev1::TopologySpreadConstraint> out;
  for (const auto& constraint : pod.spec().topology_spread_constraints()) {
    if (constraint.when_unsatisfiable() == when) out.push_back(constraint);
  }
  return out;
}

bool Counts(const corev1::TopologySpreadConstraint& constraint, const corev1::Pod& pod,
            const corev1::Node& node) {
  if (constraint.node_affinity_policy() != "Ignore" && !k8s::MatchesNodeAffinity(pod.spec(), node)) {
    return false;
  }
  return constraint.node_taints_policy() != "Honor" ||
         !k8s::FindUntolerated(node.spec().taints(), pod.spec().tolerations());
}

int64_t Amount(const k8s::ResourceList& list, const char* name) {
  return k8s::ScaledValue(name, k8s::AmountOf(list, name));
}

// What a container counts for when nodes are scored. The random pods have one container each.
int64_t Scoring(const corev1::Pod& pod, const char* name) {
  const auto& requests = pod.spec().containers(0).resources().requests();
  const int64_t by_default = std::string_view(name) == "cpu" ? 100 : 200 * 1024 * 1024;
  return requests.contains(name) ? Amount(k8s::PodRequests(pod), name) : by_default;
}

void ByLargest(std::vector<int64_t>& scores, bool reverse) {
  const int64_t most = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
  for (int64_t& score : scores) {
    if (most > 0) score = score * 100 / most;
    if (reverse) score = 100 - score;
  }
}

}  // namespace

std::vector<const corev1::Pod*> Reference::On(const corev1::Node& node) const {
  std::vector<const corev1::Pod*> out;
  for (const corev1::Pod& pod : pods) {
    if (pod.spec().node_name() == node.metadata().name()) out.push_back(&pod);
  }
  return out;
}

const corev1::Node* Reference::NodeOf(const corev1::Pod& pod) const {
  for (const corev1::Node& node : nodes) {
    if (node.metadata().name() == pod.spec().node_name()) return &node;
  }
  return nullptr;
}

bool Reference::Matches(const corev1::PodAffinityTerm& term, const corev1::Pod& owner,
                        const corev1::Pod& other) const {
  const std::string& ns = other.metadata().namespace_();
  bool place = std::find(term.namespaces().begin(), term.namespaces().end(), ns) != term.namespaces().end();
  if (term.has_namespace_selector()) {
    api::LabelMap labels;
    if (const auto it = namespaces.find(ns); it != namespaces.end()) {
      for (const auto& [key, value] : it->second) labels[key] = value;
    }
    place = place || api::LabelSelector::From(term.namespace_selector())->Matches(labels);
  } else if (term.namespaces().empty()) {
    place = ns == owner.metadata().namespace_();
  }
  return place && term.has_label_selector() && testing::Matches(term.label_selector(), other);
}

std::string Reference::Spread(const corev1::Pod& pod, const corev1::Node& node) const {
  const std::vector<corev1::TopologySpreadConstraint> demanded = Own(pod, "DoNotSchedule");
  for (const auto& constraint : demanded) {
    std::string here, value;
    if (!Label(node, constraint.topology_key(), here)) {
      return "node(s) didn't match pod topology spread constraints (missing required label)";
    }
    std::map<std::string, int> counts;
    for (const corev1::Node& other : nodes) {
      if (!HasAllKeys(demanded, other) || !Counts(constraint, pod, other)) continue;
      Label(other, constraint.topology_key(), value);
      counts.try_emplace(value, 0);
      for (const corev1::Pod* one : On(other)) {
        counts[value] += one->metadata().namespace_() == pod.metadata().namespace_() &&
                         !k8s::IsTerminating(*one) && testing::Matches(constraint.label_selector(), *one);
      }
    }
    int fewest = counts.empty() ? 0 : INT32_MAX;
    for (const auto& [domain, count] : counts) fewest = std::min(fewest, count);
    if (static_cast<int>(counts.size()) < std::max(1, constraint.min_domains())) fewest = 0;
    const int there = counts.contains(here) ? counts[here] : 0;
    const int self = testing::Matches(constraint.label_selector(), pod) ? 1 : 0;
    if (there + self - fewest > constraint.max_skew()) {
      return "node(s) didn't match pod topology spread constraints";
    }
  }
  return "";
}

std::string Reference::InterPod(const corev1::Pod& pod, const corev1::Node& node) const {
  const auto& together =
      pod.spec().affinity().pod_affinity().required_during_scheduling_ignored_during_execution();
  const auto& apart =
      pod.spec().affinity().pod_anti_affinity().required_during_scheduling_ignored_during_execution();
  const auto means = [&](const corev1::Pod& other) {
    return !together.empty() && std::all_of(together.begin(), together.end(),
                                            [&](const auto& term) { return Matches(term, pod, other); });
  };
  bool company_anywhere = false, company_here = true, keys = true;
  for (const auto& term : together) {
    std::string here, there;
    keys = keys && Label(node, term.topology_key(), here);
    bool company = false;
    for (const corev1::Pod& other : pods) {
      const corev1::Node* its_node = NodeOf(other);
      if (!its_node || !means(other) || !Label(*its_node, term.topology_key(), there)) continue;
      company_anywhere = true;
      company = company || there == here;
    }
    company_here = company_here && company;
  }
  if (!keys || (!company_here && (company_anywhere || !means(pod)))) {
    return "node(s) didn't match pod affinity rules";
  }
  const auto near = [&](const std::string& key, const corev1::Pod& other) {
    const corev1::Node* its_node = NodeOf(other);
    std::string here, there;
    return its_node && Label(node, key, here) && Label(*its_node, key, there) && here == there;
  };
  for (const auto& term : apart) {
    for (const corev1::Pod& other : pods) {
      if (Matches(term, pod, other) && near(term.topology_key(), other)) {
        return "node(s) didn't match pod anti-affinity rules";
      }
    }
  }
  for (const corev1::Pod& other : pods) {
    for (const auto& term :
         other.spec().affinity().pod_anti_affinity().required_during_scheduling_ignored_during_execution()) {
      if (Matches(term, other, pod) && near(term.topology_key(), other)) {
        return "node(s) didn't satisfy existing pods anti-affinity rules";
      }
    }
  }
  return "";
}

std::string Reference::Refusal(const corev1::Pod& pod, const corev1::Node& node) const {
  corev1::Taint cordon;
  cordon.set_key("node.kubernetes.io/unschedulable");
  cordon.set_effect("NoSchedule");
  if (node.spec().unschedulable() && !k8s::Tolerates(pod.spec().tolerations(), cordon)) {
    return "node(s) were unschedulable";
  }
  if (k8s::FindUntolerated(node.spec().taints(), pod.spec().tolerations())) {
    return "node(s) had untolerated taint(s)";
  }
  if (!k8s::MatchesNodeAffinity(pod.spec(), node)) return "node(s) didn't match Pod's node affinity/selector";
  k8s::ResourceList used;
  for (const corev1::Pod* other : On(node)) {
    for (const k8s::HostPort& theirs : k8s::HostPorts(other->spec())) {
      for (const k8s::HostPort& port : k8s::HostPorts(pod.spec())) {
        if (k8s::Conflicts(port, theirs)) return "node(s) didn't have free ports for the requested pod ports";
      }
    }
    k8s::Add(used, k8s::PodRequests(*other));
  }
  used["pods"] = api::Amount::FromInt(static_cast<int64_t>(On(node).size()));
  std::string lacking;
  for (const auto& lack :
       k8s::CheckResources(k8s::PodRequests(pod), k8s::ToResourceList(node.status().allocatable()), used)) {
    lacking += (lacking.empty() ? "" : ", ") +
               (lack.resource == "pods" ? "Too many pods" : "Insufficient " + lack.resource);
  }
  if (!lacking.empty()) return lacking;
  if (std::string why = Volumes(pod, node); !why.empty()) return why;
  if (std::string why = Spread(pod, node); !why.empty()) return why;
  return InterPod(pod, node);
}

std::string Reference::RefusalWithNominatedPods(const corev1::Pod& pod, const corev1::Node& node) const {
  std::vector<corev1::Pod> beside;
  for (const auto& [other, promised] : nominated) {
    if (promised != node.metadata().name() || k8s::Priority(other.spec()) < k8s::Priority(pod.spec()) ||
        api::KeyOf(other) == api::KeyOf(pod)) {
      continue;
    }
    beside.push_back(other);
    beside.back().mutable_spec()->set_node_name(promised);
  }
  if (!beside.empty()) {
    Reference with = *this;
    with.pods.insert(with.pods.end(), beside.begin(), beside.end());
    if (std::string why = with.Refusal(pod, node); !why.empty()) return why;
  }
  return Refusal(pod, node);
}

std::vector<corev1::TopologySpreadConstraint> Reference::Wished(const corev1::Pod& pod,
                                                                bool& by_default) const {
  const auto app = pod.metadata().labels().find("app");
  by_default = pod.spec().topology_spread_constraints().empty() && app != pod.metadata().labels().end() &&
               services.contains({pod.metadata().namespace_(), app->second});
  if (!by_default) return Own(pod, "ScheduleAnyway");
  std::vector<corev1::TopologySpreadConstraint> out(2);
  out[0].set_topology_key("kubernetes.io/hostname");
  out[0].set_max_skew(3);
  out[1].set_topology_key("topology.kubernetes.io/zone");
  out[1].set_max_skew(5);
  for (auto& constraint : out) {
    (*constraint.mutable_label_selector()->mutable_match_labels())["app"] = app->second;
  }
  return out;
}

std::vector<int64_t> Reference::SpreadScores(const corev1::Pod& pod,
                                             const std::vector<const corev1::Node*>& feasible) const {
  std::vector<double> sums(feasible.size(), 0);
  bool by_default = false;
  const std::vector<corev1::TopologySpreadConstraint> wished = Wished(pod, by_default);
  const auto counts_for = [&](const corev1::Node& node) { return by_default || HasAllKeys(wished, node); };
  for (const auto& constraint : wished) {
    const bool by_node = constraint.topology_key() == "kubernetes.io/hostname";
    std::set<std::string> domains;
    size_t in_place = 0;
    std::string here, there;
    for (const corev1::Node* node : feasible) {
      if (!counts_for(*node)) continue;
      ++in_place;
      Label(*node, constraint.topology_key(), here);
      domains.insert(here);
    }
    const double weight = std::log(static_cast<double>((by_node ? in_place : domains.size()) + 2));
    for (size_t i = 0; i < feasible.size(); ++i) {
      if (!Label(*feasible[i], constraint.topology_key(), here)) continue;
      int count = 0;
      for (const corev1::Node& other : nodes) {
        if (!counts_for(other) || !Counts(constraint, pod, other)) continue;
        if (by_node ? &other != feasible[i] && other.metadata().name() != feasible[i]->metadata().name()
                    : !Label(other, constraint.topology_key(), there) || there != here) {
          continue;
        }
        for (const corev1::Pod* one : On(other)) {
          count += one->metadata().namespace_() == pod.metadata().namespace_() && !k8s::IsTerminating(*one) &&
                   testing::Matches(constraint.label_selector(), *one);
        }
      }
      sums[i] += count * weight + (constraint.max_skew() - 1);
    }
  }
  std::vector<int64_t> out(feasible.size(), 0);
  if (wished.empty()) return out;
  int64_t least = INT64_MAX, most = 0;
  for (size_t i = 0; i < feasible.size(); ++i) {
    out[i] = std::llround(sums[i]);
    if (!counts_for(*feasible[i])) continue;
    least = std::min(least, out[i]);
    most = std::max(most, out[i]);
  }
  for (size_t i = 0; i < feasible.size(); ++i) {
    if (!counts_for(*feasible[i])) {
      out[i] = 0;
    } else {
      out[i] = most == 0 ? 100 : 100 * (most + least - out[i]) / most;
    }
  }
  return out;
}

std::vector<int64_t> Reference::InterPodScores(const corev1::Pod& pod,
                                               const std::vector<const corev1::Node*>& feasible) const {
  std::vector<int64_t> sums(feasible.size(), 0);
  const auto add = [&](const corev1::PodAffinityTerm& term, const corev1::Pod& where, int64_t weight) {
    const corev1::Node* its_node = NodeOf(where);
    std::string here, there;
    if (!its_node || !Label(*its_node, term.topology_key(), there)) return;
    for (size_t i = 0; i < feasible.size(); ++i) {
      if (Label(*feasible[i], term.topology_key(), here) && here == there) sums[i] += weight;
    }
  };
  const auto both = [&](const corev1::Pod& owner, const corev1::Pod& other, const corev1::Pod& where) {
    const corev1::Affinity& affinity = owner.spec().affinity();
    for (const auto& t : affinity.pod_affinity().preferred_during_scheduling_ignored_during_execution()) {
      if (Matches(t.pod_affinity_term(), owner, other)) add(t.pod_affinity_term(), where, t.weight());
    }
    for (const auto& t :
         affinity.pod_anti_affinity().preferred_during_scheduling_ignored_during_execution()) {
      if (Matches(t.pod_affinity_term(), owner, other)) add(t.pod_affinity_term(), where, -t.weight());
    }
  };
  for (const corev1::Pod& other : pods) {
    both(pod, other, other);
    both(other, pod, other);
    for (const auto& t :
         other.spec().affinity().pod_affinity().required_during_scheduling_ignored_during_execution()) {
      if (Matches(t, other, pod)) add(t, other, 1);
    }
  }
  const int64_t least = *std::min_element(sums.begin(), sums.end());
  const int64_t most = *std::max_element(sums.begin(), sums.end());
  for (int64_t& sum : sums) {
    sum = most == least ? 0
                        : static_cast<int64_t>(
                              100.0 * (static_cast<double>(sum - least) / static_cast<double>(most - least)));
  }
  return sums;
}

int64_t Reference::ImageScore(const corev1::Pod& pod, const corev1::Node& node) const {
  constexpr int64_t kMega = 1024 * 1024;
  const std::string image = pod.spec().containers(0).image() + ":latest";
  int64_t size = 0, having = 0;
  for (const corev1::Node& other : nodes) {
    for (const auto& one : other.status().images()) {
      if (one.names(0) != image) continue;
      ++having;
      if (other.metadata().name() == node.metadata().name()) size = one.size_bytes();
    }
  }
  const double share = static_cast<double>(having) / static_cast<double>(nodes.size());
  const int64_t sum = static_cast<int64_t>(static_cast<double>(size) * share);
  return 100 * (std::clamp(sum, 23 * kMega, 1000 * kMega) - 23 * kMega) / (977 * kMega);
}

std::vector<int64_t> Reference::Totals(const corev1::Pod& pod,
                                       const std::vector<const corev1::Node*>& feasible) const {
  std::vector<int64_t> totals(feasible.size(), 0), taints, affinity;
  const k8s::ResourceList asked = k8s::PodRequests(pod);
  for (size_t i = 0; i < feasible.size(); ++i) {
    const corev1::Node& node = *feasible[i];
    const k8s::ResourceList all = k8s::ToResourceList(node.status().allocatable());
    int64_t least = 0, weights = 0;
    double with[2], without[2];
    int shares = 0;
    for (const char* name : {"cpu", "memory"}) {
      int64_t scoring = Scoring(pod, name), used = Amount(asked, name);
      for (const corev1::Pod* other : On(node)) {
        scoring += Scoring(*other, name);
        used += Amount(k8s::PodRequests(*other), name);
      }
      const int64_t capacity = Amount(all, name);
      if (capacity == 0) continue;
      least += scoring > capacity ? 0 : (capacity - scoring) * 100 / capacity;
      ++weights;
      const auto share = [&](int64_t amount) {
        return std::min(1.0, static_cast<double>(amount) / static_cast<double>(capacity));
      };
      with[shares] = share(used);
      without[shares++] = share(used - Amount(asked, name));
    }
    if (weights > 0) totals[i] += least / weights;
    if (Amount(asked, "cpu") > 0 || Amount(asked, "memory") > 0) {
      const auto balance = [&](const double* both) {
        return static_cast<int64_t>((1 - (shares == 2 ? std::abs(both[0] - both[1]) / 2 : 0)) * 100);
      };
      totals[i] += 50 + (50 + balance(with) - balance(without)) / 2;
    }
    totals[i] += ImageScore(pod, node);
    int64_t disliked = 0, liked = 0;
    for (const corev1::Taint& taint : node.spec().taints()) {
      disliked += taint.effect() == "PreferNoSchedule" && !k8s::Tolerates(pod.spec().tolerations(), taint);
    }
    const k8s::LabelSet labels(node.metadata().labels());
    for (const auto& term :
         pod.spec().affinity().node_affinity().preferred_during_scheduling_ignored_during_execution()) {
      if (k8s::NodeTerm(term.preference()).Matches({node.metadata().name(), labels})) liked += term.weight();
    }
    taints.push_back(disliked);
    affinity.push_back(liked);
  }
  ByLargest(taints, true);
  ByLargest(affinity, false);
  const std::vector<int64_t> spread = SpreadScores(pod, feasible), others = InterPodScores(pod, feasible);
  for (size_t i = 0; i < feasible.size(); ++i) {
    totals[i] += 3 * taints[i] + 2 * affinity[i] + 2 * spread[i] + 2 * others[i];
  }
  return totals;
}

}  // namespace keelson::scheduler::testing

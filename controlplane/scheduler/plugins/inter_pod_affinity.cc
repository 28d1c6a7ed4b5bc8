#include <algorithm>

#include "controlplane/scheduler/cache/affinity_counts.h"
#include "controlplane/scheduler/framework/lru_cache.h"
#include "controlplane/scheduler/plugins/plugins.h"

namespace keelson::scheduler {

namespace {

constexpr size_t kClasses = 64;  // counted for at once

struct Counted : CycleState::Data {
  AffinityCounts* counts;
};

class InterPodAffinity : public PreFilterPlugin, public FilterPlugin, public ScorePlugin {
 public:
  InterPodAffinity(Reasons& reasons, InterPodAffinityArgs args)
      : args_(args),
        affinity_(reasons.Intern("node(s) didn't match pod affinity rules")),
        anti_affinity_(reasons.Intern("node(s) didn't match pod anti-affinity rules")),
        others_(reasons.Intern("node(s) didn't satisfy existing pods anti-affinity rules")) {}
  std::string_view name() const override { return "InterPodAffinity"; }
  bool local() const override { return false; }

  PreFilterResult PreFilter(CycleState& state, const PodInfo& pod, const Snapshot& snapshot) override {
    PreFilterResult result;
    const PodClass& own = *pod.pod_class;
    const AffinityCounts* counts = CountsOf(state, pod, snapshot);
    const bool asks =
        !own.affinity.empty() || !own.anti_affinity.empty() || snapshot.nominated_with_anti_affinity() > 0;
    if (!counts || (!asks && !counts->HasExistingAntiAffinity())) result.status = Status::Skip();
    return result;
  }
  void AddPod(CycleState& state, const PodInfo&, const PodInfo& other, const NodeInfo& node) override {
    UpdateWithPod(state, other, node, 1);
  }
  void RemovePod(CycleState& state, const PodInfo&, const PodInfo& other, const NodeInfo& node) override {
    UpdateWithPod(state, other, node, -1);
  }
  FilterStatus Filter(const CycleState& state, const PodInfo&, const NodeInfo& node) override {
    const AffinityCounts& counts = *state.Get<Counted>(this)->counts;
    if (!counts.SatisfiesPodAffinity(node.slot)) return FilterStatus::UnschedulableAndUnresolvable(affinity_);
    if (!counts.SatisfiesPodAntiAffinity(node.slot)) return FilterStatus::Unschedulable(anti_affinity_);
    if (!counts.SatisfiesExistingPodsAntiAffinity(node.slot)) return FilterStatus::Unschedulable(others_);
    return {};
  }

  Status PreScore(CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                  std::span<const uint32_t>) override {
    if (args_.ignore_preferred_terms_of_existing_pods && pod.pod_class->preferred.empty()) {
      return Status::Skip();
    }
    const AffinityCounts* counts = CountsOf(state, pod, snapshot);
    return counts && counts->HasTopologyScore() ? Status() : Status::Skip();
  }
  int64_t Score(const CycleState& state, const PodInfo&, const NodeInfo& node) override {
    return state.Get<Counted>(this)->counts->Score(node.slot);
  }
  void NormalizeScore(const CycleState&, std::vector<int64_t>& scores) const override {
    if (scores.empty()) return;
    const auto [least, most] = std::minmax_element(scores.begin(), scores.end());
    const int64_t from = *least, range = *most - *least;
    for (int64_t& score : scores) {
      const double share = range == 0 ? 0 : static_cast<double>(score - from) / static_cast<double>(range);
      score = static_cast<int64_t>(static_cast<double>(kMaxNodeScore) * share);
    }
  }

  uint32_t EventsToRegister() const override {
    using Kind = ClusterEvent::Kind;
    return Kind::kAssignedPodAdd | Kind::kAssignedPodUpdate | Kind::kAssignedPodDelete | Kind::kNodeAdd |
           Kind::kNodeUpdate | Kind::kNamespaceUpdate;
  }
  bool QueueingHint(const ClusterEvent& event, const PodInfo& pod) const override {
    using Kind = ClusterEvent::Kind;
    const PodClass& own = *pod.pod_class;
    switch (event.kind) {
      case Kind::kAssignedPodAdd:
        return Means(own.affinity, *event.pod->pod_class);
      case Kind::kAssignedPodDelete:
        return Means(own.anti_affinity, *event.pod->pod_class) ||
               Means(event.pod->pod_class->anti_affinity, own);
      case Kind::kAssignedPodUpdate:
        return Means(own.affinity, *event.pod->pod_class) ||
               (event.old_pod && Means(own.anti_affinity, *event.old_pod->pod_class));
      default:
        return true;
    }
  }

 private:
  void UpdateWithPod(CycleState& state, const PodInfo& other, const NodeInfo& node, int by) const {
    if (auto* counted = state.Get<Counted>(this)) {
      counted->counts->UpdateWithPod(*other.pod_class, node.slot, by);
    }
  }
  // Labels of namespaces are the scheduling thread's: any namespace may be meant where they decide.
  static bool Means(const std::vector<AffinityTerm>& terms, const PodClass& other) {
    return std::any_of(terms.begin(), terms.end(), [&](const AffinityTerm& term) {
      const bool place = term.by_namespace_labels ||
                         std::binary_search(term.namespaces.begin(), term.namespaces.end(), other.ns);
      return place && term.selector.Matches(other.labels);
    });
  }

  // Null when there is nothing to count: no wishes, neither of the pod nor of others.
  const AffinityCounts* CountsOf(CycleState& state, const PodInfo& pod, const Snapshot& snapshot) {
    if (auto* counted = state.Get<Counted>(this)) return counted->counts;
    if (!pod.pod_class->HasTerms() && snapshot.classes_with_terms().empty() &&
        snapshot.nominated_with_anti_affinity() == 0) {
      return nullptr;
    }
    auto counted = std::make_unique<Counted>();
    counted->counts = &counts_.Get(pod.pod_class->id, [&] {
      return std::make_unique<AffinityCounts>(pod.pod_class, args_.hard_pod_affinity_weight,
                                              args_.ignore_preferred_terms_of_existing_pods);
    });
    counted->counts->Follow(snapshot);
    const AffinityCounts* counts = counted->counts;
    state.Set(this, std::move(counted));
    return counts;
  }

  const InterPodAffinityArgs args_;
  const uint16_t affinity_, anti_affinity_, others_;
  LruCache<AffinityCounts> counts_{kClasses};
};

}  // namespace

std::unique_ptr<Plugin> NewInterPodAffinity(Reasons& reasons, InterPodAffinityArgs args) {
  return std::make_unique<InterPodAffinity>(reasons, args);
}

}  // namespace keelson::scheduler

#include <cmath>

#include <fmt/format.h>

#include "controlplane/scheduler/cache/spread_counts.h"
#include "controlplane/scheduler/framework/recent.h"
#include "controlplane/scheduler/plugins/plugins.h"
#include "lib/api/codec/codec.h"

namespace keelson::scheduler {

namespace {

constexpr size_t kSpecs = 64;        // counted for at once
constexpr int64_t kOutOfPlace = -1;  // score of a node without the labels

corev1::TopologySpreadConstraint Default(const char* key, int32_t max_skew) {
  corev1::TopologySpreadConstraint out;
  out.set_topology_key(key);
  out.set_max_skew(max_skew);
  out.set_when_unsatisfiable("ScheduleAnyway");
  return out;
}

struct Filtering : CycleState::Data {
  SpreadCounts* counts;
};

struct Scoring : CycleState::Data {
  const SpreadCounts* counts;
  std::vector<double> weights;  // by constraint
};

class PodTopologySpread : public PreFilterPlugin, public FilterPlugin, public ScorePlugin {
 public:
  PodTopologySpread(Reasons& reasons, Vocabulary& words, SpreadArgs args, const WorkloadSelectors* workloads)
      : reason_(reasons.Intern("node(s) didn't match pod topology spread constraints")),
        missing_label_(
            reasons.Intern("node(s) didn't match pod topology spread constraints (missing required label)")),
        words_(words),
        workloads_(workloads),
        system_defaults_(args.system_defaults),
        defaults_(std::move(args.defaults)) {
    if (system_defaults_) {
      defaults_ = {Default("kubernetes.io/hostname", 3), Default("topology.kubernetes.io/zone", 5)};
    }
  }
  std::string_view name() const override { return "PodTopologySpread"; }
  bool local() const override { return false; }

  PreFilterPlugin::Outcome PreFilter(CycleState& state, const PodInfo& pod,
                                     const Snapshot& snapshot) override {
    Outcome outcome;
    const std::shared_ptr<const SpreadSpec> spec = SpecOf(pod);
    if (!spec || spec->hard.empty()) {
      outcome.status = Status::Skip();
      return outcome;
    }
    auto filtering = std::make_unique<Filtering>();
    filtering->counts = &hard_.Get(spec->id, [&] { return std::make_unique<SpreadCounts>(spec, true); });
    filtering->counts->Follow(snapshot);
    state.Set(filter_key(), std::move(filtering));
    return outcome;
  }
  void Moved(CycleState& state, const PodInfo&, const PodInfo& other, const NodeInfo& node, int by) override {
    if (auto* filtering = state.Get<Filtering>(filter_key())) {
      filtering->counts->Move(*other.pod_class, node.slot, by);
    }
  }

  Verdict Filter(const CycleState& state, const PodInfo&, const NodeInfo& node) override {
    const SpreadCounts& counts = *state.Get<Filtering>(filter_key())->counts;
    for (const SpreadCounts::Of& of : counts.constraints()) {
      const uint32_t domain = of.DomainOf(node.slot);
      if (domain == 0) return Verdict::Unresolvable(missing_label_);
      if (Skew(of, domain) > of.constraint->max_skew) return Verdict::Unschedulable(reason_);
    }
    return {};
  }
  std::string Explain(const CycleState& state, const PodInfo&, const NodeInfo& node) override {
    const SpreadCounts& counts = *state.Get<Filtering>(filter_key())->counts;
    for (const SpreadCounts::Of& of : counts.constraints()) {
      const uint32_t domain = of.DomainOf(node.slot);
      if (domain == 0) return fmt::format("the node has no label {}", of.column->label);
      if (Skew(of, domain) <= of.constraint->max_skew) continue;
      return fmt::format("{}: {} of such pods there, {} where there are fewest, maxSkew {}", of.column->label,
                         of.pods[domain], Fewest(of), of.constraint->max_skew);
    }
    return "";
  }

  Status PreScore(CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                  std::span<const uint32_t> slots) override {
    const std::shared_ptr<const SpreadSpec> spec = SpecOf(pod);
    if (!spec || spec->soft.empty()) return Status::Skip();
    SpreadCounts& counts = soft_.Get(spec->id, [&] { return std::make_unique<SpreadCounts>(spec, false); });
    counts.Follow(snapshot);
    auto scoring = std::make_unique<Scoring>();
    scoring->counts = &counts;
    for (const SpreadCounts::Of& of : counts.constraints()) {
      scoring->weights.push_back(std::log(static_cast<double>(DomainsAmong(counts, of, slots) + 2)));
    }
    state.Set(score_key(), std::move(scoring));
    return {};
  }
  // The more pods there are already, the higher; Normalize turns it round.
  int64_t Score(const CycleState& state, const PodInfo&, const NodeInfo& node) override {
    const Scoring& scoring = *state.Get<Scoring>(score_key());
    if (scoring.counts->spec().needs_all_keys && !scoring.counts->HasAllKeys(node.slot)) return kOutOfPlace;
    double score = 0;
    const auto& constraints = scoring.counts->constraints();
    for (size_t i = 0; i < constraints.size(); ++i) {
      const SpreadCounts::Of& of = constraints[i];
      if (of.column->domain[node.slot] == 0) continue;
      score += of.pods[of.DomainOf(node.slot)] * scoring.weights[i] + (of.constraint->max_skew - 1);
    }
    return std::llround(score);
  }
  void Normalize(const CycleState&, std::vector<int64_t>& scores) const override {
    int64_t least = INT64_MAX, most = 0;
    for (int64_t score : scores) {
      if (score == kOutOfPlace) continue;
      least = std::min(least, score);
      most = std::max(most, score);
    }
    for (int64_t& score : scores) {
      if (score == kOutOfPlace) {
        score = 0;
      } else {
        score = most == 0 ? kMax : kMax * (most + least - score) / most;
      }
    }
  }

  uint32_t interests() const override {
    using Kind = ClusterEvent::Kind;
    return Kind::kPodAdded | Kind::kPodChanged | Kind::kPodRemoved | Kind::kNodeAdded | Kind::kNodeChanged;
  }
  bool MayHelp(const ClusterEvent& event, const PodInfo& pod) const override {
    if (!pod.spread) return true;  // ruled out by defaults
    if (event.node) {
      return HasAllLabels(*event.node, *pod.spread) ||
             (event.old_node && HasAllLabels(*event.old_node, *pod.spread));
    }
    return Counts(event.pod, *pod.spread) || Counts(event.old_pod, *pod.spread);
  }

 private:
  // Two keys for two states of one cycle.
  const Plugin* filter_key() const { return this; }
  const Plugin* score_key() const { return &score_key_; }
  struct Key : Plugin {
    std::string_view name() const override { return "PodTopologySpread"; }
  };

  static int32_t Fewest(const SpreadCounts::Of& of) {
    return of.domains < of.constraint->min_domains ? 0 : of.fewest;
  }
  static int32_t Skew(const SpreadCounts::Of& of, uint32_t domain) {
    return of.pods[domain] + (of.constraint->self ? 1 : 0) - Fewest(of);
  }

  bool HasAllLabels(const NodeFacts& node, const SpreadSpec& spec) const {
    for (const SpreadConstraint& constraint : spec.hard) {
      if (!node.labels.Find(words_.topology_keys.Name(constraint.key))) return false;
    }
    return true;
  }
  static bool Counts(const PodPtr& other, const SpreadSpec& spec) {
    if (!other || other->pod_class->ns != spec.ns) return false;
    for (const SpreadConstraint& constraint : spec.hard) {
      if (constraint.selector.Matches(other->pod_class->labels)) return true;
    }
    return false;
  }

  size_t DomainsAmong(const SpreadCounts& counts, const SpreadCounts::Of& of,
                      std::span<const uint32_t> slots) {
    size_t domains = 0;
    seen_.assign(of.by_slot ? 0 : of.column->domains(), false);
    for (uint32_t slot : slots) {
      if (counts.spec().needs_all_keys && !counts.HasAllKeys(slot)) continue;
      if (of.by_slot) {
        ++domains;
        continue;
      }
      const uint32_t domain = of.column->domain[slot];
      domains += !seen_[domain];
      seen_[domain] = true;
    }
    return domains;
  }

  std::shared_ptr<const SpreadSpec> SpecOf(const PodInfo& pod) {
    if (pod.spread || defaults_.empty() || !workloads_) return pod.spread;
    if (defaults_epoch_ != workloads_->epoch()) {
      defaults_epoch_ = workloads_->epoch();
      default_specs_.clear();
    }
    if (default_specs_.size() > 4096) default_specs_.clear();
    const std::string whose = fmt::format("{} {} {}", pod.pod_class->id, pod.shape->id, pod.owner_uid);
    const auto [it, added] = default_specs_.try_emplace(whose);
    if (added) it->second = DefaultSpec(pod);
    return it->second;
  }
  std::shared_ptr<const SpreadSpec> DefaultSpec(const PodInfo& pod) {
    const std::optional<metav1::LabelSelector> selector = workloads_->SelectorOf(pod);
    if (!selector) return nullptr;
    std::vector<corev1::TopologySpreadConstraint> constraints = defaults_;
    std::string key = fmt::format("default {} {} ", pod.shape->id, pod.ns);
    for (auto& constraint : constraints) {
      *constraint.mutable_label_selector() = *selector;
      key += api::EncodeRaw(constraint);
    }
    const auto parsed = api::LabelSelector::From(*selector);
    key += parsed && parsed->Matches(pod.pod_class->labels) ? '+' : '-';
    return words_.spreads.Get(key, pod.ns, pod.shape->affinity, pod.shape->tolerations, pod.pod_class->labels,
                              constraints, !system_defaults_, words_.topology_keys);
  }

  const uint16_t reason_, missing_label_;
  Vocabulary& words_;
  const WorkloadSelectors* const workloads_;
  const bool system_defaults_;
  std::vector<corev1::TopologySpreadConstraint> defaults_;
  const Key score_key_;
  Recent<SpreadCounts> hard_{kSpecs}, soft_{kSpecs};
  std::unordered_map<std::string, std::shared_ptr<const SpreadSpec>> default_specs_;
  uint64_t defaults_epoch_ = 0;
  std::vector<bool> seen_;  // scratch
};

}  // namespace

std::unique_ptr<Plugin> NewPodTopologySpread(Reasons& reasons, Vocabulary& words, SpreadArgs args,
                                             const WorkloadSelectors* workloads) {
  return std::make_unique<PodTopologySpread>(reasons, words, std::move(args), workloads);
}

}  // namespace keelson::scheduler

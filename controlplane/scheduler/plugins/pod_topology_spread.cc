#include <cmath>

#include <fmt/format.h>

#include "controlplane/scheduler/cache/spread_counts.h"
#include "controlplane/scheduler/framework/lru_cache.h"
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
  PodTopologySpread(Reasons& reasons, Vocabulary& words, PodTopologySpreadArgs args,
                    const DefaultSelectors* default_selectors)
      : reason_(reasons.Intern("node(s) didn't match pod topology spread constraints")),
        missing_label_(
            reasons.Intern("node(s) didn't match pod topology spread constraints (missing required label)")),
        words_(words),
        default_selectors_(default_selectors),
        system_defaults_(args.system_defaults),
        defaults_(std::move(args.defaults)) {
    if (system_defaults_) {
      defaults_ = {Default("kubernetes.io/hostname", 3), Default("topology.kubernetes.io/zone", 5)};
    }
  }
  std::string_view name() const override { return "PodTopologySpread"; }
  bool local() const override { return false; }

  PreFilterResult PreFilter(CycleState& state, const PodInfo& pod, const Snapshot& snapshot) override {
    PreFilterResult result;
    const std::shared_ptr<const SpreadSpec> spec = SpecOf(pod);
    if (!spec || spec->hard.empty()) {
      result.status = Status::Skip();
      return result;
    }
    auto filtering = std::make_unique<Filtering>();
    filtering->counts = &hard_.Get(spec->id, [&] { return std::make_unique<SpreadCounts>(spec, true); });
    filtering->counts->Follow(snapshot);
    state.Set(filter_key(), std::move(filtering));
    return result;
  }
  void AddPod(CycleState& state, const PodInfo&, const PodInfo& other, const NodeInfo& node) override {
    UpdateWithPod(state, other, node, 1);
  }
  void RemovePod(CycleState& state, const PodInfo&, const PodInfo& other, const NodeInfo& node) override {
    UpdateWithPod(state, other, node, -1);
  }

  FilterStatus Filter(const CycleState& state, const PodInfo&, const NodeInfo& node) override {
    const SpreadCounts& counts = *state.Get<Filtering>(filter_key())->counts;
    for (const SpreadCounts::ConstraintCounts& of : counts.constraints()) {
      const uint32_t domain = of.DomainOf(node.slot);
      if (domain == 0) return FilterStatus::UnschedulableAndUnresolvable(missing_label_);
      if (Skew(of, domain) > of.constraint->max_skew) return FilterStatus::Unschedulable(reason_);
    }
    return {};
  }
  std::string Details(const CycleState& state, const PodInfo&, const NodeInfo& node) override {
    const SpreadCounts& counts = *state.Get<Filtering>(filter_key())->counts;
    for (const SpreadCounts::ConstraintCounts& of : counts.constraints()) {
      const uint32_t domain = of.DomainOf(node.slot);
      if (domain == 0) return fmt::format("the node has no label {}", of.column->label);
      if (Skew(of, domain) <= of.constraint->max_skew) continue;
      return fmt::format("{}: {} of such pods there, {} where there are fewest, maxSkew {}", of.column->label,
                         of.match_num[domain], MinMatchNum(of), of.constraint->max_skew);
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
    for (const SpreadCounts::ConstraintCounts& of : counts.constraints()) {
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
      const SpreadCounts::ConstraintCounts& of = constraints[i];
      if (of.column->domain[node.slot] == 0) continue;
      score += of.match_num[of.DomainOf(node.slot)] * scoring.weights[i] + (of.constraint->max_skew - 1);
    }
    return std::llround(score);
  }
  void NormalizeScore(const CycleState&, std::vector<int64_t>& scores) const override {
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
        score = most == 0 ? kMaxNodeScore : kMaxNodeScore * (most + least - score) / most;
      }
    }
  }

  uint32_t EventsToRegister() const override {
    using Kind = ClusterEvent::Kind;
    return Kind::kAssignedPodAdd | Kind::kAssignedPodUpdate | Kind::kAssignedPodDelete | Kind::kNodeAdd |
           Kind::kNodeUpdate;
  }
  bool QueueingHint(const ClusterEvent& event, const PodInfo& pod) const override {
    if (!pod.spread) return true;  // ruled out by defaults
    if (event.node) {
      return HasAllLabels(*event.node, *pod.spread) ||
             (event.old_node && HasAllLabels(*event.old_node, *pod.spread));
    }
    return Counts(event.pod, *pod.spread) || Counts(event.old_pod, *pod.spread);
  }

 private:
  void UpdateWithPod(CycleState& state, const PodInfo& other, const NodeInfo& node, int by) const {
    if (auto* filtering = state.Get<Filtering>(filter_key())) {
      filtering->counts->UpdateWithPod(*other.pod_class, node.slot, by);
    }
  }

  // Two keys for two states of one cycle.
  const Plugin* filter_key() const { return this; }
  const Plugin* score_key() const { return &score_key_; }
  struct Key : Plugin {
    std::string_view name() const override { return "PodTopologySpread"; }
  };

  static int32_t MinMatchNum(const SpreadCounts::ConstraintCounts& of) {
    return of.domains < of.constraint->min_domains ? 0 : of.min_match_num;
  }
  static int32_t Skew(const SpreadCounts::ConstraintCounts& of, uint32_t domain) {
    return of.match_num[domain] + (of.constraint->self ? 1 : 0) - MinMatchNum(of);
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

  size_t DomainsAmong(const SpreadCounts& counts, const SpreadCounts::ConstraintCounts& of,
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
    if (pod.spread || defaults_.empty() || !default_selectors_) return pod.spread;
    if (defaults_epoch_ != default_selectors_->epoch()) {
      defaults_epoch_ = default_selectors_->epoch();
      default_specs_.clear();
    }
    if (default_specs_.size() > 4096) default_specs_.clear();
    const std::string whose = fmt::format("{} {} {}", pod.pod_class->id, pod.shape->id, pod.owner_uid);
    const auto [it, added] = default_specs_.try_emplace(whose);
    if (added) it->second = DefaultSpec(pod);
    return it->second;
  }
  std::shared_ptr<const SpreadSpec> DefaultSpec(const PodInfo& pod) {
    const std::optional<metav1::LabelSelector> selector = default_selectors_->DefaultSelector(pod);
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
  const DefaultSelectors* const default_selectors_;
  const bool system_defaults_;
  std::vector<corev1::TopologySpreadConstraint> defaults_;
  const Key score_key_;
  LruCache<SpreadCounts> hard_{kSpecs}, soft_{kSpecs};
  std::unordered_map<std::string, std::shared_ptr<const SpreadSpec>> default_specs_;
  uint64_t defaults_epoch_ = 0;
  std::vector<bool> seen_;  // scratch
};

}  // namespace

std::unique_ptr<Plugin> NewPodTopologySpread(Reasons& reasons, Vocabulary& words, PodTopologySpreadArgs args,
                                             const DefaultSelectors* default_selectors) {
  return std::make_unique<PodTopologySpread>(reasons, words, std::move(args), default_selectors);
}

}  // namespace keelson::scheduler

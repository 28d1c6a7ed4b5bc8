#include "controlplane/scheduler/plugins/plugins.h"

namespace keelson::scheduler {

namespace {

class NodeAffinity : public PreFilterPlugin, public FilterPlugin, public ScorePlugin {
 public:
  explicit NodeAffinity(Reasons& reasons)
      : reason_(reasons.Intern("node(s) didn't match Pod's node affinity/selector")) {}
  std::string_view name() const override { return "NodeAffinity"; }

  PreFilterPlugin::Outcome PreFilter(CycleState&, const PodInfo& pod) override {
    Outcome outcome;
    outcome.nodes = pod.affinity.Names();
    return outcome;
  }
  Verdict Filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    if (pod.affinity.IsEverything() || pod.affinity.Matches(node.facts->view())) return {};
    return Verdict::Unresolvable(reason_);
  }
  int64_t Score(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    int64_t score = 0;
    for (const PreferredTerm& preferred : pod.preferred) {
      if (preferred.term.Matches(node.facts->view())) score += preferred.weight;
    }
    return score;
  }
  void Normalize(std::vector<int64_t>& scores) const override { NormalizeByLargest(scores, false); }
  int64_t weight() const override { return 2; }
  bool MayHelp(const ClusterEvent& event, const PodInfo& pod) const override {
    if (!event.node || !pod.affinity.Matches(event.node->view())) return false;
    return !event.old_node || !pod.affinity.Matches(event.old_node->view());
  }

 private:
  const uint16_t reason_;
};

}  // namespace

std::unique_ptr<Plugin> NewNodeAffinity(Reasons& reasons) { return std::make_unique<NodeAffinity>(reasons); }

}  // namespace keelson::scheduler

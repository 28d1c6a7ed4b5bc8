// Random clusters: what the scheduler decides, from all that it keeps and remembers, is what the plain
// reference decides from the beginning, pod after pod, while nodes, pods, budgets, volumes and Services come,
// change and go.
#include <algorithm>

#include <gtest/gtest.h>

#include "controlplane/scheduler/algorithm/algorithm.h"
#include "controlplane/scheduler/testing/objects.h"
#include "controlplane/scheduler/testing/random_cluster.h"
#include "controlplane/scheduler/volumes/volume_plan.h"
#include "lib/api/meta.h"

namespace keelson::scheduler {
namespace {

using testing::Info;
using testing::Reference;

class World : public testing::RandomCluster {
 public:
  // `percentage` of the nodes to find; only of more than a hundred it is less than all.
  World(uint64_t seed, int nodes, int percentage)
      : testing::RandomCluster(seed, nodes), percentage_(percentage) {
    FrameworkHandle handle{reasons_, words_};
    handle.preemption_executor = &executor_;
    handle.default_selectors = &services_;
    handle.volumes = &catalog_;
    framework_ = *MakeFramework(Profile(), handle);
    algorithm_ = std::make_unique<Algorithm>(
        *framework_, reasons_, AlgorithmOptions{.percentage_of_nodes_to_score = percentage, .seed = seed});
  }

  void Step() {
    Change();
    ScheduleOne();
  }
  // How often a volume was asked for that was not there.
  int asked() const { return asked_; }

 private:
  void ScheduleOne() {
    // Pods come in sets, whose members profit from what was found for the one before.
    if (!template_.has_spec() || Chance(40)) template_ = RandomPod();
    corev1::Pod pod = template_;
    pod.mutable_metadata()->set_name("p" + std::to_string(made_++));
    pod.mutable_status()->mutable_start_time()->set_seconds(1000 + made_);

    cache_.UpdateSnapshot(snapshot_);
    CycleState state;
    executor_.node_.clear();
    executor_.victims_.clear();
    const PodPtr info = Info(pod, words_);
    const ScheduleResult result = algorithm_->SchedulePod(state, info, snapshot_);
    ASSERT_EQ(result.error, "");
    if (const std::string problem = reference_.Problem(pod); !problem.empty()) {
      ASSERT_EQ(result.suggested_host, "");
      ASSERT_EQ(result.fit_error.pre_filter_message, problem);
      ASSERT_EQ(executor_.node_, "");
      return;
    }

    // Nodes take turns: each search goes on where the last one has ended, until it has found enough.
    std::vector<const corev1::Node*> feasible;
    std::map<std::string, int> refused;
    const size_t slots = snapshot_.nodes.size();
    const size_t enough = Algorithm::NumFeasibleNodesToFind(reference_.nodes.size(), percentage_);
    size_t looked_at = 0;
    for (size_t i = 0; i < slots && feasible.size() < enough; ++i) {
      const NodeInfo& slot = snapshot_.nodes[turn_++ % slots];
      if (!slot.facts) continue;
      ++looked_at;
      const corev1::Node& node = NodeOf(slot.facts->name);
      const std::string why = reference_.RefusalWithNominatedPods(pod, node);
      if (why.empty()) {
        feasible.push_back(&node);
      } else {
        ++refused[why];
      }
    }
    turn_ %= slots;
    SCOPED_TRACE(pod.ShortDebugString());
    ASSERT_EQ(result.feasible_nodes, feasible.size());
    ASSERT_EQ(result.evaluated_nodes, looked_at);
    if (!feasible.empty()) {
      CheckChoice(pod, std::string(result.suggested_host), feasible);
      return CheckVolumes(state, info, std::string(result.suggested_host));
    }
    ASSERT_EQ(result.suggested_host, "");
    CheckReasons(result, refused);
    CheckPreemption(pod);
  }
  void CheckChoice(corev1::Pod& pod, const std::string& chosen,
                   const std::vector<const corev1::Node*>& feasible) {
    const std::vector<int64_t> totals = reference_.Totals(pod, feasible);
    const int64_t best = *std::max_element(totals.begin(), totals.end());
    std::vector<std::string> good;
    for (size_t i = 0; i < feasible.size(); ++i) {
      if (totals[i] == best || feasible.size() == 1) good.push_back(feasible[i]->metadata().name());
    }
    ASSERT_NE(std::find(good.begin(), good.end(), chosen), good.end()) << chosen << " is not among the best";
    ASSERT_TRUE(cache_.AssumePod(Info(pod, words_), chosen));
    pod.mutable_spec()->set_node_name(chosen);
    if (Chance(50)) cache_.SetPod(Info(pod, words_));
    reference_.pods.push_back(pod);
  }
  const corev1::Node& NodeOf(const std::string& name) const {
    return *std::find_if(reference_.nodes.begin(), reference_.nodes.end(),
                         [&](const corev1::Node& node) { return node.metadata().name() == name; });
  }
  // Those that the pod's claims get on the chosen node are reserved, and then bound, or asked for.
  void CheckVolumes(CycleState& state, const PodPtr& info, const std::string& chosen) {
    if (::testing::Test::HasFatalFailure()) return;
    const corev1::Pod& pod = reference_.pods.back();
    const auto volumes = reference_.VolumesFor(pod, NodeOf(chosen));
    ASSERT_TRUE(framework_->RunReservePluginsReserve(state, *info, *snapshot_.Find(chosen)).status.ok());
    const bool undone = !volumes.empty() && Chance(10);
    if (undone) framework_->RunReservePluginsUnreserve(state, *info, chosen);
    for (const auto& [key, volume] : volumes) {
      corev1::PersistentVolumeClaim claim = reference_.claims.at(key);
      if (!volume.empty()) {
        const corev1::ObjectReference& ref = catalog_.FindVolume(volume)->spec().claim_ref();
        ASSERT_EQ(undone ? "" : key, api::KeyOf(ref.namespace_(), ref.name()));
        if (!undone) Bind(claim, reference_.volumes.at(volume));
        continue;
      }
      const auto known = catalog_.FindClaim(claim.metadata().namespace_(), claim.metadata().name());
      const auto before = claim.metadata().annotations().find(kSelectedNode);
      const auto now = known->metadata().annotations().find(kSelectedNode);
      if (undone) {
        ASSERT_EQ(now == known->metadata().annotations().end(),
                  before == claim.metadata().annotations().end());
        continue;
      }
      ASSERT_EQ(now->second, chosen);
      ++asked_;
      (*claim.mutable_metadata()->mutable_annotations())[kSelectedNode] = chosen;
      SetClaim(claim);
    }
    if (!undone) return;
    cache_.RemovePod(api::KeyOf(pod));
    reference_.pods.pop_back();
  }
  void CheckReasons(const ScheduleResult& result, const std::map<std::string, int>& refused) {
    std::map<std::string, size_t> want, have;
    for (const auto& [why, count] : refused) {
      for (size_t from = 0; from <= why.size();) {
        const size_t comma = std::min(why.find(", ", from), why.size());
        want[why.substr(from, comma - from)] += static_cast<size_t>(count);
        from = comma + 2;
      }
    }
    for (const auto& [id, count] : result.fit_error.reasons) have[reasons_.Text(id)] = count;
    ASSERT_EQ(have, want);
    // Which pods wait for which events?
    const auto& by = result.fit_error.unschedulable_plugins;
    for (const auto& [reason, count] : want) {
      const bool fit = reason.starts_with("Insufficient") || reason == "Too many pods";
      if (!fit) continue;
      ASSERT_NE(std::find(by.begin(), by.end(), "NodeResourcesFit"), by.end());
    }
  }
  void CheckPreemption(const corev1::Pod& pod) {
    std::vector<std::string> victims;
    for (const PodPtr& victim : executor_.victims_) victims.push_back(victim->name);
    std::sort(victims.begin(), victims.end());
    const Reference::Victims* best = nullptr;
    std::map<std::string, Reference::Victims> candidates;
    for (const corev1::Node& node : reference_.nodes) {
      Reference::Victims& here = candidates[node.metadata().name()] = reference_.VictimsOn(pod, node);
      if (!here.names.empty() && (!best || here.missed < best->missed)) best = &here;
    }
    // None where it helps nowhere, else those that are missed least.
    ASSERT_EQ(executor_.node_.empty(), best == nullptr);
    if (!best) return;
    Reference::Victims& chosen = candidates[executor_.node_];
    std::sort(chosen.names.begin(), chosen.names.end());
    ASSERT_EQ(victims, chosen.names);
    ASSERT_EQ(chosen.missed, best->missed);
    // Some get their way, some keep a promise.
    for (const std::string& name : victims) {
      for (const corev1::Pod& other : reference_.pods) {
        if (other.metadata().name() == name) cache_.RemovePod(api::KeyOf(other));
      }
      std::erase_if(reference_.pods,
                    [&](const corev1::Pod& other) { return other.metadata().name() == name; });
    }
    if (reference_.nominated.size() < 3) {
      cache_.Nominate(Info(pod, words_), executor_.node_);
      reference_.nominated.emplace_back(pod, executor_.node_);
    } else {
      for (const auto& [other, promised] : reference_.nominated) cache_.Nominate(Info(other, words_), "");
      reference_.nominated.clear();
    }
  }

  const int percentage_;
  Reasons reasons_;
  Snapshot snapshot_{words_};
  std::unique_ptr<Framework> framework_;
  std::unique_ptr<Algorithm> algorithm_;
  corev1::Pod template_;
  size_t turn_ = 0;  // the slot that the next search begins at
  int asked_ = 0;    // for volumes that were not there
};

// Returns how often a volume was asked for.
int Compare(uint64_t seed, int nodes, int percentage, int steps) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  World world(seed, nodes, percentage);
  for (int step = 0; step < steps && !::testing::Test::HasFatalFailure(); ++step) world.Step();
  return world.asked();
}

TEST(Property, DecisionsAreThoseOfThePlainReference) {
  int asked = 0;
  for (uint64_t seed = 1; seed <= 30 && !HasFatalFailure(); ++seed) {
    asked += Compare(seed, 3 + static_cast<int>(seed * 7 % 12), 100, 60);
  }
  EXPECT_GT(asked, 10);
}

TEST(Property, TheSearchMayEndEarly) {
  for (uint64_t seed = 1; seed <= 3 && !HasFatalFailure(); ++seed) Compare(seed, 150, 30, 25);
}

}  // namespace
}  // namespace keelson::scheduler

// Random clusters: what the scheduler decides, from all that it keeps and remembers, is what the plain
// reference decides from the beginning, pod after pod, while nodes, pods, budgets, volumes and Services come,
// change and go.
#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "controlplane/scheduler/algorithm.h"
#include "controlplane/scheduler/cache.h"
#include "controlplane/scheduler/evictor.h"
#include "controlplane/scheduler/profile.h"
#include "controlplane/scheduler/reference.h"
#include "controlplane/scheduler/testing.h"
#include "controlplane/scheduler/volume_plan.h"
#include "lib/api/meta.h"

namespace keelson::scheduler {
namespace {

using testing::Info;
using testing::MakeNode;
using testing::MakePod;
using testing::Reference;

constexpr char kZone[] = "topology.kubernetes.io/zone";
constexpr char kDriver[] = "example.com/csi";

// Remembers what preemption wants.
class Wishes : public Evictor {
 public:
  std::shared_ptr<const std::vector<Budget>> Budgets() override { return budgets_; }
  void Evict(const PodPtr&, const std::string& node, std::vector<PodPtr> victims,
             std::vector<PodPtr>) override {
    node_ = node;
    victims_ = std::move(victims);
  }
  bool Busy(const PodInfo&) const override { return false; }

  std::string node_;
  std::vector<PodPtr> victims_;
  std::shared_ptr<const std::vector<Budget>> budgets_ = std::make_shared<const std::vector<Budget>>();
};

// Pods with some labels "app" are parts of Services.
class Services : public WorkloadSelectors {
 public:
  std::optional<metav1::LabelSelector> SelectorOf(const PodInfo& pod) const override {
    const auto app = pod.pod_class->labels.find("app");
    if (app == pod.pod_class->labels.end() || !known_.contains({pod.ns, app->second})) return std::nullopt;
    metav1::LabelSelector selector;
    (*selector.mutable_match_labels())["app"] = app->second;
    return selector;
  }
  uint64_t epoch() const override { return epoch_; }
  void Set(std::set<std::pair<std::string, std::string>> known) {
    known_ = std::move(known);
    ++epoch_;
  }

 private:
  std::set<std::pair<std::string, std::string>> known_;
  uint64_t epoch_ = 1;
};

class World {
 public:
  // `percentage` of the nodes to find; only of more than a hundred it is less than all.
  World(uint64_t seed, int nodes, int percentage) : random_(seed), percentage_(percentage) {
    PluginParts parts{reasons_, words_};
    parts.evictor = &wishes_;
    parts.workloads = &services_;
    parts.volumes = &catalog_;
    framework_ = *MakeFramework(Profile(), parts);
    algorithm_ = std::make_unique<Algorithm>(*framework_, reasons_,
                                             AlgorithmOptions{.percentage = percentage, .seed = seed});
    for (const char* ns : {"x", "y"}) {
      const std::string team = Chance(50) ? "red" : "blue";
      auto labels = std::make_shared<api::LabelMap>();
      (*labels)["team"] = team;
      cache_.SetNamespace(ns, labels);
      reference_.namespaces[ns]["team"] = team;
    }
    storagev1::StorageClass storage_class;
    storage_class.mutable_metadata()->set_name("wait");
    storage_class.set_provisioner(kNoProvisioner);
    storage_class.set_volume_binding_mode("WaitForFirstConsumer");
    catalog_.SetClass("wait", std::make_shared<const storagev1::StorageClass>(storage_class));
    for (int i = 0; i < nodes; ++i) AddNode();
    for (int i = 0; i < 8; ++i) AddClaim();
  }

  void Step() {
    const int what = Below(24);
    if (what == 0) AddNode();
    if (what == 1) RemoveNode();
    if (what == 2) ChangeNode();
    if (what == 3 || what == 4) RemovePod();
    if (what == 5) TerminatePod();
    if (what == 6) SetServices();
    if (what == 7 || what == 8) SetBudgets();
    if (what == 9 || what == 10) AddClaim();
    ScheduleOne();
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  template <typename T>
  const T& Any(const std::vector<T>& items) {
    return items[static_cast<size_t>(Below(static_cast<int>(items.size())))];
  }

  void SetNode(const corev1::Node& node) {
    cache_.SetNode(std::make_shared<const NodeFacts>(node, words_.resources));
    for (corev1::Node& known : reference_.nodes) {
      if (known.metadata().name() == node.metadata().name()) {
        known = node;
        return;
      }
    }
    reference_.nodes.push_back(node);
  }
  void Furnish(corev1::Node& node) {
    auto& labels = *node.mutable_metadata()->mutable_labels();
    labels.clear();
    labels["kubernetes.io/hostname"] = node.metadata().name();
    if (Chance(90)) labels[kZone] = "z" + std::to_string(Below(3));
    if (Chance(30)) labels["disk"] = "ssd";
    node.mutable_spec()->clear_taints();
    node.mutable_spec()->set_unschedulable(Chance(5));
    if (Chance(20)) {
      corev1::Taint& taint = *node.mutable_spec()->add_taints();
      taint.set_key("t");
      taint.set_effect(Chance(50) ? "NoSchedule" : "PreferNoSchedule");
    }
    node.mutable_status()->clear_images();
    if (Chance(40)) {
      corev1::ContainerImage& image = *node.mutable_status()->add_images();
      image.add_names("app" + std::to_string(Below(2)) + ":latest");
      image.set_size_bytes((100 + Below(900)) * 1024LL * 1024);
    }
  }
  void AddNode() {
    corev1::Node node = MakeNode("n" + std::to_string(made_++), std::to_string(1 + Below(4)),
                                 std::to_string(1 + Below(4)) + "Gi", std::to_string(3 + Below(6)));
    Furnish(node);
    SetNode(node);
    if (!Chance(50)) return;
    storagev1::CSINode drivers;
    storagev1::CSINodeDriver& driver = *drivers.mutable_spec()->add_drivers();
    driver.set_name(kDriver);
    driver.mutable_allocatable()->set_count(1 + Below(2));
    catalog_.SetNodeDrivers(node.metadata().name(), std::make_shared<const storagev1::CSINode>(drivers));
    reference_.volume_limits[node.metadata().name()] = driver.allocatable().count();
  }
  void ChangeNode() {
    if (reference_.nodes.empty()) return;
    corev1::Node node = Any(reference_.nodes);
    Furnish(node);
    SetNode(node);
  }
  void RemoveNode() {
    if (reference_.nodes.size() < 3) return;
    const std::string name = Any(reference_.nodes).metadata().name();
    cache_.RemoveNode(name);
    std::erase_if(reference_.nodes, [&](const corev1::Node& node) { return node.metadata().name() == name; });
    // Pods go with their node, as the pod garbage collector has it.
    for (const corev1::Pod& pod : reference_.pods) {
      if (pod.spec().node_name() == name) cache_.RemovePod(api::KeyOf(pod));
    }
    std::erase_if(reference_.pods, [&](const corev1::Pod& pod) { return pod.spec().node_name() == name; });
    for (const auto& [pod, promised] : reference_.nominated) {
      if (promised == name) cache_.Nominate(Info(pod, words_), "");
    }
    std::erase_if(reference_.nominated, [&](const auto& item) { return item.second == name; });
  }
  void RemovePod() {
    if (reference_.pods.empty()) return;
    const std::string key = api::KeyOf(Any(reference_.pods));
    cache_.RemovePod(key);
    std::erase_if(reference_.pods, [&](const corev1::Pod& pod) { return api::KeyOf(pod) == key; });
  }
  void TerminatePod() {
    if (reference_.pods.empty()) return;
    corev1::Pod& pod = reference_.pods[static_cast<size_t>(Below(static_cast<int>(reference_.pods.size())))];
    pod.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(1);
    cache_.SetPod(Info(pod, words_));
  }

  void SetServices() {
    reference_.services.clear();
    for (const char* ns : {"x", "y"}) {
      for (const char* app : {"a0", "a1", "a2"}) {
        if (Chance(50)) reference_.services.emplace(ns, app);
      }
    }
    services_.Set(reference_.services);
  }
  void SetBudgets() {
    std::vector<Budget> budgets;
    reference_.budgets.clear();
    for (int i = Below(4); i > 0; --i) {
      Reference::Budget& plain = reference_.budgets.emplace_back();
      plain.ns = Chance(70) ? "x" : "y";
      (*plain.selector.mutable_match_labels())["app"] = "a" + std::to_string(Below(3));
      plain.allowed = Below(3);
      if (!reference_.pods.empty() && Chance(50)) plain.disrupted = Any(reference_.pods).metadata().name();
      budgets.push_back(
          {plain.ns, *api::LabelSelector::From(plain.selector), plain.allowed, {plain.disrupted}});
    }
    wishes_.budgets_ = std::make_shared<const std::vector<Budget>>(std::move(budgets));
  }

  void SetClaim(corev1::PersistentVolumeClaim claim) {
    claim.mutable_metadata()->set_resource_version(std::to_string(++version_));
    reference_.claims[api::KeyOf(claim)] = claim;
    catalog_.SetClaim(api::KeyOf(claim), std::make_shared<const corev1::PersistentVolumeClaim>(claim));
  }
  void SetVolume(corev1::PersistentVolume volume) {
    const std::string& name = volume.metadata().name();
    volume.mutable_metadata()->set_resource_version(std::to_string(++version_));
    reference_.volumes[name] = volume;
    catalog_.SetVolume(name, std::make_shared<const corev1::PersistentVolume>(volume));
  }
  // As the controllers of claims do it.
  void Bind(corev1::PersistentVolumeClaim claim, corev1::PersistentVolume volume) {
    volume.mutable_spec()->mutable_claim_ref()->set_name(claim.metadata().name());
    volume.mutable_spec()->mutable_claim_ref()->set_namespace_(claim.metadata().namespace_());
    volume.mutable_status()->set_phase("Bound");
    claim.mutable_spec()->set_volume_name(volume.metadata().name());
    (*claim.mutable_metadata()->mutable_annotations())[kBindCompleted] = "yes";
    SetVolume(volume);
    SetClaim(claim);
  }
  // A claim and a volume: bound to each other, or for whoever comes.
  void AddClaim() {
    const auto storage = [&](auto& resources) {
      resources["storage"].set_string(std::to_string(1 + Below(3)) + "Gi");
    };
    corev1::PersistentVolume volume;
    volume.mutable_metadata()->set_name("v" + std::to_string(made_++));
    storage(*volume.mutable_spec()->mutable_capacity());
    volume.mutable_spec()->set_storage_class_name("wait");
    volume.mutable_status()->set_phase("Available");
    auto& csi = *volume.mutable_spec()->mutable_persistent_volume_source()->mutable_csi();
    csi.set_driver(kDriver);
    csi.set_volume_handle(volume.metadata().name());
    if (Chance(60)) {
      auto& expression = *volume.mutable_spec()
                              ->mutable_node_affinity()
                              ->mutable_required()
                              ->add_node_selector_terms()
                              ->add_match_expressions();
      expression.set_key(kZone);
      expression.set_operator_("In");
      expression.add_values("z" + std::to_string(Below(3)));
    } else if (Chance(50)) {
      (*volume.mutable_metadata()->mutable_labels())[kZone] = "z" + std::to_string(Below(3));
    }
    corev1::PersistentVolumeClaim claim;
    claim.mutable_metadata()->set_name("c" + std::to_string(made_++));
    claim.mutable_metadata()->set_namespace_(Chance(70) ? "x" : "y");
    claim.mutable_spec()->set_storage_class_name("wait");
    const std::string mode = Chance(30) ? "ReadWriteOncePod" : "ReadWriteOnce";
    claim.mutable_spec()->add_access_modes(mode);
    for (const char* one : {"ReadWriteOncePod", "ReadWriteOnce"}) {
      volume.mutable_spec()->add_access_modes(one);
    }
    storage(*claim.mutable_spec()->mutable_resources()->mutable_requests());
    SetVolume(volume);
    SetClaim(claim);
    if (Chance(60)) Bind(claim, volume);
  }
  // One or two of the pod's namespace.
  void UseClaims(corev1::Pod& pod) {
    std::vector<std::string> names;
    for (const auto& [key, claim] : reference_.claims) {
      if (claim.metadata().namespace_() == pod.metadata().namespace_())
        names.push_back(claim.metadata().name());
    }
    std::shuffle(names.begin(), names.end(), random_);
    names.resize(std::min(names.size(), static_cast<size_t>(1 + Below(2))));
    for (const std::string& name : names) {
      corev1::Volume& volume = *pod.mutable_spec()->add_volumes();
      volume.set_name(name);
      volume.mutable_volume_source()->mutable_persistent_volume_claim()->set_claim_name(name);
    }
  }

  metav1::LabelSelector Selector() {
    metav1::LabelSelector out;
    if (Chance(80)) (*out.mutable_match_labels())["app"] = "a" + std::to_string(Below(3));
    return out;
  }
  corev1::PodAffinityTerm Term() {
    corev1::PodAffinityTerm out;
    if (Chance(95)) *out.mutable_label_selector() = Selector();
    out.set_topology_key(Chance(50) ? kZone : "kubernetes.io/hostname");
    if (Chance(15)) out.add_namespaces("y");
    if (Chance(15)) {
      out.mutable_namespace_selector();
      if (Chance(60)) (*out.mutable_namespace_selector()->mutable_match_labels())["team"] = "red";
    }
    return out;
  }
  corev1::Pod RandomPod() {
    corev1::Pod pod =
        MakePod("p" + std::to_string(made_++), Chance(80) ? std::to_string(100 * (1 + Below(8))) + "m" : "",
                Chance(70) ? std::to_string(64 * (1 + Below(10))) + "Mi" : "");
    pod.mutable_metadata()->set_namespace_(Chance(70) ? "x" : "y");
    (*pod.mutable_metadata()->mutable_labels())["app"] = "a" + std::to_string(Below(3));
    pod.mutable_status()->mutable_start_time()->set_seconds(1000 + made_);
    corev1::PodSpec& spec = *pod.mutable_spec();
    spec.mutable_containers(0)->set_image("app" + std::to_string(Below(2)));
    spec.set_priority(Below(3) * 10);
    if (Chance(10)) {
      corev1::ContainerPort& port = *spec.mutable_containers(0)->add_ports();
      port.set_container_port(80);
      port.set_host_port(8000 + Below(2));
    }
    if (Chance(30)) spec.add_tolerations()->set_operator_("Exists");
    if (Chance(15)) (*spec.mutable_node_selector())["disk"] = "ssd";
    if (Chance(20)) {
      auto& preferred = *spec.mutable_affinity()
                             ->mutable_node_affinity()
                             ->add_preferred_during_scheduling_ignored_during_execution();
      preferred.set_weight(1 + Below(10));
      auto& expression = *preferred.mutable_preference()->add_match_expressions();
      expression.set_key(kZone);
      expression.set_operator_("In");
      expression.add_values("z1");
    }
    const int constraints = Chance(40) ? 1 + Below(2) : 0;
    for (int i = 0; i < constraints; ++i) {
      auto& constraint = *spec.add_topology_spread_constraints();
      constraint.set_max_skew(1 + Below(2));
      constraint.set_topology_key(i == 0 ? kZone : "kubernetes.io/hostname");
      constraint.set_when_unsatisfiable(Chance(50) ? "DoNotSchedule" : "ScheduleAnyway");
      *constraint.mutable_label_selector() = Selector();
      if (Chance(20)) constraint.set_node_affinity_policy("Ignore");
      if (Chance(20)) constraint.set_node_taints_policy("Honor");
      if (constraint.when_unsatisfiable() == "DoNotSchedule" && Chance(20))
        constraint.set_min_domains(1 + Below(4));
    }
    if (Chance(12)) {
      *spec.mutable_affinity()
           ->mutable_pod_affinity()
           ->add_required_during_scheduling_ignored_during_execution() = Term();
    }
    if (Chance(12)) {
      *spec.mutable_affinity()
           ->mutable_pod_anti_affinity()
           ->add_required_during_scheduling_ignored_during_execution() = Term();
    }
    if (Chance(15)) {
      auto& term = *spec.mutable_affinity()
                        ->mutable_pod_affinity()
                        ->add_preferred_during_scheduling_ignored_during_execution();
      term.set_weight(1 + Below(100));
      *term.mutable_pod_affinity_term() = Term();
    }
    if (Chance(15)) {
      auto& term = *spec.mutable_affinity()
                        ->mutable_pod_anti_affinity()
                        ->add_preferred_during_scheduling_ignored_during_execution();
      term.set_weight(1 + Below(100));
      *term.mutable_pod_affinity_term() = Term();
    }
    if (Chance(20)) UseClaims(pod);
    return pod;
  }

  void ScheduleOne() {
    // Pods come in sets, whose members profit from what was found for the one before.
    if (!template_.has_spec() || Chance(40)) template_ = RandomPod();
    corev1::Pod pod = template_;
    pod.mutable_metadata()->set_name("p" + std::to_string(made_++));
    pod.mutable_status()->mutable_start_time()->set_seconds(1000 + made_);

    cache_.Update(snapshot_);
    CycleState state;
    wishes_.node_.clear();
    wishes_.victims_.clear();
    const PodPtr info = Info(pod, words_);
    const Decision decision = algorithm_->Schedule(state, info, snapshot_);
    ASSERT_EQ(decision.error, "");

    // Nodes take turns: each search goes on where the last one has ended, until it has found enough.
    std::vector<const corev1::Node*> feasible;
    std::map<std::string, int> refused;
    const size_t slots = snapshot_.nodes.size();
    const size_t enough = Algorithm::EnoughNodes(reference_.nodes.size(), percentage_);
    size_t looked_at = 0;
    for (size_t i = 0; i < slots && feasible.size() < enough; ++i) {
      const NodeInfo& slot = snapshot_.nodes[turn_++ % slots];
      if (!slot.facts) continue;
      ++looked_at;
      const corev1::Node& node = NodeOf(slot.facts->name);
      const std::string why = reference_.RefusalBeside(pod, node);
      if (why.empty()) {
        feasible.push_back(&node);
      } else {
        ++refused[why];
      }
    }
    turn_ %= slots;
    SCOPED_TRACE(pod.ShortDebugString());
    ASSERT_EQ(decision.feasible, feasible.size());
    ASSERT_EQ(decision.evaluated, looked_at);
    if (!feasible.empty()) {
      CheckChoice(pod, std::string(decision.node), feasible);
      return CheckVolumes(state, info, std::string(decision.node));
    }
    ASSERT_EQ(decision.node, "");
    CheckReasons(decision, refused);
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
    ASSERT_TRUE(cache_.Assume(Info(pod, words_), chosen));
    pod.mutable_spec()->set_node_name(chosen);
    if (Chance(50)) cache_.SetPod(Info(pod, words_));
    reference_.pods.push_back(pod);
  }

  const corev1::Node& NodeOf(const std::string& name) const {
    return *std::find_if(reference_.nodes.begin(), reference_.nodes.end(),
                         [&](const corev1::Node& node) { return node.metadata().name() == name; });
  }

  // Those that the pod's claims get on the chosen node are reserved, and then bound.
  void CheckVolumes(CycleState& state, const PodPtr& info, const std::string& chosen) {
    if (::testing::Test::HasFatalFailure()) return;
    const corev1::Pod& pod = reference_.pods.back();
    const auto volumes = reference_.VolumesFor(pod, NodeOf(chosen));
    ASSERT_TRUE(framework_->Reserve(state, *info, *snapshot_.Find(chosen)).status.ok());
    for (const auto& [claim, volume] : volumes) {
      ASSERT_EQ(api::KeyOf(catalog_.FindVolume(volume)->spec().claim_ref().namespace_(),
                           catalog_.FindVolume(volume)->spec().claim_ref().name()),
                claim);
      Bind(reference_.claims.at(claim), reference_.volumes.at(volume));
    }
  }

  void CheckReasons(const Decision& decision, const std::map<std::string, int>& refused) {
    std::map<std::string, size_t> want, have;
    for (const auto& [why, count] : refused) {
      for (size_t from = 0; from <= why.size();) {
        const size_t comma = std::min(why.find(", ", from), why.size());
        want[why.substr(from, comma - from)] += static_cast<size_t>(count);
        from = comma + 2;
      }
    }
    for (const auto& [id, count] : decision.diagnosis.reasons) have[reasons_.Text(id)] = count;
    ASSERT_EQ(have, want);
    // Who waits for whose events?
    const auto& by = decision.diagnosis.rejected_by;
    for (const auto& [reason, count] : want) {
      const bool fit = reason.starts_with("Insufficient") || reason == "Too many pods";
      if (!fit) continue;
      ASSERT_NE(std::find(by.begin(), by.end(), "NodeResourcesFit"), by.end());
    }
  }

  void CheckPreemption(const corev1::Pod& pod) {
    std::vector<std::string> victims;
    for (const PodPtr& victim : wishes_.victims_) victims.push_back(victim->name);
    std::sort(victims.begin(), victims.end());
    const Reference::Victims* best = nullptr;
    std::map<std::string, Reference::Victims> candidates;
    for (const corev1::Node& node : reference_.nodes) {
      Reference::Victims& here = candidates[node.metadata().name()] = reference_.VictimsOn(pod, node);
      if (!here.names.empty() && (!best || here.missed < best->missed)) best = &here;
    }
    // None where it helps nowhere, else those that are missed least.
    ASSERT_EQ(wishes_.node_.empty(), best == nullptr);
    if (!best) return;
    Reference::Victims& chosen = candidates[wishes_.node_];
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
      cache_.Nominate(Info(pod, words_), wishes_.node_);
      reference_.nominated.emplace_back(pod, wishes_.node_);
    } else {
      for (const auto& [other, promised] : reference_.nominated) cache_.Nominate(Info(other, words_), "");
      reference_.nominated.clear();
    }
  }

  std::mt19937_64 random_;
  const int percentage_;
  Vocabulary words_;
  Reasons reasons_;
  Wishes wishes_;
  Services services_;
  VolumeCatalog catalog_;
  Cache cache_;
  Snapshot snapshot_{words_};
  std::unique_ptr<Framework> framework_;
  std::unique_ptr<Algorithm> algorithm_;
  Reference reference_;
  corev1::Pod template_;
  int made_ = 0;
  int64_t version_ = 0;  // of claims and volumes
  size_t turn_ = 0;      // the slot that the next search begins at
};

void Compare(uint64_t seed, int nodes, int percentage, int steps) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  World world(seed, nodes, percentage);
  for (int step = 0; step < steps && !::testing::Test::HasFatalFailure(); ++step) world.Step();
}

TEST(Property, DecisionsAreThoseOfThePlainReference) {
  for (uint64_t seed = 1; seed <= 30 && !HasFatalFailure(); ++seed) {
    Compare(seed, 3 + static_cast<int>(seed * 7 % 12), 100, 60);
  }
}

TEST(Property, TheSearchMayEndEarly) {
  for (uint64_t seed = 1; seed <= 3 && !HasFatalFailure(); ++seed) Compare(seed, 150, 30, 25);
}

}  // namespace
}  // namespace keelson::scheduler

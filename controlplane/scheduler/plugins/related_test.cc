// Plugins that look at other pods, at volumes or at the whole cluster, each in a small one.
#include <gtest/gtest.h>

#include "controlplane/scheduler/algorithm.h"
#include "controlplane/scheduler/cache.h"
#include "controlplane/scheduler/evictor.h"
#include "controlplane/scheduler/profile.h"
#include "controlplane/scheduler/testing.h"
#include "controlplane/scheduler/volume_plan.h"

namespace keelson::scheduler {
namespace {

using testing::Info;
using testing::MakeNode;
using testing::MakePod;

class Wishes : public Evictor {
 public:
  std::shared_ptr<const std::vector<Budget>> Budgets() override {
    return std::make_shared<const std::vector<Budget>>(budgets_);
  }
  void Evict(const PodPtr&, const std::string& node, std::vector<PodPtr> victims,
             std::vector<PodPtr>) override {
    evicted_ = node + ":";
    for (const PodPtr& victim : victims) evicted_ += " " + victim->name;
  }
  bool Busy(const PodInfo&) const override { return false; }
  bool Consults(const PodInfo&) const override { return consult_ != nullptr; }
  Result<> Consult(const PodInfo&, const Snapshot&, VictimsBySlot& victims) override {
    return consult_(victims);
  }

  std::function<Result<>(VictimsBySlot&)> consult_;
  std::vector<Budget> budgets_;
  std::string evicted_;
};

class RelatedTest : public ::testing::Test {
 protected:
  RelatedTest() {
    PluginParts parts{reasons_, words_};
    parts.volumes = &volumes_;
    parts.evictor = &wishes_;
    framework_ = *MakeFramework(Profile(), parts);
    algorithm_ =
        std::make_unique<Algorithm>(*framework_, reasons_, AlgorithmOptions{.percentage = 100, .seed = 3});
  }

  corev1::Node& Zoned(const std::string& name, const std::string& zone, const std::string& cpu = "4") {
    corev1::Node& node = nodes_[name] = MakeNode(name, cpu);
    auto& labels = *node.mutable_metadata()->mutable_labels();
    labels["kubernetes.io/hostname"] = name;
    if (!zone.empty()) labels["topology.kubernetes.io/zone"] = zone;
    return node;
  }
  void SetNodes() {
    for (const auto& [name, node] : nodes_)
      cache_.SetNode(std::make_shared<const NodeFacts>(node, words_.resources));
  }
  static corev1::Pod App(const std::string& name, const std::string& app, const std::string& cpu = "") {
    corev1::Pod pod = MakePod(name, cpu);
    (*pod.mutable_metadata()->mutable_labels())["app"] = app;
    return pod;
  }
  static corev1::TopologySpreadConstraint Spread(const char* when, int max_skew = 1) {
    corev1::TopologySpreadConstraint constraint;
    constraint.set_max_skew(max_skew);
    constraint.set_topology_key("topology.kubernetes.io/zone");
    constraint.set_when_unsatisfiable(when);
    (*constraint.mutable_label_selector()->mutable_match_labels())["app"] = "web";
    return constraint;
  }
  static corev1::PodAffinityTerm Term(const std::string& app,
                                      const char* key = "topology.kubernetes.io/zone") {
    corev1::PodAffinityTerm term;
    (*term.mutable_label_selector()->mutable_match_labels())["app"] = app;
    term.set_topology_key(key);
    return term;
  }
  void Place(const corev1::Pod& pod, const std::string& node) { cache_.SetPod(Info(pod, node, words_)); }

  // The node, or why there is none.
  std::string Schedule(const corev1::Pod& pod) {
    cache_.Update(snapshot_);
    CycleState state;
    const Decision decision = algorithm_->Schedule(state, Info(pod, words_), snapshot_);
    if (!decision.error.empty()) return "error: " + decision.error;
    return decision.node.empty() ? decision.diagnosis.Message(reasons_) : std::string(decision.node);
  }
  template <typename T>
  static std::shared_ptr<const T> Shared(const T& object) {
    return std::make_shared<const T>(object);
  }

  Vocabulary words_;
  Reasons reasons_;
  VolumeCatalog volumes_;
  Wishes wishes_;
  Cache cache_;
  Snapshot snapshot_{words_};
  std::unique_ptr<Framework> framework_;
  std::unique_ptr<Algorithm> algorithm_;
  std::map<std::string, corev1::Node> nodes_;
};

constexpr char kNotHelpful[] =
    " preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.";

TEST_F(RelatedTest, SpreadKeepsWithinTheSkew) {
  Zoned("a", "z1");
  Zoned("b", "z2");
  SetNodes();
  corev1::Pod pod = App("p", "web");
  *pod.mutable_spec()->add_topology_spread_constraints() = Spread("DoNotSchedule");
  Place(App("x", "web"), "a");
  EXPECT_EQ(Schedule(pod), "b");
  corev1::Pod dying = App("y", "web");
  dying.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(1);
  Place(dying, "b");  // does not count
  EXPECT_EQ(Schedule(pod), "b");
  Place(App("y", "web"), "b");
  Place(App("other", "db"), "a");
  Place(App("z", "web"), "b");
  EXPECT_EQ(Schedule(pod), "a");
  // More domains are wanted than there are.
  pod.mutable_spec()->mutable_topology_spread_constraints(0)->set_min_domains(3);
  EXPECT_EQ(Schedule(pod),
            "0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints. preemption: "
            "0/2 nodes are "
            "available: 2 No preemption victims found for incoming pod.");
}

TEST_F(RelatedTest, SpreadNeedsTheLabel) {
  Zoned("a", "");
  Zoned("b", "");
  SetNodes();
  corev1::Pod pod = App("p", "web");
  *pod.mutable_spec()->add_topology_spread_constraints() = Spread("DoNotSchedule");
  EXPECT_EQ(
      Schedule(pod),
      std::string(
          "0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints (missing required "
          "label).") +
          kNotHelpful);
}

TEST_F(RelatedTest, SpreadCountsOnlyNodesThatThePodMayUse) {
  Zoned("a", "z1");
  corev1::Node& b = Zoned("b", "z2");
  (*b.mutable_metadata()->mutable_labels())["disk"] = "ssd";
  SetNodes();
  corev1::Pod pod = App("p", "web");
  (*pod.mutable_spec()->mutable_node_selector())["disk"] = "ssd";
  *pod.mutable_spec()->add_topology_spread_constraints() = Spread("DoNotSchedule");
  Place(App("x", "web"), "b");
  Place(App("y", "web"), "b");
  EXPECT_EQ(Schedule(pod), "b");  // z1 is no domain for it
  pod.mutable_spec()->mutable_topology_spread_constraints(0)->set_node_affinity_policy("Ignore");
  EXPECT_NE(Schedule(pod), "b");
}

TEST_F(RelatedTest, SoftSpreadPrefersTheEmptierZone) {
  Zoned("a", "z1");
  Zoned("b", "z2");
  SetNodes();
  Place(App("x", "web"), "a");
  corev1::Pod pod = App("p", "web");
  *pod.mutable_spec()->add_topology_spread_constraints() = Spread("ScheduleAnyway");
  EXPECT_EQ(Schedule(pod), "b");
}

TEST_F(RelatedTest, AffinityGoesWhereCompanyIs) {
  Zoned("a", "z1");
  Zoned("b", "z2");
  SetNodes();
  corev1::Pod pod = App("p", "web");
  *pod.mutable_spec()
       ->mutable_affinity()
       ->mutable_pod_affinity()
       ->add_required_during_scheduling_ignored_during_execution() = Term("db");
  EXPECT_EQ(Schedule(pod),
            std::string("0/2 nodes are available: 2 node(s) didn't match pod affinity rules.") + kNotHelpful);
  Place(App("db", "db"), "b");
  EXPECT_EQ(Schedule(pod), "b");
  corev1::Pod elsewhere = App("db2", "db");
  elsewhere.mutable_metadata()->set_namespace_("other");
  cache_.RemovePod("default/db");
  Place(elsewhere, "a");
  EXPECT_EQ(Schedule(pod).find("0/2"), 0u);
  // Terms reach other namespaces by name, and by label.
  auto& term = *pod.mutable_spec()
                    ->mutable_affinity()
                    ->mutable_pod_affinity()
                    ->mutable_required_during_scheduling_ignored_during_execution(0);
  term.add_namespaces("other");
  EXPECT_EQ(Schedule(pod), "a");
  term.clear_namespaces();
  (*term.mutable_namespace_selector()->mutable_match_labels())["team"] = "x";
  EXPECT_EQ(Schedule(pod).find("0/2"), 0u);
  auto labels = std::make_shared<api::LabelMap>();
  (*labels)["team"] = "x";
  cache_.SetNamespace("other", labels);
  EXPECT_EQ(Schedule(pod), "a");
}

TEST_F(RelatedTest, TheFirstOfItsKindNeedsNoCompany) {
  Zoned("a", "z1");
  SetNodes();
  corev1::Pod pod = App("p", "web");
  *pod.mutable_spec()
       ->mutable_affinity()
       ->mutable_pod_affinity()
       ->add_required_during_scheduling_ignored_during_execution() = Term("web");
  EXPECT_EQ(Schedule(pod), "a");
}

TEST_F(RelatedTest, AntiAffinityHoldsBothWays) {
  Zoned("a", "z1");
  Zoned("b", "z2");
  SetNodes();
  corev1::Pod shy = App("shy", "web");
  *shy.mutable_spec()
       ->mutable_affinity()
       ->mutable_pod_anti_affinity()
       ->add_required_during_scheduling_ignored_during_execution() = Term("web");
  Place(shy, "a");
  EXPECT_EQ(Schedule(App("p", "web")), "b");  // the other one's wish
  Place(App("q", "web"), "b");
  shy.mutable_metadata()->set_name("shy2");
  EXPECT_EQ(Schedule(shy),
            "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. preemption: 0/2 nodes "
            "are available: "
            "2 No preemption victims found for incoming pod.");
  cache_.RemovePod("default/q");
  EXPECT_EQ(Schedule(shy), "b");
}

TEST_F(RelatedTest, MatchLabelKeysAndMismatchLabelKeys) {
  Zoned("a", "z1");
  Zoned("b", "z2");
  SetNodes();
  corev1::Pod old_one = App("old", "web"), fresh = App("fresh", "web");
  (*old_one.mutable_metadata()->mutable_labels())["hash"] = "1";
  (*fresh.mutable_metadata()->mutable_labels())["hash"] = "2";
  Place(old_one, "a");
  corev1::PodAffinityTerm term = Term("web");
  term.add_match_label_keys("hash");
  auto& apart = *fresh.mutable_spec()->mutable_affinity()->mutable_pod_anti_affinity();
  *apart.add_required_during_scheduling_ignored_during_execution() = term;
  Place(App("filler", "x", "3"), "b");
  EXPECT_EQ(Schedule(fresh), "a");  // only its own revision counts
  term.clear_match_label_keys();
  term.add_mismatch_label_keys("hash");
  *apart.mutable_required_during_scheduling_ignored_during_execution(0) = term;
  EXPECT_EQ(Schedule(fresh), "b");
}

TEST_F(RelatedTest, ImageLocality) {
  Zoned("a", "z1");
  corev1::ContainerImage& image = *Zoned("b", "z2").mutable_status()->add_images();
  image.add_names("app:latest");
  image.set_size_bytes(900LL * 1024 * 1024);
  SetNodes();
  corev1::Pod pod = MakePod("p");
  pod.mutable_spec()->mutable_containers(0)->set_image("app");
  EXPECT_EQ(Schedule(pod), "b");
}

TEST_F(RelatedTest, NodeDeclaredFeatures) {
  Zoned("a", "z1");
  Zoned("b", "z2");
  SetNodes();
  corev1::Pod pod = MakePod("p");
  pod.mutable_spec()->mutable_containers(0)->add_restart_policy_rules()->set_action("RestartAllContainers");
  EXPECT_EQ(
      Schedule(pod),
      std::string("0/2 nodes are available: 2 node(s) didn't match Pod's required features.") + kNotHelpful);
  nodes_["b"].mutable_status()->add_declared_features("RestartAllContainersOnContainerExits");
  SetNodes();
  EXPECT_EQ(Schedule(pod), "b");
}

// ---- volumes ----

corev1::Pod WithClaim(const std::string& name, const std::string& claim) {
  corev1::Pod pod = MakePod(name);
  corev1::Volume& volume = *pod.mutable_spec()->add_volumes();
  volume.set_name("v");
  volume.mutable_volume_source()->mutable_persistent_volume_claim()->set_claim_name(claim);
  return pod;
}

corev1::PersistentVolumeClaim MakeClaim(const std::string& name, const std::string& volume = "") {
  corev1::PersistentVolumeClaim claim;
  claim.mutable_metadata()->set_name(name);
  claim.mutable_metadata()->set_namespace_("default");
  claim.mutable_metadata()->set_uid("uid-" + name);
  claim.mutable_spec()->set_storage_class_name("wait");
  claim.mutable_spec()->add_access_modes("ReadWriteOnce");
  (*claim.mutable_spec()->mutable_resources()->mutable_requests())["storage"].set_string("1Gi");
  if (!volume.empty()) {
    claim.mutable_spec()->set_volume_name(volume);
    (*claim.mutable_metadata()->mutable_annotations())[kBindCompleted] = "yes";
  }
  return claim;
}

corev1::PersistentVolume MakeVolume(const std::string& name, const std::string& node,
                                    const char* size = "1Gi") {
  corev1::PersistentVolume volume;
  volume.mutable_metadata()->set_name(name);
  (*volume.mutable_spec()->mutable_capacity())["storage"].set_string(size);
  volume.mutable_spec()->add_access_modes("ReadWriteOnce");
  volume.mutable_spec()->set_storage_class_name("wait");
  volume.mutable_status()->set_phase("Available");
  auto& expression = *volume.mutable_spec()
                          ->mutable_node_affinity()
                          ->mutable_required()
                          ->add_node_selector_terms()
                          ->add_match_expressions();
  expression.set_key("kubernetes.io/hostname");
  expression.set_operator_("In");
  expression.add_values(node);
  return volume;
}

storagev1::StorageClass MakeClass(const std::string& provisioner) {
  storagev1::StorageClass out;
  out.mutable_metadata()->set_name("wait");
  out.set_provisioner(provisioner);
  out.set_volume_binding_mode("WaitForFirstConsumer");
  return out;
}

TEST_F(RelatedTest, ClaimsThatAreNotThereStopThePod) {
  Zoned("a", "z1");
  Zoned("b", "z2");
  SetNodes();
  EXPECT_EQ(Schedule(WithClaim("p", "c")),
            std::string("0/2 nodes are available: persistentvolumeclaim \"c\" not found.") + kNotHelpful);
  corev1::PersistentVolumeClaim claim = MakeClaim("c");
  claim.mutable_spec()->set_storage_class_name("immediate");
  volumes_.SetClaim("default/c", Shared(claim));
  EXPECT_EQ(Schedule(WithClaim("p", "c")),
            std::string("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.") +
                kNotHelpful);
  claim = MakeClaim("c", "pv");
  claim.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(1);
  volumes_.SetClaim("default/c", Shared(claim));
  EXPECT_EQ(
      Schedule(WithClaim("p", "c")),
      std::string("0/2 nodes are available: persistentvolumeclaim \"c\" is being deleted.") + kNotHelpful);
}

TEST_F(RelatedTest, BoundVolumesDecideTheNode) {
  Zoned("a", "z1");
  Zoned("b", "z2");
  SetNodes();
  volumes_.SetClaim("default/c", Shared(MakeClaim("c", "pv")));
  EXPECT_EQ(
      Schedule(WithClaim("p", "c")),
      std::string(
          "0/2 nodes are available: 2 node(s) unavailable due to one or more pvc(s) bound to non-existent "
          "pv(s).") +
          kNotHelpful);
  volumes_.SetVolume("pv", Shared(MakeVolume("pv", "b")));
  EXPECT_EQ(Schedule(WithClaim("p", "c")), "b");
  corev1::PersistentVolume far = MakeVolume("pv", "b");
  far.mutable_spec()->clear_node_affinity();
  (*far.mutable_metadata()->mutable_labels())["topology.kubernetes.io/zone"] = "z1__z3";
  volumes_.SetVolume("pv", Shared(far));
  EXPECT_EQ(Schedule(WithClaim("p", "c")), "a");
  (*far.mutable_metadata()->mutable_labels())["topology.kubernetes.io/zone"] = "z9";
  volumes_.SetVolume("pv", Shared(far));
  EXPECT_EQ(Schedule(WithClaim("p", "c")),
            std::string("0/2 nodes are available: 2 node(s) had no available volume zone.") + kNotHelpful);
}

TEST_F(RelatedTest, DelayedClaimsFindAVolumeOrARoomForOne) {
  Zoned("a", "z1");
  Zoned("b", "z2");
  SetNodes();
  volumes_.SetClaim("default/c", Shared(MakeClaim("c")));
  volumes_.SetClass("wait", Shared(MakeClass("kubernetes.io/no-provisioner")));
  const std::string none =
      std::string("0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.") +
      kNotHelpful;
  EXPECT_EQ(Schedule(WithClaim("p", "c")), none);
  volumes_.SetVolume("small", Shared(MakeVolume("small", "a", "1Mi")));
  EXPECT_EQ(Schedule(WithClaim("p", "c")), none);
  volumes_.SetVolume("right", Shared(MakeVolume("right", "b")));
  EXPECT_EQ(Schedule(WithClaim("p", "c")), "b");
  // Reserved for one pod it is no more for another.
  CycleState state;
  volumes_.SetClaim("default/d", Shared(MakeClaim("d")));
  const PodPtr pod = Info(WithClaim("p", "c"), words_);
  ASSERT_EQ(algorithm_->Schedule(state, pod, snapshot_).node, "b");
  ASSERT_TRUE(framework_->Reserve(state, *pod, *snapshot_.Find("b")).status.ok());
  EXPECT_EQ(volumes_.FindVolume("right")->spec().claim_ref().name(), "c");
  EXPECT_EQ(Schedule(WithClaim("q", "d")), none);
  framework_->Unreserve(state, *pod, "b");
  EXPECT_EQ(Schedule(WithClaim("q", "d")), "b");

  // A provisioner that tells where it has room.
  volumes_.SetVolume("right", nullptr);
  volumes_.SetClass("wait", Shared(MakeClass("example.com/csi")));
  storagev1::CSIDriver driver;
  driver.mutable_spec()->set_storage_capacity(true);
  volumes_.SetDriver("example.com/csi", Shared(driver));
  EXPECT_EQ(
      Schedule(WithClaim("p", "c")),
      std::string("0/2 nodes are available: 2 node(s) did not have enough free storage.") + kNotHelpful);
  storagev1::CSIStorageCapacity capacity;
  capacity.set_storage_class_name("wait");
  capacity.mutable_capacity()->set_string("5Gi");
  (*capacity.mutable_node_topology()->mutable_match_labels())["kubernetes.io/hostname"] = "a";
  volumes_.SetCapacity("x/cap", Shared(capacity));
  EXPECT_EQ(Schedule(WithClaim("p", "c")), "a");
}

TEST_F(RelatedTest, ExclusiveClaimsAndDisks) {
  Zoned("a", "z1");
  SetNodes();
  corev1::PersistentVolumeClaim claim = MakeClaim("c", "pv");
  claim.mutable_spec()->set_access_modes(0, "ReadWriteOncePod");
  volumes_.SetClaim("default/c", Shared(claim));
  volumes_.SetVolume("pv", Shared(MakeVolume("pv", "a")));
  Place(WithClaim("first", "c"), "a");
  EXPECT_EQ(
      Schedule(WithClaim("second", "c")),
      "0/1 nodes are available: 1 node has pod using PersistentVolumeClaim with the same name and "
      "ReadWriteOncePod "
      "access mode. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.");
  corev1::Pod important = WithClaim("third", "c");
  important.mutable_spec()->set_priority(10);
  Schedule(important);
  EXPECT_EQ(wishes_.evicted_, "a: first");

  corev1::Pod disk = MakePod("disk");
  disk.mutable_spec()->add_volumes()->mutable_volume_source()->mutable_gce_persistent_disk()->set_pd_name(
      "d");
  Place(disk, "a");
  disk.mutable_metadata()->set_name("disk2");
  EXPECT_EQ(Schedule(disk).find("0/1 nodes are available: 1 node(s) had no available disk."), 0u);
}

TEST_F(RelatedTest, NodesTakeOnlySoManyVolumes) {
  Zoned("a", "z1");
  SetNodes();
  storagev1::CSINode drivers;
  storagev1::CSINodeDriver& driver = *drivers.mutable_spec()->add_drivers();
  driver.set_name("example.com/csi");
  driver.mutable_allocatable()->set_count(1);
  volumes_.SetNodeDrivers("a", Shared(drivers));
  for (const char* name : {"c", "d"}) {
    volumes_.SetClaim(std::string("default/") + name, Shared(MakeClaim(name, std::string("pv-") + name)));
    corev1::PersistentVolume volume = MakeVolume(std::string("pv-") + name, "a");
    auto& csi = *volume.mutable_spec()->mutable_persistent_volume_source()->mutable_csi();
    csi.set_driver("example.com/csi");
    csi.set_volume_handle(name);
    volumes_.SetVolume(volume.metadata().name(), Shared(volume));
  }
  EXPECT_EQ(Schedule(WithClaim("p", "c")), "a");
  Place(WithClaim("p", "c"), "a");
  EXPECT_EQ(Schedule(WithClaim("again", "c")), "a");  // the same volume
  EXPECT_EQ(Schedule(WithClaim("q", "d")).find("0/1 nodes are available: 1 node(s) exceed max volume count."),
            0u);
}

// ---- preemption ----

corev1::Pod Important(const std::string& name, const std::string& cpu, int priority) {
  corev1::Pod pod = MakePod(name, cpu);
  pod.mutable_spec()->set_priority(priority);
  return pod;
}

TEST_F(RelatedTest, PreemptsTheFewestAndLeastImportant) {
  Zoned("a", "z1", "4");
  Zoned("b", "z2", "4");
  SetNodes();
  Place(Important("a1", "2", 5), "a");
  Place(Important("a2", "2", 1), "a");
  Place(Important("b1", "4", 3), "b");
  EXPECT_EQ(Schedule(Important("p", "2", 10)), "0/2 nodes are available: 2 Insufficient cpu.");
  EXPECT_EQ(wishes_.evicted_, "a: a2");  // of lower priority than b1
  wishes_.evicted_.clear();
  EXPECT_EQ(Schedule(Important("p", "2", 1)),
            "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 No "
            "preemption victims "
            "found for incoming pod.");
  EXPECT_EQ(wishes_.evicted_, "");
  EXPECT_EQ(Schedule(Important("p", "5", 10)),
            std::string("0/2 nodes are available: 2 Insufficient cpu.") + kNotHelpful);
  corev1::Pod polite = Important("p", "2", 10);
  polite.mutable_spec()->set_preemption_policy("Never");
  EXPECT_EQ(
      Schedule(polite),
      "0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.");
}

TEST_F(RelatedTest, BudgetsAreBrokenLast) {
  Zoned("a", "z1", "2");
  Zoned("b", "z2", "2");
  SetNodes();
  corev1::Pod guarded = Important("guarded", "2", 1);
  (*guarded.mutable_metadata()->mutable_labels())["app"] = "db";
  Place(guarded, "a");
  Place(Important("plain", "2", 5), "b");
  wishes_.budgets_.push_back({"default", *api::LabelSelector::Parse("app=db"), 0, {}});
  Schedule(Important("p", "1", 10));
  EXPECT_EQ(wishes_.evicted_, "b: plain");
  wishes_.budgets_[0].allowed = 1;
  Schedule(Important("q", "1", 10));
  EXPECT_EQ(wishes_.evicted_, "a: guarded");
}

TEST_F(RelatedTest, OthersMayChooseTheVictims) {
  Zoned("a", "z1", "4");
  Zoned("b", "z2", "4");
  SetNodes();
  Place(Important("a1", "4", 1), "a");
  Place(Important("b1", "4", 5), "b");
  wishes_.consult_ = [](VictimsBySlot& victims) -> Result<> {
    std::erase_if(victims, [](const auto& item) { return item.second.pods[0]->name == "a1"; });
    return {};
  };
  Schedule(Important("p", "2", 10));
  EXPECT_EQ(wishes_.evicted_, "b: b1");
  wishes_.evicted_.clear();
  const std::string lacks = "0/2 nodes are available: 2 Insufficient cpu. preemption: ";
  wishes_.consult_ = [](VictimsBySlot& victims) -> Result<> {
    victims.clear();
    return {};
  };
  EXPECT_EQ(Schedule(Important("p", "2", 10)), lacks + "no candidate node for preemption");
  wishes_.consult_ = [](VictimsBySlot&) -> Result<> { return Error(Code::kUnavailable, "no answer"); };
  EXPECT_EQ(Schedule(Important("p", "2", 10)), lacks + "no answer");
  EXPECT_EQ(wishes_.evicted_, "");
}

TEST_F(RelatedTest, PromisedRoomIsNotForOthers) {
  Zoned("a", "z1", "2");
  SetNodes();
  const corev1::Pod first = Important("first", "2", 10);
  cache_.Nominate(Info(first, words_), "a");
  EXPECT_EQ(Schedule(Important("late", "1", 5)).find("0/1 nodes are available: 1 Insufficient cpu."), 0u);
  EXPECT_EQ(Schedule(Important("late", "1", 5)).find("0/1 nodes are available: 1 Insufficient cpu."), 0u);
  EXPECT_EQ(Schedule(Important("higher", "1", 20)), "a");
  EXPECT_EQ(Schedule(first), "a");
  cache_.Nominate(Info(first, words_), "");
  EXPECT_EQ(Schedule(Important("late", "1", 5)), "a");
}

}  // namespace
}  // namespace keelson::scheduler

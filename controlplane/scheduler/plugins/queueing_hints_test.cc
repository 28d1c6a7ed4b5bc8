// Which events wake pods that a plugin has ruled out.
#include <gtest/gtest.h>

#include "controlplane/scheduler/config/profile.h"
#include "controlplane/scheduler/testing/objects.h"
#include "controlplane/scheduler/volumes/volumes.h"

namespace keelson::scheduler {
namespace {

using testing::Info;
using testing::MakeNode;
using testing::MakePod;
using Kind = ClusterEvent::Kind;

constexpr char kZone[] = "topology.kubernetes.io/zone";

corev1::Pod App(const std::string& app) {
  corev1::Pod pod = MakePod(app);
  (*pod.mutable_metadata()->mutable_labels())["app"] = app;
  return pod;
}
void Fill(corev1::PodAffinityTerm& term, const std::string& app) {
  (*term.mutable_label_selector()->mutable_match_labels())["app"] = app;
  term.set_topology_key(kZone);
}
corev1::Pod With(corev1::Pod pod, const std::string& app) {
  Fill(*pod.mutable_spec()
            ->mutable_affinity()
            ->mutable_pod_affinity()
            ->add_required_during_scheduling_ignored_during_execution(),
       app);
  return pod;
}
corev1::Pod Without(corev1::Pod pod, const std::string& app) {
  Fill(*pod.mutable_spec()
            ->mutable_affinity()
            ->mutable_pod_anti_affinity()
            ->add_required_during_scheduling_ignored_during_execution(),
       app);
  return pod;
}
corev1::Pod Spread(corev1::Pod pod, const std::string& app) {
  auto& constraint = *pod.mutable_spec()->add_topology_spread_constraints();
  constraint.set_max_skew(1);
  constraint.set_topology_key(kZone);
  constraint.set_when_unsatisfiable("DoNotSchedule");
  (*constraint.mutable_label_selector()->mutable_match_labels())["app"] = app;
  return pod;
}
corev1::Pod Claims(corev1::Pod pod, const std::string& claim) {
  corev1::Volume& volume = *pod.mutable_spec()->add_volumes();
  volume.set_name("v");
  volume.mutable_volume_source()->mutable_persistent_volume_claim()->set_claim_name(claim);
  return pod;
}
corev1::Pod Elsewhere(corev1::Pod pod) {
  pod.mutable_metadata()->set_namespace_("elsewhere");
  return pod;
}
corev1::Pod Restarts(corev1::Pod pod) {
  pod.mutable_spec()->mutable_containers(0)->add_restart_policy_rules()->set_action("RestartAllContainers");
  return pod;
}
corev1::Node Zoned() {
  corev1::Node node = MakeNode("n");
  (*node.mutable_metadata()->mutable_labels())[kZone] = "z";
  return node;
}
corev1::Node Declaring() {
  corev1::Node node = MakeNode("n");
  node.mutable_status()->add_declared_features("RestartAllContainersOnContainerExits");
  return node;
}

class HintsTest : public ::testing::Test {
 protected:
  HintsTest() {
    FrameworkHandle handle{reasons_, words_};
    handle.volumes = &volumes_;
    framework_ = *MakeFramework(Profile(), handle);
  }
  ClusterEvent Of(Kind kind, const corev1::Pod& pod) {
    return {kind, nullptr, nullptr, Info(pod, "n", words_), nullptr};
  }
  // Labels have changed.
  ClusterEvent Became(const corev1::Pod& before, const corev1::Pod& after) {
    return {Kind::kAssignedPodUpdate, nullptr, nullptr, Info(after, "n", words_), Info(before, "n", words_)};
  }
  ClusterEvent Added(const corev1::Node& node) {
    return {Kind::kNodeAdd, std::make_shared<const NodeFacts>(node, words_.resources), nullptr, nullptr,
            nullptr};
  }
  static ClusterEvent Of(Kind kind) { return {kind, nullptr, nullptr, nullptr, nullptr}; }

  Vocabulary words_;
  Reasons reasons_;
  VolumeCatalog volumes_;
  std::unique_ptr<Framework> framework_;
};

TEST_F(HintsTest, OfPluginsThatLookAround) {
  struct Case {
    const char *plugin, *what;
    corev1::Pod pod;
    ClusterEvent event;
    bool want;
  };
  const corev1::Pod p = App("p");
  const std::vector<Case> cases = {
      {"PodTopologySpread", "one that counts comes", Spread(p, "web"), Of(Kind::kAssignedPodAdd, App("web")),
       true},
      {"PodTopologySpread", "one that counts goes", Spread(p, "web"),
       Of(Kind::kAssignedPodDelete, App("web")), true},
      {"PodTopologySpread", "another goes", Spread(p, "web"), Of(Kind::kAssignedPodDelete, App("db")), false},
      {"PodTopologySpread", "in another namespace", Spread(p, "web"),
       Of(Kind::kAssignedPodDelete, Elsewhere(App("web"))), false},
      {"PodTopologySpread", "it counts no more", Spread(p, "web"), Became(App("web"), App("db")), true},
      {"PodTopologySpread", "a node with the label", Spread(p, "web"), Added(Zoned()), true},
      {"PodTopologySpread", "a node without it", Spread(p, "web"), Added(MakeNode("n")), false},
      {"InterPodAffinity", "company comes", With(p, "web"), Of(Kind::kAssignedPodAdd, App("web")), true},
      {"InterPodAffinity", "another comes", With(p, "web"), Of(Kind::kAssignedPodAdd, App("db")), false},
      {"InterPodAffinity", "company goes", With(p, "web"), Of(Kind::kAssignedPodDelete, App("web")), false},
      {"InterPodAffinity", "one becomes company", With(p, "web"), Became(App("db"), App("web")), true},
      {"InterPodAffinity", "who is avoided goes", Without(p, "web"), Of(Kind::kAssignedPodDelete, App("web")),
       true},
      {"InterPodAffinity", "who is avoided comes", Without(p, "web"), Of(Kind::kAssignedPodAdd, App("web")),
       false},
      {"InterPodAffinity", "who avoids it goes", p, Of(Kind::kAssignedPodDelete, Without(App("web"), "p")),
       true},
      {"InterPodAffinity", "who does not goes", p, Of(Kind::kAssignedPodDelete, App("web")), false},
      {"InterPodAffinity", "a namespace", With(p, "web"), Of(Kind::kNamespaceUpdate), true},
      {"VolumeRestrictions", "who has the claim goes", Claims(p, "c"),
       Of(Kind::kAssignedPodDelete, Claims(App("web"), "c")), true},
      {"VolumeRestrictions", "who has another goes", Claims(p, "c"),
       Of(Kind::kAssignedPodDelete, Claims(App("web"), "d")), false},
      {"NodeVolumeLimits", "one with volumes goes", Claims(p, "c"),
       Of(Kind::kAssignedPodDelete, Claims(App("web"), "d")), true},
      {"NodeVolumeLimits", "one without goes", Claims(p, "c"), Of(Kind::kAssignedPodDelete, App("web")),
       false},
      {"VolumeBinding", "a volume", Claims(p, "c"), Of(Kind::kStorageUpdate), true},
      {"VolumeBinding", "a pod goes", Claims(p, "c"), Of(Kind::kAssignedPodDelete, App("web")), false},
      {"VolumeZone", "a volume", Claims(p, "c"), Of(Kind::kStorageUpdate), true},
      {"NodeDeclaredFeatures", "a node that declares", Restarts(p), Added(Declaring()), true},
      {"NodeDeclaredFeatures", "a node that does not", Restarts(p), Added(MakeNode("n")), false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(framework_->QueueingHint({c.plugin}, c.event, *Info(c.pod, words_)), c.want)
        << c.plugin << ": " << c.what;
  }
}

}  // namespace
}  // namespace keelson::scheduler

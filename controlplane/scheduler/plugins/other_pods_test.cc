// Plugins that look at other pods or at the whole cluster: spreading, affinity, images, features.
#include "controlplane/scheduler/plugins/testing/plugin_test.h"

namespace keelson::scheduler {
namespace {

TEST_F(ClusterPluginTest, SpreadKeepsWithinTheSkew) {
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

TEST_F(ClusterPluginTest, SpreadNeedsTheLabel) {
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

TEST_F(ClusterPluginTest, SpreadCountsOnlyNodesThatThePodMayUse) {
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

TEST_F(ClusterPluginTest, SoftSpreadPrefersTheEmptierZone) {
  Zoned("a", "z1");
  Zoned("b", "z2");
  SetNodes();
  Place(App("x", "web"), "a");
  corev1::Pod pod = App("p", "web");
  *pod.mutable_spec()->add_topology_spread_constraints() = Spread("ScheduleAnyway");
  EXPECT_EQ(Schedule(pod), "b");
}

TEST_F(ClusterPluginTest, AffinityGoesWhereCompanyIs) {
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

TEST_F(ClusterPluginTest, TheFirstOfItsKindNeedsNoCompany) {
  Zoned("a", "z1");
  SetNodes();
  corev1::Pod pod = App("p", "web");
  *pod.mutable_spec()
       ->mutable_affinity()
       ->mutable_pod_affinity()
       ->add_required_during_scheduling_ignored_during_execution() = Term("web");
  EXPECT_EQ(Schedule(pod), "a");
}

TEST_F(ClusterPluginTest, AntiAffinityHoldsBothWays) {
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

TEST_F(ClusterPluginTest, MatchLabelKeysAndMismatchLabelKeys) {
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

TEST_F(ClusterPluginTest, ImageLocality) {
  Zoned("a", "z1");
  corev1::ContainerImage& image = *Zoned("b", "z2").mutable_status()->add_images();
  image.add_names("app:latest");
  image.set_size_bytes(900LL * 1024 * 1024);
  SetNodes();
  corev1::Pod pod = MakePod("p");
  pod.mutable_spec()->mutable_containers(0)->set_image("app");
  EXPECT_EQ(Schedule(pod), "b");
}

TEST_F(ClusterPluginTest, NodeDeclaredFeatures) {
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

}  // namespace
}  // namespace keelson::scheduler

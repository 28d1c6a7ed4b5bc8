// Pods and workloads on their way into the store: fields that are filled in, kept, counted and refused.
#include "controlplane/registry/testing/fixture.h"
#include "lib/api/proto/batch_v1.pb.h"
#include "lib/api/quantity.h"

namespace keelson::registry {
namespace {

class PodsTest : public RegistryTest {
 protected:
  template <typename T>
  static T From(const std::string& json) {
    T object;
    const Result<> decoded = api::DecodeJson(json, object);
    EXPECT_TRUE(decoded) << json << ": " << (decoded ? "" : decoded.error().message());
    return object;
  }
  // The error's message; empty after a success.
  template <typename T>
  static std::string Message(const Result<T>& result) {
    return result ? "" : result.error().message();
  }
  Result<corev1::Pod> PatchPart(const char* part, const std::string& patch) {
    return As<corev1::Pod>((*plane_)->Patch(Row("", std::string("pods/") + part), "default", "p",
                                            PatchType::kStrategicMerge, patch, {}));
  }
};

TEST_F(PodsTest, GatedPodsSayWhy) {
  corev1::Pod pod = Pod("p");
  pod.mutable_spec()->add_scheduling_gates()->set_name("example.com/g");
  const auto created = Create(pod);
  ASSERT_TRUE(created) << Message(created);
  ASSERT_EQ(created->status().conditions_size(), 1);
  const corev1::PodCondition& condition = created->status().conditions(0);
  EXPECT_EQ(condition.type(), "PodScheduled");
  EXPECT_EQ(condition.status(), "False");
  EXPECT_EQ(condition.reason(), "SchedulingGated");
  EXPECT_EQ(condition.message(), "Scheduling is blocked due to non-empty scheduling gates");
  EXPECT_FALSE(condition.has_last_transition_time());
}

TEST_F(PodsTest, SpreadCountsTheKeysOfTheRevision) {
  corev1::Pod pod = Pod("p");
  (*pod.mutable_metadata()->mutable_labels())["app"] = "a";
  corev1::TopologySpreadConstraint& spread = *pod.mutable_spec()->add_topology_spread_constraints();
  spread.set_max_skew(1);
  spread.set_topology_key("zone");
  spread.set_when_unsatisfiable("DoNotSchedule");
  spread.mutable_label_selector();
  spread.add_match_label_keys("app");
  const auto created = Create(pod);
  ASSERT_TRUE(created) << Message(created);
  const auto& selector = created->spec().topology_spread_constraints(0).label_selector();
  ASSERT_EQ(selector.match_expressions_size(), 1);
  EXPECT_EQ(selector.match_expressions(0).key(), "app");
  EXPECT_EQ(selector.match_expressions(0).values(0), "a");
}

TEST_F(PodsTest, AppArmorIsInBothPlaces) {
  corev1::Pod pod = Pod("p");
  const std::string key = "container.apparmor.security.beta.kubernetes.io/c";
  (*pod.mutable_metadata()->mutable_annotations())[key] = "runtime/default";
  const auto created = Create(pod);
  ASSERT_TRUE(created) << Message(created);
  EXPECT_EQ(created->spec().containers(0).security_context().app_armor_profile().type(), "RuntimeDefault");
}

TEST_F(PodsTest, QosStaysThroughStatus) {
  corev1::Pod pod = Pod("p");
  auto& resources = *pod.mutable_spec()->mutable_containers(0)->mutable_resources();
  (*resources.mutable_requests())["cpu"] = api::Amount::FromInt(1).ToQuantity();
  const auto created = Create(pod);
  ASSERT_TRUE(created) << Message(created);
  EXPECT_EQ(created->status().qos_class(), "Burstable");
  corev1::Pod change = *created;
  change.mutable_status()->set_qos_class("Guaranteed");
  EXPECT_EQ(Message(Update(change, &Row("", "pods/status"))),
            "Pod \"p\" is invalid: status.qosClass: Invalid value: \"Guaranteed\": field is immutable");
  change.mutable_status()->set_qos_class("Burstable");
  change.mutable_status()->set_message("m");
  change.mutable_spec()->set_hostname("ignored");
  const auto updated = Update(change, &Row("", "pods/status"));
  ASSERT_TRUE(updated) << Message(updated);
  EXPECT_EQ(updated->status().message(), "m");
  EXPECT_EQ(updated->status().qos_class(), "Burstable");
  EXPECT_EQ(updated->spec().hostname(), "");
}

TEST_F(PodsTest, Resize) {
  corev1::Pod pod = Pod("p");
  auto& resources = *pod.mutable_spec()->mutable_containers(0)->mutable_resources();
  (*resources.mutable_requests())["cpu"] = api::Amount::FromInt(1).ToQuantity();
  ASSERT_TRUE(Create(pod));
  const auto resized =
      PatchPart("resize", R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}})");
  ASSERT_TRUE(resized) << Message(resized);
  EXPECT_EQ(resized->metadata().generation(), 2);
  EXPECT_EQ(resized->spec().containers(0).resources().requests().at("cpu").string(), "2");
  const auto guaranteed = PatchPart(
      "resize", R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2","memory":"1Gi"},)"
                R"("limits":{"cpu":"2","memory":"1Gi"}}}]}})");
  EXPECT_NE(Message(guaranteed).find("Pod QOS Class may not change as a result of resizing"),
            std::string::npos)
      << Message(guaranteed);
  // The pod itself keeps its resources.
  const auto main =
      Patch<corev1::Pod>("p", PatchType::kStrategicMerge,
                         R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"3"}}}]}})");
  EXPECT_NE(Message(main).find("pod updates may not change fields other than"), std::string::npos);
}

TEST_F(PodsTest, EphemeralContainers) {
  ASSERT_TRUE(Create(Pod("p")));
  const auto patched = PatchPart("ephemeralcontainers",
                                 R"({"spec":{"ephemeralContainers":[{"name":"debug","image":"busybox"}]}})");
  ASSERT_TRUE(patched) << Message(patched);
  EXPECT_EQ(patched->spec().ephemeral_containers(0).ephemeral_container_common().termination_message_path(),
            "/dev/termination-log");
  EXPECT_EQ(patched->metadata().generation(), 2);
  const auto changed = PatchPart("ephemeralcontainers",
                                 R"({"spec":{"ephemeralContainers":[{"name":"debug","image":"other"}]}})");
  EXPECT_NE(Message(changed).find(R"(existing ephemeral containers "debug" may not be changed)"),
            std::string::npos)
      << Message(changed);
}

TEST_F(PodsTest, GenerationsCountWhatMatters) {
  const auto created = Create(Deployment("d"));
  ASSERT_TRUE(created) << Message(created);
  EXPECT_EQ(created->metadata().generation(), 1);
  // Controllers read a Deployment's annotations, but not its labels.
  EXPECT_EQ(Patch<appsv1::Deployment>("d", PatchType::kMerge, R"({"metadata":{"labels":{"a":"b"}}})")
                ->metadata()
                .generation(),
            1);
  EXPECT_EQ(Patch<appsv1::Deployment>("d", PatchType::kMerge, R"({"metadata":{"annotations":{"a":"b"}}})")
                ->metadata()
                .generation(),
            2);
  EXPECT_EQ(Patch<appsv1::Deployment>("d", PatchType::kMerge, R"({"spec":{"replicas":3}})")
                ->metadata()
                .generation(),
            3);
  auto status = *Get<appsv1::Deployment>("d");
  status.mutable_metadata()->mutable_labels()->clear();
  status.mutable_status()->set_replicas(1);
  status.mutable_spec()->set_replicas(9);
  const auto updated = Update(status, &Row("apps", "deployments/status"));
  ASSERT_TRUE(updated) << Message(updated);
  EXPECT_EQ(updated->metadata().labels().at("a"), "b");
  EXPECT_EQ(updated->spec().replicas(), 3);
  EXPECT_EQ(updated->metadata().generation(), 3);

  const auto pods = Create(From<corev1::PodTemplate>(
      R"({"metadata":{"name":"t"},"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}})"));
  ASSERT_TRUE(pods) << Message(pods);
  EXPECT_EQ(pods->metadata().generation(), 1);
  const auto changed =
      Patch<corev1::PodTemplate>("t", PatchType::kMerge, R"({"template":{"metadata":{"labels":{"a":"b"}}}})");
  ASSERT_TRUE(changed) << Message(changed);
  EXPECT_EQ(changed->metadata().generation(), 2);
}

TEST_F(PodsTest, DaemonSetsCountTemplates) {
  const auto created = Create(From<appsv1::DaemonSet>(
      R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":)"
      R"({"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})"));
  ASSERT_TRUE(created) << Message(created);
  EXPECT_EQ(created->metadata().annotations().at("deprecated.daemonset.template.generation"), "1");
  const auto ready = Patch<appsv1::DaemonSet>("d", PatchType::kMerge, R"({"spec":{"minReadySeconds":1}})");
  ASSERT_TRUE(ready) << Message(ready);
  EXPECT_EQ(ready->metadata().annotations().at("deprecated.daemonset.template.generation"), "1");
  EXPECT_EQ(ready->metadata().generation(), 2);
}

TEST_F(PodsTest, JobsLabelTheirPods) {
  const auto created = Create(From<api::batch::v1::Job>(
      R"({"metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never",)"
      R"("containers":[{"name":"c","image":"i"}]}}}})"));
  ASSERT_TRUE(created) << Message(created);
  const auto& labels = created->spec().template_().metadata().labels();
  EXPECT_EQ(labels.at("batch.kubernetes.io/job-name"), "j");
  EXPECT_EQ(labels.at("job-name"), "j");
  EXPECT_EQ(labels.at("controller-uid"), created->metadata().uid());
  EXPECT_FALSE(created->spec().manual_selector());
}

TEST_F(PodsTest, WarningsComeWithTheObject) {
  corev1::Pod pod = Pod("p");
  (*pod.mutable_spec()->mutable_node_selector())["beta.kubernetes.io/os"] = "linux";
  const auto written =
      (*plane_)->Create(Row<corev1::Pod>(), "default", "", std::make_unique<corev1::Pod>(pod), {});
  ASSERT_TRUE(written) << Message(written);
  EXPECT_EQ(written->warnings,
            std::vector<std::string>{"spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "
                                     "\"kubernetes.io/os\" instead"});
}

}  // namespace
}  // namespace keelson::registry

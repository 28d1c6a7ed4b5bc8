#include "controlplane/controllers/daemonset/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/daemonset/testing/daemon_sets.h"
#include "lib/api/meta.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class DaemonSetTest : public ::testing::Test {
 protected:
  void Start(const appsv1::DaemonSet& set, std::initializer_list<const char*> nodes) {
    for (const char* node : nodes) ASSERT_TRUE(cluster_.api.Create(NodeNamed(node)));
    ASSERT_TRUE(cluster_.api.Create(set));
    cluster_.Start();
    Drain();
  }
  void Drain() { cluster_.Drain({&controller_}); }
  appsv1::DaemonSet Set() { return cluster_.Get<appsv1::DaemonSet>("default", "agent"); }
  std::vector<corev1::Pod> Pods() { return cluster_.List<corev1::Pod>("default"); }
  std::vector<appsv1::ControllerRevision> Revisions() {
    return cluster_.List<appsv1::ControllerRevision>("default");
  }
  void Update(const std::function<void(appsv1::DaemonSet&)>& change) {
    appsv1::DaemonSet set = Set();
    change(set);
    ASSERT_TRUE(cluster_.api.Update(set));
    Drain();
  }
  void SetImage(const std::string& image) {
    Update([&](appsv1::DaemonSet& set) {
      set.mutable_spec()->mutable_template_()->mutable_spec()->mutable_containers(0)->set_image(image);
    });
  }
  // Acts once as scheduler and kubelet: each pod runs on the node in its affinity.
  void Run() {
    for (corev1::Pod pod : Pods()) {
      if (k8s::IsTerminating(pod)) {
        ASSERT_TRUE(
            cluster_.api.Delete<corev1::Pod>("default", pod.metadata().name(), {.grace_period_seconds = 0}));
      } else if (!k8s::IsReady(pod)) {
        pod.mutable_spec()->set_node_name(TargetNodeOf(pod));
        MakeReady(pod, cluster_.clock.Now());
        cluster_.fake->Put(pod);
      }
    }
    Drain();
  }
  // "n1:v1" for each pod that is not terminating.
  std::vector<std::string> Images() {
    std::vector<std::string> out;
    for (const auto& pod : Pods()) {
      if (!k8s::IsTerminating(pod)) out.push_back(TargetNodeOf(pod) + ":" + pod.spec().containers(0).image());
    }
    return out;
  }

  TestCluster cluster_;
  DaemonSetController& controller_ = cluster_.Make<DaemonSetController>();
};

TEST_F(DaemonSetTest, OnePodOnEachNode) {
  Start(DaemonSetNamed("agent"), {"n1", "n2"});
  EXPECT_THAT(Images(), UnorderedElementsAre("n1:v1", "n2:v1"));
  EXPECT_EQ(Set().status().desired_number_scheduled(), 2);
  EXPECT_EQ(Set().status().number_unavailable(), 2);
  Run();
  EXPECT_EQ(Set().status().number_available(), 2);
  EXPECT_EQ(Set().status().updated_number_scheduled(), 2);
  EXPECT_EQ(Set().status().observed_generation(), 1);
  ASSERT_TRUE(cluster_.api.Create(NodeNamed("n3")));
  Drain();
  EXPECT_THAT(Images(), UnorderedElementsAre("n1:v1", "n2:v1", "n3:v1"));
  EXPECT_THAT(cluster_.Events(), Contains(HasSubstr("SuccessfulCreate: Created pod: agent-")));
  EXPECT_THAT(cluster_.errors, IsEmpty());
}

TEST_F(DaemonSetTest, FollowsTaintsAndLabels) {
  Start(DaemonSetNamed("agent"), {"n1", "n2"});
  Run();
  auto node = cluster_.Get<corev1::Node>("", "n2");
  AddTaint(node, "mine", "NoExecute");
  ASSERT_TRUE(cluster_.api.Update(node));
  Drain();
  EXPECT_THAT(Images(), ElementsAre("n1:v1"));
  EXPECT_EQ(Set().status().desired_number_scheduled(), 1);
  Run();
  node = cluster_.Get<corev1::Node>("", "n2");
  node.mutable_spec()->clear_taints();
  ASSERT_TRUE(cluster_.api.Update(node));
  Drain();
  EXPECT_THAT(Images(), UnorderedElementsAre("n1:v1", "n2:v1"));
}

TEST_F(DaemonSetTest, NodeReportsDoNotWakeIt) {
  Start(DaemonSetNamed("agent"), {"n1"});
  auto node = cluster_.Get<corev1::Node>("", "n1");
  node.mutable_status()->add_conditions()->set_type("MemoryPressure");
  cluster_.fake->Put(node);
  cluster_.Settle();
  EXPECT_EQ(controller_.queue().size(), 0u);
}

TEST_F(DaemonSetTest, RollsOutNodeByNode) {
  Start(DaemonSetNamed("agent"), {"n1", "n2", "n3"});
  Run();
  SetImage("v2");
  EXPECT_EQ(Images().size(), 2u) << "one may be missing";
  for (int i = 0; i < 12; ++i) {
    Run();
    EXPECT_GE(Images().size(), 2u);
    int ready = 0;
    for (const auto& pod : Pods()) ready += k8s::IsReady(pod) && !k8s::IsTerminating(pod);
    EXPECT_GE(ready, 2) << i;
  }
  EXPECT_THAT(Images(), UnorderedElementsAre("n1:v2", "n2:v2", "n3:v2"));
  EXPECT_EQ(Set().status().updated_number_scheduled(), 3);
  EXPECT_EQ(Set().status().number_available(), 3);
  EXPECT_THAT(cluster_.Events(), Contains(HasSubstr("SuccessfulDelete: Deleted pod: agent-")));
}

TEST_F(DaemonSetTest, SurgesBeforeItRemoves) {
  auto set = DaemonSetNamed("agent");
  auto& rolling = *set.mutable_spec()->mutable_update_strategy()->mutable_rolling_update();
  *rolling.mutable_max_surge() = k8s::FromInt(1);
  *rolling.mutable_max_unavailable() = k8s::FromInt(0);
  Start(set, {"n1", "n2"});
  Run();
  SetImage("v2");
  EXPECT_THAT(Images(), UnorderedElementsAre("n1:v1", "n2:v1", "n1:v2"));
  for (int i = 0; i < 10; ++i) {
    Run();
    int ready = 0;
    for (const auto& pod : Pods()) ready += k8s::IsReady(pod) && !k8s::IsTerminating(pod);
    EXPECT_GE(ready, 2) << i;
  }
  EXPECT_THAT(Images(), UnorderedElementsAre("n1:v2", "n2:v2"));
}

TEST_F(DaemonSetTest, SurgeWaitsForMinReadySecondsWithoutAnybodySayingSo) {
  auto set = DaemonSetNamed("agent");
  set.mutable_spec()->set_min_ready_seconds(30);
  auto& rolling = *set.mutable_spec()->mutable_update_strategy()->mutable_rolling_update();
  *rolling.mutable_max_surge() = k8s::FromInt(1);
  *rolling.mutable_max_unavailable() = k8s::FromInt(0);
  Start(set, {"n1"});
  Run();
  cluster_.Advance(31s, {&controller_});
  SetImage("v2");
  Run();
  EXPECT_THAT(Images(), UnorderedElementsAre("n1:v1", "n1:v2"));
  cluster_.Advance(29s, {&controller_});
  EXPECT_THAT(Images(), UnorderedElementsAre("n1:v1", "n1:v2"));
  cluster_.Advance(2s, {&controller_});
  EXPECT_THAT(Images(), ElementsAre("n1:v2"));
}

TEST_F(DaemonSetTest, OnDeleteWaitsForSomebodyToDelete) {
  auto set = DaemonSetNamed("agent");
  set.mutable_spec()->mutable_update_strategy()->set_type("OnDelete");
  set.mutable_spec()->mutable_update_strategy()->clear_rolling_update();
  Start(set, {"n1", "n2"});
  Run();
  SetImage("v2");
  Run();
  EXPECT_THAT(Images(), UnorderedElementsAre("n1:v1", "n2:v1"));
  EXPECT_EQ(Set().status().updated_number_scheduled(), 0);
  for (const auto& pod : Pods()) {
    if (TargetNodeOf(pod) != "n1") continue;
    ASSERT_TRUE(
        cluster_.api.Delete<corev1::Pod>("default", pod.metadata().name(), {.grace_period_seconds = 0}));
  }
  Drain();
  EXPECT_THAT(Images(), UnorderedElementsAre("n1:v2", "n2:v1"));
}

TEST_F(DaemonSetTest, RevisionsAreKeptRenumberedAndCleanedUp) {
  auto set = DaemonSetNamed("agent");
  set.mutable_spec()->set_revision_history_limit(2);
  Start(set, {"n1"});
  Run();
  ASSERT_EQ(Revisions().size(), 1u);
  EXPECT_EQ(Revisions()[0].revision(), 1);
  const std::string first = Revisions()[0].metadata().name();
  EXPECT_EQ(first, "agent-" + Revisions()[0].metadata().labels().at("controller-revision-hash"));
  EXPECT_EQ(Pods()[0].metadata().labels().at("controller-revision-hash"),
            Revisions()[0].metadata().labels().at("controller-revision-hash"));

  SetImage("v2");
  EXPECT_EQ(Revisions().size(), 2u);
  SetImage("v1");  // a rollback
  EXPECT_EQ(Revisions().size(), 2u);
  EXPECT_EQ(cluster_.Get<appsv1::ControllerRevision>("default", first).revision(), 3);
  for (const char* image : {"v3", "v4", "v5"}) {
    SetImage(image);
    for (int i = 0; i < 4; ++i) Run();
  }
  EXPECT_EQ(Revisions().size(), 3u) << "the present one and two old ones";
  EXPECT_THAT(Images(), ElementsAre("n1:v5"));
}

TEST_F(DaemonSetTest, LostStatusWritesMakeNoSecondRevision) {
  auto set = DaemonSetNamed("agent");
  // A foreign revision already has the name with this hash.
  appsv1::ControllerRevision foreign;
  Start(set, {"n1"});
  const appsv1::ControllerRevision made = Revisions().at(0);
  ASSERT_TRUE(cluster_.api.Delete<appsv1::ControllerRevision>("default", made.metadata().name()));
  foreign = made;
  foreign.mutable_metadata()->clear_owner_references();
  foreign.mutable_metadata()->clear_labels();
  foreign.mutable_metadata()->clear_resource_version();
  foreign.mutable_metadata()->clear_uid();
  foreign.mutable_data()->set_raw("{}");
  ASSERT_TRUE(cluster_.api.Create(foreign));
  Drain();
  EXPECT_EQ(Set().status().collision_count(), 1);
  EXPECT_EQ(Revisions().size(), 2u);
  // The collision count is lost with the status: the revision is found by its data.
  auto lost = Set();
  lost.mutable_status()->clear_collision_count();
  cluster_.fake->Put(lost);
  Drain();
  EXPECT_EQ(Revisions().size(), 2u);
}

TEST_F(DaemonSetTest, DuplicateRevisionsBecomeOne) {
  Start(DaemonSetNamed("agent"), {"n1"});
  Run();
  appsv1::ControllerRevision twin = Revisions().at(0);
  twin.mutable_metadata()->set_name("agent-twin");
  twin.mutable_metadata()->clear_uid();
  twin.mutable_metadata()->clear_resource_version();
  (*twin.mutable_metadata()->mutable_labels())["controller-revision-hash"] = "twin";
  twin.set_revision(5);
  ASSERT_TRUE(cluster_.api.Create(twin));
  Drain();
  EXPECT_EQ(Revisions().size(), 2u) << "no reason to look at the set";
  Update([](appsv1::DaemonSet& set) { (*set.mutable_metadata()->mutable_labels())["touched"] = "yes"; });
  ASSERT_EQ(Revisions().size(), 1u);
  EXPECT_EQ(Revisions()[0].metadata().name(), "agent-twin");
  EXPECT_EQ(Pods().at(0).metadata().labels().at("controller-revision-hash"), "twin");
  EXPECT_THAT(Images(), ElementsAre("n1:v1")) << "nothing is rolled out for it";
}

TEST_F(DaemonSetTest, ARevisionOfAnotherHandTakesTheDeletedOnesPlace) {
  Start(DaemonSetNamed("agent"), {"n1"});
  Run();
  const appsv1::ControllerRevision first = Revisions().at(0);
  appsv1::ControllerRevision made = first;
  made.mutable_metadata()->set_name("agent-made");
  made.mutable_metadata()->clear_uid();
  made.mutable_metadata()->clear_resource_version();
  made.set_revision(2);
  ASSERT_TRUE(cluster_.api.Create(made));
  Drain();
  ASSERT_TRUE(cluster_.api.Delete<appsv1::ControllerRevision>("default", first.metadata().name()));
  Drain();
  ASSERT_EQ(Revisions().size(), 1u) << "none is made anew";
  EXPECT_EQ(Revisions()[0].metadata().name(), "agent-made");
  EXPECT_THAT(Images(), ElementsAre("n1:v1"));
  SetImage("v2");
  ASSERT_TRUE(cluster_.api.Delete<appsv1::ControllerRevision>("default", "agent-made"));
  Drain();
  ASSERT_EQ(Revisions().size(), 1u);
  EXPECT_EQ(Revisions()[0].revision(), 3);
}

TEST_F(DaemonSetTest, FailedPodsAreReplacedLessAndLessOften) {
  Start(DaemonSetNamed("agent"), {"n1"});
  auto fail = [&] {
    for (corev1::Pod pod : Pods()) {
      pod.mutable_spec()->set_node_name("n1");
      pod.mutable_status()->set_phase("Failed");
      cluster_.fake->Put(pod);
    }
    Drain();
  };
  auto remove = [&] {
    for (const corev1::Pod& pod : Pods()) {
      if (!k8s::IsTerminating(pod)) continue;
      ASSERT_TRUE(
          cluster_.api.Delete<corev1::Pod>("default", pod.metadata().name(), {.grace_period_seconds = 0}));
    }
    Drain();
  };
  const std::string first = Pods().at(0).metadata().name();
  fail();
  remove();
  const std::string second = Pods().at(0).metadata().name();
  EXPECT_NE(first, second) << "at once";
  fail();
  remove();
  EXPECT_EQ(Pods().at(0).metadata().name(), second) << "not at once again";
  cluster_.Advance(1s, {&controller_});
  remove();
  EXPECT_NE(Pods().at(0).metadata().name(), second);
  EXPECT_THAT(cluster_.Events(), Contains("FailedDaemonPod: Found failed daemon pod default/" + first +
                                          " on node n1, will try to kill it"));
}

TEST_F(DaemonSetTest, SucceededPodsAreReplaced) {
  Start(DaemonSetNamed("agent"), {"n1"});
  corev1::Pod pod = Pods().at(0);
  pod.mutable_status()->set_phase("Succeeded");
  cluster_.fake->Put(pod);
  Drain();
  EXPECT_THAT(cluster_.Events(), Contains("SucceededDaemonPod: Found succeeded daemon pod default/" +
                                          pod.metadata().name() + " on node n1, will try to delete it"));
}

TEST_F(DaemonSetTest, AdoptsAndReleasesPods) {
  corev1::Pod stray = PodNamed("stray", {{"app", "agent"}}, "n1");
  MakeReady(stray, cluster_.clock.Now());
  ASSERT_TRUE(cluster_.api.Create(stray));
  auto set = DaemonSetNamed("agent");
  set.mutable_spec()->mutable_update_strategy()->set_type("OnDelete");
  Start(set, {"n1"});
  ASSERT_EQ(Pods().size(), 1u);
  EXPECT_TRUE(api::ControllerOf(Pods()[0].metadata()));
  corev1::Pod pod = Pods()[0];
  (*pod.mutable_metadata()->mutable_labels())["app"] = "elsewhere";
  ASSERT_TRUE(cluster_.api.Update(pod));
  Drain();
  EXPECT_FALSE(api::ControllerOf(cluster_.Get<corev1::Pod>("default", "stray").metadata()));
  EXPECT_EQ(Pods().size(), 2u);
}

TEST_F(DaemonSetTest, RefusedPodsAreToldAndTriedAgain) {
  auto refuse = std::make_shared<std::atomic<bool>>(true);
  cluster_.fake->SetInterceptor(
      [refuse](const client::ApiRequest& r) -> std::optional<Result<client::ApiResponse>> {
        if (*refuse && r.method == "POST" && r.target.ends_with("/pods")) {
          return client::FakeApi::Refuse(Error(Code::kForbidden, "exceeded quota"));
        }
        return std::nullopt;
      });
  Start(DaemonSetNamed("agent"), {"n1", "n2"});
  EXPECT_THAT(Pods(), IsEmpty());
  EXPECT_EQ(Set().status().desired_number_scheduled(), 2) << "status is written all the same";
  *refuse = false;
  cluster_.Advance(1s, {&controller_});
  EXPECT_EQ(Pods().size(), 2u);
  EXPECT_THAT(cluster_.Events(), Contains("FailedCreate: Error creating: exceeded quota"));
}

TEST_F(DaemonSetTest, MinReadySecondsPassByThemselves) {
  auto set = DaemonSetNamed("agent");
  set.mutable_spec()->set_min_ready_seconds(30);
  Start(set, {"n1"});
  Run();
  EXPECT_EQ(Set().status().number_ready(), 1);
  EXPECT_EQ(Set().status().number_available(), 0);
  cluster_.Advance(31s, {&controller_});
  EXPECT_EQ(Set().status().number_available(), 1);
}

TEST_F(DaemonSetTest, LeavesDeletedAndUnboundedSetsAlone) {
  auto set = DaemonSetNamed("agent");
  set.mutable_spec()->mutable_selector()->clear_match_labels();
  Start(set, {"n1"});
  EXPECT_THAT(Pods(), IsEmpty());
  auto held = DaemonSetNamed("held");
  held.mutable_metadata()->add_finalizers("example.com/hold");
  ASSERT_TRUE(cluster_.api.Create(held));
  ASSERT_TRUE(cluster_.api.Delete<appsv1::DaemonSet>("default", "held"));
  Drain();
  EXPECT_THAT(Pods(), IsEmpty());
  EXPECT_THAT(
      cluster_.Events(),
      Contains("SelectingAll: This daemon set is selecting all pods. A non-empty selector is required."));
}

}  // namespace
}  // namespace keelson::controllers

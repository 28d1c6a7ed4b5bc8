#include "controlplane/controllers/deployment/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/replicaset/controller.h"
#include "controlplane/controllers/testing/cluster.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

using ::testing::AllOfArray;
using ::testing::Contains;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

class DeploymentTest : public ::testing::Test {
 protected:
  void Start(const appsv1::Deployment& deployment) {
    ASSERT_TRUE(cluster_.api.Create(deployment));
    cluster_.Start();
    Converge();
  }
  // Runs controllers and kubelet until neither has work left.
  void Converge(const std::function<void()>& check = {}) {
    do {
      cluster_.Drain({&deployments_, &sets_});
      if (check) check();
      cluster_.clock.Advance(1s);
    } while (cluster_.RunPods() > 0);
    cluster_.Drain({&deployments_, &sets_});
  }
  appsv1::Deployment Web() { return cluster_.Get<appsv1::Deployment>("default", "web"); }
  void Edit(const std::function<void(appsv1::DeploymentSpec&)>& edit) {
    auto deployment = Web();
    edit(*deployment.mutable_spec());
    Result<appsv1::Deployment> stored = cluster_.api.Update(deployment);
    ASSERT_TRUE(stored) << stored.error().message();
  }
  void SetImage(const std::string& image) {
    Edit([&](auto& spec) {
      spec.mutable_template_()->mutable_spec()->mutable_containers(0)->set_image(image);
    });
  }
  std::map<std::string, int> ReadyByImage() {
    std::map<std::string, int> out;
    for (const auto& pod : cluster_.List<corev1::Pod>()) {
      if (k8s::IsReady(pod) && !k8s::IsTerminating(pod)) ++out[pod.spec().containers(0).image()];
    }
    return out;
  }
  std::string Condition(const char* type) {
    auto deployment = Web();
    const auto* condition = FindCondition(deployment.status(), type);
    return condition ? condition->status() + " " + condition->reason() : "";
  }
  std::string Revision() { return Web().metadata().annotations().at(kRevision); }
  std::vector<appsv1::ReplicaSet> Sets() { return cluster_.List<appsv1::ReplicaSet>(); }

  TestCluster cluster_;
  DeploymentController& deployments_ = cluster_.Make<DeploymentController>();
  ReplicaSetController& sets_ = cluster_.Make<ReplicaSetController>();
};

TEST_F(DeploymentTest, MakesAReplicaSetAndItsPods) {
  Start(DeploymentNamed("web", 3));
  ASSERT_EQ(Sets().size(), 1u);
  const appsv1::ReplicaSet set = Sets()[0];
  const std::string hash = set.metadata().labels().at(kPodTemplateHash);
  EXPECT_EQ(set.metadata().name(), "web-" + hash);
  EXPECT_EQ(set.spec().selector().match_labels().at(kPodTemplateHash), hash);
  EXPECT_EQ(ReadyByImage(), (std::map<std::string, int>{{"example/image", 3}}));
  EXPECT_EQ(Revision(), "1");
  const auto status = Web().status();
  EXPECT_EQ(status.replicas(), 3);
  EXPECT_EQ(status.updated_replicas(), 3);
  EXPECT_EQ(status.available_replicas(), 3);
  EXPECT_EQ(status.observed_generation(), Web().metadata().generation());
  EXPECT_EQ(Condition("Available"), "True MinimumReplicasAvailable");
  EXPECT_EQ(Condition("Progressing"), "True NewReplicaSetAvailable");
  EXPECT_TRUE(cluster_.errors.empty()) << cluster_.errors[0];
  EXPECT_THAT(cluster_.Events(),
              Contains("ScalingReplicaSet: Scaled up replica set web-" + hash + " from 0 to 3"));
}

TEST_F(DeploymentTest, RollsOutWithinItsLimits) {
  Start(DeploymentNamed("web", 8));  // 25 %: at most 10 pods, at least 6 available
  SetImage("v2");
  int steps = 0;
  Converge([&] {
    ++steps;
    int available = 0, total = 0;
    for (const auto& pod : cluster_.List<corev1::Pod>()) {
      if (!k8s::IsActive(pod)) continue;
      ++total;
      available += k8s::IsReady(pod);
    }
    EXPECT_GE(available, 6);
    EXPECT_LE(total, 10);
  });
  EXPECT_GT(steps, 2);
  EXPECT_EQ(ReadyByImage(), (std::map<std::string, int>{{"v2", 8}}));
  EXPECT_EQ(Revision(), "2");
  EXPECT_EQ(Sets().size(), 2u);
  EXPECT_EQ(Condition("Progressing"), "True NewReplicaSetAvailable");
}

TEST_F(DeploymentTest, UndoIsAnOldTemplateAtANewRevision) {
  Start(DeploymentNamed("web", 2));
  SetImage("v2");
  Converge();
  SetImage("example/image");  // what `kubectl rollout undo` writes
  Converge();
  EXPECT_EQ(ReadyByImage(), (std::map<std::string, int>{{"example/image", 2}}));
  EXPECT_EQ(Sets().size(), 2u);
  EXPECT_EQ(Revision(), "3");
  for (const auto& set : Sets()) {
    if (set.spec().replicas() == 0) continue;
    EXPECT_EQ(set.metadata().annotations().at(kRevision), "3");
    EXPECT_EQ(set.metadata().annotations().at(kRevisionHistory), "1");
  }
}

TEST_F(DeploymentTest, AnAnnotationAsksForAnOldRevision) {
  Start(DeploymentNamed("web", 1));
  for (const char* image : {"v2", "v3"}) {
    SetImage(image);
    Converge();
  }
  std::vector<::testing::Matcher<std::vector<std::string>>> told;
  struct Case {
    const char* revision;
    const char* image;  // then
    const char* now;    // the revision that this is
    const char* event;
  };
  for (const Case& c :
       {Case{"1", "example/image", "4", "DeploymentRollback: Rolled back deployment \"web\" to revision 1"},
        Case{"0", "v3", "5", "DeploymentRollback: Rolled back deployment \"web\" to revision 3"},
        Case{"5", "v3", "5",
             "DeploymentRollbackTemplateUnchanged: The rollback revision contains the same template as "
             "current deployment \"web\""},
        Case{"9", "v3", "5",
             "DeploymentRollbackRevisionNotFound: Unable to find the revision to rollback to."}}) {
    auto web = Web();
    (*web.mutable_metadata()->mutable_annotations())[kRollbackTo] = c.revision;
    ASSERT_TRUE(cluster_.api.Update(web)) << c.event;
    Converge();
    EXPECT_EQ(ReadyByImage(), (std::map<std::string, int>{{c.image, 1}})) << c.event;
    EXPECT_EQ(Revision(), c.now) << c.event;
    EXPECT_FALSE(Web().metadata().annotations().contains(kRollbackTo)) << c.event;
    told.push_back(Contains(c.event));
  }
  EXPECT_THAT(cluster_.Events(), AllOfArray(told));
}

TEST_F(DeploymentTest, NoRollbackWithoutARevisionOrWhilePaused) {
  Start(DeploymentNamed("web", 1));
  auto ask = [&](const char* revision) {
    auto web = Web();
    (*web.mutable_metadata()->mutable_annotations())[kRollbackTo] = revision;
    ASSERT_TRUE(cluster_.api.Update(web));
    Converge();
  };
  ask("0");
  ask("nonsense");
  EXPECT_TRUE(Web().metadata().annotations().contains(kRollbackTo)) << "not understood, not touched";
  SetImage("v2");
  Converge();
  Edit([](auto& spec) { spec.set_paused(true); });
  ask("1");
  EXPECT_EQ(ReadyByImage(), (std::map<std::string, int>{{"v2", 1}}));
  Edit([](auto& spec) { spec.clear_paused(); });
  Converge();
  EXPECT_EQ(ReadyByImage(), (std::map<std::string, int>{{"example/image", 1}}));
  EXPECT_THAT(cluster_.Events(),
              Contains("DeploymentRollbackRevisionNotFound: Unable to find last revision."));
}

TEST_F(DeploymentTest, HistoryIsLimited) {
  auto deployment = DeploymentNamed("web", 1);
  deployment.mutable_spec()->set_revision_history_limit(1);
  Start(deployment);
  for (const char* image : {"v2", "v3", "v4"}) {
    SetImage(image);
    Converge();
  }
  EXPECT_EQ(Sets().size(), 2u);
}

TEST_F(DeploymentTest, RecreateNeverMixes) {
  auto deployment = DeploymentNamed("web", 3);
  deployment.mutable_spec()->mutable_strategy()->set_type("Recreate");
  deployment.mutable_spec()->mutable_strategy()->clear_rolling_update();
  Start(deployment);
  SetImage("v2");
  Converge([&] {
    std::set<std::string> images;
    for (const auto& pod : cluster_.List<corev1::Pod>()) images.insert(pod.spec().containers(0).image());
    EXPECT_LE(images.size(), 1u);
  });
  EXPECT_EQ(ReadyByImage(), (std::map<std::string, int>{{"v2", 3}}));
}

TEST_F(DeploymentTest, PausedScalesButDoesNotRollOut) {
  Start(DeploymentNamed("web", 2));
  Edit([](auto& spec) { spec.set_paused(true); });
  SetImage("v2");
  Edit([](auto& spec) { spec.set_replicas(4); });
  Converge();
  EXPECT_EQ(ReadyByImage(), (std::map<std::string, int>{{"example/image", 4}}));
  EXPECT_EQ(Condition("Progressing"), "Unknown DeploymentPaused");
  EXPECT_EQ(Sets().size(), 1u);
  Edit([](auto& spec) { spec.clear_paused(); });
  Converge();
  EXPECT_EQ(ReadyByImage(), (std::map<std::string, int>{{"v2", 4}}));
  EXPECT_EQ(Condition("Progressing"), "True NewReplicaSetAvailable");
}

TEST_F(DeploymentTest, ScalesInMidRollout) {
  Start(DeploymentNamed("web", 10));
  SetImage("v2");
  cluster_.Drain({&deployments_, &sets_});  // new pods that are not ready
  Edit([](auto& spec) { spec.set_replicas(20); });
  cluster_.Drain({&deployments_, &sets_});
  int total = 0, grown = 0;
  for (const auto& set : Sets()) {
    total += set.spec().replicas();
    grown += set.spec().replicas() > 8;
    EXPECT_EQ(set.metadata().annotations().at(kDesiredReplicas), "20");
  }
  EXPECT_EQ(total, 25);  // 20 and a surge of 5
  EXPECT_EQ(grown, 2);
  Converge();
  EXPECT_EQ(ReadyByImage(), (std::map<std::string, int>{{"v2", 20}}));
}

TEST_F(DeploymentTest, DeadlinePasses) {
  auto deployment = DeploymentNamed("web", 2);
  deployment.mutable_spec()->set_progress_deadline_seconds(30);
  ASSERT_TRUE(cluster_.api.Create(deployment));
  cluster_.Start();
  cluster_.Drain({&deployments_, &sets_});
  EXPECT_EQ(Condition("Available"), "False MinimumReplicasUnavailable");
  EXPECT_THAT(Condition("Progressing"), HasSubstr("True"));
  cluster_.Advance(32s, {&deployments_, &sets_});
  EXPECT_EQ(Condition("Progressing"), "False ProgressDeadlineExceeded");
  Converge();
  EXPECT_EQ(Condition("Progressing"), "True NewReplicaSetAvailable");
}

TEST_F(DeploymentTest, HashCollisionIsCounted) {
  auto deployment = DeploymentNamed("web", 1);
  appsv1::ReplicaSet squatter;
  squatter.mutable_metadata()->set_name("web-" + TemplateHash(deployment.spec().template_(), 0));
  squatter.mutable_metadata()->set_namespace_("default");
  (*squatter.mutable_spec()->mutable_selector()->mutable_match_labels())["app"] = "squatter";
  ASSERT_TRUE(cluster_.api.Create(squatter));
  Start(deployment);
  cluster_.Advance(1s, {&deployments_, &sets_});
  Converge();
  EXPECT_EQ(Web().status().collision_count(), 1);
  EXPECT_EQ(ReadyByImage(), (std::map<std::string, int>{{"example/image", 1}}));
}

}  // namespace
}  // namespace keelson::controllers

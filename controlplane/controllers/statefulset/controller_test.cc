#include "controlplane/controllers/statefulset/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/statefulset/testing/stateful_sets.h"
#include "controlplane/controllers/testing/metrics.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using namespace std::chrono_literals;

class StatefulSetTest : public ::testing::Test {
 protected:
  void Start(const appsv1::StatefulSet& set) {
    ASSERT_TRUE(cluster_.api.Create(set));
    Restart();
  }
  void Restart() {
    cluster_.Stop();
    controller_ = &cluster_.Make<StatefulSetController>();
    cluster_.Start();
    cluster_.Drain({controller_});
  }
  // Runs controller and kubelet until neither has work left. Once all pods exist, at most `at_once` may be
  // missing or not ready at any time.
  void Converge() {
    do {
      cluster_.Drain({controller_});
      cluster_.Advance(1s, {controller_});
    } while (cluster_.RunPods() > 0);
    cluster_.Drain({controller_});
  }
  void Change(const std::function<void(appsv1::StatefulSetSpec&)>& change) {
    appsv1::StatefulSet set = Set();
    change(*set.mutable_spec());
    ASSERT_TRUE(cluster_.api.Update(set));
  }
  void UseImage(const std::string& image) {
    Change([&](appsv1::StatefulSetSpec& spec) {
      spec.mutable_template_()->mutable_spec()->mutable_containers(0)->set_image(image);
    });
  }
  appsv1::StatefulSet Set() { return cluster_.Get<appsv1::StatefulSet>("default", "web"); }
  appsv1::StatefulSetStatus Status() { return Set().status(); }
  // "web-0=image", without those that terminate.
  std::vector<std::string> Pods() {
    std::vector<std::string> out;
    for (const auto& pod : cluster_.List<corev1::Pod>("default")) {
      if (!k8s::IsTerminating(pod)) {
        out.push_back(pod.metadata().name() + "=" + pod.spec().containers(0).image());
      }
    }
    return out;
  }
  std::vector<std::string> Claims() {
    std::vector<std::string> out;
    for (const auto& claim : cluster_.List<corev1::PersistentVolumeClaim>("default")) {
      std::string owners;
      for (const auto& owner : claim.metadata().owner_references()) owners += ":" + owner.name();
      out.push_back(claim.metadata().name() + owners);
    }
    return out;
  }
  std::vector<std::string> Revisions() {
    std::vector<std::string> out;
    for (const auto& one : cluster_.List<appsv1::ControllerRevision>("default")) {
      out.push_back(std::to_string(one.revision()));
    }
    return out;
  }

  TestCluster cluster_;
  StatefulSetController* controller_ = nullptr;
};

TEST_F(StatefulSetTest, StartsOneAfterTheOther) {
  Start(StatefulSetNamed("web", 3));
  EXPECT_THAT(Pods(), ElementsAre("web-0=example/image"));
  cluster_.RunPods();
  cluster_.Drain({controller_});
  EXPECT_THAT(Pods(), ElementsAre("web-0=example/image", "web-1=example/image"));
  Converge();
  EXPECT_EQ(Pods().size(), 3u);
  EXPECT_EQ(Status().replicas(), 3);
  EXPECT_EQ(Status().ready_replicas(), 3);
  EXPECT_EQ(Status().available_replicas(), 3);
  EXPECT_EQ(Status().current_replicas(), 3);
  EXPECT_EQ(Status().updated_replicas(), 3);
  EXPECT_EQ(Status().current_revision(), Status().update_revision());
  EXPECT_TRUE(Status().has_collision_count());
  EXPECT_THAT(Revisions(), ElementsAre("1"));
  EXPECT_TRUE(cluster_.errors.empty());
  EXPECT_THAT(cluster_.Events(),
              Contains("SuccessfulCreate: create Pod web-0 in StatefulSet web successful"));
}

TEST_F(StatefulSetTest, UnavailablePodsAreCounted) {
  const std::string labels =
      "{statefulset_namespace=\"default\",statefulset_name=\"counted\",pod_management_policy="
      "\"OrderedReady\"}";
  const Growth most("statefulset_controller_statefulset_max_unavailable" + labels),
      unavailable("statefulset_controller_statefulset_unavailable_replicas" + labels);
  appsv1::StatefulSet set = StatefulSetNamed("counted", 2);
  set.mutable_spec()->set_pod_management_policy("OrderedReady");
  Start(set);
  EXPECT_EQ(most(), 1);
  EXPECT_EQ(unavailable(), 2);
  Converge();
  EXPECT_EQ(unavailable(), 0);
  ASSERT_TRUE(cluster_.api.Delete<appsv1::StatefulSet>("default", "counted"));
  cluster_.Drain({controller_});
  EXPECT_EQ(most(), 0) << "gone";
}

TEST_F(StatefulSetTest, StartsAllAtOnceIfToldSo) {
  appsv1::StatefulSet set = StatefulSetNamed("web", 3);
  set.mutable_spec()->set_pod_management_policy("Parallel");
  Start(set);
  EXPECT_EQ(Pods().size(), 3u);
}

TEST_F(StatefulSetTest, AvailabilityWaitsForMinReadySeconds) {
  appsv1::StatefulSet set = StatefulSetNamed("web", 2);
  set.mutable_spec()->set_min_ready_seconds(30);
  Start(set);
  cluster_.RunPods();
  cluster_.Drain({controller_});
  EXPECT_EQ(Pods().size(), 1u);
  EXPECT_EQ(Status().available_replicas(), 0);
  cluster_.Advance(31s, {controller_});
  EXPECT_EQ(Pods().size(), 2u);
  EXPECT_EQ(Status().available_replicas(), 1);
}

TEST_F(StatefulSetTest, ScalesFromTheTop) {
  Start(StatefulSetNamed("web", 3));
  Converge();
  Change([](auto& spec) { spec.set_replicas(1); });
  cluster_.Drain({controller_});
  EXPECT_THAT(Pods(), ElementsAre("web-0=example/image", "web-1=example/image"));
  Converge();
  EXPECT_THAT(Pods(), ElementsAre("web-0=example/image"));
  EXPECT_THAT(cluster_.Events(),
              Contains("SuccessfulDelete: delete Pod web-2 in StatefulSet web successful"));
}

TEST_F(StatefulSetTest, RollsOutAndBack) {
  Start(StatefulSetNamed("web", 2));
  Converge();
  const std::string first = Status().update_revision();
  UseImage("v2");
  cluster_.Drain({controller_});
  EXPECT_THAT(Pods(), ElementsAre("web-0=example/image"));
  Converge();
  EXPECT_THAT(Pods(), ElementsAre("web-0=v2", "web-1=v2"));
  EXPECT_NE(Status().current_revision(), first);
  EXPECT_EQ(Status().current_revision(), Status().update_revision());
  UseImage("example/image");
  Converge();
  EXPECT_THAT(Pods(), ElementsAre("web-0=example/image", "web-1=example/image"));
  EXPECT_EQ(Status().current_revision(), first);
  EXPECT_THAT(Revisions(), UnorderedElementsAre("2", "3"));  // the first one again
}

TEST_F(StatefulSetTest, PartitionHoldsPodsBack) {
  Start(StatefulSetNamed("web", 3));
  Converge();
  Change([](auto& spec) { spec.mutable_update_strategy()->mutable_rolling_update()->set_partition(2); });
  UseImage("v2");
  Converge();
  EXPECT_THAT(Pods(), ElementsAre("web-0=example/image", "web-1=example/image", "web-2=v2"));
  EXPECT_EQ(Status().current_replicas(), 2);
  EXPECT_EQ(Status().updated_replicas(), 1);
  // What dies below the partition comes back as it was.
  ASSERT_TRUE(cluster_.api.Delete<corev1::Pod>("default", "web-0"));
  Converge();
  EXPECT_THAT(Pods(), ElementsAre("web-0=example/image", "web-1=example/image", "web-2=v2"));
  Change([](auto& spec) { spec.mutable_update_strategy()->mutable_rolling_update()->set_partition(0); });
  Converge();
  EXPECT_THAT(Pods(), ElementsAre("web-0=v2", "web-1=v2", "web-2=v2"));
}

TEST_F(StatefulSetTest, OnDeleteWaits) {
  appsv1::StatefulSet set = StatefulSetNamed("web", 2);
  set.mutable_spec()->mutable_update_strategy()->set_type("OnDelete");
  set.mutable_spec()->mutable_update_strategy()->clear_rolling_update();
  Start(set);
  Converge();
  UseImage("v2");
  Converge();
  EXPECT_THAT(Pods(), ElementsAre("web-0=example/image", "web-1=example/image"));
  ASSERT_TRUE(cluster_.api.Delete<corev1::Pod>("default", "web-0"));
  Converge();
  EXPECT_THAT(Pods(), ElementsAre("web-0=v2", "web-1=example/image"));
}

TEST_F(StatefulSetTest, KeepsRevisionsWithinTheLimit) {
  appsv1::StatefulSet set = StatefulSetNamed("web", 1);
  set.mutable_spec()->set_revision_history_limit(1);
  Start(set);
  for (const char* image : {"v2", "v3", "v4"}) {
    Converge();
    UseImage(image);
  }
  Converge();
  EXPECT_THAT(Revisions(), UnorderedElementsAre("3", "4"));
}

TEST_F(StatefulSetTest, PodsThatEndAreMadeAnew) {
  Start(StatefulSetNamed("web", 2));
  Converge();
  for (auto pod : cluster_.List<corev1::Pod>("default")) {
    pod.mutable_status()->set_phase(pod.metadata().name() == "web-0" ? "Failed" : "Succeeded");
    cluster_.fake->Put(pod);
  }
  Converge();
  EXPECT_EQ(Status().ready_replicas(), 2);
  EXPECT_THAT(
      cluster_.Events(),
      AllOf(Contains("RecreatingFailedPod: StatefulSet default/web is recreating failed Pod web-0"),
            Contains("RecreatingTerminatedPod: StatefulSet default/web is recreating terminated Pod web-1")));
}

// The name is taken as long as an object of it exists, in any state: an ordinal never has two pods.
TEST_F(StatefulSetTest, WaitsForATerminatingPodToGo) {
  Start(StatefulSetNamed("web", 1));
  Converge();
  const std::string uid = cluster_.Get<corev1::Pod>("default", "web-0").metadata().uid();
  ASSERT_TRUE(cluster_.api.Delete<corev1::Pod>("default", "web-0"));
  cluster_.Advance(600s, {controller_});
  EXPECT_EQ(cluster_.Get<corev1::Pod>("default", "web-0").metadata().uid(), uid);
  Converge();
  EXPECT_NE(cluster_.Get<corev1::Pod>("default", "web-0").metadata().uid(), uid);
}

TEST_F(StatefulSetTest, EachReplicaHasItsClaims) {
  Start(WithClaims(StatefulSetNamed("web", 2), {"data", "log"}));
  Converge();
  EXPECT_THAT(Claims(), ElementsAre("data-web-0", "data-web-1", "log-web-0", "log-web-1"));
  Change([](auto& spec) { spec.set_replicas(1); });
  Converge();
  EXPECT_EQ(Claims().size(), 4u);
  Change([](auto& spec) { spec.set_replicas(2); });
  Converge();
  EXPECT_EQ(Claims().size(), 4u);
  EXPECT_THAT(cluster_.Events(),
              Contains("SuccessfulCreate: create Claim data-web-0 Pod web-0 in StatefulSet web success"));
}

TEST_F(StatefulSetTest, RetentionPolicyGivesClaimsOwners) {
  Start(WithClaims(StatefulSetNamed("web", 2), {"data"}, "Delete", "Delete"));
  Converge();
  EXPECT_THAT(Claims(), ElementsAre("data-web-0:web", "data-web-1:web"));
  Change([](auto& spec) { spec.set_replicas(1); });
  cluster_.Drain({controller_});
  EXPECT_THAT(Claims(), ElementsAre("data-web-0:web", "data-web-1:web-1"));
  // Scaled up again before the claim is gone: the next pod waits for a fresh one.
  Converge();
  Change([](auto& spec) { spec.set_replicas(2); });
  Converge();
  EXPECT_THAT(Pods(), ElementsAre("web-0=example/image"));
  ASSERT_TRUE(cluster_.api.Delete<corev1::PersistentVolumeClaim>("default", "data-web-1"));
  Converge();
  EXPECT_EQ(Pods().size(), 2u);
  EXPECT_THAT(Claims(), ElementsAre("data-web-0:web", "data-web-1:web"));
  Change([](auto& spec) {
    spec.mutable_persistent_volume_claim_retention_policy()->set_when_deleted("Retain");
  });
  Converge();
  EXPECT_THAT(Claims(), ElementsAre("data-web-0", "data-web-1"));
}

TEST_F(StatefulSetTest, MendsPodsAndAdoptsThoseOfItsNames) {
  corev1::Pod mine = PodNamed("web-0", {{"app", "web"}}), other = PodNamed("else-0", {{"app", "web"}});
  cluster_.fake->Put(mine);
  cluster_.fake->Put(other);
  Start(WithClaims(StatefulSetNamed("web", 1), {"data"}));
  Converge();
  mine = cluster_.Get<corev1::Pod>("default", "web-0");
  ASSERT_TRUE(api::ControllerOf(mine.metadata()));
  EXPECT_EQ(mine.metadata().labels().at(kPodNameLabel), "web-0");
  EXPECT_FALSE(api::ControllerOf(cluster_.Get<corev1::Pod>("default", "else-0").metadata()));
}

TEST_F(StatefulSetTest, FailureToCreateIsAnEvent) {
  auto refuse = std::make_shared<std::atomic<bool>>(true);
  cluster_.fake->SetInterceptor(
      [refuse](const client::ApiRequest& r) -> std::optional<Result<client::ApiResponse>> {
        if (*refuse && r.method == "POST" && r.target.ends_with("/pods")) {
          return client::FakeApi::Refuse(Error(Code::kForbidden, "exceeded quota"));
        }
        return std::nullopt;
      });
  Start(StatefulSetNamed("web", 1));
  EXPECT_THAT(Pods(), IsEmpty());
  *refuse = false;
  cluster_.Advance(1s, {controller_});
  EXPECT_EQ(Pods().size(), 1u);
  EXPECT_THAT(cluster_.Events(),
              Contains("FailedCreate: create Pod web-0 in StatefulSet web failed error: exceeded quota"));
}

// Kills the controller after each of its writes; the next one finishes.
TEST_F(StatefulSetTest, KilledAfterAnyWrite) {
  for (int writes = 1;; ++writes) {
    TestCluster cluster;
    auto left = std::make_shared<std::atomic<int>>(writes);
    auto own = std::make_shared<std::atomic<bool>>(false);
    cluster.fake->SetInterceptor(
        [=](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
          if (request.method == "GET" || *own || (*left)-- > 0) return std::nullopt;
          return client::FakeApi::Refuse(Error(Code::kUnavailable, "killed"));
        });
    StatefulSetController* controller = nullptr;
    const auto start = [&] {
      cluster.Stop();
      controller = &cluster.Make<StatefulSetController>();
      cluster.Start();
    };
    const auto work = [&] {
      for (int i = 0; i < 25; ++i) {
        cluster.Advance(60s, {controller});
        *own = true;
        cluster.RunPods();
        *own = false;
      }
      cluster.Drain({controller});
    };
    *own = true;
    ASSERT_TRUE(cluster.api.Create(WithClaims(StatefulSetNamed("web", 3), {"data"}, "Delete", "Delete")));
    *own = false;
    start();
    work();
    *own = true;
    auto set = cluster.Get<appsv1::StatefulSet>("default", "web");
    set.mutable_spec()->set_replicas(2);
    set.mutable_spec()->mutable_template_()->mutable_spec()->mutable_containers(0)->set_image("v2");
    ASSERT_TRUE(cluster.api.Update(set));
    *own = false;
    work();
    const bool died = *left <= 0;
    *left = std::numeric_limits<int>::max();
    start();
    work();
    set = cluster.Get<appsv1::StatefulSet>("default", "web");
    ASSERT_EQ(set.status().updated_replicas(), 2) << writes;
    ASSERT_EQ(set.status().available_replicas(), 2) << writes;
    ASSERT_EQ(set.status().current_revision(), set.status().update_revision()) << writes;
    std::vector<std::string> pods;
    for (const auto& pod : cluster.List<corev1::Pod>()) {
      pods.push_back(pod.metadata().name() + "=" + pod.spec().containers(0).image());
    }
    ASSERT_THAT(pods, ElementsAre("web-0=v2", "web-1=v2")) << writes;
    for (const auto& claim : cluster.List<corev1::PersistentVolumeClaim>()) {
      // A claim whose pod was not made any more goes with the set.
      const bool condemned = claim.metadata().name() == "data-web-2";
      ASSERT_THAT(api::ControllerOf(claim.metadata())->name(), AnyOf("web", condemned ? "web-2" : "web"))
          << writes;
    }
    if (!died) {
      EXPECT_GT(writes, 15);
      break;
    }
  }
}

}  // namespace
}  // namespace keelson::controllers

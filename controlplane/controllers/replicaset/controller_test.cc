#include "controlplane/controllers/replicaset/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

appsv1::ReplicaSet SetNamed(const std::string& name, int32_t replicas) {
  appsv1::ReplicaSet set;
  set.mutable_metadata()->set_name(name);
  set.mutable_metadata()->set_namespace_("default");
  set.mutable_spec()->set_replicas(replicas);
  (*set.mutable_spec()->mutable_selector()->mutable_match_labels())["app"] = name;
  auto& pod_template = *set.mutable_spec()->mutable_template_();
  (*pod_template.mutable_metadata()->mutable_labels())["app"] = name;
  *pod_template.mutable_spec() = PodNamed("x").spec();
  return set;
}

class ReplicaSetTest : public ::testing::Test {
 protected:
  void Start(const appsv1::ReplicaSet& set) {
    ASSERT_TRUE(cluster_.api.Create(set));
    cluster_.Start();
    cluster_.Drain({&controller_});
  }
  appsv1::ReplicaSetStatus Status() { return cluster_.Get<appsv1::ReplicaSet>("default", "web").status(); }
  void Scale(int32_t replicas) {
    auto set = cluster_.Get<appsv1::ReplicaSet>("default", "web");
    set.mutable_spec()->set_replicas(replicas);
    ASSERT_TRUE(cluster_.api.Update(set));
    cluster_.Drain({&controller_});
  }
  std::vector<corev1::Pod> Pods() { return cluster_.List<corev1::Pod>("default"); }

  TestCluster cluster_;
  ReplicaSetController& controller_ = cluster_.Make<ReplicaSetController>();
};

TEST_F(ReplicaSetTest, CreatesPodsAndReportsThem) {
  Start(SetNamed("web", 5));
  ASSERT_EQ(Pods().size(), 5u);
  for (const auto& pod : Pods()) {
    EXPECT_EQ(pod.metadata().name().rfind("web-", 0), 0u);
    EXPECT_EQ(pod.metadata().labels().at("app"), "web");
    const auto* owner = api::ControllerOf(pod.metadata());
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->kind(), "ReplicaSet");
    EXPECT_EQ(owner->api_version(), "apps/v1");
  }
  EXPECT_EQ(Status().replicas(), 5);
  EXPECT_EQ(Status().ready_replicas(), 0);
  cluster_.RunPods();
  cluster_.Drain({&controller_});
  EXPECT_EQ(Status().ready_replicas(), 5);
  EXPECT_EQ(Status().available_replicas(), 5);
  EXPECT_EQ(Status().fully_labeled_replicas(), 5);
  EXPECT_EQ(Status().observed_generation(), 1);
  EXPECT_THAT(cluster_.Events(), Contains(HasSubstr("SuccessfulCreate: Created pod: web-")));
  EXPECT_TRUE(cluster_.errors.empty());
}

TEST_F(ReplicaSetTest, AvailabilityWaitsForMinReadySeconds) {
  auto set = SetNamed("web", 1);
  set.mutable_spec()->set_min_ready_seconds(30);
  Start(set);
  cluster_.RunPods();
  cluster_.Drain({&controller_});
  EXPECT_EQ(Status().ready_replicas(), 1);
  EXPECT_EQ(Status().available_replicas(), 0);
  cluster_.Advance(31s, {&controller_});
  EXPECT_EQ(Status().available_replicas(), 1);
}

TEST_F(ReplicaSetTest, ScalesDownAndUp) {
  Start(SetNamed("web", 4));
  cluster_.RunPods();
  cluster_.Drain({&controller_});
  Scale(1);
  EXPECT_EQ(Status().replicas(), 1);
  EXPECT_EQ(Status().terminating_replicas(), 3);
  cluster_.RunPods();
  cluster_.Drain({&controller_});
  EXPECT_EQ(Pods().size(), 1u);
  EXPECT_EQ(Status().terminating_replicas(), 0);
  Scale(3);
  EXPECT_EQ(Pods().size(), 3u);
  Scale(0);
  cluster_.RunPods();
  cluster_.Drain({&controller_});
  EXPECT_TRUE(Pods().empty());
  EXPECT_EQ(Status().replicas(), 0);
}

TEST_F(ReplicaSetTest, DoesNotSpeakOfAGenerationWhileItsPodsAreNotSeen) {
  cluster_.fake->SetInterceptor(
      [](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
        if (request.method != "POST" || !request.target.ends_with("/pods")) return std::nullopt;
        return client::FakeApi::Answer(PodNamed("unseen"), 201);
      });
  Start(SetNamed("web", 2));
  EXPECT_EQ(Status().observed_generation(), 1);
  Scale(1);
  EXPECT_EQ(Status().observed_generation(), 1);
  // Given up after five minutes.
  cluster_.fake->SetInterceptor(nullptr);
  cluster_.clock.Advance(301s);
  controller_.queue().Add("default/web");
  cluster_.Drain({&controller_});
  EXPECT_EQ(Pods().size(), 1u);
  EXPECT_EQ(Status().observed_generation(), 2);
}

TEST_F(ReplicaSetTest, ReplacesWhatIsDeletedOrFails) {
  Start(SetNamed("web", 2));
  cluster_.RunPods();
  cluster_.Drain({&controller_});
  auto pods = Pods();
  ASSERT_TRUE(
      cluster_.api.Delete<corev1::Pod>("default", pods[0].metadata().name(), {.grace_period_seconds = 0}));
  pods[1].mutable_status()->set_phase("Failed");
  cluster_.fake->Put(pods[1]);
  cluster_.Drain({&controller_});
  EXPECT_EQ(Status().replicas(), 2);
  EXPECT_EQ(Pods().size(), 3u);  // the failed pod stays for inspection
}

TEST_F(ReplicaSetTest, AdoptsMatchingOrphansAndReleasesOthers) {
  ASSERT_TRUE(cluster_.api.Create(PodNamed("stray", {{"app", "web"}})));
  Start(SetNamed("web", 2));
  EXPECT_EQ(Pods().size(), 2u);
  auto stray = cluster_.Get<corev1::Pod>("default", "stray");
  ASSERT_TRUE(api::ControllerOf(stray.metadata()));
  (*stray.mutable_metadata()->mutable_labels())["app"] = "elsewhere";
  ASSERT_TRUE(cluster_.api.Update(stray));
  cluster_.Drain({&controller_});
  EXPECT_FALSE(api::ControllerOf(cluster_.Get<corev1::Pod>("default", "stray").metadata()));
  EXPECT_EQ(Pods().size(), 3u);
  EXPECT_EQ(Status().replicas(), 2);
}

TEST_F(ReplicaSetTest, FailureToCreateIsACondition) {
  auto refuse = std::make_shared<std::atomic<bool>>(true);  // asked for as long as the cluster lives
  cluster_.fake->SetInterceptor(
      [refuse](const client::ApiRequest& r) -> std::optional<Result<client::ApiResponse>> {
        if (*refuse && r.method == "POST" && r.target.find("/pods") != std::string::npos) {
          return client::FakeApi::Refuse(Error(Code::kForbidden, "exceeded quota"));
        }
        return std::nullopt;
      });
  Start(SetNamed("web", 10));
  ASSERT_EQ(Status().conditions_size(), 1);
  EXPECT_EQ(Status().conditions(0).reason(), "FailedCreate");
  EXPECT_EQ(Status().conditions(0).message(), "exceeded quota");
  *refuse = false;
  cluster_.Advance(1s, {&controller_});
  EXPECT_EQ(Pods().size(), 10u);
  EXPECT_EQ(Status().conditions_size(), 0);
  EXPECT_THAT(cluster_.Events(), Contains("FailedCreate: Error creating: exceeded quota"));
}

TEST_F(ReplicaSetTest, LeavesADeletedSetAlone) {
  auto set = SetNamed("web", 2);
  set.mutable_metadata()->add_finalizers("example.com/hold");
  Start(set);
  ASSERT_TRUE(cluster_.api.Delete<appsv1::ReplicaSet>("default", "web"));
  for (const auto& pod : Pods()) {
    ASSERT_TRUE(cluster_.api.Delete<corev1::Pod>("default", pod.metadata().name()));
  }
  cluster_.Drain({&controller_});
  EXPECT_TRUE(Pods().empty());
}

class ReplicationControllerTest : public ::testing::Test {
 protected:
  using Object = corev1::ReplicationController;
  void Start(int32_t replicas) {
    Object object;
    object.mutable_metadata()->set_name("web");
    object.mutable_metadata()->set_namespace_("default");
    object.mutable_spec()->set_replicas(replicas);
    (*object.mutable_spec()->mutable_selector())["app"] = "web";
    auto& pod_template = *object.mutable_spec()->mutable_template_();
    (*pod_template.mutable_metadata()->mutable_labels())["app"] = "web";
    *pod_template.mutable_spec() = PodNamed("x").spec();
    ASSERT_TRUE(cluster_.api.Create(object));
    cluster_.Start();
    cluster_.Drain({&controller_, &sets_});
  }
  corev1::ReplicationControllerStatus Status() { return cluster_.Get<Object>("default", "web").status(); }
  std::vector<corev1::Pod> Pods() { return cluster_.List<corev1::Pod>("default"); }

  TestCluster cluster_;
  ReplicationControllerController& controller_ = cluster_.Make<ReplicationControllerController>();
  ReplicaSetController& sets_ = cluster_.Make<ReplicaSetController>();
};

TEST_F(ReplicationControllerTest, KeepsPodsAndReportsThem) {
  ASSERT_TRUE(cluster_.api.Create(PodNamed("stray", {{"app", "web"}})));
  Start(3);
  ASSERT_EQ(Pods().size(), 3u) << "the stray one is adopted";
  for (const auto& pod : Pods()) {
    const auto* owner = api::ControllerOf(pod.metadata());
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->kind(), "ReplicationController");
    EXPECT_EQ(owner->api_version(), "v1");
  }
  cluster_.RunPods();
  cluster_.Drain({&controller_, &sets_});
  EXPECT_EQ(Status().replicas(), 3);
  EXPECT_EQ(Status().available_replicas(), 3);
  EXPECT_EQ(Status().observed_generation(), 1);
  auto object = cluster_.Get<Object>("default", "web");
  object.mutable_spec()->set_replicas(1);
  ASSERT_TRUE(cluster_.api.Update(object));
  cluster_.Drain({&controller_, &sets_});
  cluster_.RunPods();
  cluster_.Drain({&controller_, &sets_});
  EXPECT_EQ(Pods().size(), 1u);
  EXPECT_EQ(Status().ready_replicas(), 1);
  EXPECT_TRUE(cluster_.errors.empty());
}

TEST_F(ReplicationControllerTest, FailureToCreateIsACondition) {
  auto refuse = std::make_shared<std::atomic<bool>>(true);
  cluster_.fake->SetInterceptor(
      [refuse](const client::ApiRequest& r) -> std::optional<Result<client::ApiResponse>> {
        if (*refuse && r.method == "POST" && r.target.ends_with("/pods")) {
          return client::FakeApi::Refuse(Error(Code::kForbidden, "exceeded quota"));
        }
        return std::nullopt;
      });
  Start(2);
  ASSERT_EQ(Status().conditions_size(), 1);
  EXPECT_EQ(Status().conditions(0).type(), "ReplicaFailure");
  EXPECT_EQ(Status().conditions(0).reason(), "FailedCreate");
  *refuse = false;
  cluster_.Advance(1s, {&controller_});
  EXPECT_EQ(Pods().size(), 2u);
  EXPECT_EQ(Status().conditions_size(), 0);
}

}  // namespace
}  // namespace keelson::controllers

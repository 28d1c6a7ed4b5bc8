#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/podautoscaler/testing/autoscaler_world.h"
#include "controlplane/controllers/testing/metrics.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kAble = "AbleToScale=True ReadyForNewScale: recommended size matches current size";
constexpr const char* kInRange =
    "ScalingLimited=False DesiredWithinRange: the desired count is within the acceptable range";
constexpr const char* kActive =
    "ScalingActive=True ValidMetricFound: the HPA was able to successfully calculate a replica count from "
    "cpu "
    "resource utilization (percentage of request)";

TEST_F(AutoscalerTest, ScalesUpAndLaterDown) {
  AddScale("web", 2);
  SetPods("web", {900, 900});
  Put("hpa", Spec("web", Cpu(50)));
  Start();
  EXPECT_EQ(Replicas(), 4);
  Autoscaler autoscaler = Get();
  EXPECT_THAT(
      Conditions(autoscaler),
      ElementsAre("AbleToScale=True SucceededRescale: the HPA controller was able to update the target "
                  "scale to 4",
                  kActive, kInRange));
  EXPECT_EQ(autoscaler.status().current_replicas(), 2);
  EXPECT_EQ(autoscaler.status().desired_replicas(), 4);
  EXPECT_EQ(api::FromTime(autoscaler.status().last_scale_time()), cluster_.clock.Now());
  ASSERT_EQ(autoscaler.status().current_metrics_size(), 1);
  EXPECT_EQ(
      api::EncodeJson(autoscaler.status().current_metrics(0)),
      R"({"type":"Resource","resource":{"name":"cpu","current":{"averageValue":"900m","averageUtilization":90}}})");
  EXPECT_THAT(said_.asked, ElementsAre("cpu of default/app=web "));

  SetPods("web", {450, 450, 450, 450});
  NextPeriod();
  EXPECT_EQ(Replicas(), 4);
  EXPECT_THAT(Conditions(Get()), ElementsAre(kAble, kActive, kInRange));
  // At rest nothing is written.
  cluster_.fake->ForgetRequests();
  SetPods("web", {450, 450, 450, 450});
  NextPeriod();
  for (const std::string& request : cluster_.fake->Requests()) {
    EXPECT_NE(request.substr(0, 3), "PUT") << request;
  }

  SetPods("web", {100, 100, 100, 100});
  NextPeriod();
  EXPECT_EQ(Replicas(), 4);
  EXPECT_THAT(
      Conditions(Get())[0],
      "AbleToScale=True ScaleDownStabilized: recent recommendations were higher than current one, applying "
      "the highest recent recommendation");
  cluster_.clock.Advance(seconds(300));
  SetPods("web", {100, 100, 100, 100});
  NextPeriod();
  EXPECT_EQ(Replicas(), 1);
  EXPECT_EQ(puts_, 2);
  EXPECT_THAT(cluster_.Events(),
              ElementsAre("SuccessfulRescale: New size: 1; reason: All metrics below target",
                          "SuccessfulRescale: New size: 4; reason: cpu resource utilization (percentage of "
                          "request) above target"));
  EXPECT_THAT(cluster_.errors, IsEmpty());
}

TEST_F(AutoscalerTest, KeepsItsTargetWithinBounds) {
  AddScale("web", 20);
  AddScale("api", 1);
  AddScale("off", 0);
  Put("above", Spec("web", Cpu(50)));
  Put("below", Spec("api", Cpu(50), R"(,"behavior":{},"minReplicas":3)"));
  Put("zero", Spec("off", Cpu(50)));
  Put("gone", Spec("none", Cpu(50)));
  Start();
  EXPECT_EQ(Replicas("web"), 10);
  EXPECT_EQ(Replicas("api"), 3);
  EXPECT_EQ(Replicas("off"), 0);
  EXPECT_THAT(said_.asked, IsEmpty());
  EXPECT_EQ(Get("below").status().desired_replicas(), 3);
  EXPECT_THAT(
      Conditions(Get("zero")),
      ElementsAre("AbleToScale=True SucceededGetScale: the HPA controller was able to get the target's "
                  "current scale",
                  "ScalingActive=False ScalingDisabled: scaling is disabled since the replica count of "
                  "the target is zero"));
  EXPECT_THAT(
      Conditions(Get("gone")),
      ElementsAre("AbleToScale=False FailedGetScale: the HPA controller was unable to get the target's "
                  "current scale: deployments.apps \"none\" not found"));
  EXPECT_THAT(cluster_.Events(),
              ElementsAre("FailedGetScale: deployments.apps \"none\" not found",
                          "SuccessfulRescale: New size: 10; reason: Current number of replicas above "
                          "Spec.MaxReplicas",
                          "SuccessfulRescale: New size: 3; reason: Current number of replicas below "
                          "Spec.MinReplicas"));
}

TEST_F(AutoscalerTest, WhatCannotBeComputedIsToldAndTriedAgain) {
  AddScale("web", 2);
  SetPods("web", {900, 900});
  said_.by_name.clear();
  Put("hpa", Spec("web", Cpu(50)));
  Start();
  EXPECT_EQ(Replicas(), 2);
  Autoscaler autoscaler = Get();
  EXPECT_EQ(
      Conditions(autoscaler)[1],
      "ScalingActive=False FailedGetResourceMetric: the HPA was unable to compute the replica count: failed "
      "to get cpu utilization: unable to get metrics for resource cpu: no metrics returned");
  EXPECT_EQ(autoscaler.status().current_replicas(), 2);
  SetPods("web", {900, 900});
  NextPeriod();
  EXPECT_EQ(Replicas(), 4);
  EXPECT_THAT(
      cluster_.Events(),
      Contains("FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: failed "
               "to get cpu resource metric value: failed to get cpu utilization: unable to get metrics for "
               "resource cpu: no metrics returned"));
}

TEST_F(AutoscalerTest, WishesAreShown) {
  const Growth number("horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers"),
      wish(
          "horizontal_pod_autoscaler_controller_desired_replicas{namespace=\"default\",hpa_name="
          "\"wishful\"}");
  AddScale("web", 2);
  SetPods("web", {900, 900});
  Put("wishful", Spec("web", Cpu(50)));
  Start();
  EXPECT_EQ(number(), 1);
  EXPECT_EQ(wish(), 4);
  ASSERT_TRUE(cluster_.api.Delete<Autoscaler>("default", "wishful"));
  cluster_.Drain({controller_});
  EXPECT_EQ(number(), 0);
  EXPECT_EQ(wish(), 0);
}

TEST_F(AutoscalerTest, AConflictIsTriedAgainAtOnce) {
  AddScale("web", 2);
  SetPods("web", {900, 900});
  Put("hpa", Spec("web", Cpu(50)));
  refuse_put_ = Error(Code::kConflict, "the object has been modified");
  refusals_left_ = 2;
  Start();
  EXPECT_EQ(Replicas(), 4);
  EXPECT_EQ(puts_, 1);
  EXPECT_EQ(Conditions(Get())[0],
            "AbleToScale=True SucceededRescale: the HPA controller was able to update the target scale to 4");
}

TEST_F(AutoscalerTest, AScaleThatSomebodyElseHasChangedIsComputedAnew) {
  AddScale("web", 2);
  SetPods("web", {900, 900});
  Put("hpa", Spec("web", Cpu(50)));
  refuse_put_ = Error(Code::kConflict, "the object has been modified");
  on_refusal_ = [this] { scales_["web"].mutable_spec()->set_replicas(3); };
  Start();
  EXPECT_EQ(Replicas(), 3);
  EXPECT_EQ(puts_, 0);
}

TEST_F(AutoscalerTest, AFailedScaleIsToldAndTriedAgain) {
  AddScale("web", 2);
  SetPods("web", {900, 900});
  Put("hpa", Spec("web", Cpu(50)));
  refuse_put_ = Error(Code::kConflict, "the object has been modified");
  Start();
  EXPECT_EQ(Replicas(), 2);
  EXPECT_EQ(
      Conditions(Get())[0],
      "AbleToScale=False FailedUpdateScale: the HPA controller was unable to update the target scale: the "
      "object has been modified");
  EXPECT_FALSE(Get().status().has_last_scale_time());
  refuse_put_.reset();
  NextPeriod();
  EXPECT_EQ(Replicas(), 4);
  EXPECT_THAT(
      cluster_.Events(),
      Contains("FailedRescale: New size: 4; reason: cpu resource utilization (percentage of request) above "
               "target; error: the object has been modified"));
}

TEST_F(AutoscalerTest, SelectorsThatAreNone) {
  AddScale("empty", 2, "");
  AddScale("odd", 2, "a in");
  Put("empty", Spec("empty", Cpu(50)));
  Put("odd", Spec("odd", Cpu(50)));
  Start();
  EXPECT_EQ(Conditions(Get("empty"))[1],
            "ScalingActive=False InvalidSelector: the HPA target's scale is missing a selector");
  EXPECT_THAT(Conditions(Get("odd"))[1],
              testing::StartsWith("ScalingActive=False InvalidSelector: couldn't convert selector into a "
                                  "corresponding internal selector object: "));
  EXPECT_THAT(cluster_.Events(), Contains("SelectorRequired: selector is required"));
}

TEST_F(AutoscalerTest, TwoOfTheSamePodsStandStill) {
  AddScale("web", 2);
  AddScale("all", 2, "app");
  SetPods("web", {500, 500});
  Put("first", Spec("web", Cpu(50)));
  Start();
  EXPECT_EQ(Conditions(Get("first"))[1], kActive);
  SetPods("web", {900, 900});
  Put("second", Spec("all", Cpu(50)));
  cluster_.Drain({controller_});
  NextPeriod();
  EXPECT_EQ(Replicas("web"), 2);
  EXPECT_EQ(Replicas("all"), 2);
  EXPECT_EQ(
      Conditions(Get("first"))[1],
      "ScalingActive=False AmbiguousSelector: pods by selector app=web are controlled by multiple HPAs: "
      "[default/first default/second]");
  EXPECT_EQ(Conditions(Get("second"))[1],
            "ScalingActive=False AmbiguousSelector: pods by selector app are controlled by multiple HPAs: "
            "[default/first default/second]");
  ASSERT_TRUE(cluster_.api.Delete<Autoscaler>("default", "second"));
  cluster_.Drain({controller_});
  NextPeriod();
  EXPECT_EQ(Replicas("web"), 4);
}

TEST_F(AutoscalerTest, AChangedSpecIsLookedAtOnce) {
  AddScale("web", 2);
  SetPods("web", {500, 500});
  Put("hpa", Spec("web", Cpu(50), R"(,"behavior":{"scaleUp":{"tolerance":"0"}})"));
  Start();
  EXPECT_EQ(Replicas(), 2);
  Autoscaler autoscaler = Get();
  autoscaler.mutable_spec()
      ->mutable_metrics(0)
      ->mutable_resource()
      ->mutable_target()
      ->set_average_utilization(49);
  cluster_.fake->Put(autoscaler);
  cluster_.Drain({controller_});
  EXPECT_EQ(Replicas(), 3);
}

TEST_F(AutoscalerTest, StatusIsWrittenOverOthersChanges) {
  AddScale("web", 2);
  SetPods("web", {900, 900});
  Put("hpa", Spec("web", Cpu(50)));
  int refused = 0;
  cluster_.fake->SetInterceptor(
      [&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
        if (request.method == "PUT" && request.target.ends_with("/hpa/status") && refused++ == 0) {
          return client::FakeApi::Refuse(Error(Code::kConflict, "the object has been modified"));
        }
        return Intercept(request);
      });
  Start();
  EXPECT_EQ(refused, 2);
  EXPECT_EQ(puts_, 1);
  EXPECT_EQ(Get().status().desired_replicas(), 4);
  EXPECT_TRUE(Get().status().has_last_scale_time());
  EXPECT_THAT(cluster_.errors, IsEmpty());
}

}  // namespace
}  // namespace keelson::controllers

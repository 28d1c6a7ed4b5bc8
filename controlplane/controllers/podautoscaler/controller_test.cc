#include "controlplane/controllers/podautoscaler/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "controlplane/controllers/testing.h"
#include "lib/api/codec.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using podautoscaler::PodValues;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using Autoscaler = PodAutoscalerController::Autoscaler;

// What the metrics say; `error` is the answer to what is not set.
struct FakeMetrics : podautoscaler::MetricsClient {
  struct Said {
    std::map<std::string, PodValues> by_name;  // of resources and of pods' metrics
    std::map<std::string, int64_t> values;     // of objects and external ones
    std::vector<std::string> asked;
  };
  explicit FakeMetrics(Said& s) : said(s) {}

  Result<PodValues> Find(const std::string& what, const std::string& name) {
    said.asked.push_back(what);
    auto found = said.by_name.find(name);
    if (found == said.by_name.end()) return Error(Code::kNotFound, "no metrics returned");
    return found->second;
  }
  Result<int64_t> FindValue(const std::string& what, const std::string& name) {
    said.asked.push_back(what);
    auto found = said.values.find(name);
    if (found == said.values.end()) return Error(Code::kNotFound, "no metrics returned");
    return found->second;
  }
  Result<PodValues> OfResource(const std::string& resource, const std::string& ns,
                               const std::string& selector, const std::string& container) override {
    return Find(resource + " of " + ns + "/" + selector + " " + container, resource);
  }
  Result<PodValues> OfPods(const std::string& metric, const std::string& ns, const std::string& selector,
                           const std::string& metric_selector) override {
    return Find(metric + " of " + ns + "/" + selector + " " + metric_selector, metric);
  }
  Result<int64_t> OfObject(const std::string& metric, const std::string& ns,
                           const api::autoscaling::v2::CrossVersionObjectReference& object,
                           const std::string& metric_selector) override {
    return FindValue(metric + " of " + ns + "/" + object.name() + " " + metric_selector, metric);
  }
  Result<std::vector<int64_t>> OfExternal(const std::string& metric, const std::string& ns,
                                          const std::string& metric_selector) override {
    Result<int64_t> value = FindValue(metric + " of " + ns + " " + metric_selector, metric);
    if (!value) return value.error();
    return std::vector<int64_t>{*value / 2, *value - *value / 2};
  }
  Said& said;
};

class AutoscalerTest : public testing::Test {
 protected:
  // FakeApi has no scales: these are the deployments' own numbers.
  void SetUp() override {
    cluster_.clock.Advance(std::chrono::hours(24 * 365 * 40));
    cluster_.fake->SetInterceptor([this](const client::ApiRequest& request) { return Intercept(request); });
    controller_ = &cluster_.Make<PodAutoscalerController>(options_, std::make_unique<FakeMetrics>(said_));
  }
  std::optional<Result<client::ApiResponse>> Intercept(const client::ApiRequest& request) {
    constexpr std::string_view kBegin = "/apis/apps/v1/namespaces/default/deployments/";
    if (request.target.rfind(kBegin, 0) != 0) return std::nullopt;
    const std::string name = request.target.substr(kBegin.size(), request.target.rfind('/') - kBegin.size());
    auto answer = [](const Error& error) {
      return client::ApiResponse{HttpStatus(error.code()), "application/json",
                                 api::EncodeJson(api::ToStatus(error), {"", "v1", "Status"})};
    };
    auto found = scales_.find(name);
    if (found == scales_.end())
      return answer(Error(Code::kNotFound, "deployments.apps \"" + name + "\" not found").WithDetails({}));
    if (request.method == "PUT") {
      if (refuse_put_) return answer(*refuse_put_);
      autoscalingv1::Scale scale;
      EXPECT_TRUE(api::DecodeJson(request.body, scale));
      found->second.mutable_spec()->set_replicas(scale.spec().replicas());
      ++puts_;
    }
    return client::ApiResponse{200, "application/json",
                               api::EncodeJson(found->second, {"autoscaling", "v1", "Scale"})};
  }

  void AddScale(const std::string& name, int32_t replicas, std::optional<std::string> selector = {}) {
    autoscalingv1::Scale scale;
    scale.mutable_metadata()->set_name(name);
    scale.mutable_metadata()->set_namespace_("default");
    if (replicas > 0) scale.mutable_spec()->set_replicas(replicas);
    if (replicas > 0) scale.mutable_status()->set_replicas(replicas);
    scale.mutable_status()->set_selector(selector.value_or("app=" + name));
    scales_[name] = scale;
  }
  // Pods of the target with their CPU in thousandths, of one core that each requests.
  void SetPods(const std::string& name, const std::vector<int64_t>& used) {
    PodValues& values = said_.by_name["cpu"];
    values.clear();
    for (size_t i = 0; i < used.size(); ++i) {
      corev1::Pod pod = PodNamed(name + "-" + std::to_string(i), {{"app", name}}, "n1");
      (*pod.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_requests())["cpu"].set_string(
          "1");
      MakeReady(pod, cluster_.clock.Now() - std::chrono::hours(1));
      *pod.mutable_status()->mutable_start_time() = api::ToTime(cluster_.clock.Now() - std::chrono::hours(1));
      cluster_.fake->Put(pod);
      values[pod.metadata().name()] = {cluster_.clock.Now(), seconds(15), used[i]};
    }
  }
  void Put(const std::string& name, const std::string& spec) {
    Autoscaler autoscaler;
    ASSERT_TRUE(api::DecodeJson(
        R"({"metadata":{"name":")" + name + R"(","namespace":"default"},"spec":)" + spec + "}", autoscaler))
        << spec;
    cluster_.fake->Put(autoscaler);
  }
  static std::string Spec(const std::string& target, const std::string& metrics,
                          const std::string& more = "") {
    return R"({"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":")" + target +
           R"("},"minReplicas":1,"maxReplicas":10,"metrics":[)" + metrics + "]" + more + "}";
  }
  static std::string Cpu(int percent) {
    return R"({"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":)" +
           std::to_string(percent) + "}}}";
  }
  void Start() {
    cluster_.Start();
    cluster_.Drain({controller_});
  }
  void NextPeriod() { cluster_.Advance(options_.sync_period, {controller_}); }
  Autoscaler Get(const std::string& name = "hpa") { return cluster_.Get<Autoscaler>("default", name); }
  // "type=status reason: message"
  static std::vector<std::string> Conditions(const Autoscaler& autoscaler) {
    std::vector<std::string> out;
    for (const auto& one : autoscaler.status().conditions())
      out.push_back(one.type() + "=" + one.status() + " " + one.reason() + ": " + one.message());
    return out;
  }
  int32_t Replicas(const std::string& name = "web") { return scales_[name].spec().replicas(); }

  PodAutoscalerOptions options_;
  FakeMetrics::Said said_;
  std::map<std::string, autoscalingv1::Scale> scales_;
  std::optional<Error> refuse_put_;
  int puts_ = 0;
  TestCluster cluster_;
  PodAutoscalerController* controller_ = nullptr;
};

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
  for (const std::string& request : cluster_.fake->Requests())
    EXPECT_NE(request.substr(0, 3), "PUT") << request;

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

TEST_F(AutoscalerTest, EveryKindOfMetric) {
  struct Case {
    const char *name, *metric;
    int32_t replicas;  // of three
    const char *asked, *status;
  };
  const std::vector<Case> cases = {
      {"resource, average value",
       R"({"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":"300m"}}})",
       6, "cpu of default/app=web ",
       R"({"type":"Resource","resource":{"name":"cpu","current":{"averageValue":"600m"}}})"},
      {"container",
       R"({"type":"ContainerResource","containerResource":{"name":"cpu","container":"main",
           "target":{"type":"Utilization","averageUtilization":30}}})",
       6, "cpu of default/app=web main",
       R"({"type":"ContainerResource","containerResource":{"name":"cpu","current":{"averageValue":"600m",)"
       R"("averageUtilization":60},"container":"main"}})"},
      {"pods",
       R"({"type":"Pods","pods":{"metric":{"name":"qps","selector":{"matchLabels":{"verb":"GET"}}},
           "target":{"type":"AverageValue","averageValue":"10"}}})",
       4, "qps of default/app=web verb=GET",
       R"({"type":"Pods","pods":{"metric":{"name":"qps","selector":{"matchLabels":{"verb":"GET"}}},)"
       R"("current":{"averageValue":"12"}}})"},
      {"object, value",
       R"({"type":"Object","object":{"describedObject":{"kind":"Service","name":"front","apiVersion":"v1"},
           "metric":{"name":"rate"},"target":{"type":"Value","value":"20"}}})",
       5, "rate of default/front ",
       R"({"type":"Object","object":{"metric":{"name":"rate"},"current":{"value":"30"},)"
       R"("describedObject":{"kind":"Service","name":"front","apiVersion":"v1"}}})"},
      {"object, average value",
       R"({"type":"Object","object":{"describedObject":{"kind":"Service","name":"front","apiVersion":"v1"},
           "metric":{"name":"rate"},"target":{"type":"AverageValue","averageValue":"5"}}})",
       6, "rate of default/front ",
       R"({"type":"Object","object":{"metric":{"name":"rate"},"current":{"averageValue":"10"},)"
       R"("describedObject":{"kind":"Service","name":"front","apiVersion":"v1"}}})"},
      {"external, value",
       R"({"type":"External","external":{"metric":{"name":"depth","selector":{"matchLabels":{"queue":"q"}}},
           "target":{"type":"Value","value":"25"}}})",
       6, "depth of default queue=q",
       R"({"type":"External","external":{"metric":{"name":"depth","selector":{"matchLabels":{"queue":"q"}}},)"
       R"("current":{"value":"50"}}})"},
      {"external, average value",
       R"({"type":"External","external":{"metric":{"name":"depth"},"target":{"type":"AverageValue","averageValue":"10"}}})",
       5, "depth of default ",
       R"({"type":"External","external":{"metric":{"name":"depth"},"current":{"averageValue":"16667m"}}})"},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string name = "m" + std::to_string(i);
    AddScale(name, 3, "app=web");
    // One after another: together they would fight over the pods.
    if (i == 0) {
      SetPods("web", {600, 600, 600});
      for (const auto& [pod, value] : said_.by_name["cpu"]) said_.by_name["qps"][pod].milli = 12000;
      said_.values = {{"rate", 30000}, {"depth", 50000}};
    }
    Put(name, Spec(name, cases[i].metric));
    if (i == 0)
      Start();
    else
      cluster_.Drain({controller_});
    EXPECT_EQ(Replicas(name), cases[i].replicas) << cases[i].name;
    EXPECT_EQ(said_.asked.empty() ? "" : said_.asked.back(), cases[i].asked) << cases[i].name;
    const Autoscaler autoscaler = Get(name);
    EXPECT_EQ(autoscaler.status().current_metrics_size() == 0
                  ? ""
                  : api::EncodeJson(autoscaler.status().current_metrics(0)),
              cases[i].status)
        << cases[i].name;
    ASSERT_TRUE(cluster_.api.Delete<Autoscaler>("default", name));
    cluster_.Drain({controller_});
  }
}

TEST_F(AutoscalerTest, FailuresOfEveryKindOfMetric) {
  struct Case {
    const char *metric, *reason, *why, *error;
  };
  const std::vector<Case> cases = {
      {R"({"type":"ContainerResource","containerResource":{"name":"cpu","container":"main",
          "target":{"type":"Utilization","averageUtilization":30}}})",
       "FailedGetContainerResourceMetric",
       "failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned",
       "failed to get cpu container metric value"},
      {R"({"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"1Gi"}}})",
       "FailedGetResourceMetric",
       "failed to get memory usage: unable to get metrics for resource memory: no metrics returned",
       "failed to get memory resource metric value"},
      {R"({"type":"Resource","resource":{"name":"cpu","target":{"type":"Value","value":"1"}}})",
       "FailedGetResourceMetric",
       "invalid resource metric source: neither an average utilization target nor an average value (usage) "
       "target "
       "was set",
       "failed to get cpu resource metric value"},
      {R"({"type":"Pods","pods":{"metric":{"name":"qps"},"target":{"type":"AverageValue","averageValue":"10"}}})",
       "FailedGetPodsMetric", "unable to get metric qps: no metrics returned",
       "failed to get pods metric value"},
      {R"({"type":"Object","object":{"describedObject":{"kind":"Service","name":"front"},"metric":{"name":"rate"},
          "target":{"type":"Value","value":"20"}}})",
       "FailedGetObjectMetric", "unable to get metric rate: Service on default front/no metrics returned",
       "failed to get object metric value"},
      {R"({"type":"External","external":{"metric":{"name":"depth","selector":{"matchLabels":{"b":"2","a":"1"}}},
          "target":{"type":"Value","value":"25"}}})",
       "FailedGetExternalMetric",
       "unable to get external metric default/depth/&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},"
       "MatchExpressions:[]LabelSelectorRequirement{},}: no metrics returned",
       "failed to get depth external metric value"},
      {R"({"type":"External","external":{"metric":{"name":"depth"},"target":{"type":"AverageValue","averageValue":"25"}}})",
       "FailedGetExternalMetric", "unable to get external metric default/depth/nil: no metrics returned",
       "failed to get depth external metric value"},
      {R"({"type":"Moon"})", "InvalidMetricSourceType", "unknown metric source type \"Moon\"", nullptr},
  };
  std::vector<std::string> events;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string name = "m" + std::to_string(i);
    AddScale(name, 3);
    SetPods(name, {600, 600, 600});
    Put(name, Spec(name, cases[i].metric));
  }
  said_.by_name.clear();
  Start();
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string why = cases[i].why;
    EXPECT_EQ(Conditions(Get("m" + std::to_string(i)))[1],
              std::string("ScalingActive=False ") + cases[i].reason +
                  ": the HPA was unable to compute the replica count: " + why);
    events.push_back(cases[i].reason + (": " + why));
    events.push_back("FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: " +
                     (cases[i].error ? cases[i].error + (": " + why) : why));
  }
  const std::vector<std::string> seen = cluster_.Events();
  for (const std::string& event : events) EXPECT_THAT(seen, Contains(event));
}

TEST_F(AutoscalerTest, OfSeveralMetricsTheHighestCounts) {
  const std::string depth =
      R"({"type":"External","external":{"metric":{"name":"depth"},"target":{"type":"AverageValue","averageValue":"10"}}})";
  AddScale("up", 3);
  AddScale("down", 5);
  SetPods("up", {600, 600, 600});
  Put("up", Spec("up", depth + "," + Cpu(30)));
  Start();
  // The one that cannot be asked does not keep the other from growing...
  EXPECT_EQ(Replicas("up"), 6);
  EXPECT_EQ(Get("up").status().current_metrics(0).type(), "");
  EXPECT_EQ(Get("up").status().current_metrics(1).resource().current().average_utilization(), 60);
  // ... but nothing shrinks while it is not known.
  SetPods("down", {10, 10, 10, 10, 10});
  Put("down", Spec("down", Cpu(50) + "," + depth));
  cluster_.Drain({controller_});
  EXPECT_EQ(Replicas("down"), 5);
  EXPECT_EQ(
      Conditions(Get("down"))[1],
      "ScalingActive=False FailedGetExternalMetric: the HPA was unable to compute the replica count: unable "
      "to get external metric default/depth/nil: no metrics returned");
  said_.values["depth"] = 70000;
  cluster_.clock.Advance(seconds(1));
  NextPeriod();
  EXPECT_EQ(Replicas("down"), 7);
  EXPECT_THAT(cluster_.Events(),
              Contains("SuccessfulRescale: New size: 7; reason: external metric depth(nil) above "
                       "target"));
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
        if (request.method == "PUT" && request.target.ends_with("/hpa/status") && refused++ == 0)
          return client::FakeApi::Refuse(Error(Code::kConflict, "the object has been modified"));
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

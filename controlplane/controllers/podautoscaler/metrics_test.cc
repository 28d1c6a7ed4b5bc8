#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/podautoscaler/testing/autoscaler_world.h"
#include "lib/api/codec/codec.h"

namespace keelson::controllers {
namespace {

using std::chrono::seconds;
using testing::Contains;

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
    if (i == 0) {
      Start();
    } else {
      cluster_.Drain({controller_});
    }
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

}  // namespace
}  // namespace keelson::controllers

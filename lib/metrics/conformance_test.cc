#include "lib/metrics/conformance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lib/metrics/metrics.h"

namespace keelson::metrics {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(KubernetesMetrics, TablesAreSound) {
  for (Component component : {Component::kApiserver, Component::kControllers, Component::kScheduler,
                              Component::kKubelet, Component::kProxy}) {
    std::set<std::string_view> names;
    for (const KubernetesMetric* metric : MetricsOf(component)) {
      EXPECT_TRUE(names.insert(metric->name).second) << metric->name;
      const std::vector<double> bounds = BucketsOf(*metric);
      EXPECT_TRUE(std::is_sorted(bounds.begin(), bounds.end())) << metric->name;
      if (!bounds.empty()) {
        EXPECT_EQ(metric->kind, Kind::kHistogram) << metric->name;
      }
    }
    EXPECT_GT(names.size(), 50u);
  }
}

TEST(KubernetesMetrics, Buckets) {
  EXPECT_THAT(BucketsOf(*FindKubernetesMetric("workqueue_queue_duration_seconds")), testing::SizeIs(10));
  EXPECT_THAT(BucketsOf(*FindKubernetesMetric("apiserver_admission_step_admission_duration_seconds")),
              ElementsAre(0.005, 0.025, 0.1, 0.5, 1, 2.5));
}

TEST(KubernetesMetrics, HelpTellsTheStability) {
  EXPECT_EQ(HelpWithStability("apiserver_request_total", "Counter."), "[STABLE] Counter.");
  EXPECT_EQ(HelpWithStability("apiserver_storage_objects", "Objects."),
            "[STABLE] (Deprecated since 1.34.0) Objects.");
  EXPECT_EQ(HelpWithStability("workqueue_depth", "[BETA] Said already."), "[BETA] Said already.");
  EXPECT_EQ(HelpWithStability("keelson_own", "Own."), "Own.");
}

// Kubernetes' metrics about metrics, by name and stability, for the families of this process.
TEST(KubernetesMetrics, RegisteredOnesAreCounted) {
  Gauge("apiserver_storage_objects", "O.", {"resource"});
  const std::string text = Print();
  EXPECT_THAT(text, HasSubstr("# HELP registered_metrics_total [BETA] "));
  EXPECT_THAT(
      text,
      HasSubstr("registered_metrics_total{stability_level=\"STABLE\",deprecated_version=\"1.34.0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\ndisabled_metrics_total "));
  EXPECT_THAT(text, HasSubstr("\nhidden_metrics_total 0\n"));
}

TEST(MetricsConformance, EveryKindOfDifferenceIsTold) {
  std::vector<Description> served;
  for (const KubernetesMetric* metric : MetricsOf(Component::kProxy)) {
    constexpr const char* kTypes[] = {"counter", "gauge", "histogram", "summary", "gauge"};
    Description one{std::string(metric->name),
                    kTypes[static_cast<size_t>(metric->kind)],
                    HelpWithStability(metric->name, "Help."),
                    {},
                    BucketsOf(*metric)};
    for (std::string_view rest = metric->labels; !rest.empty();) {
      const size_t comma = std::min(rest.find(','), rest.size());
      one.labels.emplace(one.labels.begin(), rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    if (metric->path.empty()) served.push_back(std::move(one));
  }
  served.push_back({"keelson_own", "gauge", "", {}, {}});
  EXPECT_THAT(Differences({Component::kProxy}, served), IsEmpty());

  auto find = [&](std::string_view name) {
    return std::find_if(served.begin(), served.end(),
                        [&](const Description& one) { return one.name == name; });
  };
  find("kubeproxy_proxy_healthz_total")->type = "gauge";
  find("kubeproxy_proxy_livez_total")->labels = {"status"};
  find("workqueue_work_duration_seconds")->bounds.pop_back();
  find("workqueue_depth")->help = "[ALPHA] Depth.";
  served.erase(find("workqueue_adds_total"));
  served.erase(find("workqueue_retries_total"));
  served.push_back({"kubeproxy_invented_total", "counter", "", {}, {}});
  served.push_back({"kubeproxy_told_total", "counter", "", {}, {}});
  constexpr Exception kAbsent[] = {{"workqueue_retries_total", "reason"},
                                   {"workqueue_longest_", "served after all"},
                                   {"kubelet_node_name", "of another component"}};
  constexpr Exception kExtra[] = {{"kubeproxy_told_total", "reason"}};
  EXPECT_THAT(
      Differences({Component::kProxy, "", kAbsent, kExtra}, served),
      ElementsAre(
          "kubelet_node_name: listed as absent, and Kubernetes does not have it here",
          "kubeproxy_invented_total: Kubernetes has no such metric",
          "kubeproxy_proxy_healthz_total: gauge is a counter",
          "kubeproxy_proxy_livez_total: labels {status} are {code}",
          HasSubstr("workqueue_adds_total: missing"),
          HasSubstr("workqueue_depth: help \"[ALPHA] Depth.\" has no [BETA]"),
          "workqueue_longest_running_processor_seconds: served, and listed as absent: served after all",
          HasSubstr("workqueue_work_duration_seconds: buckets 1e-08 1e-07")));
}

}  // namespace
}  // namespace keelson::metrics

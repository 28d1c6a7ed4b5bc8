// Compares the metrics with those of kube-controller-manager 1.36.
#include "controlplane/controllers/common/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lib/metrics/conformance.h"

namespace keelson::controllers {
namespace {

constexpr char kElsewhere[] = "every component's, held to the table where it is made";
constexpr char kNotSkipped[] =
    "a sync that comes too early finds its own writes in memory, and is not skipped";
constexpr metrics::Exception kAbsent[] = {
    {"clustertrustbundle_publisher_", "there is no publisher of cluster trust bundles"},
    {"daemonset_controller_stale_sync_skips_total", kNotSkipped},
    {"device_taint_eviction_controller_", "there is no such controller"},
    {"disabled_metrics_total", kElsewhere},
    {"garbagecollector_controller_resources_sync_error_total", "the kinds are known, none are discovered"},
    {"hidden_metrics_total", kElsewhere},
    {"informer_processing_latency_seconds", kElsewhere},
    {"informer_queued_items", kElsewhere},
    {"kubernetes_build_info", kElsewhere},
    {"kubernetes_feature_enabled", kElsewhere},
    {"leader_election_", kElsewhere},
    {"node_collector_update_all_nodes_health_duration_seconds", "nodes are looked at one by one"},
    {"registered_metrics_total", kElsewhere},
    {"replicaset_controller_stale_sync_skips_total", kNotSkipped},
    {"rest_client_", kElsewhere},
    {"selinux_warning_controller_selinux_volume_conflict", "there is no such controller"},
    {"version_info", kElsewhere},
    {"volume_operation_", "volumes are made and deleted by their drivers"},
    {"workqueue_", kElsewhere},
};

// For the next Kubernetes release: update the table in lib/base, then the differences below.
TEST(ControllerMetrics, AreThoseOfKubernetes) {
  TheMetrics();
  std::set<std::string_view> names;
  for (const metrics::KubernetesMetric* one : metrics::MetricsOf(metrics::Component::kControllers)) {
    names.insert(one->name);
  }
  std::vector<metrics::Description> own;
  for (metrics::Description& one : metrics::Describe()) {
    const bool elsewhere = std::any_of(std::begin(kAbsent), std::end(kAbsent), [&](const auto& exception) {
      return exception.reason == kElsewhere && one.name.starts_with(exception.name);
    });
    if (names.count(one.name) && !elsewhere) own.push_back(std::move(one));
  }
  EXPECT_THAT(metrics::Differences({metrics::Component::kControllers, "", kAbsent}, own), testing::IsEmpty());
}

}  // namespace
}  // namespace keelson::controllers

// The scheduler's metrics are those of kube-scheduler 1.36.
#include "controlplane/scheduler/framework/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/scheduler/queue/queue.h"
#include "controlplane/scheduler/testing/objects.h"
#include "lib/metrics/conformance.h"

namespace keelson::scheduler {
namespace {

using testing::Info;
using testing::MakePod;

constexpr char kElsewhere[] = "every component's, held to the table where it is made";
constexpr metrics::Exception kAbsent[] = {
    {"disabled_metrics_total", kElsewhere},
    {"hidden_metrics_total", kElsewhere},
    {"informer_processing_latency_seconds", kElsewhere},
    {"informer_queued_items", kElsewhere},
    {"kube_pod_resource_limit", "on a page of its own, /metrics/resources (pod_resources_test.cc)"},
    {"kube_pod_resource_request", "on a page of its own, /metrics/resources (pod_resources_test.cc)"},
    {"kubernetes_build_info", kElsewhere},
    {"kubernetes_feature_enabled", kElsewhere},
    {"leader_election_", kElsewhere},
    {"registered_metrics_total", kElsewhere},
    {"rest_client_", kElsewhere},
    {"running_managed_controllers", kElsewhere},
    {"scheduler_async_api_call_execution_",
     "bindings and statuses go out on threads, there is no such queue"},
    {"scheduler_batch_", "pods of one shape share what plugins remember of them, there are no batches"},
    {"scheduler_get_node_hint_duration_seconds", "there are no batches"},
    {"scheduler_goroutines", "the number of threads is fixed"},
    {"scheduler_pending_async_api_calls", "bindings and statuses go out on threads, there is no such queue"},
    {"scheduler_plugin_evaluation_total", "what a plugin says of a shape and a node is remembered"},
    {"scheduler_plugin_execution_duration_seconds", "a plugin takes less time than a clock"},
    {"scheduler_podgroup_", "there are no pod groups"},
    {"scheduler_preemption_goroutines_", "evictions share their threads with bindings"},
    {"scheduler_queueing_hint_execution_duration_seconds", "a hint takes less time than a clock"},
    {"scheduler_resourceclaim_creates_total", "there is no DynamicResources plugin"},
    {"scheduler_store_schedule_results_duration_seconds", "there are no batches"},
    {"scheduler_volume_binder_cache_requests_total", "claims and volumes are not assumed in a cache"},
    {"scheduler_volume_scheduling_stage_error_total", "VolumeBinding's errors count as others do"},
    {"version_info", kElsewhere},
    {"workqueue_", kElsewhere},
};

// To do with Kubernetes' next release: replace the table of lib/base, and mend what this says.
TEST(SchedulerMetrics, AreThoseOfKubernetes) {
  TheMetrics();
  std::vector<metrics::Description> own;
  for (metrics::Description& one : metrics::Describe()) {
    if (one.name.starts_with("scheduler_")) own.push_back(std::move(one));
  }
  EXPECT_THAT(metrics::Differences({metrics::Component::kScheduler, "", kAbsent}, own), ::testing::IsEmpty());
}

double Pending(const char* queue) { return TheMetrics().pending.With({queue}).Get(); }
double Incoming(const char* queue, const char* event) {
  return TheMetrics().incoming.With({queue, event}).Get();
}
double RuledOut(const char* plugin) {
  return TheMetrics().unschedulable.With({plugin, "default-scheduler"}).Get();
}

TEST(SchedulerMetrics, FollowThePodsInTheQueue) {
  Vocabulary words;
  FakeClock clock;
  SchedulingQueue queue(clock, QueueOptions(),
                        {[](const auto&, const auto&, const auto&) { return true; }, nullptr, nullptr});
  const PodPtr pod = Info(MakePod("p"), words), other = Info(MakePod("q"), words);
  const double added = Incoming("active", "UnscheduledPodAdd"),
               failed = Incoming("unschedulable", "ScheduleAttemptFailure"),
               woken = Incoming("backoff", "NodeAdd"), over = Incoming("active", "BackoffComplete"),
               errors = Incoming("backoff", "ScheduleAttemptFailure"), out = RuledOut("NodeResourcesFit");
  queue.AddOrUpdate(pod, false);
  queue.AddOrUpdate(other, false);
  EXPECT_EQ(Pending("active"), 2);
  EXPECT_EQ(Incoming("active", "UnscheduledPodAdd"), added + 2);
  queue.Pop({});
  EXPECT_EQ(Pending("active"), 1);
  queue.AddUnschedulablePodIfNotPresent(pod, {"NodeResourcesFit"});
  EXPECT_EQ(Pending("unschedulable"), 1);
  EXPECT_EQ(RuledOut("NodeResourcesFit"), out + 1);
  EXPECT_EQ(Incoming("unschedulable", "ScheduleAttemptFailure"), failed + 1);
  queue.MoveAllToActiveOrBackoffQueue({ClusterEvent::Kind::kNodeAdd, nullptr, nullptr, nullptr, nullptr});
  EXPECT_EQ(Pending("unschedulable"), 0);
  EXPECT_EQ(Pending("backoff"), 1);
  EXPECT_EQ(Incoming("backoff", "NodeAdd"), woken + 1);
  EXPECT_EQ(RuledOut("NodeResourcesFit"), out + 1) << "it is not tried yet";
  clock.Advance(std::chrono::seconds(1));
  queue.Flush();
  EXPECT_EQ(Incoming("active", "BackoffComplete"), over + 1);
  EXPECT_EQ(Pending("active"), 2);
  EXPECT_EQ((*queue.Pop({}))->name, "q");
  queue.RetryAfterError(other);
  EXPECT_EQ(Incoming("backoff", "ScheduleAttemptFailure"), errors + 1);
  EXPECT_EQ((*queue.Pop({}))->name, "p");
  EXPECT_EQ(RuledOut("NodeResourcesFit"), out);
  queue.Delete(pod->key);
  queue.Delete(other->key);
  for (const char* name : {"active", "backoff", "unschedulable", "gated"}) {
    EXPECT_EQ(Pending(name), 0) << name;
  }
}

TEST(SchedulerMetrics, PodsThatAFlushHasHelpedAreKnown) {
  Vocabulary words;
  FakeClock clock;
  SchedulingQueue queue(clock, QueueOptions(),
                        {[](const auto&, const auto&, const auto&) { return false; }, nullptr, nullptr});
  const PodPtr pod = Info(MakePod("p"), words);
  queue.AddOrUpdate(pod, false);
  queue.Pop({});
  queue.AddUnschedulablePodIfNotPresent(pod, {"NodeResourcesFit"});
  clock.Advance(std::chrono::minutes(5));
  queue.Flush();
  queue.Pop({});
  const AttemptCounts attempts = queue.Done(pod->key);
  EXPECT_TRUE(attempts.was_flushed_from_unschedulable);
  EXPECT_EQ(attempts.attempts, 2);
  EXPECT_EQ(clock.SteadyNow() - attempts.initial_attempt_timestamp, std::chrono::minutes(5));
}

TEST(SchedulerMetrics, ExtensionPointsAreTimed) {
  const ExtensionPointTimes times("metrics-test");
  times.Observe(ExtensionPointTimes::kFilter, Status::Code::kUnschedulable, std::chrono::steady_clock::now());
  std::string text;
  TheMetrics().point_duration.Print(text);
  EXPECT_THAT(text, ::testing::HasSubstr("_count{extension_point=\"Filter\",status=\"Unschedulable\","
                                         "profile=\"metrics-test\"} 1\n"));
}

}  // namespace
}  // namespace keelson::scheduler

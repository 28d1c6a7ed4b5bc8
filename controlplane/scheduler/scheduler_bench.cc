// The pure cycle: pop, snapshot, filter, score, assume; no API server.
#include <benchmark/benchmark.h>

#include "controlplane/scheduler/algorithm/algorithm.h"
#include "controlplane/scheduler/cache/cache.h"
#include "controlplane/scheduler/config/profile.h"
#include "controlplane/scheduler/queue/queue.h"
#include "controlplane/scheduler/testing/objects.h"

namespace keelson::scheduler {
namespace {

struct Cluster {
  explicit Cluster(int nodes) {
    for (int i = 0; i < nodes; ++i) {
      corev1::Node node = testing::MakeNode("node-" + std::to_string(i), "32", "256Gi", "1000000");
      (*node.mutable_status()->mutable_allocatable())["cpu"].set_string("32000");
      (*node.mutable_status()->mutable_allocatable())["memory"].set_string("256Ti");
      auto& labels = *node.mutable_metadata()->mutable_labels();
      labels["kubernetes.io/hostname"] = node.metadata().name();
      labels["topology.kubernetes.io/zone"] = "zone-" + std::to_string(i % 3);
      cache.SetNode(std::make_shared<const NodeFacts>(node, words.resources));
    }
  }

  Vocabulary words;
  Reasons reasons;
  std::unique_ptr<Framework> framework = *MakeFramework(Profile(), FrameworkHandle{reasons, words});
  Cache cache;
  Snapshot snapshot{words};
  SchedulingQueue queue{Clock::Real(),
                        QueueOptions(),
                        {[](const auto&, const auto&, const auto&) { return false; }, nullptr, nullptr}};
  Algorithm algorithm{*framework, reasons, {.percentage_of_nodes_to_score = 0, .seed = 1}};
};

// `kinds` distinct pod shapes take turns: 1 is a big ReplicaSet; many leave nothing to remember.
void BM_Schedule(benchmark::State& state) {
  Cluster cluster(static_cast<int>(state.range(0)));
  const int kinds = static_cast<int>(state.range(1));
  std::stop_source stop;
  int64_t made = 0;
  std::vector<PodPtr> pods;
  for (auto _ : state) {
    state.PauseTiming();
    if (made % 1000 == 0) {
      for (int i = 0; i < 1000; ++i) {
        corev1::Pod pod = testing::MakePod("pod-" + std::to_string(made + i),
                                           std::to_string(100 + (made + i) % kinds) + "m", "64Mi");
        (*pod.mutable_spec()->mutable_node_selector())["topology.kubernetes.io/zone"] = "zone-1";
        cluster.queue.AddOrUpdate(testing::Info(pod, cluster.words), false);
      }
    }
    state.ResumeTiming();
    const PodPtr pod = *cluster.queue.Pop(stop.get_token());
    cluster.cache.UpdateSnapshot(cluster.snapshot);
    CycleState cycle;
    const ScheduleResult result = cluster.algorithm.SchedulePod(cycle, pod, cluster.snapshot);
    if (result.suggested_host.empty() || !cluster.cache.AssumePod(pod, result.suggested_host)) {
      state.SkipWithError("no node");
      break;
    }
    cluster.queue.Done(pod->key);
    ++made;
  }
  state.SetItemsProcessed(made);
}
BENCHMARK(BM_Schedule)->ArgNames({"nodes", "kinds"})->Args({1000, 1})->Args({5000, 1})->Args({5000, 1000});

// Making the projection of a pod, as each event does.
void BM_PodInfo(benchmark::State& state) {
  Vocabulary words;
  const corev1::Pod pod = testing::MakePod("p", "100m", "64Mi");
  for (auto _ : state) benchmark::DoNotOptimize(PodInfo(pod, words));
}
BENCHMARK(BM_PodInfo);

}  // namespace
}  // namespace keelson::scheduler

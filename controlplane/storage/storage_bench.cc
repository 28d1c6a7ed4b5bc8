// LIST of 10 000 pods from the cache, and one change told to many watchers.
#include <benchmark/benchmark.h>

#include "controlplane/storage/watch_cache.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::storage {
namespace {

const api::ResourceInfo& Pods() { return api::ResourceOf<corev1::Pod>(); }

ObjectPtr MakePod(int i, int64_t revision) {
  corev1::Pod pod;
  pod.mutable_metadata()->set_namespace_("default");
  pod.mutable_metadata()->set_name(fmt::format("pod-{:05}", i));
  pod.mutable_metadata()->set_uid(api::NewUid());
  (*pod.mutable_metadata()->mutable_labels())["app"] = i % 2 == 0 ? "web" : "db";
  pod.mutable_spec()->set_node_name(fmt::format("node-{}", i % 100));
  for (int c = 0; c < 3; ++c) {
    auto* container = pod.mutable_spec()->add_containers();
    container->set_name(fmt::format("c{}", c));
    container->set_image("registry.example.com/team/app:1.2.3");
    for (int e = 0; e < 12; ++e) {
      auto* variable = container->add_env();
      variable->set_name(fmt::format("VARIABLE_{}", e));
      variable->set_value("some value of usual length");
    }
  }
  pod.mutable_status()->set_phase("Running");
  return Object::FromMessage(Pods(), pod, revision);
}

std::unique_ptr<WatchCache> FullCache() {
  static WorkerPool pool(1);
  auto cache = std::make_unique<WatchCache>(Pods(), WatchCache::Limits{2048, 4 << 20}, Clock::Real(), pool);
  std::vector<ObjectPtr> pods;
  for (int i = 0; i < 10000; ++i) pods.push_back(MakePod(i, i + 1));
  cache->Replace(std::move(pods), 10000);
  return cache;
}

void ListJson(benchmark::State& state) {
  auto cache = FullCache();
  size_t bytes = 0;
  for (auto _ : state) {
    std::string body;
    for (const ObjectPtr& pod : cache->List("", "", {}, 0, 10000).items) (body += *pod->Json()) += ',';
    bytes += body.size();
    benchmark::DoNotOptimize(body);
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK(ListJson)->Unit(benchmark::kMillisecond);

void ListSelected(benchmark::State& state) {
  auto cache = FullCache();
  Predicate predicate{*api::LabelSelector::Parse("app=web"),
                      *api::FieldSelector::Parse("spec.nodeName=node-2")};
  for (auto _ : state) benchmark::DoNotOptimize(cache->List("", "", predicate, 0, 10000).items.size());
}
BENCHMARK(ListSelected)->Unit(benchmark::kMillisecond);

class Counter : public WatchSink {
 public:
  bool OnEvent(const EventPtr& event) override {
    bytes += event->Frame(Format::kJson)->size();
    return true;
  }
  void OnEnd(const Error&) override {}
  size_t bytes = 0;
};

void FanOut(benchmark::State& state) {
  auto cache = FullCache();
  auto sink = std::make_shared<Counter>();
  for (int i = 0; i < state.range(0); ++i) {
    cache->AddWatcher(std::make_shared<CacheWatcher>(Pods(), WatchRequest{}, sink), 10000, false, 10000);
  }
  int64_t revision = 10000;
  for (auto _ : state) {
    ++revision;
    ObjectPtr pod = MakePod(7, revision);
    cache->Apply({{pod->key(), pod}}, revision);
    cache->AwaitDispatch();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(FanOut)->Arg(1)->Arg(500)->Arg(1000);

}  // namespace
}  // namespace keelson::storage

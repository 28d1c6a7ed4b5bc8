// The cost of policies on one node: planning, and writing to the kernel of a separate network namespace.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

#include "cni/policy/plan.h"
#include "lib/linux/netns.h"
#include "lib/nft/diff.h"
#include "lib/nft/kernel.h"

namespace keelson::cni::policy {
namespace {

constexpr int kPerNamespace = 10;

Selector Is(const char* key, const std::string& value) {
  return Selector{{{.key = key, .op = Selector::Op::kIn, .values = {value}}}};
}

Pod PodNumber(int number) {
  std::string n = std::to_string(number);
  Pod pod{.ns = "ns-" + std::to_string(number / kPerNamespace), .name = "pod-" + n, .uid = "uid-" + n};
  pod.node = "n1";
  pod.labels = {{"app", "app-" + std::to_string(number % kPerNamespace)},
                {"team", "team-" + std::to_string(number % 7)}};
  pod.ports = {{"web", 6, 8080}};
  pod.addresses = {IpAddress::Parse("10.128.0.2")->Plus(number)};
  return pod;
}

// Each policy selects one app of a namespace, and lets in another app and a team of the whole cluster.
Policy PolicyNumber(int number) {
  int app = number % kPerNamespace;
  Policy policy{.ns = "ns-" + std::to_string(number / kPerNamespace),
                .name = "policy-" + std::to_string(number)};
  policy.pods = Is("app", "app-" + std::to_string(app));
  policy.isolates_ingress = true;
  Rule near{.peers = {{.pods = Is("app", "app-" + std::to_string((app + 1) % kPerNamespace))}},
            .ports = {{.protocol = 6, .name = "web"}}};
  Rule far{.peers = {{.pods = Is("team", "team-" + std::to_string(number % 7)), .namespaces = Selector()}},
           .ports = {{.protocol = 6, .first = 9090, .last = 9099}}};
  policy.ingress = {near, far};
  return policy;
}

struct World {
  Cluster cluster;
  Attachments attachments;
  Node node{"n1", {*IpPrefix::Parse("10.128.0.0/16")}};

  explicit World(int count) {
    for (int i = 0; i < count; ++i) {
      Add(i);
      Policy policy = PolicyNumber(i);
      cluster.policies[policy.ns + "/" + policy.name] = policy;
    }
  }
  void Add(int number) {
    Pod pod = PodNumber(number);
    cluster.namespaces[pod.ns];
    attachments[pod.addresses[0]] = {.uid = pod.uid, .epoch = static_cast<uint32_t>(number + 1)};
    cluster.pods[pod.ns + "/" + pod.name] = pod;
  }
  void Remove(int number) {
    Pod pod = PodNumber(number);
    attachments.erase(pod.addresses[0]);
    cluster.pods.erase(pod.ns + "/" + pod.name);
  }
};

void PlanPolicies(benchmark::State& state) {
  World world(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(MakePlan(world.cluster, world.node, world.attachments));
}

// A table is made with all policies.
void PoliciesAppear(benchmark::State& state) {
  World world(static_cast<int>(state.range(0)));
  size_t elements = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto netns = linux::NetNs::Make();
    if (!netns) return state.SkipWithError(netns.error().message().c_str());
    auto kernel = nft::OpenKernel(*netns);
    if (!kernel) return state.SkipWithError(kernel.error().message().c_str());
    state.ResumeTiming();
    Plan plan = MakePlan(world.cluster, world.node, world.attachments);
    Result<> applied = (*kernel)->Apply(nft::Diff(std::nullopt, plan.rules));
    if (!applied) return state.SkipWithError(applied.error().message().c_str());
    state.PauseTiming();
    elements = 0;
    for (const auto& [name, contents] : plan.rules.sets) elements += contents.elements.size();
    kernel->reset();
    state.ResumeTiming();
  }
  state.counters["elements"] = static_cast<double>(elements);
}

// A pod comes or goes, from the event to the end of the transaction.
void OnePodChanges(benchmark::State& state) {
  int count = static_cast<int>(state.range(0));
  World world(count);
  auto netns = linux::NetNs::Make();
  if (!netns) return state.SkipWithError(netns.error().message().c_str());
  auto kernel = nft::OpenKernel(*netns);
  if (!kernel) return state.SkipWithError(kernel.error().message().c_str());
  nft::Ruleset found = MakePlan(world.cluster, world.node, world.attachments).rules;
  if (Result<> made = (*kernel)->Apply(nft::Diff(std::nullopt, found)); !made) {
    return state.SkipWithError(made.error().message().c_str());
  }
  std::vector<double> times;
  bool there = false;
  for (auto _ : state) {
    auto begin = std::chrono::steady_clock::now();
    there ? world.Remove(count) : world.Add(count);
    there = !there;
    Plan plan = MakePlan(world.cluster, world.node, world.attachments);
    Result<> applied = (*kernel)->Apply(nft::Diff(found, plan.rules));
    if (!applied) return state.SkipWithError(applied.error().message().c_str());
    found = std::move(plan.rules);
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  if (!times.empty()) state.counters["p99_ms"] = times[times.size() * 99 / 100];
}

BENCHMARK(PlanPolicies)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);
BENCHMARK(PoliciesAppear)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(OnePodChanges)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace keelson::cni::policy

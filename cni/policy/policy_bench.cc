// The cost of policies on one node: planning, and writing to the kernel of a separate network namespace.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>

#include "cni/policy/incremental.h"
#include "cni/policy/plan.h"
#include "cni/policy/testing/bench_world.h"
#include "lib/dataplane/policy_sets.h"
#include "lib/linux/netns.h"
#include "lib/nft/diff.h"
#include "lib/nft/kernel.h"

namespace keelson::cni::policy {
namespace {

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

// A kernel in a network namespace of its own.
struct Fresh {
  std::optional<linux::NetNs> netns;
  std::unique_ptr<nft::Kernel> kernel;

  static Result<Fresh> Make() {
    Fresh out;
    KEELSON_ASSIGN_OR_RETURN(out.netns, linux::NetNs::Make());
    KEELSON_ASSIGN_OR_RETURN(out.kernel, nft::OpenKernel(*out.netns));
    return out;
  }
};

// Times `step`, which fails with an error, and reports the 99th percentile.
template <typename Step>
void Measure(benchmark::State& state, Step step) {
  std::vector<double> times;
  for (auto _ : state) {
    auto begin = std::chrono::steady_clock::now();
    if (Result<> done = step(); !done) return state.SkipWithError(done.error().message().c_str());
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    times.push_back(took.count());
  }
  std::sort(times.begin(), times.end());
  if (!times.empty()) state.counters["p99_ms"] = times[times.size() * 99 / 100];
}

// The incremental plan of the world, with a kernel that has its table.
struct Followed {
  World world;
  Incremental plan;
  std::optional<Fresh> fresh;

  explicit Followed(int count) : world(count) {
    for (const auto& [name, labels] : world.cluster.namespaces) plan.PutNamespace(name, labels);
    for (const auto& [key, pod] : world.cluster.pods) plan.PutPod(key, pod);
    for (const auto& [key, policy] : world.cluster.policies) plan.PutPolicy(key, policy);
  }
  Result<> Load() {
    KEELSON_ASSIGN_OR_RETURN(fresh, Fresh::Make());
    plan.SetNode(world.node);
    plan.SetAttachments(world.attachments);
    plan.Forget();
    return fresh->kernel->Apply(
        nft::Diff(std::nullopt, MakePlan(plan.cluster(), world.node, plan.attachments()).rules));
  }
  Result<> Write() { return fresh->kernel->Apply(plan.Take().transaction); }
};

// A pod comes or goes, from the event to the end of the transaction; on another node, or on this one.
void OnePodChanges(benchmark::State& state) {
  int count = static_cast<int>(state.range(0));
  bool here = state.range(1) != 0, there = false;
  Followed followed(count);
  if (Result<> loaded = followed.Load(); !loaded) {
    return state.SkipWithError(loaded.error().message().c_str());
  }
  Pod pod = PodNumber(count);
  pod.ns = "ns-0";
  if (!here) pod.node = "n2";
  Attachments with = followed.world.attachments;
  with[pod.addresses[0]] = {.uid = pod.uid, .epoch = 1};
  Measure(state, [&]() -> Result<> {
    if (there) {
      followed.plan.ErasePod("ns-0/" + pod.name);
    } else {
      followed.plan.PutPod("ns-0/" + pod.name, pod);
    }
    there = !there;
    if (here) followed.plan.SetAttachments(there ? with : followed.world.attachments);
    return followed.Write();
  });
}

// A policy comes or goes.
void OnePolicyChanges(benchmark::State& state) {
  Followed followed(static_cast<int>(state.range(0)));
  if (Result<> loaded = followed.Load(); !loaded) {
    return state.SkipWithError(loaded.error().message().c_str());
  }
  Policy policy = PolicyNumber(0);
  policy.name = "more";
  policy.ingress[0].ports = {{.protocol = 17, .first = 53, .last = 53}};
  bool there = false;
  Measure(state, [&]() -> Result<> {
    if (there) {
      followed.plan.ErasePolicy("ns-0/more");
    } else {
      followed.plan.PutPolicy("ns-0/more", policy);
    }
    there = !there;
    return followed.Write();
  });
}

// As OnePodChanges, but all is planned again and compared: what the agent does each minute.
void AllIsCompared(benchmark::State& state) {
  Followed followed(static_cast<int>(state.range(0)));
  if (Result<> loaded = followed.Load(); !loaded) {
    return state.SkipWithError(loaded.error().message().c_str());
  }
  Measure(state, [&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(auto found, followed.fresh->kernel->Read(dataplane::PolicyTable()));
    Plan plan = MakePlan(followed.plan.cluster(), followed.world.node, followed.plan.attachments());
    return followed.fresh->kernel->Apply(nft::Diff(found, plan.rules));
  });
}

// Chain a policy: the table is made, and made again for a pod more or less, as iptables-restore does.
void ChainPerPolicyChanges(benchmark::State& state) {
  World world(static_cast<int>(state.range(0)));
  auto fresh = Fresh::Make();
  if (!fresh) return state.SkipWithError(fresh.error().message().c_str());
  bool made = false;
  Measure(state, [&]() -> Result<> {
    nft::Ruleset wanted = ChainPerPolicy(world);
    nft::Transaction t(wanted.table);
    if (made) t.DeleteTable();
    made = true;
    t.Append(nft::Diff(std::nullopt, wanted));
    return fresh->kernel->Apply(t);
  });
}

size_t ResidentBytes() {
  size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// What the plan of a node takes that has 100 pods of its own, and peers elsewhere.
void Memory(benchmark::State& state) {
  int peers = static_cast<int>(state.range(0));
  double bytes = 0;
  for (auto _ : state) {
    ::malloc_trim(0);
    const size_t before = ResidentBytes();
    Incremental plan;
    Attachments attachments;
    for (int i = 0; i < peers; ++i) {
      Pod pod = PodNumber(i);
      if (i < 100) {
        attachments[pod.addresses[0]] = {.uid = pod.uid, .epoch = 1};
      } else {
        pod.node = "n2";
      }
      plan.PutNamespace(pod.ns, {});
      const std::string key = pod.ns + "/" + pod.name;
      plan.PutPod(key, std::move(pod));
    }
    for (int i = 0; i < 100; ++i) {
      Policy policy = PolicyNumber(i);
      plan.PutPolicy(policy.ns + "/" + policy.name, policy);
    }
    plan.SetNode({"n1", {*IpPrefix::Parse("10.128.0.0/24")}});
    plan.SetAttachments(attachments);
    plan.Forget();
    bytes = static_cast<double>(ResidentBytes() - before);
  }
  state.counters["MiB"] = bytes / (1 << 20);
}

BENCHMARK(PlanPolicies)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);
BENCHMARK(PoliciesAppear)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(OnePodChanges)->ArgsProduct({{100, 1000}, {0, 1}})->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(OnePolicyChanges)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(AllIsCompared)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(ChainPerPolicyChanges)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(Memory)->Arg(1000)->Arg(10'000)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace keelson::cni::policy

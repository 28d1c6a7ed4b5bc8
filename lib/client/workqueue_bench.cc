#include <benchmark/benchmark.h>

#include <string>
#include <thread>
#include <vector>

#include "lib/client/workqueue.h"

namespace keelson::client {
namespace {

std::vector<std::string> Keys(size_t count) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < count; ++i) {
    keys.push_back("namespace-" + std::to_string(i % 50) + "/pod-" + std::to_string(i));
  }
  return keys;
}

// One key through the whole queue (Add, Get, Done) while `range` distinct keys wait.
void BM_AddGetDone(benchmark::State& state) {
  WorkQueue queue("bench");
  const std::vector<std::string> keys = Keys(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    for (const std::string& key : keys) queue.Add(key);
    for (size_t i = 0; i < keys.size(); ++i) queue.Done(*queue.Get({}));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_AddGetDone)->Arg(1)->Arg(1000)->Arg(100000);

// An informer adds the same keys again and again while workers are behind.
void BM_AddDuplicates(benchmark::State& state) {
  WorkQueue queue("bench");
  const std::vector<std::string> keys = Keys(1000);
  for (auto _ : state) {
    for (const std::string& key : keys) queue.Add(key);
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(BM_AddDuplicates);

// One producer and one consumer hand keys over between threads.
void BM_HandOver(benchmark::State& state) {
  WorkQueue queue("bench");
  const std::vector<std::string> keys = Keys(1000);
  std::jthread consumer([&](std::stop_token stop) {
    while (auto key = queue.Get(stop)) queue.Done(*key);
  });
  for (auto _ : state) {
    for (const std::string& key : keys) queue.Add(key);
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(BM_HandOver)->UseRealTime();

}  // namespace
}  // namespace keelson::client

#include "kubelet/pod/start_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace keelson::kubelet {
namespace {

using Kind = StartGate::Kind;

TEST(StartGateTest, NeverMoreThanItsNumber) {
  StartGate gate(3, std::chrono::hours(1));
  std::atomic<int> inside = 0, most = 0, runs = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&, kind = i % 2 ? Kind::kContainer : Kind::kSandbox] {
      for (int round = 0; round < 50; ++round) {
        StartGate::Pass pass(gate, kind);
        const int now = ++inside;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        ++runs;
        --inside;
      }
    });
  threads.clear();
  EXPECT_EQ(runs, 16 * 50);
  EXPECT_LE(most, 3);
}

TEST(StartGateTest, ContainersGoFirst) {
  StartGate gate(1, std::chrono::hours(1));
  auto first = std::make_unique<StartGate::Pass>(gate, Kind::kSandbox);
  Mutex mutex;
  std::string order;
  auto enter = [&](Kind kind, char name) {
    StartGate::Pass pass(gate, kind);
    MutexLock lock(mutex);
    order += name;
  };
  std::jthread sandbox([&] { enter(Kind::kSandbox, 's'); });
  gate.AwaitWaiting(1);
  std::jthread container([&] { enter(Kind::kContainer, 'c'); });
  gate.AwaitWaiting(2);
  first.reset();
  sandbox.join();
  container.join();
  EXPECT_EQ(order, "cs");
}

TEST(StartGateTest, WhoTakesLongHoldsNobodyUp) {
  StartGate gate(1, std::chrono::milliseconds(10));
  StartGate::Pass slow(gate, Kind::kSandbox);
  StartGate::Pass next(gate, Kind::kSandbox);  // would wait for ever
}

}  // namespace
}  // namespace keelson::kubelet

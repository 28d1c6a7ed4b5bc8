#include "kubelet/pod/container_start_limiter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace keelson::kubelet {
namespace {

using Kind = ContainerStartLimiter::Kind;

TEST(ContainerStartLimiterTest, NeverMoreThanItsNumber) {
  ContainerStartLimiter limiter(3, std::chrono::hours(1));
  std::atomic<int> inside = 0, most = 0, runs = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, kind = i % 2 ? Kind::kContainer : Kind::kSandbox] {
      for (int round = 0; round < 50; ++round) {
        ContainerStartLimiter::Slot slot(limiter, kind);
        const int now = ++inside;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        ++runs;
        --inside;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(runs, 16 * 50);
  EXPECT_LE(most, 3);
}

TEST(ContainerStartLimiterTest, ContainersGoFirst) {
  ContainerStartLimiter limiter(1, std::chrono::hours(1));
  auto first = std::make_unique<ContainerStartLimiter::Slot>(limiter, Kind::kSandbox);
  Mutex mutex;
  std::string order;
  auto enter = [&](Kind kind, char name) {
    ContainerStartLimiter::Slot slot(limiter, kind);
    MutexLock lock(mutex);
    order += name;
  };
  std::jthread sandbox([&] { enter(Kind::kSandbox, 's'); });
  limiter.AwaitWaiting(1);
  std::jthread container([&] { enter(Kind::kContainer, 'c'); });
  limiter.AwaitWaiting(2);
  first.reset();
  sandbox.join();
  container.join();
  EXPECT_EQ(order, "cs");
}

TEST(ContainerStartLimiterTest, WhoTakesLongHoldsNobodyUp) {
  ContainerStartLimiter limiter(1, std::chrono::milliseconds(10));
  ContainerStartLimiter::Slot slow(limiter, Kind::kSandbox);
  ContainerStartLimiter::Slot next(limiter, Kind::kSandbox);  // would wait without end
}

}  // namespace
}  // namespace keelson::kubelet

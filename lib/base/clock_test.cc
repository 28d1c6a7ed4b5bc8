#include "lib/base/clock.h"

#include <thread>

#include <gtest/gtest.h>

namespace keelson {
namespace {

using std::chrono::seconds;

TEST(FakeClock, MovesOnlyByAdvance) {
  FakeClock clock;
  SteadyTime start = clock.SteadyNow();
  WallTime wall = clock.Now();
  clock.Advance(seconds(90));
  EXPECT_EQ(clock.SteadyNow() - start, seconds(90));
  EXPECT_EQ(clock.Now() - wall, seconds(90));
}

TEST(FakeClock, AdvanceWakesAWaiterThatLoopsOnItsDeadline) {
  FakeClock clock;
  Mutex mutex;
  CondVar cv;
  SteadyTime deadline = clock.SteadyNow() + seconds(10);
  SteadyTime woke{};
  std::thread waiter([&] {
    MutexLock lock(mutex);
    while (clock.SteadyNow() < deadline) clock.WaitUntil(mutex, cv, deadline);
    woke = clock.SteadyNow();
  });
  clock.AwaitWaiters(1);
  clock.Advance(seconds(4));
  clock.AwaitWaiters(1);
  clock.Advance(seconds(6));
  waiter.join();
  EXPECT_EQ(woke, deadline);
}

}  // namespace
}  // namespace keelson

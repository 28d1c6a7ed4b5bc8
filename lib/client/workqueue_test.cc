#include "lib/client/workqueue.h"

#include <thread>

#include <gtest/gtest.h>

namespace keelson::client {
namespace {

using namespace std::chrono_literals;

class WorkQueueTest : public ::testing::Test {
 protected:
  std::string Next() {
    auto key = queue_.Get(stop_.get_token());
    return key ? *key : "";
  }
  FakeClock clock_;
  WorkQueue queue_{"test", clock_, {.base = 5ms, .max = 1000s}};
  std::stop_source stop_;
};

TEST_F(WorkQueueTest, HandsOutInOrderAndOnce) {
  for (const char* key : {"a", "b", "a", "c", "b"}) queue_.Add(key);
  EXPECT_EQ(queue_.size(), 3u);
  std::string order = Next();
  order += Next();
  order += Next();
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(WorkQueueTest, KeyInWorkComesBackAfterDone) {
  queue_.Add("a");
  EXPECT_EQ(Next(), "a");
  queue_.Add("a");
  queue_.Add("a");
  EXPECT_EQ(queue_.size(), 0u);
  queue_.Done("a");
  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_EQ(Next(), "a");
  queue_.Done("a");
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(WorkQueueTest, EarliestOfSeveralDelaysWins) {
  queue_.AddAfter("a", 10s);
  queue_.AddAfter("a", 3s);
  queue_.AddAfter("a", 7s);
  queue_.AddAfter("b", 5s);
  clock_.Advance(2s);
  EXPECT_EQ(queue_.size(), 0u);
  clock_.Advance(1s);
  EXPECT_EQ(Next(), "a");
  queue_.Done("a");
  clock_.Advance(10s);
  EXPECT_EQ(Next(), "b");
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(WorkQueueTest, WaitingWorkerIsWokenByTime) {
  std::string got;
  std::jthread worker([&] { got = Next(); });
  clock_.AwaitWaiters(1);
  queue_.AddAfter("late", 1s);
  // Whether or not the worker has seen the new deadline yet, its time is over after this.
  clock_.Advance(1s);
  worker.join();
  EXPECT_EQ(got, "late");
}

TEST_F(WorkQueueTest, FailuresDoubleTheDelayUpToTheMaximum) {
  std::chrono::nanoseconds expected = 5ms;
  for (int failure = 0; failure < 20; ++failure) {
    EXPECT_EQ(queue_.Failures("a"), failure);
    queue_.AddRateLimited("a");
    auto delay = std::min<std::chrono::nanoseconds>(expected, 1000s);
    clock_.Advance(delay - 1ns);
    EXPECT_EQ(queue_.size(), 0u) << failure;
    clock_.Advance(1ns);
    ASSERT_EQ(queue_.size(), 1u) << failure;
    EXPECT_EQ(Next(), "a");
    queue_.Done("a");
    expected *= 2;
  }
  queue_.Forget("a");
  EXPECT_EQ(queue_.Failures("a"), 0);
}

TEST_F(WorkQueueTest, StopEndsWaiters) {
  std::jthread worker([&] { EXPECT_EQ(queue_.Get(stop_.get_token()), std::nullopt); });
  clock_.AwaitWaiters(1);
  stop_.request_stop();
}

TEST_F(WorkQueueTest, WorkersRetryFailuresAndRequeue) {
  std::vector<std::string> log;
  Mutex mutex;
  CondVar changed;
  auto reconcile = [&](const std::string& key, std::stop_token) -> Result<Requeue> {
    MutexLock lock(mutex);
    log.push_back(key);
    changed.notify_all();
    if (log.size() == 1) return Error(Code::kUnavailable, "not now");
    if (log.size() == 2) return Requeue{1s};
    return Requeue{};
  };
  queue_.Add("a");
  std::jthread workers([&] { RunWorkers(queue_, 2, stop_.get_token(), reconcile); });
  auto await = [&](size_t count) {
    for (;;) {
      {
        MutexLock lock(mutex);
        if (log.size() >= count) return;
      }
      clock_.AwaitWaiters(1);
      clock_.Advance(100ms);
    }
  };
  await(3);
  stop_.request_stop();
  workers.join();
  EXPECT_EQ(log, (std::vector<std::string>{"a", "a", "a"}));
  EXPECT_EQ(queue_.Failures("a"), 0);
}

}  // namespace
}  // namespace keelson::client

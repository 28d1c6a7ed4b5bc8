#include "lib/client/workqueue.h"

#include <thread>

#include <gtest/gtest.h>

#include "lib/metrics/metrics.h"

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

TEST(WorkQueueMetricsTest, TellWhatClientGoTells) {
  // Counters live as long as the process, which may run this test more than once.
  static int times = 0;
  const std::string name = "told" + std::to_string(times++);
  FakeClock clock;
  WorkQueue queue(name, clock);
  std::stop_source stop;
  auto line = [&](const std::string& family) {
    const std::string text = metrics::Print(), start = "\n" + family + "{name=\"" + name + "\"} ";
    const size_t at = text.find(start);
    if (at == std::string::npos) return std::string("none");
    const size_t value = at + start.size();
    return text.substr(value, text.find('\n', value) - value);
  };
  for (const char* key : {"a", "b", "a"}) queue.Add(key);
  clock.Advance(2s);
  EXPECT_EQ(queue.Get(stop.get_token()), "a");
  queue.Add("a");
  clock.Advance(3s);
  EXPECT_EQ(line("workqueue_adds_total"), "3");
  EXPECT_EQ(line("workqueue_depth"), "2");
  EXPECT_EQ(line("workqueue_queue_duration_seconds_sum"), "2");
  EXPECT_EQ(line("workqueue_unfinished_work_seconds"), "3");
  EXPECT_EQ(queue.Get(stop.get_token()), "b");
  clock.Advance(1s);
  EXPECT_EQ(line("workqueue_unfinished_work_seconds"), "5");
  EXPECT_EQ(line("workqueue_longest_running_processor_seconds"), "4");
  queue.Done("a");
  queue.Done("b");
  queue.AddRateLimited("b");
  EXPECT_EQ(line("workqueue_work_duration_seconds_sum"), "5");
  EXPECT_EQ(line("workqueue_work_duration_seconds_count"), "2");
  EXPECT_EQ(line("workqueue_unfinished_work_seconds"), "0");
  EXPECT_EQ(line("workqueue_depth"), "1");
  EXPECT_EQ(line("workqueue_retries_total"), "1");
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
  // Whether or not the worker has seen the new deadline, its time has passed after this.
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

TEST_F(WorkQueueTest, AsManyWorkersAsMayRunAtOnce) {
  Mutex mutex;
  CondVar changed;
  int running = 0, most = 0, done = 0;
  auto reconcile = [&](const std::string&, std::stop_token) -> Result<Requeue> {
    MutexLock lock(mutex);
    most = std::max(most, ++running);
    changed.notify_all();
    while (most < 3) changed.wait(mutex);
    --running;
    ++done;
    changed.notify_all();
    return Requeue{};
  };
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) queue_.Add(key);
  std::jthread workers([&] { RunWorkers(queue_, 3, stop_.get_token(), reconcile); });
  {
    MutexLock lock(mutex);
    while (done < 6) changed.wait(mutex);
  }
  stop_.request_stop();
  workers.join();
  EXPECT_EQ(most, 3);
}

}  // namespace
}  // namespace keelson::client

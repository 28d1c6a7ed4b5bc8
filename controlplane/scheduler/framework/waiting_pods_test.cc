#include "controlplane/scheduler/framework/waiting_pods.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace keelson::scheduler {
namespace {

using namespace std::chrono_literals;

class WaitingPodsTest : public ::testing::Test {
 protected:
  // How the pod stopped waiting: true, in time.
  std::future<bool> Add(std::function<bool()> done, std::chrono::seconds timeout) {
    auto finished = std::make_shared<std::promise<bool>>();
    waiting_pods_.Add({std::move(done), clock_.SteadyNow() + timeout,
                       [finished](bool in_time) { finished->set_value(in_time); }});
    return finished->get_future();
  }

  std::atomic<int> called_ = -1;  // outlives the pods that look at it
  FakeClock clock_;
  WaitingPods waiting_pods_{clock_};
  std::jthread runner_{[this](std::stop_token stop) { waiting_pods_.Run(stop); }};
};

TEST_F(WaitingPodsTest, APodThatIsDoneFinishesAtOnceOthersWhenWoken) {
  auto waits = Add([this] { return called_ == 1; }, 60s);
  EXPECT_TRUE(Add([] { return true; }, 60s).get());
  EXPECT_EQ(waits.wait_for(0s), std::future_status::timeout);
  called_ = 1;
  waiting_pods_.Wake();
  EXPECT_TRUE(waits.get());
}

TEST_F(WaitingPodsTest, DeadlinesPass) {
  auto never = [] { return false; };
  auto soon = Add(never, 10s), late = Add(never, 20s);
  EXPECT_TRUE(Add([] { return true; }, 60s).get());  // all are in
  clock_.Advance(10s);
  EXPECT_FALSE(soon.get());
  EXPECT_EQ(late.wait_for(0s), std::future_status::timeout);
  clock_.Advance(10s);
  EXPECT_FALSE(late.get());
}

TEST_F(WaitingPodsTest, ManyWaitAndOneFinishes) {
  constexpr int kPods = 1000;
  std::vector<std::future<bool>> pods;
  for (int i = 0; i < kPods; ++i) pods.push_back(Add([this, i] { return called_ == i; }, 60s));
  for (int i : {500, 0, kPods - 1}) {
    called_ = i;
    waiting_pods_.Wake();
    EXPECT_TRUE(pods[static_cast<size_t>(i)].get()) << i;
  }
}

TEST_F(WaitingPodsTest, StopsWhilePodsWait) {
  auto waits = Add([] { return false; }, 60s);
  runner_.request_stop();
  runner_.join();
  EXPECT_THROW(waits.get(), std::future_error);  // finish was never called
}

}  // namespace
}  // namespace keelson::scheduler

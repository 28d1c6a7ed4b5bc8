#include "controlplane/scheduler/framework/waiting_room.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace keelson::scheduler {
namespace {

using namespace std::chrono_literals;

class WaitingRoomTest : public ::testing::Test {
 protected:
  // Tells how the guest left: true, in time.
  std::future<bool> Enter(std::function<bool()> over, std::chrono::seconds patience) {
    auto left = std::make_shared<std::promise<bool>>();
    room_.Enter(
        {std::move(over), clock_.SteadyNow() + patience, [left](bool in_time) { left->set_value(in_time); }});
    return left->get_future();
  }

  std::atomic<int> called_ = -1;  // outlives the guests that look at it
  FakeClock clock_;
  WaitingRoom room_{clock_};
  std::jthread runner_{[this](std::stop_token stop) { room_.Run(stop); }};
};

TEST_F(WaitingRoomTest, WhoIsReadyLeavesAtOnceOthersWhenWoken) {
  auto waits = Enter([this] { return called_ == 1; }, 60s);
  EXPECT_TRUE(Enter([] { return true; }, 60s).get());
  EXPECT_EQ(waits.wait_for(0s), std::future_status::timeout);
  called_ = 1;
  room_.Wake();
  EXPECT_TRUE(waits.get());
}

TEST_F(WaitingRoomTest, PatienceEnds) {
  auto never = [] { return false; };
  auto soon = Enter(never, 10s), late = Enter(never, 20s);
  EXPECT_TRUE(Enter([] { return true; }, 60s).get());  // all are in
  clock_.Advance(10s);
  EXPECT_FALSE(soon.get());
  EXPECT_EQ(late.wait_for(0s), std::future_status::timeout);
  clock_.Advance(10s);
  EXPECT_FALSE(late.get());
}

TEST_F(WaitingRoomTest, ManyWaitAndOneIsCalled) {
  constexpr int kGuests = 1000;
  std::vector<std::future<bool>> guests;
  for (int i = 0; i < kGuests; ++i) guests.push_back(Enter([this, i] { return called_ == i; }, 60s));
  for (int i : {500, 0, kGuests - 1}) {
    called_ = i;
    room_.Wake();
    EXPECT_TRUE(guests[static_cast<size_t>(i)].get()) << i;
  }
}

TEST_F(WaitingRoomTest, EndsWithGuestsInside) {
  auto waits = Enter([] { return false; }, 60s);
  runner_.request_stop();
  runner_.join();
  EXPECT_THROW(waits.get(), std::future_error);  // nobody was told anything
}

}  // namespace
}  // namespace keelson::scheduler

#include "lib/http/server/turns.h"

#include <future>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace keelson::http {
namespace {

TEST(TurnsTest, OtherTasksOfTheLoopComeInBetween) {
  const std::shared_ptr<event::Loop> loop = event::Loop::Create("turns-test");
  const auto turns = std::make_shared<Turns>(*loop);
  constexpr int kDeliveries = 100;
  std::vector<std::string> order;
  std::promise<void> all_added, done;
  loop->Post([&] { all_added.get_future().wait(); });
  for (int i = 0; i < kDeliveries; ++i) {
    turns->Add([&, i] {
      order.push_back(std::to_string(i));
      if (i == 0) {
        loop->Post([&] { order.push_back("request"); });
      }
      if (i == kDeliveries - 1) done.set_value();
    });
  }
  all_added.set_value();
  done.get_future().wait();
  ASSERT_EQ(order.size(), kDeliveries + 1u);
  EXPECT_EQ(order[16], "request");
  std::erase(order, "request");
  for (int i = 0; i < kDeliveries; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], std::to_string(i));
}

TEST(TurnsTest, WhatIsAddedLaterRunsToo) {
  const std::shared_ptr<event::Loop> loop = event::Loop::Create("turns-test");
  const auto turns = std::make_shared<Turns>(*loop);
  for (int round = 0; round < 3; ++round) {
    std::promise<void> done;
    turns->Add([&] { turns->Add([&] { done.set_value(); }); });
    done.get_future().wait();
  }
}

}  // namespace
}  // namespace keelson::http

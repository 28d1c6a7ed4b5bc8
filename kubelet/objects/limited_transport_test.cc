#include "kubelet/objects/limited_transport.h"

#include <gtest/gtest.h>

#include <thread>

#include "lib/client/testing/fake_api.h"

namespace keelson::kubelet {
namespace {

class LimitTest : public ::testing::Test {
 protected:
  Result<> Ask(const client::RestClient& api) {
    auto got = api.Get<corev1::Node>("", "n");
    return got || got.error().Is(Code::kNotFound) ? Result<>() : got.error();
  }
  FakeClock clock_;
  std::shared_ptr<client::FakeApi> fake_ = std::make_shared<client::FakeApi>();
  client::RestClient all_{fake_};
};

TEST_F(LimitTest, ABurstGoesThroughAndTheRestAtItsRate) {
  const client::RestClient api = LimitRequests(all_, 2, 3, clock_);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Ask(api));
  std::jthread more([&] {
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(Ask(api));
  });
  for (size_t done : {3u, 4u}) {
    clock_.AwaitWaiters(1);
    EXPECT_EQ(fake_->Requests().size(), done);
    clock_.Advance(std::chrono::milliseconds(400));
    clock_.AwaitWaiters(1);
    EXPECT_EQ(fake_->Requests().size(), done) << "not yet";
    clock_.Advance(std::chrono::milliseconds(101));
  }
  more.join();
  EXPECT_EQ(fake_->Requests().size(), 5u);
}

TEST_F(LimitTest, WhoWaitsIsCancelled) {
  const client::RestClient api = LimitRequests(all_, 1, 1, clock_);
  EXPECT_TRUE(Ask(api));
  std::stop_source stop;
  std::jthread waits([&] {
    auto asked = Ask(api.With(stop.get_token()));
    ASSERT_FALSE(asked);
    EXPECT_TRUE(asked.error().Is(Code::kCancelled));
  });
  clock_.AwaitWaiters(1);
  stop.request_stop();
  waits.join();
  EXPECT_EQ(fake_->Requests().size(), 1u);
}

TEST_F(LimitTest, ZeroIsNoBound) {
  const client::RestClient api = LimitRequests(all_, 0, 0, clock_);
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(Ask(api));
}

}  // namespace
}  // namespace keelson::kubelet

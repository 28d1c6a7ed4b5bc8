#include "kubelet/status/manager.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <utility>

#include "lib/api/codec/codec.h"
#include "lib/base/clock.h"
#include "lib/client/testing/fake_api.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {
namespace {

using std::chrono::milliseconds;

class StatusManagerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    corev1::Pod pod;
    pod.mutable_metadata()->set_name("web");
    pod.mutable_metadata()->set_namespace_("default");
    pod.mutable_metadata()->set_uid("u1");
    pod.mutable_status()->set_phase("Pending");
    pod_ = std::make_shared<const corev1::Pod>(fake_->Put(pod));
    // Every write is passed on, and told of.
    fake_->SetInterceptor([this](const client::ApiRequest& request) {
      if (request.method == "PATCH") {
        Wrote();
        if (auto then = std::exchange(during_write_, nullptr)) then();
      }
      return std::optional<Result<client::ApiResponse>>();
    });
    thread_ = std::jthread([this](std::stop_token stop) { manager_.Run(stop); });
  }
  void TearDown() override {
    thread_.request_stop();
    thread_.join();
  }

  static corev1::PodStatus StatusOf(std::string_view json) {
    corev1::PodStatus status;
    EXPECT_TRUE(api::DecodeJson(json, status));
    return status;
  }
  static corev1::PodStatus Waiting(const std::string& reason) {
    return StatusOf(
        R"({"phase":"Pending","containerStatuses":[{"name":"main","state":{"waiting":{"reason":")" + reason +
        R"("}}}]})");
  }
  void Wrote() {
    MutexLock lock(mutex_);
    ++writes_;
    written_.notify_all();
  }
  void AwaitWrites(int count) {
    MutexLock lock(mutex_);
    while (writes_ < count) written_.wait(mutex_);
  }
  int writes() {
    MutexLock lock(mutex_);
    return writes_;
  }

  // How many changes have come to be known by the API, as metrics tell.
  static int Counted() {
    const std::string text = metrics::Print(), name = "\nkubelet_pod_status_sync_duration_seconds_count ";
    const size_t at = text.find(name);
    return at == text.npos ? 0 : std::stoi(text.substr(at + name.size()));
  }
  static void AwaitCounted(int count) {
    while (Counted() < count) std::this_thread::yield();
  }

  std::function<void()> during_write_;  // of the next one
  FakeClock clock_;
  std::shared_ptr<client::FakeApi> fake_ = std::make_shared<client::FakeApi>(clock_);
  StatusManager manager_{client::RestClient(fake_), clock_};
  std::shared_ptr<const corev1::Pod> pod_;
  Mutex mutex_;
  CondVar written_;
  int writes_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::jthread thread_;
};

TEST_F(StatusManagerTest, OfAPodThatIsBeingMadeTheEndIsToldOnce) {
  manager_.Set(pod_, Waiting("ContainerCreating"));
  manager_.Set(pod_, Waiting("PodInitializing"));
  manager_.Set(pod_, StatusOf(R"({"phase":"Running"})"));
  AwaitWrites(1);
  clock_.Advance(milliseconds(1000));  // what was held comes, and has nothing to add
  manager_.Set(pod_, StatusOf(R"({"phase":"Succeeded"})"));
  AwaitWrites(2);
  EXPECT_EQ(writes(), 2);
}

TEST_F(StatusManagerTest, APodThatIsBeingMadeIsToldOfAfterASecond) {
  manager_.Set(pod_, Waiting("ContainerCreating"));
  clock_.Advance(milliseconds(999));
  EXPECT_EQ(writes(), 0);
  clock_.Advance(milliseconds(1));
  AwaitWrites(1);
}

TEST_F(StatusManagerTest, AChangeIsCountedThoughMoreComesWhileItIsWritten) {
  const int before = Counted();
  during_write_ = [this] { manager_.Set(pod_, StatusOf(R"({"phase":"Running"})")); };  // nothing new
  manager_.Set(pod_, StatusOf(R"({"phase":"Running"})"));
  AwaitCounted(before + 1);
  EXPECT_EQ(writes(), 1);
  manager_.Set(pod_, StatusOf(R"({"phase":"Running"})"));  // needs no write, and counts for nothing
  manager_.Set(pod_, StatusOf(R"({"phase":"Succeeded"})"));
  AwaitCounted(before + 2);
  EXPECT_EQ(writes(), 2);
}

TEST_F(StatusManagerTest, WhatIsFollowedSoonIsWrittenWithWhatFollows) {
  const auto soon = StatusManager::When::kSoon;
  manager_.Set(pod_, StatusOf(R"({"phase":"Running"})"), soon);
  manager_.Set(pod_, StatusOf(R"({"phase":"Running","message":"m"})"));
  AwaitWrites(1);
  manager_.Set(pod_, StatusOf(R"({"phase":"Running"})"), soon);
  clock_.Advance(milliseconds(999));
  EXPECT_EQ(writes(), 1);
  clock_.Advance(milliseconds(1));
  AwaitWrites(2);
}

// Who sets a status may have begun before others wrote: theirs is put right all the same.
TEST_F(StatusManagerTest, AnOlderPodDoesNotHideWhatOthersWrote) {
  const int before = Counted();
  manager_.Set(pod_, StatusOf(R"({"phase":"Running"})"));
  AwaitCounted(before + 1);
  corev1::Pod theirs = *client::RestClient(fake_).Get<corev1::Pod>("default", "web");
  theirs.mutable_status()->set_phase("Unknown");
  const auto shown = std::make_shared<const corev1::Pod>(fake_->Put(theirs));
  thread_.request_stop();
  thread_.join();
  manager_.Reconcile(shown);
  manager_.Set(pod_, StatusOf(R"({"phase":"Running"})"));
  thread_ = std::jthread([this](std::stop_token stop) { manager_.Run(stop); });
  AwaitCounted(before + 2);
  EXPECT_EQ(client::RestClient(fake_).Get<corev1::Pod>("default", "web")->status().phase(), "Running");
}

TEST_F(StatusManagerTest, WhatIsWrongIsToldAtOnce) {
  manager_.Set(pod_, Waiting("ErrImagePull"));
  AwaitWrites(1);
  manager_.Set(pod_, StatusOf(R"({"phase":"Pending","reason":"Evicted"})"));
  AwaitWrites(2);
}

}  // namespace
}  // namespace keelson::kubelet

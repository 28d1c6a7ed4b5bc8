// Controllers of one driver with a fake API and a fake driver, for tests: everything runs on its real threads, and
// back-off is short.
#pragma once

#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "csi/controller/common/controller.h"
#include "csi/controller/testing/fake_driver.h"
#include "lib/api/codec/codec.h"
#include "lib/base/file.h"
#include "lib/base/testing/eventually.h"
#include "lib/client/custom/custom_informers.h"
#include "lib/client/testing/fake_api.h"

namespace keelson::csi::controller {

class ControllerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/csi_controller.XXXXXX";
    dir_ = ::mkdtemp(name);
    driver_ = std::make_unique<FakeDriver>(dir_ + "/csi.sock");
  }
  void TearDown() override {
    StopControllers();
    driver_.reset();
    EXPECT_TRUE(RemoveTree(dir_));
  }

  // A process of its own: nothing is known of the one before. `make` adds controllers to `controllers_`.
  void StartControllers(const std::function<void(const Environment&)>& make, const std::string& node = "",
                        const std::function<void()>& before = nullptr) {
    client_ =
        std::make_unique<Driver>(DriverOptions{dir_ + "/csi.sock", std::chrono::seconds(30), !node.empty()});
    ASSERT_TRUE(client_->Connect({}));
    client::RestClient api(fake_);
    informers_ = std::make_unique<client::InformerFactory>(api);
    events_ = std::make_unique<client::EventRecorder>(api, "test");
    const Environment environment{
        api,
        *informers_,
        *events_,
        *client_,
        Clock::Real(),
        {.workers = 4, .backoff = {std::chrono::milliseconds(5), std::chrono::milliseconds(50)}},
        node};
    custom_ = std::make_unique<client::CustomInformers>(api);
    make(environment);
    if (before) before();
    std::atomic<bool> synced = false, custom_synced = false;
    threads_.emplace_back([&, this](std::stop_token stop) {
      (void)custom_->Run(stop, [&custom_synced] { custom_synced = true; });
    });
    threads_.emplace_back(
        [&, this](std::stop_token stop) { (void)informers_->Run(stop, [&synced] { synced = true; }); });
    threads_.emplace_back([this](std::stop_token stop) { events_->Run(stop); });
    while (!synced || !custom_synced) std::this_thread::yield();
    for (const auto& controller : controllers_) {
      threads_.emplace_back([one = controller.get()](std::stop_token stop) { one->Run(stop); });
    }
  }
  void StopControllers() {
    for (std::jthread& thread : threads_) thread.request_stop();
    threads_.clear();
    controllers_.clear();
    custom_.reset();
    events_.reset();
    informers_.reset();
    client_.reset();
  }

  // Runs controllers whose first `writes` writes arrive, until the next one or until `done`. Returns whether they were cut
  // short.
  bool RunUntilCut(const std::function<void()>& start, int writes, const std::function<bool()>& done) {
    std::atomic<int> count = 0;
    std::atomic<bool> cut = false;
    fake_->SetInterceptor(
        [&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
          if (request.method == "GET" || request.target.find("/events") != std::string::npos) {
            return std::nullopt;
          }
          if (count++ < writes) return std::nullopt;
          cut = true;
          return client::FakeApi::Refuse(Error(Code::kUnavailable, "the process is dead"));
        });
    start();
    EXPECT_TRUE(Eventually([&] { return cut || done(); }));
    StopControllers();
    fake_->SetInterceptor(nullptr);
    return cut;
  }
  // The same, then runs others until `done`.
  bool CutAfter(const std::function<void()>& start, int writes, const std::function<bool()>& done) {
    const bool cut = RunUntilCut(start, writes, done);
    start();
    EXPECT_TRUE(Eventually(done));
    StopControllers();
    return cut;
  }

  template <typename T>
  T Put(const std::string& json) {
    T object;
    const auto decoded = api::DecodeJson(json, object);
    EXPECT_TRUE(decoded) << decoded.error().message();
    return fake_->Put(object);
  }
  template <typename T>
  std::optional<T> Get(const std::string& ns, const std::string& name) {
    auto found = api_.Get<T>(ns, name);
    return found ? std::optional<T>(*std::move(found)) : std::nullopt;
  }
  // Whether an event with this reason, whose message contains the text, is recorded.
  bool HasEvent(const std::string& reason, const std::string& text) {
    const auto events = api_.List<corev1::Event>();
    if (!events) return false;
    for (const auto& event : *events) {
      if (event.reason() == reason && event.message().find(text) != std::string::npos) return true;
    }
    return false;
  }

  std::string dir_;
  std::shared_ptr<client::FakeApi> fake_ = std::make_shared<client::FakeApi>();
  client::RestClient api_{fake_};
  std::unique_ptr<FakeDriver> driver_;
  std::unique_ptr<client::CustomInformers> custom_;  // while controllers are made and run
  std::vector<std::unique_ptr<Reconciler>> controllers_;

 private:
  std::unique_ptr<Driver> client_;
  std::unique_ptr<client::InformerFactory> informers_;
  std::unique_ptr<client::EventRecorder> events_;
  std::vector<std::jthread> threads_;
};

}  // namespace keelson::csi::controller

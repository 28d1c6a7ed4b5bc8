// Client::Send(): responses that no thread waits for.
#include <gtest/gtest.h>

#include <future>

#include "lib/base/mutex.h"
#include "lib/http/testing/fixture.h"

namespace keelson::http {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kForever = milliseconds::max();

// Keeps the response, and is behind after `limit` bytes.
class Kept : public ResponseSink {
 public:
  explicit Kept(size_t limit = std::string::npos) : limit_(limit) {}

  void OnHead(int status, const Headers& headers) override {
    MutexLock lock(mutex_);
    status_ = status;
    kind_ = headers.Get("X-Kind");
  }
  bool OnBody(std::string_view bytes) override {
    MutexLock lock(mutex_);
    body_ += bytes;
    if (body_.size() < limit_) return false;
    if (!std::exchange(full_said_, true)) full_.set_value();
    return true;
  }
  void OnEnd() override { over_.set_value("end"); }
  void OnUpgraded(std::unique_ptr<Stream> stream) override {
    stream_ = std::move(stream);
    over_.set_value("upgraded");
  }
  void OnFail(const Error& error) override {
    over_.set_value(error.Is(Code::kTimeout) ? "timeout" : error.Is(Code::kUnavailable) ? "down" : "failed");
  }

  std::string Over() { return over_.get_future().get(); }
  bool IsOver() { return over_.get_future().wait_for(milliseconds(50)) == std::future_status::ready; }
  void AwaitFull() { full_.get_future().get(); }
  void NoLimit() {
    MutexLock lock(mutex_);
    limit_ = std::string::npos;
  }
  int status() {
    MutexLock lock(mutex_);
    return status_;
  }
  std::string kind() {
    MutexLock lock(mutex_);
    return kind_;
  }
  std::string body() {
    MutexLock lock(mutex_);
    return body_;
  }

 private:
  Mutex mutex_;
  size_t limit_ KEELSON_GUARDED_BY(mutex_);
  int status_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::string kind_ KEELSON_GUARDED_BY(mutex_), body_ KEELSON_GUARDED_BY(mutex_);
  bool full_said_ KEELSON_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Stream> stream_;
  std::promise<void> full_;
  std::promise<std::string> over_;
};

TEST_P(HttpTest, SendGivesTheResponseToItsSink) {
  Serve([](auto request, auto writer) {
    writer->Start(201, {{"X-Kind", request->method}});
    writer->Write(std::make_shared<const std::string>(request->body));
    writer->Write(std::make_shared<const std::string>("!"));
    writer->Finish();
  });
  auto sink = std::make_shared<Kept>();
  auto call = client_->Send({"POST", "/x", {}, "hello"}, false, kForever, sink);
  EXPECT_EQ(sink->Over(), "end");
  EXPECT_EQ(sink->status(), 201);
  EXPECT_EQ(sink->kind(), "POST");
  EXPECT_EQ(sink->body(), "hello!");
}

TEST_P(HttpTest, SendStopsForASinkThatIsBehind) {
  constexpr size_t kAll = 16u << 20;
  Serve([&](auto, auto writer) {
    writer->Start(200, {});
    auto block = std::make_shared<const std::string>(std::string(1 << 20, 'b'));
    for (size_t sent = 0; sent < kAll; sent += block->size()) writer->Write(block);
    writer->Finish();
  });
  auto sink = std::make_shared<Kept>(1);
  auto call = client_->Send({"GET", "/", {}, ""}, false, kForever, sink);
  sink->AwaitFull();
  const size_t held = sink->body().size();
  EXPECT_LT(held, kAll / 2);
  sink->NoLimit();
  call->Resume();
  EXPECT_EQ(sink->Over(), "end");
  EXPECT_EQ(sink->body().size(), kAll);
}

TEST_P(HttpTest, SendEndsAtItsTimeout) {
  std::vector<std::shared_ptr<ResponseWriter>> kept;
  Mutex mutex;
  Serve([&](auto request, auto writer) {
    if (request->path == "/half") {
      writer->Start(200, {});
      writer->Write(std::make_shared<const std::string>("half"));
    }
    MutexLock lock(mutex);
    kept.push_back(writer);
  });
  for (const char* target : {"/none", "/half"}) {
    auto sink = std::make_shared<Kept>();
    auto call = client_->Send({"GET", target, {}, ""}, false, milliseconds(100), sink);
    EXPECT_EQ(sink->Over(), "timeout") << target;
  }
  server_->Stop();
}

TEST_P(HttpTest, CancelledCallsSayNothingAndLeave) {
  std::promise<void> closed;
  Serve([&](auto, auto writer) {
    writer->Start(200, {});
    writer->Write(std::make_shared<const std::string>("x"));
    writer->OnClose([&closed, writer] { closed.set_value(); });
  });
  auto sink = std::make_shared<Kept>(1);
  auto call = client_->Send({"GET", "/", {}, ""}, false, kForever, sink);
  sink->AwaitFull();
  call->Cancel();
  closed.get_future().get();
  EXPECT_FALSE(sink->IsOver());
}

TEST_P(HttpTest, SendTellsBrokenConnections) {
  Serve([](auto, auto writer) {
    writer->Start(200, {});
    writer->Write(std::make_shared<const std::string>("half"));
  });
  auto half = std::make_shared<Kept>();
  auto call = client_->Send({"GET", "/", {}, ""}, false, kForever, half);
  EXPECT_EQ(half->Over(), "down");
  server_->Stop();
  auto none = std::make_shared<Kept>();
  call = client_->Send({"GET", "/", {}, ""}, false, kForever, none);
  EXPECT_EQ(none->Over(), "down");
  EXPECT_EQ(none->status(), 0);
}

TEST_P(HttpTest, SendUpgrades) {
  Serve([](auto request, auto writer) {
    if (request->path == "/no") return writer->Reply(403, {}, "not you");
    EXPECT_TRUE(writer->Upgrade({{"Connection", "Upgrade"}, {"Upgrade", "echo"}, {"X-Kind", "echo"}}));
  });
  auto refused = std::make_shared<Kept>();
  auto call = client_->Send({"GET", "/no", {{"Upgrade", "echo"}}, ""}, true, kForever, refused);
  EXPECT_EQ(refused->Over(), "end");
  EXPECT_EQ(refused->status(), 403);
  EXPECT_EQ(refused->body(), "not you");
  auto granted = std::make_shared<Kept>();
  call = client_->Send({"GET", "/yes", {{"Upgrade", "echo"}}, ""}, true, kForever, granted);
  EXPECT_EQ(granted->Over(), "upgraded");
  EXPECT_EQ(granted->status(), 101);
  EXPECT_EQ(granted->kind(), "echo");
}

}  // namespace
}  // namespace keelson::http

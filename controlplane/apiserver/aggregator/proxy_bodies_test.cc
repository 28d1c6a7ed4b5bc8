// Bodies of requests on their way through the proxy: of any length, at any speed, and such that break off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/apiserver/aggregator/testing/proxy_fixture.h"

namespace keelson::apiserver {
namespace {

using http::BodyStream;
using http::kSoon;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kThings[] = "/apis/example.com/v1/namespaces/a/things";

// A response whose end a test awaits.
class Sink : public http::ResponseSink {
 public:
  void OnHead(int status, const http::Headers&) override { status_ = status; }
  bool OnBody(std::string_view bytes) override {
    MutexLock lock(mutex_);
    body_ += bytes;
    changed_.notify_all();
    return false;
  }
  void OnEnd() override { over_.set_value(); }
  void OnUpgraded(std::unique_ptr<http::Stream>) override {}
  void OnFail(const Error&) override { over_.set_value(); }

  int AwaitEnd() {
    EXPECT_EQ(over_.get_future().wait_for(kSoon), std::future_status::ready);
    return status_;
  }
  std::string AwaitBody(size_t size) {
    MutexLock lock(mutex_);
    changed_.wait_for(mutex_, kSoon,
                      [&]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return body_.size() >= size; });
    return body_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::string body_ KEELSON_GUARDED_BY(mutex_);
  std::atomic<int> status_ = 0;
  std::promise<void> over_;
};

class ProxyBodiesTest : public AggregationProxyTest {
 protected:
  // The extension server takes bodies as they come.
  static http::ServerOptions Streaming() {
    http::ServerOptions options;
    options.streams_body = [](const http::ServerRequest&) { return true; };
    return options;
  }
  // Sends a request whose body is body_.
  std::shared_ptr<Sink> Send() {
    http::ClientRequest request{"POST", kThings};
    body_ = request.body_stream = std::make_shared<BodyStream>();
    auto sink = std::make_shared<Sink>();
    call_ = client_->Send(request, false, milliseconds::max(), sink);
    return sink;
  }

  std::shared_ptr<BodyStream> body_;
  std::shared_ptr<http::ClientCall> call_;
};

// Longer than what the server takes for its own resources.
TEST_F(ProxyBodiesTest, HaveAnyLength) {
  http::ServerOptions options;
  options.max_body = 64u << 20;
  std::string length;
  Serve(
      [&](Requests request, Writer writer) {
        length = request->headers.Get("Content-Length");
        writer->Reply(201, {}, request->body);
      },
      std::move(options));
  Front(Entry());
  http::ClientRequest request{"POST", kThings};
  for (size_t i = 0; request.body.size() < (20u << 20); ++i) request.body += std::to_string(i) + ",";
  http::ClientResponse response = client_->Do(request, kSoon).value();
  EXPECT_EQ(response.status, 201);
  EXPECT_TRUE(response.body == request.body);
  EXPECT_EQ(length, std::to_string(request.body.size()));
  // The connection is still of use.
  response = client_->Do({"POST", kThings, {}, "short"}, kSoon).value();
  EXPECT_EQ(response.body, "short");
  EXPECT_THAT(AwaitDone(2), ElementsAre(201, 201));
}

TEST_F(ProxyBodiesTest, PassAsTheyCome) {
  Serve(
      [](Requests request, Writer writer) {
        writer->Start(200, {});
        std::weak_ptr<BodyStream> weak = request->body_stream;
        auto order = std::make_shared<Mutex>();  // calls come from the handler and from the connection
        request->body_stream->OnReadable([weak, writer, order] {
          auto stream = weak.lock();
          if (!stream) return;
          MutexLock lock(*order);
          BodyStream::Batch batch = stream->Take();
          for (auto& piece : batch.pieces) writer->Write(std::move(piece));
          if (batch.finished) writer->Finish();
        });
      },
      Streaming());
  Front(Entry());
  auto sink = Send();
  std::string sent;
  for (const char* piece : {"one", " two", " three"}) {
    sent += piece;
    body_->Write(piece);
    EXPECT_EQ(sink->AwaitBody(sent.size()), sent);
  }
  body_->Finish();
  EXPECT_EQ(sink->AwaitEnd(), 200);
  EXPECT_THAT(AwaitDone(1), ElementsAre(200));
}

// The extension server must not take a part of an object for the whole.
TEST_F(ProxyBodiesTest, BreakOffWithTheirClient) {
  std::promise<Requests> arrived;
  Writer kept;
  Serve(
      [&](Requests request, Writer writer) {
        kept = std::move(writer);
        arrived.set_value(std::move(request));
      },
      Streaming());
  Front(Entry());
  auto sink = Send();
  body_->Write("half");
  const Requests there = arrived.get_future().get();
  body_->Fail(Error(Code::kCancelled, "the client has gone"));
  std::promise<void> failed;
  auto once = std::make_shared<std::atomic<bool>>(false);
  there->body_stream->OnReadable([stream = there->body_stream.get(), &failed, once] {
    if (stream->Take().failure && !once->exchange(true)) failed.set_value();
  });
  EXPECT_EQ(failed.get_future().wait_for(kSoon), std::future_status::ready);
  there->body_stream->OnReadable(nullptr);
  EXPECT_EQ(AwaitDone(1).size(), 1u);
  kept.reset();
}

TEST_F(ProxyBodiesTest, AnExtensionServerThatDiesIs503) {
  Serve([](Requests, Writer writer) { writer.reset(); }, Streaming());
  Front(Entry());
  auto sink = Send();
  body_->Write("half");
  EXPECT_EQ(sink->AwaitEnd(), 503);
  EXPECT_THAT(sink->AwaitBody(1), HasSubstr("error trying to reach service: "));
  EXPECT_THAT(AwaitDone(1), ElementsAre(503));
}

TEST_F(ProxyBodiesTest, MayBeRefusedBeforeTheirEnd) {
  Serve([](Requests, Writer writer) { writer->Reply(413, {}, "too much"); }, Streaming());
  Front(Entry());
  auto sink = Send();
  body_->Write("half");
  EXPECT_EQ(sink->AwaitEnd(), 413);
  EXPECT_EQ(sink->AwaitBody(8), "too much");
  EXPECT_THAT(AwaitDone(1), ElementsAre(413));
}

TEST_F(ProxyBodiesTest, EndAtTheDeadline) {
  Writer kept;
  Serve([&](Requests, Writer writer) { kept = std::move(writer); }, Streaming());
  Front(Entry(), milliseconds(300));
  auto sink = Send();
  body_->Write("half");
  EXPECT_EQ(sink->AwaitEnd(), 504);
  EXPECT_THAT(sink->AwaitBody(1), HasSubstr("request did not complete within the allotted timeout"));
  EXPECT_THAT(AwaitDone(1), ElementsAre(504));
  backend_->Stop();
  kept.reset();
}

}  // namespace
}  // namespace keelson::apiserver

// Bodies that arrive while they are sent: the stream itself, and requests with one over each transport.
#include "lib/http/body_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/http/testing/fixture.h"

namespace keelson::http {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kForever = milliseconds::max();
constexpr size_t kPiece = 64 << 10;

std::string Joined(const BodyStream::Batch& batch) {
  std::string out;
  for (const auto& piece : batch.pieces) out += *piece;
  return out;
}

TEST(BodyStream, TheWriterWaitsForTheReader) {
  BodyStream stream;
  size_t taken = 0;
  stream.OnTaken([&](size_t size) { taken += size; });
  EXPECT_FALSE(stream.Write("a"));
  EXPECT_TRUE(stream.Write(std::string(BodyStream::kHighWater, 'b')));
  EXPECT_FALSE(stream.touched());
  EXPECT_EQ(Joined(stream.Take()).size(), BodyStream::kHighWater + 1);
  EXPECT_EQ(taken, BodyStream::kHighWater + 1);
  EXPECT_FALSE(stream.Write("c"));
  stream.Finish();
  stream.Fail(Error(Code::kCancelled, "too late"));
  const BodyStream::Batch last = stream.Take();
  EXPECT_EQ(Joined(last), "c");
  EXPECT_TRUE(last.finished);
  EXPECT_FALSE(last.failure);
}

TEST(BodyStream, NothingIsKeptForAReaderThatHasGone) {
  BodyStream stream;
  size_t taken = 0;
  stream.OnTaken([&](size_t size) { taken += size; });
  stream.Write("abc");
  stream.Abandon();
  EXPECT_EQ(taken, 3u);
  EXPECT_FALSE(stream.Write(std::string(2 * BodyStream::kHighWater, 'b')));
  EXPECT_EQ(taken, 3u + 2 * BodyStream::kHighWater);
  EXPECT_EQ(Joined(stream.Take()), "");
}

TEST(BodyStream, TheReaderIsTold) {
  BodyStream stream;
  int told = 0;
  stream.Write("a");
  stream.OnReadable([&] { ++told; });
  EXPECT_EQ(told, 1);
  stream.Fail(Error(Code::kCancelled, "gone"));
  EXPECT_EQ(told, 2);
  const BodyStream::Batch batch = stream.Take();
  ASSERT_TRUE(batch.failure);
  EXPECT_FALSE(batch.finished);
  EXPECT_EQ(batch.failure->message(), "gone");
}

// Adds pieces to a stream as fast as its reader takes them.
class Feeder {
 public:
  explicit Feeder(size_t pieces) : left_(pieces) {}
  // Returns when everything is written, or when the reader has taken nothing for `patience`.
  void Run(BodyStream& stream, milliseconds patience) {
    stream.OnTaken([this](size_t) {
      MutexLock lock(mutex_);
      ++taken_;
      changed_.notify_all();
    });
    for (int seen = 0; left_ > 0; --left_, ++written_) {
      if (!stream.Write(std::string(kPiece, static_cast<char>('a' + written_ % 26)))) continue;
      MutexLock lock(mutex_);
      if (!changed_.wait_for(mutex_, patience,
                             [&]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return taken_ > seen; })) {
        break;
      }
      seen = taken_;
    }
    stream.OnTaken(nullptr);
  }
  size_t written() const { return written_; }

 private:
  Mutex mutex_;
  CondVar changed_;
  int taken_ KEELSON_GUARDED_BY(mutex_) = 0;
  size_t left_, written_ = 0;
};

// Counts a response, and tells when it is over.
class Counted : public ResponseSink {
 public:
  void OnHead(int status, const Headers&) override { status_ = status; }
  bool OnBody(std::string_view bytes) override {
    MutexLock lock(mutex_);
    body_ += bytes;
    changed_.notify_all();
    return false;
  }
  void OnEnd() override { over_.set_value("end"); }
  void OnUpgraded(std::unique_ptr<Stream>) override {}
  void OnFail(const Error& error) override { over_.set_value(error.message()); }

  std::string Over() { return over_.get_future().get(); }
  int status() const { return status_; }
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
  std::promise<std::string> over_;
};

ServerOptions Streaming() {
  ServerOptions options;
  options.max_body = 1000;
  options.streams_body = [](const ServerRequest& request) { return request.path == "/stream"; };
  return options;
}

void Echo(const std::shared_ptr<const ServerRequest>& request,
          const std::shared_ptr<ResponseWriter>& writer) {
  writer->Start(200, {});
  // Without an owner: the writer must not keep the stream that keeps it.
  std::weak_ptr<BodyStream> body = request->body_stream;
  auto order = std::make_shared<Mutex>();  // calls come from the handler and from the connection
  request->body_stream->OnReadable([body, writer, order] {
    auto stream = body.lock();
    if (!stream) return;
    MutexLock lock(*order);
    BodyStream::Batch batch = stream->Take();
    for (auto& piece : batch.pieces) writer->Write(std::move(piece));
    if (batch.finished) writer->Finish();
  });
}

TEST_P(HttpTest, LongBodiesPassBothWays) {
  Serve(Echo, Streaming());
  for (const bool chunked : {true, false}) {
    constexpr size_t kPieces = 200;
    ClientRequest request{"POST", "/stream"};
    if (!chunked) request.headers.Add("Content-Length", std::to_string(kPieces * kPiece));
    auto body = request.body_stream = std::make_shared<BodyStream>();
    auto sink = std::make_shared<Counted>();
    auto call = client_->Send(request, false, kForever, sink);
    Feeder feeder(kPieces);
    feeder.Run(*body, kSoon);
    body->Finish();
    EXPECT_EQ(sink->Over(), "end");
    const std::string got = sink->AwaitBody(0);
    ASSERT_EQ(got.size(), kPieces * kPiece);
    for (size_t i = 0; i < kPieces; ++i) ASSERT_EQ(got[i * kPiece + 1], static_cast<char>('a' + i % 26));
  }
  // The connection serves other requests.
  Serve([](auto request, auto writer) { writer->Reply(200, {}, request->body); }, Streaming());
  EXPECT_EQ(client_->Do({"POST", "/other", {}, "short"}, kSoon)->body, "short");
  EXPECT_EQ(client_->Do({"POST", "/other", {}, std::string(2000, 'x')}, kSoon)->status, 413);
  EXPECT_EQ(client_->Do({"POST", "/stream", {}, "short"}, kSoon)->body, "short");
}

TEST_P(HttpTest, BytesOfABodyPassAsTheyCome) {
  Serve(Echo, Streaming());
  ClientRequest request{"POST", "/stream"};
  auto body = request.body_stream = std::make_shared<BodyStream>();
  auto sink = std::make_shared<Counted>();
  auto call = client_->Send(request, false, kForever, sink);
  std::string sent;
  for (const char* piece : {"one", " two", " three"}) {
    sent += piece;
    body->Write(piece);
    EXPECT_EQ(sink->AwaitBody(sent.size()), sent);
  }
  body->Finish();
  EXPECT_EQ(sink->Over(), "end");
}

// A handler that reads nothing holds little, whatever the client would send.
TEST_P(HttpTest, ABodyWaitsForItsReader) {
  std::promise<std::pair<std::shared_ptr<const ServerRequest>, std::shared_ptr<ResponseWriter>>> arrived;
  Serve([&](auto request, auto writer) { arrived.set_value({request, writer}); }, Streaming());
  ClientRequest request{"POST", "/stream"};
  auto body = request.body_stream = std::make_shared<BodyStream>();
  auto sink = std::make_shared<Counted>();
  auto call = client_->Send(request, false, kForever, sink);
  constexpr size_t kPieces = 1024;  // 64 MiB
  Feeder feeder(kPieces);
  feeder.Run(*body, milliseconds(500));
  EXPECT_LT(feeder.written(), kPieces / 2);  // some are in the buffers of sockets
  const size_t written = feeder.written() + 1;
  auto [kept, writer] = arrived.get_future().get();
  Echo(kept, writer);
  kept.reset();
  EXPECT_EQ(sink->AwaitBody(written * kPiece).size(), written * kPiece);
  body->Finish();
  EXPECT_EQ(sink->Over(), "end");
}

TEST_P(HttpTest, AResponseMayComeBeforeTheEndOfTheBody) {
  Serve([](auto, auto writer) { writer->Reply(403, {}, "no"); }, Streaming());
  ClientRequest request{"POST", "/stream"};
  auto body = request.body_stream = std::make_shared<BodyStream>();
  body->Write(std::string(kPiece, 'x'));
  auto sink = std::make_shared<Counted>();
  auto call = client_->Send(request, false, kForever, sink);
  EXPECT_EQ(sink->Over(), "end");
  EXPECT_EQ(sink->status(), 403);
  EXPECT_EQ(sink->AwaitBody(2), "no");
  EXPECT_FALSE(body->Write(std::string(2 * BodyStream::kHighWater, 'x'))) << "nothing holds it";
  EXPECT_EQ(client_->Do({"GET", "/other"}, kSoon)->status, 403);
}

TEST_P(HttpTest, ABodyThatBreaksOffIsNotWhole) {
  std::promise<std::shared_ptr<const ServerRequest>> arrived;
  std::shared_ptr<ResponseWriter> kept;
  Serve(
      [&](auto request, auto writer) {
        kept = writer;
        arrived.set_value(request);
      },
      Streaming());
  ClientRequest request{"POST", "/stream"};
  auto body = request.body_stream = std::make_shared<BodyStream>();
  body->Write("half");
  auto sink = std::make_shared<Counted>();
  auto call = client_->Send(request, false, kForever, sink);
  auto there = arrived.get_future().get();
  body->Fail(Error(Code::kCancelled, "the sender has gone"));
  EXPECT_THAT(sink->Over(), testing::HasSubstr("the sender has gone"));
  std::promise<void> failed;
  auto once = std::make_shared<std::atomic<bool>>(false);
  there->body_stream->OnReadable([stream = there->body_stream.get(), &failed, once] {
    if (stream->Take().failure && !once->exchange(true)) failed.set_value();
  });
  EXPECT_EQ(failed.get_future().wait_for(kSoon), std::future_status::ready);
  there->body_stream->OnReadable(nullptr);
  kept.reset();
}

}  // namespace
}  // namespace keelson::http

#include "controlplane/apiserver/local_transport.h"

#include <thread>

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"
#include "lib/api/types.h"

namespace keelson::apiserver {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(LocalTransport, PassesRequestAndReply) {
  auto transport = NewLocalTransport([](auto request, auto writer) {
    EXPECT_EQ(request->method, "PUT");
    EXPECT_EQ(request->path, "/api/v1/a b");
    EXPECT_EQ(request->query.Get("x"), "1 2");
    EXPECT_EQ(request->headers.Get("Content-Type"), "text/plain");
    writer->Reply(201, {{"Content-Type", "application/json"}}, "got " + request->body);
    EXPECT_TRUE(writer->closed());
  });
  client::ApiRequest request;
  request.method = "PUT";
  request.target = "/api/v1/a%20b?x=1%202";
  request.content_type = "text/plain";
  request.body = "it";
  auto response = transport->Do(request, seconds(5), {});
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->content_type, "application/json");
  EXPECT_EQ(response->body, "got it");
}

TEST(LocalTransport, StreamsUntilFinished) {
  std::shared_ptr<http::ResponseWriter> kept;
  bool closed = false;
  auto transport = NewLocalTransport([&](auto, auto writer) {
    writer->Start(200, {});
    writer->Write(std::make_shared<const std::string>("one,"));
    writer->OnClose([&] { closed = true; });
    kept = writer;
  });
  auto stream = transport->Open({}, {});
  ASSERT_TRUE(stream);
  EXPECT_EQ(kept->queued_bytes(), 4u);
  EXPECT_EQ(*(*stream)->Read({}, seconds(5)), "one,");
  EXPECT_EQ(kept->queued_bytes(), 0u);
  EXPECT_EQ((*stream)->Read({}, milliseconds(1)).error().code(), Code::kTimeout);
  std::jthread later([&] { kept->Write(std::make_shared<const std::string>("two")); });
  EXPECT_EQ(*(*stream)->Read({}, seconds(5)), "two");
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ((*stream)->Read(stop.get_token(), milliseconds::max()).error().code(), Code::kCancelled);
  kept->Finish();
  EXPECT_TRUE(closed);
  EXPECT_EQ(*(*stream)->Read({}, seconds(5)), "");
}

TEST(LocalTransport, StreamsTellWhenThereIsSomethingToRead) {
  std::shared_ptr<http::ResponseWriter> kept;
  auto transport = NewLocalTransport([&](auto, auto writer) {
    writer->Start(200, {});
    writer->Write(std::make_shared<const std::string>("one"));
    kept = writer;
  });
  auto stream = transport->Open({}, {});
  ASSERT_TRUE(stream);
  int told = 0;
  (*stream)->OnReadable([&] { ++told; });
  EXPECT_EQ(told, 1) << "something was there before";
  EXPECT_EQ(*(*stream)->Read({}, milliseconds(0)), "one");
  EXPECT_EQ((*stream)->Read({}, milliseconds(0)).error().code(), Code::kTimeout);
  kept->Write(std::make_shared<const std::string>("two"));
  EXPECT_EQ(told, 2);
  EXPECT_EQ(*(*stream)->Read({}, milliseconds(0)), "two");
  kept->Finish();
  EXPECT_EQ(told, 3);
  EXPECT_EQ(*(*stream)->Read({}, milliseconds(0)), "");
  stream->reset();
  kept.reset();
  EXPECT_EQ(told, 3) << "nobody reads any more";
}

TEST(LocalTransport, DroppedStreamTellsTheWriter) {
  std::shared_ptr<http::ResponseWriter> kept;
  int closed = 0;
  auto transport = NewLocalTransport([&](auto, auto writer) {
    writer->Start(200, {});
    writer->OnClose([&] { ++closed; });
    kept = writer;
  });
  auto stream = transport->Open({}, {});
  ASSERT_TRUE(stream);
  stream->reset();
  EXPECT_EQ(closed, 1);
  EXPECT_FALSE(kept->Write(std::make_shared<const std::string>("x")));
  kept->OnClose([&] { ++closed; });
  EXPECT_EQ(closed, 2);
}

TEST(LocalTransport, ErrorsCarryTheStatus) {
  auto transport = NewLocalTransport([](auto request, auto writer) {
    if (request->path == "/gone") {
      metav1::Status status;
      status.set_code(410);
      status.set_reason("Expired");
      status.set_message("too old");
      writer->Reply(410, {}, api::EncodeProtobuf(status, {"", "v1", "Status"}));
    }
    // Any other path: the handler gives up without a word.
  });
  client::ApiRequest request;
  request.target = "/gone";
  auto stream = transport->Open(request, {});
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code(), Code::kGone);
  EXPECT_EQ(stream.error().message(), "too old");
  request.target = "/silent";
  EXPECT_EQ(transport->Do(request, seconds(5), {}).error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace keelson::apiserver

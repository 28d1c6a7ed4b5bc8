// A response that is sent as WebSocket messages.
#include "lib/http/streaming/websocket_writer.h"

#include "lib/http/testing/websocket_client.h"

namespace keelson::http {
namespace {

ClientRequest MessagesRequest(const std::string& protocols) {
  ClientRequest request;
  request.method = "GET";
  request.target = "/";
  request.headers = {{"Connection", "Upgrade"},
                     {"Upgrade", "websocket"},
                     {"Sec-WebSocket-Version", "13"},
                     {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}};
  if (!protocols.empty()) request.headers.Add("Sec-WebSocket-Protocol", protocols);
  return request;
}

class WebSocketWriterTest : public ::testing::Test {
 protected:
  // Serves `text` or binary messages and passes the writer to the test.
  void Serve(bool text) {
    server_ = std::make_unique<RunningServer>([this, text](auto request, auto writer) {
      auto made = NewWebSocketWriter(*request, writer, text);
      if (!made) return writer->Reply(400, {}, made.error().message());
      (*made)->Start(200, {{"Content-Type", "application/json"}});
      writer_.set_value(*made);
    });
    ClientOptions options;
    options.base_url = server_->Url();
    client_ = NewClient(std::move(options));
  }
  std::unique_ptr<RunningServer> server_;
  std::unique_ptr<Client> client_;
  std::promise<std::shared_ptr<ResponseWriter>> writer_;
};

std::shared_ptr<const std::string> Shared(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

TEST_F(WebSocketWriterTest, EachWriteIsAMessage) {
  Serve(true);
  auto upgraded =
      client_->Upgrade(MessagesRequest("base64url.bearer.authorization.k8s.io.x, one, two"), kSoon);
  ASSERT_TRUE(upgraded) << upgraded.error().message();
  EXPECT_EQ(upgraded->headers.Get("Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  EXPECT_EQ(upgraded->headers.Get("Sec-WebSocket-Protocol"), "one");
  auto writer = writer_.get_future().get();
  std::promise<void> closed;
  writer->OnClose([&] { closed.set_value(); });
  BlockingStream wire(std::move(upgraded->stream));
  WsReader reader(wire);
  using Frame = std::pair<int, std::string>;
  std::string big(100000, 'x');
  EXPECT_TRUE(writer->Write(Shared("a\n")));
  EXPECT_TRUE(writer->Write(Shared(big)));
  EXPECT_EQ(reader.Next(), Frame(1, "a\n"));
  EXPECT_EQ(reader.Next(), Frame(1, big));
  ASSERT_TRUE(wire.Write(ClientFrame(0x89, "hello") + ClientFrame(0x81, "whatever")));
  EXPECT_EQ(reader.Next(), Frame(10, "hello"));
  writer->Finish();
  EXPECT_EQ(reader.Next(), Frame(8, std::string("\x03\xe8", 2)));
  EXPECT_EQ(reader.Next().first, -1);
  ASSERT_EQ(closed.get_future().wait_for(kSoon), std::future_status::ready);
  EXPECT_TRUE(writer->closed());
  EXPECT_FALSE(writer->Write(Shared("late")));
  EXPECT_EQ(writer->queued_bytes(), 0U);
}

TEST_F(WebSocketWriterTest, BytesInBothForms) {
  struct Case {
    const char *offered, *agreed;
    int opcode;
    const char* message;
  } cases[] = {{"", "", 2, "foo"},
               {"binary.k8s.io", "binary.k8s.io", 2, "foo"},
               {"x, base64.binary.k8s.io", "base64.binary.k8s.io", 1, "Zm9v"}};
  RunningServer server([](auto request, auto writer) {
    auto made = NewWebSocketByteWriter(*request, writer);
    if (!made) return writer->Reply(400, {}, made.error().message());
    (*made)->Start(200, {});
    (*made)->Write(Shared("foo"));
    (*made)->Finish();
  });
  for (const Case& c : cases) {
    auto client = NewClient({server.Url(), {}, true, kSoon});
    auto upgraded = client->Upgrade(MessagesRequest(c.offered), kSoon);
    ASSERT_TRUE(upgraded) << upgraded.error().message();
    EXPECT_EQ(upgraded->headers.Get("Sec-WebSocket-Protocol"), c.agreed);
    BlockingStream wire(std::move(upgraded->stream));
    WsReader reader(wire);
    EXPECT_EQ(reader.Next(), std::make_pair(c.opcode, std::string()));
    EXPECT_EQ(reader.Next(), std::make_pair(c.opcode, std::string(c.message)));
    EXPECT_EQ(reader.Next().first, 8);
  }
  ClientResponse refusal;
  EXPECT_FALSE(
      NewClient({server.Url(), {}, true, kSoon})->Upgrade(MessagesRequest("x"), kSoon, {}, &refusal));
  EXPECT_EQ(refusal.status, 400);
}

TEST_F(WebSocketWriterTest, EndsWithItsClient) {
  for (bool politely : {true, false}) {
    writer_ = {};
    Serve(false);
    auto upgraded = client_->Upgrade(MessagesRequest(""), kSoon);
    ASSERT_TRUE(upgraded) << upgraded.error().message();
    EXPECT_FALSE(upgraded->headers.Has("Sec-WebSocket-Protocol"));
    auto writer = writer_.get_future().get();
    std::promise<void> closed;
    writer->OnClose([&] { closed.set_value(); });
    BlockingStream wire(std::move(upgraded->stream));
    WsReader reader(wire);
    EXPECT_TRUE(writer->Write(Shared("b")));
    EXPECT_EQ(reader.Next(), (std::pair<int, std::string>(2, "b")));
    if (politely) {
      ASSERT_TRUE(wire.Write(ClientFrame(0x88, "\x03\xe8")));
      EXPECT_EQ(reader.Next().first, 8);
    } else {
      wire.stream().Close();
    }
    EXPECT_EQ(closed.get_future().wait_for(kSoon), std::future_status::ready);
  }
}

TEST_F(WebSocketWriterTest, RefusesBadHandshakes) {
  Serve(true);
  ClientRequest request = MessagesRequest("");
  request.headers.Set("Sec-WebSocket-Version", "8");
  ClientResponse refusal;
  EXPECT_FALSE(client_->Upgrade(request, kSoon, {}, &refusal));
  EXPECT_EQ(refusal.status, 400);
}

}  // namespace
}  // namespace keelson::http

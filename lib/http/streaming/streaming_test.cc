// A WebSocket client, our server, and a fake of containerd's streaming server behind it.
#include "lib/http/streaming/streaming.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <map>
#include <thread>

#include "lib/base/fd.h"
#include "lib/http/streaming/spdy_test_peer.h"
#include "lib/http/streaming/streaming_client.h"
#include "lib/http/streaming/websocket.h"
#include "lib/http/testing/websocket_client.h"

namespace keelson::http {
namespace {

// Serves one connection like containerd: replies to streams, echoes stdin to stdout, reports resizes on
// stderr, and reports success when stdin ends or says "end", failure when it says "fail".
void FakeRuntime(std::unique_ptr<Stream> stream) {
  BlockingStream wire(std::move(stream));
  SpdyTestPeer peer;
  std::map<std::string, uint32_t> ids;
  std::map<uint32_t, std::string> types;
  for (;;) {
    std::string bytes = wire.Read();
    if (bytes.empty()) return;
    std::string out;
    for (auto& frame : peer.Take(bytes)) {
      if (frame.type == 1) {
        std::string type(frame.headers.Get("streamtype"));
        ids[type] = frame.stream;
        types[frame.stream] = type;
        out += SpdyTestPeer::Reply(frame.stream);
        if (type == "stdout") SpdyWriter::Ping(out, 2);
      } else if (frame.type == 0 && types[frame.stream] == "stdin") {
        const bool fail = frame.data == "fail", end = frame.data == "end";
        if (!frame.data.empty() && !fail && !end) SpdyWriter::Data(out, ids["stdout"], frame.data, false);
        if (frame.fin || fail || end) {
          SpdyWriter::Data(out, ids["error"], R"({"metadata":{},)", false);
          SpdyWriter::Data(out, ids["error"],
                           fail ? R"("status":"Failure","message":"it failed"})" : R"("status":"Success"})",
                           false);
          for (auto& [id, type] : types) SpdyWriter::RstStream(out, id, 5);
          SpdyWriter::GoAway(out, 0, 0);
        }
      } else if (frame.type == 0 && types[frame.stream] == "resize") {
        SpdyWriter::Data(out, ids["stdout"], "resized " + frame.data, false);
      }
    }
    if (!out.empty() && !wire.Write(out)) return;
  }
}

// Forwards like containerd: a pair of streams for each port; echoes data with the port in front. "fail" is
// reported on the error stream; "bye" ends the pair.
void FakePorts(std::unique_ptr<Stream> stream) {
  BlockingStream wire(std::move(stream));
  SpdyTestPeer peer;
  std::map<uint32_t, std::string> ports, types;
  for (std::string bytes = wire.Read(); !bytes.empty(); bytes = wire.Read()) {
    std::string out;
    for (auto& frame : peer.Take(bytes)) {
      if (frame.type == 1) {
        ports[frame.stream] = frame.headers.Get("port");
        types[frame.stream] = frame.headers.Get("streamtype");
        EXPECT_TRUE(frame.headers.Has("requestid"));
        out += SpdyTestPeer::Reply(frame.stream);
      } else if (frame.type == 0 && !frame.data.empty()) {
        EXPECT_EQ(types[frame.stream], "data");
        for (auto& [id, type] : types) {
          if (ports[id] != ports[frame.stream]) continue;
          const bool bye = frame.data == "bye";
          if (bye || (frame.data == "fail") == (type == "error")) {
            SpdyWriter::Data(out, id, bye ? "" : ports[id] + ":" + frame.data, bye);
          }
        }
      }
    }
    if (!out.empty() && !wire.Write(out)) return;
  }
}

class StreamingTest : public ::testing::Test {
 protected:
  StreamingTest()
      : runtime_([this](auto request, auto writer) { Runtime(*request, *writer); }),
        front_([this](auto request, auto writer) {
          bool forward = request->path.find("portforward") != std::string::npos;
          std::string token = request->query.Has("missing") ? "/none"
                              : request->query.Has("ports") ? "/ports/T"
                              : forward                     ? "/portforward/T"
                                                            : "/exec/T";
          ServeStreaming(*request, writer,
                         forward ? StreamingKind::kPortForward : StreamingKind::kRemoteCommand,
                         runtime_.Url() + token);
        }) {}

  void Runtime(const ServerRequest& request, ResponseWriter& writer) {
    if (request.path == "/none") {
      return writer.Reply(404, {{"Content-Type", "application/x"}}, "token unknown");
    }
    EXPECT_EQ(request.headers.Get("Upgrade"), "SPDY/3.1");
    std::string protocol(request.headers.Get("X-Stream-Protocol-Version"));
    auto stream = writer.Upgrade(
        {{"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}, {"X-Stream-Protocol-Version", protocol}});
    ASSERT_TRUE(stream);
    if (protocol == "v4.channel.k8s.io") return FakeRuntime(std::move(*stream));
    EXPECT_EQ(protocol, "portforward.k8s.io");
    if (request.path == "/ports/T") return FakePorts(std::move(*stream));
    BlockingStream wire(std::move(*stream));
    for (std::string bytes = wire.Read(); !bytes.empty(); bytes = wire.Read()) {
      if (!wire.Write("<" + bytes + ">")) return;
      if (bytes == "bye") return;
    }
  }

  Result<Client::Upgraded> Dial(const std::string& target, const std::string& protocols,
                                ClientResponse* refusal = nullptr) {
    client_ = NewClient({front_.Url(), {}, true, kSoon});
    return client_->Upgrade({"GET",
                             target,
                             {{"Connection", "Upgrade"},
                              {"Upgrade", "websocket"},
                              {"Sec-WebSocket-Version", "13"},
                              {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
                              {"Sec-WebSocket-Protocol", protocols}},
                             ""},
                            kSoon, {}, refusal);
  }

  RunningServer runtime_, front_;
  std::unique_ptr<Client> client_;
};

std::string Message(unsigned char channel, std::string_view text) {
  return std::string(1, static_cast<char>(channel)) + std::string(text);
}

TEST_F(StreamingTest, ExecWithHalfClosedStdin) {
  auto upgraded = Dial("/exec?stdin=true&stdout=true&stderr=true&command=cat", "v5.channel.k8s.io");
  ASSERT_TRUE(upgraded) << upgraded.error().message();
  EXPECT_EQ(upgraded->headers.Get("Sec-WebSocket-Protocol"), "v5.channel.k8s.io");
  BlockingStream wire(std::move(upgraded->stream));
  WsReader reader(wire);
  EXPECT_EQ(reader.Next(), std::make_pair(2, Message(1, "")));
  ASSERT_TRUE(wire.Write(ClientFrame(0x82, Message(0, "hello"))));
  EXPECT_EQ(reader.Next(), std::make_pair(2, Message(1, "hello")));
  ASSERT_TRUE(wire.Write(ClientFrame(0x89, "beat")));
  EXPECT_EQ(reader.Next(), std::make_pair(10, std::string("beat")));
  ASSERT_TRUE(wire.Write(ClientFrame(0x82, std::string("\xff\x00", 2))));
  EXPECT_EQ(reader.Next(), std::make_pair(2, Message(3, R"({"metadata":{},"status":"Success"})")));
  auto [opcode, payload] = reader.Next();
  EXPECT_EQ(opcode, 8);
  EXPECT_EQ(payload, std::string("\x03\xe8"));
  EXPECT_EQ(reader.Next().first, -1);
}

TEST_F(StreamingTest, TerminalResizesAndHasNoStderr) {
  auto upgraded = Dial("/exec?input=1&output=1&error=1&tty=1", "v4.channel.k8s.io");
  ASSERT_TRUE(upgraded) << upgraded.error().message();
  BlockingStream wire(std::move(upgraded->stream));
  WsReader reader(wire);
  EXPECT_EQ(reader.Next(), std::make_pair(2, Message(1, "")));
  ASSERT_TRUE(wire.Write(ClientFrame(0x82, Message(4, R"({"Width":80})"))));
  EXPECT_EQ(reader.Next(), std::make_pair(2, Message(1, R"(resized {"Width":80})")));
  ASSERT_TRUE(wire.Write(ClientFrame(0x88, "\x03\xe8")));
  EXPECT_EQ(reader.Next().first, 8);
  EXPECT_EQ(reader.Next().first, -1);
}

TEST_F(StreamingTest, Base64Messages) {
  auto upgraded = Dial("/exec?stdin=1&stdout=1", "v4.base64.channel.k8s.io");
  ASSERT_TRUE(upgraded) << upgraded.error().message();
  BlockingStream wire(std::move(upgraded->stream));
  WsReader reader(wire);
  EXPECT_EQ(reader.Next(), std::make_pair(1, std::string("1")));
  ASSERT_TRUE(wire.Write(ClientFrame(0x81, "0Zm9v")));
  EXPECT_EQ(reader.Next(), std::make_pair(1, std::string("1Zm9v")));
  ASSERT_TRUE(wire.Write(ClientFrame(0x81, "0!!")));
  EXPECT_EQ(reader.Next().first, 8);
}

TEST_F(StreamingTest, OldProtocolsHaveNoStatus) {
  for (const char* protocol : {"channel.k8s.io", ""}) {
    auto upgraded = Dial("/exec?stdin=1&stdout=1", protocol);
    ASSERT_TRUE(upgraded) << upgraded.error().message();
    EXPECT_EQ(upgraded->headers.Get("Sec-WebSocket-Protocol"), protocol);
    BlockingStream wire(std::move(upgraded->stream));
    WsReader reader(wire);
    EXPECT_EQ(reader.Next(), std::make_pair(2, Message(1, "")));
    ASSERT_TRUE(wire.Write(ClientFrame(0x82, Message(0, "a"))));
    EXPECT_EQ(reader.Next(), std::make_pair(2, Message(1, "a")));
    ASSERT_TRUE(wire.Write(ClientFrame(0x82, Message(0, "fail"))));
    EXPECT_EQ(reader.Next(), std::make_pair(2, Message(3, "it failed")));
    EXPECT_EQ(reader.Next().first, 8);
  }
  auto upgraded = Dial("/exec?stdin=1&stdout=1", "base64.channel.k8s.io");
  ASSERT_TRUE(upgraded) << upgraded.error().message();
  BlockingStream wire(std::move(upgraded->stream));
  WsReader reader(wire);
  EXPECT_EQ(reader.Next(), std::make_pair(1, std::string("1")));
  ASSERT_TRUE(wire.Write(ClientFrame(0x81, "0ZW5k")));  // "end"
  EXPECT_EQ(reader.Next().first, 8);                    // success has no message
}

TEST_F(StreamingTest, MuchDataBothWaysArrivesWhole) {
  auto upgraded = Dial("/exec?stdin=true&stdout=true", "v5.channel.k8s.io");
  ASSERT_TRUE(upgraded) << upgraded.error().message();
  BlockingStream wire(std::move(upgraded->stream));
  WsReader reader(wire);
  reader.Next();
  const size_t size = 8 << 20;
  std::jthread writer([&] {
    std::string block(size / 8, 'd');
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(wire.Write(ClientFrame(0x82, Message(0, block))));
    EXPECT_TRUE(wire.Write(ClientFrame(0x82, std::string("\xff\x00", 2))));
  });
  size_t got = 0;
  for (;;) {
    auto [opcode, payload] = reader.Next();
    if (opcode != 2) break;
    if (payload[0] == 1) got += payload.size() - 1;
  }
  EXPECT_EQ(got, size);
}

TEST_F(StreamingTest, PortForwardTunnel) {
  auto upgraded = Dial("/portforward", "SPDY/3.1+portforward.k8s.io");
  ASSERT_TRUE(upgraded) << upgraded.error().message();
  EXPECT_EQ(upgraded->headers.Get("Sec-WebSocket-Protocol"), "SPDY/3.1+portforward.k8s.io");
  BlockingStream wire(std::move(upgraded->stream));
  WsReader reader(wire);
  ASSERT_TRUE(wire.Write(ClientFrame(0x82, "frame")));
  EXPECT_EQ(reader.Next(), std::make_pair(2, std::string("<frame>")));
  ASSERT_TRUE(wire.Write(ClientFrame(0x82, "bye")));
  EXPECT_EQ(reader.Next(), std::make_pair(2, std::string("<bye>")));
  EXPECT_EQ(reader.Next(), std::make_pair(8, std::string("\x03\xe8")));
}

TEST_F(StreamingTest, PortForwardChannels) {
  auto upgraded = Dial("/portforward?ports=80&ports=8443", "v4.channel.k8s.io");
  ASSERT_TRUE(upgraded) << upgraded.error().message();
  EXPECT_EQ(upgraded->headers.Get("Sec-WebSocket-Protocol"), "v4.channel.k8s.io");
  BlockingStream wire(std::move(upgraded->stream));
  WsReader reader(wire);
  const std::string http("\x50\x00", 2), https("\xfb\x20", 2);
  EXPECT_EQ(reader.Next(), std::make_pair(2, Message(0, http)));
  EXPECT_EQ(reader.Next(), std::make_pair(2, Message(1, http)));
  EXPECT_EQ(reader.Next(), std::make_pair(2, Message(2, https)));
  EXPECT_EQ(reader.Next(), std::make_pair(2, Message(3, https)));
  ASSERT_TRUE(wire.Write(ClientFrame(0x82, Message(2, "x"))));
  EXPECT_EQ(reader.Next(), std::make_pair(2, Message(2, "8443:x")));
  ASSERT_TRUE(wire.Write(ClientFrame(0x82, Message(0, "fail"))));
  EXPECT_EQ(reader.Next(), std::make_pair(2, Message(1, "80:fail")));
  ASSERT_TRUE(wire.Write(ClientFrame(0x82, Message(3, "errors are not the client's")) +
                         ClientFrame(0x82, Message(0, "bye")) + ClientFrame(0x82, Message(2, "bye"))));
  EXPECT_EQ(reader.Next(), std::make_pair(8, std::string("\x03\xe8")));
}

TEST_F(StreamingTest, PortForwardChannelsInBase64) {
  auto upgraded = Dial("/portforward?ports=80", "v4.base64.channel.k8s.io");
  ASSERT_TRUE(upgraded) << upgraded.error().message();
  BlockingStream wire(std::move(upgraded->stream));
  WsReader reader(wire);
  EXPECT_EQ(reader.Next(), std::make_pair(1, std::string("0UAA=")));
  EXPECT_EQ(reader.Next(), std::make_pair(1, std::string("1UAA=")));
  ASSERT_TRUE(wire.Write(ClientFrame(0x81, "0eA==")));
  EXPECT_EQ(reader.Next(), std::make_pair(1, std::string("0ODA6eA==")));
}

TEST_F(StreamingTest, Refusals) {
  ClientResponse refusal;
  EXPECT_FALSE(Dial("/exec?stdout=1&missing=1", "v5.channel.k8s.io", &refusal));
  EXPECT_EQ(refusal.status, 404);
  EXPECT_EQ(refusal.body, "token unknown");
  EXPECT_EQ(refusal.headers.Get("Content-Type"), "application/x");
  EXPECT_FALSE(Dial("/exec?stdout=1", "v9.channel.k8s.io", &refusal));
  EXPECT_EQ(refusal.status, 400);
  EXPECT_FALSE(Dial("/exec", "v5.channel.k8s.io", &refusal));
  EXPECT_EQ(refusal.status, 400);
  for (const char* target :
       {"/portforward", "/portforward?ports=0", "/portforward?ports=80,x", "/portforward?ports=65536"}) {
    EXPECT_FALSE(Dial(target, "v4.channel.k8s.io", &refusal)) << target;
    EXPECT_EQ(refusal.status, 400) << target;
  }
  auto plain = client_->Do({"GET", "/exec?stdout=1", {}, ""}, kSoon);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->status, 400);
}

TEST_F(StreamingTest, BrokenClientIsToldAndCut) {
  auto upgraded = Dial("/exec?stdin=1&stdout=1", "v5.channel.k8s.io");
  ASSERT_TRUE(upgraded) << upgraded.error().message();
  BlockingStream wire(std::move(upgraded->stream));
  WsReader reader(wire);
  reader.Next();
  ASSERT_TRUE(wire.Write("\xff\xff\xff\xff\xff\xff\xff\xff rubbish"));
  auto [opcode, payload] = reader.Next();
  EXPECT_EQ(opcode, 8);
  EXPECT_EQ(payload.substr(0, 2), std::string("\x03\xea"));
  EXPECT_EQ(reader.Next().first, -1);
}

TEST_F(StreamingTest, SpdyClientsAreSpliced) {
  client_ = NewClient({front_.Url(), {}, true, kSoon});
  auto upgraded = client_->Upgrade({"POST",
                                    "/portforward",
                                    {{"Connection", "Upgrade"},
                                     {"Upgrade", "SPDY/3.1"},
                                     {"X-Stream-Protocol-Version", "portforward.k8s.io"},
                                     {"Authorization", "Bearer secret"}},
                                    ""},
                                   kSoon);
  ASSERT_TRUE(upgraded) << upgraded.error().message();
  EXPECT_EQ(upgraded->headers.Get("X-Stream-Protocol-Version"), "portforward.k8s.io");
  BlockingStream wire(std::move(upgraded->stream));
  ASSERT_TRUE(wire.Write("one"));
  EXPECT_EQ(wire.Read(), "<one>");
  wire.stream().ShutdownWrite();
  EXPECT_EQ(wire.Read(), "");
}

TEST_F(StreamingTest, ClientRunsCommands) {
  const struct {
    const char *last, *output;
    bool succeeds;
  } cases[] = {{"end", "hello", true}, {"fail", "hello", false}, {"", "hello", true}};
  for (const auto& one : cases) {
    auto command = RemoteCommandClient::Connect({runtime_.Url() + "/exec/T", {}, kSoon},
                                                {.in = true, .out = true, .err = true});
    ASSERT_TRUE(command) << command.error().message();
    std::string output;
    std::thread input;
    auto on_output = [&](bool is_stderr, std::string_view bytes) {
      EXPECT_FALSE(is_stderr);
      output += bytes;
      // The echo is here: what ends the command follows.
      if (output == "hello") {
        input.join();
        input = std::thread(
            [&] { EXPECT_TRUE(*one.last ? (*command)->SendInput(one.last) : (*command)->CloseInput()); });
      }
    };
    input = std::thread([&] { EXPECT_TRUE((*command)->SendInput("hello")); });
    const Result<int> code = (*command)->Run(on_output);
    input.join();
    EXPECT_EQ(output, one.output);
    if (one.succeeds) {
      EXPECT_TRUE(code && *code == 0) << one.last;
    } else {
      EXPECT_EQ(code ? "" : code.error().message(), "it failed");
    }
  }
}

TEST_F(StreamingTest, ClientResizesAndStops) {
  auto command = RemoteCommandClient::Connect({runtime_.Url() + "/exec/T", {}, kSoon},
                                              {.in = true, .out = true, .tty = true});
  ASSERT_TRUE(command) << command.error().message();
  std::string output;
  std::thread resize([&] { EXPECT_TRUE((*command)->Resize(80, 24)); });
  const Result<int> code = (*command)->Run([&](bool, std::string_view bytes) {
    output += bytes;
    if (output.ends_with("\n")) (*command)->Stop();
  });
  resize.join();
  EXPECT_EQ(output, "resized {\"Width\":80,\"Height\":24}\n");
  EXPECT_TRUE(!code && code.error().Is(Code::kCancelled));
  EXPECT_FALSE((*command)->SendInput("late"));
}

TEST_F(StreamingTest, ClientTellsARefusal) {
  const auto command = RemoteCommandClient::Connect({runtime_.Url() + "/none", {}, kSoon}, {.out = true});
  ASSERT_FALSE(command);
  EXPECT_NE(command.error().message().find("token unknown"), std::string::npos) << command.error().message();
  EXPECT_FALSE(RemoteCommandClient::Connect({"nonsense", {}, kSoon}, {.out = true}));
}

TEST_F(StreamingTest, ClientForwardsPorts) {
  auto dialogue = [&](const std::string& words, const std::string& answer) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    UniqueFd mine(ends[0]);
    const UniqueFd other(ends[1]);
    Result<> done;
    std::thread forward([&] {
      done = ForwardPort({runtime_.Url() + "/ports/T", {}, kSoon}, 8080, other.get());
    });
    EXPECT_EQ(::send(mine.get(), words.data(), words.size(), 0), static_cast<ssize_t>(words.size()));
    std::string got(answer.size(), ' ');
    EXPECT_EQ(::recv(mine.get(), got.data(), got.size(), MSG_WAITALL), static_cast<ssize_t>(answer.size()));
    EXPECT_EQ(got, answer);
    if (words != "fail") {
      EXPECT_EQ(::send(mine.get(), "bye", 3, 0), 3);
      mine.Reset();
    }
    forward.join();
    return done;
  };
  EXPECT_TRUE(dialogue("hello", "8080:hello"));
  const Result<> failed = dialogue("fail", "");
  EXPECT_EQ(failed ? "" : failed.error().message(), "8080:fail");
}

TEST(ExitCodeTest, ReadsTheStatusOfTheEnd) {
  EXPECT_EQ(*ExitCodeOf(""), 0);
  EXPECT_EQ(*ExitCodeOf(R"({"metadata":{},"status":"Success"})"), 0);
  EXPECT_EQ(*ExitCodeOf(R"({"status":"Failure","reason":"NonZeroExitCode","message":"m",
                          "details":{"causes":[{"reason":"ExitCode","message":"42"}]}})"),
            42);
  for (
      const char* bad :
      {"plain", "[]", R"({"status":"Failure","message":"no such container"})",
       R"({"status":"Failure","reason":"NonZeroExitCode"})",
       R"({"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"x"}]}})"}) {
    EXPECT_FALSE(ExitCodeOf(bad)) << bad;
  }
}

}  // namespace
}  // namespace keelson::http

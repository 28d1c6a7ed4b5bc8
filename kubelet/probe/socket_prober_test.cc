#include "kubelet/probe/socket_prober.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "kubelet/testing/one_shot_server.h"

namespace keelson::kubelet {
namespace {

using std::chrono::seconds;

class SocketProberTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const SocketProber::Question> QuestionOf(int port, const std::string& request) {
    return std::make_shared<const SocketProber::Question>(SocketProber::Question{
        SocketAddress::Of("127.0.0.1", port), "127.0.0.1:" + std::to_string(port), request});
  }
  Result<SocketProber::Answer> Ask(int port, const std::string& request, seconds timeout = seconds(30)) {
    std::promise<Result<SocketProber::Answer>> told;
    prober_.Ask(QuestionOf(port, request), SocketProber::After(timeout),
                [&](Result<SocketProber::Answer> answer) { told.set_value(std::move(answer)); });
    return told.get_future().get();
  }

  SocketProber prober_;
  std::jthread thread_{[this](std::stop_token stop) { EXPECT_TRUE(prober_.Run(stop)); }};
};

constexpr char kGet[] = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

TEST_F(SocketProberTest, ReadsAnswers) {
  struct Case {
    std::vector<std::string> pieces;
    int status;  // 0: an error
    std::string said;
  } cases[] = {
      {{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"}, 200, "ok"},
      {{"HTTP/1.0 404 Not Found\r\n\r\n", "until the end"}, 404, "until the end"},
      {{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "2\r\nab\r\n", "0\r\n\r\n"}, 200, "ab"},
      {{"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"}, 302, ""},
      {{"HTTP/1.1 200 OK\r\n\r\n", std::string(50000, 'x')}, 200, std::string(10 << 10, 'x')},
      {{}, 0, "EOF"},
      {{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"}, 0, "unexpected EOF"},
      {{"HTTP/1.1 20"}, 0, "unexpected EOF"},
      {{"no http at all\r\n\r\n"}, 0, "malformed HTTP response"},
  };
  for (const Case& c : cases) {
    OneShotServer server(c.pieces);
    server.Serve();
    auto answer = Ask(server.port(), kGet);
    ASSERT_EQ(answer.has_value(), c.status != 0) << c.said << " of " << ::testing::PrintToString(c.pieces);
    if (!answer) {
      EXPECT_EQ(answer.error().message().substr(0, c.said.size()), c.said);
      continue;
    }
    EXPECT_EQ(answer->status, c.status);
    EXPECT_EQ(answer->body, c.said);
    EXPECT_EQ(answer->location, c.status == 302 ? "/there" : "");
  }
}

TEST_F(SocketProberTest, Connects) {
  OneShotServer server;
  auto connected = Ask(server.port(), "");
  ASSERT_TRUE(connected) << connected.error().message();
  EXPECT_EQ(connected->status, 0);
  server.Close();
  auto refused = Ask(server.port(), "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "dial tcp 127.0.0.1:" + std::to_string(server.port()) + ": connect: connection refused");
}

TEST_F(SocketProberTest, GivesUpOnTime) {
  OneShotServer silent;  // takes the connection, never reads
  auto answer = Ask(silent.port(), kGet, seconds(1));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message(),
            "context deadline exceeded (Client.Timeout exceeded while awaiting headers)");
}

TEST_F(SocketProberTest, ManyAtOnceAndTheEnd) {
  OneShotServer silent;
  std::atomic<int> cancelled = 0;
  for (int i = 0; i < 12; ++i) {
    prober_.Ask(QuestionOf(silent.port(), kGet), SocketProber::After(seconds(60)),
                [&](Result<SocketProber::Answer> answer) {
                  ASSERT_FALSE(answer);
                  EXPECT_TRUE(answer.error().Is(Code::kCancelled));
                  ++cancelled;
                });
  }
  thread_.request_stop();
  thread_.join();
  EXPECT_EQ(cancelled, 12);
  bool told = false;
  prober_.Ask(QuestionOf(silent.port(), kGet), SocketProber::After(seconds(60)),
              [&](Result<SocketProber::Answer> answer) { told = !answer; });
  EXPECT_TRUE(told) << "nobody would ever answer";
}

TEST(SocketAddressTest, OnlyLiterals) {
  EXPECT_EQ(SocketAddress::Of("10.0.0.1", 80).size, sizeof(sockaddr_in));
  EXPECT_EQ(SocketAddress::Of("fd00::1", 80).size, sizeof(sockaddr_in6));
  EXPECT_EQ(SocketAddress::Of("localhost", 80).size, 0u);
  EXPECT_EQ(SocketAddress::Of("", 80).size, 0u);
}

}  // namespace
}  // namespace keelson::kubelet

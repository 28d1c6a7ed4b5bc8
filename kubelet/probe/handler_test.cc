#include "kubelet/probe/handler.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/probe/socket_prober.h"
#include "kubelet/testing/one_shot_server.h"
#include "lib/api/codec/codec.h"

namespace keelson::kubelet {
namespace {

using std::chrono::seconds;

class HookTest : public ::testing::Test {
 protected:
  Result<> Run(const std::string& json, seconds timeout, std::stop_token stop = {}) {
    corev1::LifecycleHandler hook;
    EXPECT_TRUE(api::DecodeJson(json, hook)) << json;
    return runner_->Run(hook, {spec_, "id", "c", "127.0.0.1"}, timeout, std::move(stop));
  }
  static std::string HttpGet(int port) {
    return R"({"httpGet":{"path":"/hook","port":)" + std::to_string(port) + "}}";
  }

  corev1::PodSpec spec_;
  cri::FakeRuntime runtime_;
  SocketProber sockets_;
  std::unique_ptr<HandlerRunner> runner_ = NewHandlerRunner(runtime_, sockets_);
};

TEST_F(HookTest, AnyAnswerWillDo) {
  for (seconds timeout : {seconds(0), seconds(30)}) {
    for (const char* status : {"200 OK", "404 Not Found", "500 Internal Server Error"}) {
      OneShotServer server({std::string("HTTP/1.1 ") + status + "\r\nContent-Length: 0\r\n\r\n"});
      server.Serve();
      auto ran = Run(HttpGet(server.port()), timeout);
      EXPECT_TRUE(ran) << status << " within " << timeout.count() << " s: " << ran.error().message();
      const std::string heard = server.Heard();
      EXPECT_EQ(heard.rfind("GET /hook HTTP/1.1\r\n", 0), 0u) << heard;
      EXPECT_NE(heard.find("kube-lifecycle/1.36"), std::string::npos) << heard;
    }
  }
}

TEST_F(HookTest, WhatFails) {
  OneShotServer nobody;
  nobody.Close();
  OneShotServer silent;
  struct Case {
    std::string hook;
    int timeout;
    std::string why;
  } cases[] = {
      {HttpGet(nobody.port()), 0, "Get \"http://127.0.0.1:" + std::to_string(nobody.port()) + "/hook\": "},
      {HttpGet(silent.port()), 1, "Get \"http://127.0.0.1:" + std::to_string(silent.port()) + "/hook\": "},
      {R"({"httpGet":{"port":"nope"}})", 0, "couldn't find port: nope"},
      {R"({"tcpSocket":{"port":80}})", 0, "invalid handler"},
  };
  for (const Case& c : cases) {
    auto ran = Run(c.hook, seconds(c.timeout));
    ASSERT_FALSE(ran) << c.hook;
    EXPECT_EQ(ran.error().message().rfind(c.why, 0), 0u) << ran.error().message();
  }
}

// Takes connections in turn: reads until there is something, answers, and waits for the peer to go.
std::vector<std::string> AnswerEach(OneShotServer& server, std::vector<std::string> answers) {
  std::vector<std::string> heard;
  for (const std::string& answer : answers) {
    UniqueFd peer = server.Accept();
    char buffer[4096];
    const ssize_t size = ::recv(peer.get(), buffer, sizeof buffer, 0);
    heard.emplace_back(buffer, static_cast<size_t>(std::max<ssize_t>(size, 0)));
    ::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    ::shutdown(peer.get(), SHUT_WR);
    while (::recv(peer.get(), buffer, sizeof buffer, 0) > 0) {
    }
  }
  return heard;
}

constexpr char kPlainAnswer[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

TEST_F(HookTest, AnHttpsHookThatIsAnsweredInHttpIsAskedInHttp) {
  OneShotServer server;
  auto heard = std::async(std::launch::async, [&] {
    return AnswerEach(server, {kPlainAnswer, kPlainAnswer});
  });
  corev1::LifecycleHandler hook;
  const std::string port = std::to_string(server.port());
  ASSERT_TRUE(api::DecodeJson(R"({"httpGet":{"scheme":"HTTPS","path":"/hook","port":)" + port +
                                  R"(,"httpHeaders":[{"name":"Authorization","value":"secret"},
                                     {"name":"X-Kept","value":"yes"}]}})",
                              hook));
  std::vector<std::string> told;
  auto ran =
      runner_->Run(hook, {spec_, "id", "c", "127.0.0.1", [&](const auto& host) { told.push_back(host); }},
                   seconds(10), {});
  EXPECT_TRUE(ran) << ran.error().message();
  const auto requests = heard.get();
  EXPECT_EQ(requests[0].substr(0, 1), "\x16") << "TLS was not tried";
  EXPECT_EQ(requests[1].rfind("GET /hook HTTP/1.1\r\n", 0), 0u) << requests[1];
  EXPECT_NE(requests[1].find("X-Kept: yes"), std::string::npos) << requests[1];
  EXPECT_EQ(requests[1].find("secret"), std::string::npos) << requests[1];
  EXPECT_EQ(told, (std::vector<std::string>{"127.0.0.1:" + port}));
}

TEST_F(HookTest, WhatIsNoHttpIsNotAskedAgain) {
  for (const char* answer : {"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 200 OK\r\n\r\n"}) {
    OneShotServer server;
    auto heard = std::async(std::launch::async, [&] { return AnswerEach(server, {answer}); });
    corev1::LifecycleHandler hook;
    const std::string get = R"({"httpGet":{"scheme":"HTTPS","port":)" + std::to_string(server.port()) + "}}";
    ASSERT_TRUE(api::DecodeJson(get, hook));
    const bool http = std::string_view(answer).starts_with("HTTP");
    std::string why;
    if (http) {  // a probe, which is never asked otherwise than it says
      corev1::ProbeHandler probe;
      ASSERT_TRUE(api::DecodeJson(get, probe));
      const ProbeOutcome outcome = runner_->Probe(probe, {spec_, "id", "c", "127.0.0.1"}, seconds(10), {});
      EXPECT_EQ(outcome.kind, ProbeOutcome::kFailure);
      why = outcome.output;
    } else {
      auto ran = runner_->Run(hook, {spec_, "id", "c", "127.0.0.1"}, seconds(10), {});
      ASSERT_FALSE(ran);
      why = ran.error().message();
    }
    EXPECT_EQ(heard.get().size(), 1u);
    EXPECT_EQ(why.find("server gave HTTP response to HTTPS client") != std::string::npos, http) << why;
  }
}

TEST_F(HookTest, ASleepEndsWithTheTimeThatThereIs) {
  struct Case {
    int wanted, timeout;
    seconds takes;
  } cases[] = {{5, 30, seconds(5)}, {30, 2, seconds(2)}, {7, 0, seconds(7)}};
  for (const Case& c : cases) {
    FakeClock clock;
    auto runner = NewHandlerRunner(runtime_, sockets_, clock);
    corev1::LifecycleHandler hook;
    hook.mutable_sleep()->set_seconds(c.wanted);
    auto slept = std::async(std::launch::async, [&] {
      return runner->Run(hook, {spec_, "id", "c", ""}, seconds(c.timeout), {});
    });
    clock.AwaitWaiters(1);
    clock.Advance(c.takes - std::chrono::milliseconds(1));
    EXPECT_EQ(slept.wait_for(seconds(0)), std::future_status::timeout) << c.wanted;
    clock.Advance(std::chrono::milliseconds(1));
    EXPECT_TRUE(slept.get()) << c.wanted;
  }
}

TEST_F(HookTest, WithoutLimitUntilTheStop) {
  OneShotServer silent;
  std::stop_source stop;
  auto running = std::async(std::launch::async,
                            [&] { return Run(HttpGet(silent.port()), seconds(0), stop.get_token()); });
  UniqueFd asked = silent.Accept();
  EXPECT_EQ(running.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  stop.request_stop();
  EXPECT_FALSE(running.get());
}

}  // namespace
}  // namespace keelson::kubelet

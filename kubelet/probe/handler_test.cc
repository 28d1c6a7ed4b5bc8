#include "kubelet/probe/handler.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "kubelet/cri/fake.h"
#include "kubelet/probe/socket_prober.h"
#include "kubelet/testing/one_shot_server.h"
#include "lib/api/codec.h"

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

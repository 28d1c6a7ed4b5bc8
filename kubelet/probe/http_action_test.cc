#include "kubelet/probe/http_action.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"

namespace keelson::kubelet {
namespace {

corev1::HTTPGetAction Action(const std::string& json) {
  corev1::HTTPGetAction action;
  EXPECT_TRUE(api::DecodeJson(json, action)) << json;
  return action;
}

TEST(HttpActionTest, Requests) {
  corev1::PodSpec spec;
  ASSERT_TRUE(api::DecodeJson(
      R"({"containers":[{"name":"c","ports":[{"name":"web","containerPort":8080}]}]})", spec));
  const HandlerTarget target{spec, "id", "c", "10.1.2.3"};
  struct Case {
    const char *action, *url, *request;
  } cases[] = {
      {R"({"port":80})", "http://10.1.2.3:80/",
       "GET / HTTP/1.1\r\nHost: 10.1.2.3:80\r\nUser-Agent: a\r\nAccept: */*\r\nConnection: close\r\n\r\n"},
      {R"({"port":"web","path":"x?y=1","host":"fd00::1"})", "http://[fd00::1]:8080/x?y=1",
       "GET /x?y=1 HTTP/1.1\r\nHost: [fd00::1]:8080\r\nUser-Agent: a\r\nAccept: */*\r\nConnection: "
       "close\r\n\r\n"},
      {R"({"port":"81","scheme":"HTTPS","httpHeaders":[{"name":"host","value":"h"},{"name":"accept","value":""},
           {"name":"User-Agent","value":"me"},{"name":"X","value":"1"},{"name":"X","value":"2"}]})",
       "https://10.1.2.3:81/",
       "GET / HTTP/1.1\r\nhost: h\r\nUser-Agent: me\r\nX: 1\r\nX: 2\r\nConnection: close\r\n\r\n"},
  };
  for (const Case& c : cases) {
    const corev1::HTTPGetAction action = Action(c.action);
    auto url = UrlOf(action, target);
    ASSERT_TRUE(url) << c.action;
    EXPECT_EQ(url->ToString(), c.url);
    EXPECT_EQ(RequestText(*url, HeadersOf(action, "a")), c.request);
  }
  auto unknown = UrlOf(Action(R"({"port":"nope"})"), target);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message(), "couldn't find port: nope");
}

TEST(HttpActionTest, AnswersAndRedirects) {
  const ProbeUrl base{.host = "10.0.0.1", .port = 8080, .target = "/a/b?q"};
  struct Case {
    int status;
    const char* location;
    const char* next;  // null: it ends
    ProbeOutcome::Kind kind;
    const char* output;
  } cases[] = {
      {200, "", nullptr, ProbeOutcome::kSuccess, "body"},
      {299, "", nullptr, ProbeOutcome::kSuccess, "body"},
      {304, "/x", nullptr, ProbeOutcome::kWarning, "Probe terminated redirects, Response body: body"},
      {302, "", nullptr, ProbeOutcome::kWarning, "Probe terminated redirects, Response body: body"},
      {302, "http://0.0.0.0/", nullptr, ProbeOutcome::kWarning,
       "Probe terminated redirects, Response body: body"},
      {404, "/x", nullptr, ProbeOutcome::kFailure, "HTTP probe failed with statuscode: 404"},
      {500, "", nullptr, ProbeOutcome::kFailure, "HTTP probe failed with statuscode: 500"},
      {199, "", nullptr, ProbeOutcome::kFailure, "HTTP probe failed with statuscode: 199"},
      {302, "http://10.0.0.1:99999/", nullptr, ProbeOutcome::kFailure,
       "failed to parse Location header \"http://10.0.0.1:99999/\""},
      {301, "/x?y#z", "http://10.0.0.1:8080/x?y", {}, ""},
      {302, "c", "http://10.0.0.1:8080/a/c", {}, ""},
      {303, "?z", "http://10.0.0.1:8080/a/b?z", {}, ""},
      {307, "http://10.0.0.1/", "http://10.0.0.1:80/", {}, ""},
      {308, "HTTPS://10.0.0.1", "https://10.0.0.1:443/", {}, ""},
      {302, "//u@10.0.0.1:81?q", "http://10.0.0.1:81/?q", {}, ""},
  };
  for (const Case& c : cases) {
    auto verdict = Judge(base, 0, c.status, c.location, "body");
    if (c.next) {
      ASSERT_TRUE(std::holds_alternative<ProbeUrl>(verdict)) << c.status << " " << c.location;
      EXPECT_EQ(std::get<ProbeUrl>(verdict).ToString(), c.next);
    } else {
      ASSERT_TRUE(std::holds_alternative<ProbeOutcome>(verdict)) << c.status << " " << c.location;
      EXPECT_EQ(std::get<ProbeOutcome>(verdict).kind, c.kind) << c.status << " " << c.location;
      EXPECT_EQ(std::get<ProbeOutcome>(verdict).output, c.output);
    }
  }
  auto tenth = Judge(base, 9, 302, "/x", "");
  EXPECT_TRUE(std::holds_alternative<ProbeUrl>(tenth));
  auto last = Judge(base, 10, 302, "/x", "");
  ASSERT_TRUE(std::holds_alternative<ProbeOutcome>(last));
  EXPECT_EQ(std::get<ProbeOutcome>(last).output,
            "Get \"http://10.0.0.1:8080/x\": stopped after 10 redirects");
}

}  // namespace
}  // namespace keelson::kubelet

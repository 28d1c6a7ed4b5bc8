#include "controlplane/apiserver/request/browser_headers.h"

#include <gtest/gtest.h>

#include "controlplane/apiserver/testing/recorder.h"

namespace keelson::apiserver {
namespace {

const std::vector<std::string> kOrigins = {"^https://console\\.example\\.com(:|$)", "//localhost:"};

// The recorded reply to a request of an origin. The handler behind answers 200, or starts a stream for "/watch".
std::shared_ptr<Recorder> Ask(const std::vector<std::string>& origins,
                              const std::vector<std::string>& directives, const std::string& method,
                              const std::string& origin, const std::string& path = "/api") {
  const auto handler =
      WithBrowserHeaders(origins, directives, [](auto request, std::shared_ptr<http::ResponseWriter> writer) {
        if (request->path == "/watch") return writer->Start(200, {{"Content-Type", "application/json"}});
        writer->Reply(200, {{"Access-Control-Allow-Origin", "*"}}, "body");
      });
  auto recorder = std::make_shared<Recorder>();
  EXPECT_TRUE(handler) << handler.error().message();
  if (!handler) return recorder;
  auto request = std::make_shared<http::ServerRequest>();
  request->method = method;
  request->path = path;
  if (!origin.empty()) request->headers.Add("Origin", origin);
  (*handler)(request, recorder);
  return recorder;
}

TEST(BrowserHeaders, AreForOriginsThatAreAllowed) {
  const struct {
    const char *origin, *allowed;
  } cases[] = {
      {"https://console.example.com", "https://console.example.com"},
      {"https://console.example.com:8443", "https://console.example.com:8443"},
      {"http://localhost:3000", "http://localhost:3000"},
      {"https://console.example.com.evil.example", "*"},
      {"https://other.example.com", "*"},
      {"", "*"},
  };
  for (const auto& c : cases) {
    const auto reply = Ask(kOrigins, {}, "GET", c.origin);
    EXPECT_EQ(reply->status, 200);
    EXPECT_EQ(reply->body, "body");
    ASSERT_EQ(reply->headers.All("Access-Control-Allow-Origin").size(), 1u)
        << "of the server, not of a backend";
    EXPECT_EQ(reply->headers.Get("Access-Control-Allow-Origin"), c.allowed) << c.origin;
    const bool allowed = c.allowed != std::string("*");
    EXPECT_EQ(reply->headers.Get("Access-Control-Allow-Credentials"), allowed ? "true" : "") << c.origin;
    EXPECT_EQ(reply->headers.Get("Access-Control-Expose-Headers"), allowed ? "Date" : "") << c.origin;
  }
  EXPECT_EQ(
      Ask(kOrigins, {}, "GET", "http://localhost:1", "/watch")->headers.Get("Access-Control-Allow-Origin"),
      "http://localhost:1");
}

// Without credentials a browser asks first.
TEST(BrowserHeaders, AnswerPreflights) {
  const auto reply = Ask(kOrigins, {"max-age=60"}, "OPTIONS", "http://localhost:3000");
  EXPECT_EQ(reply->status, 204);
  EXPECT_EQ(reply->headers.Get("Access-Control-Allow-Methods"), "POST, GET, OPTIONS, PUT, DELETE, PATCH");
  EXPECT_NE(reply->headers.Get("Access-Control-Allow-Headers").find("Authorization"), std::string::npos);
  EXPECT_EQ(reply->headers.Get("Strict-Transport-Security"), "max-age=60");
  EXPECT_NE(reply->headers.Get("Audit-Id"), "");
  EXPECT_EQ(Ask(kOrigins, {}, "OPTIONS", "https://evil.example")->status, 200) << "as any other request";
}

TEST(BrowserHeaders, OfTransportSecurity) {
  const std::vector<std::string> directives = {"max-age=31536000", "includeSubDomains", "preload"};
  for (const char* path : {"/api", "/watch"}) {
    const auto reply = Ask({}, directives, "GET", "https://console.example.com", path);
    EXPECT_EQ(reply->headers.Get("Strict-Transport-Security"),
              "max-age=31536000; includeSubDomains; preload");
    EXPECT_NE(reply->headers.Get("Access-Control-Allow-Origin"), "https://console.example.com");
  }
  EXPECT_FALSE(Ask({}, {}, "GET", "")->headers.Has("Strict-Transport-Security"));
}

TEST(BrowserHeaders, MistakesEndTheStart) {
  const struct {
    std::vector<std::string> origins, directives;
    const char* says;
  } cases[] = {
      {{"("}, {}, "--cors-allowed-origins has an invalid regular expression"},
      {{""}, {}, "empty value in --cors-allowed-origins"},
      {{"example.com"}, {}, "does not pin to start/end of host in the origin header"},
      {{"^https://example"}, {}, ""},  // has "//" and ":"
      {{"^example"}, {}, "does not pin to start/end of host in the origin header"},
      {{}, {"max-age"}, "--strict-transport-security-directives invalid, allowed values: max-age=expireTime"},
      {{}, {"max-age=1=2"}, "--strict-transport-security-directives invalid"},
      {{}, {" "}, "empty value in strict-transport-security-directives"},
  };
  for (const auto& c : cases) {
    const auto made = WithBrowserHeaders(c.origins, c.directives, nullptr);
    EXPECT_EQ(static_cast<bool>(made), *c.says == '\0') << c.says;
    if (!made) {
      EXPECT_NE(made.error().message().find(c.says), std::string::npos) << made.error().message();
    }
  }
}

}  // namespace
}  // namespace keelson::apiserver

#include "proxy/serving/pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keelson::proxy {
namespace {

using ::testing::HasSubstr;

// Keeps the one reply.
class Recorder : public http::ResponseWriter {
 public:
  void Reply(int status, http::Headers headers, std::string body) override {
    status_ = status;
    type_ = headers.Get("Content-Type");
    body_ = std::move(body);
  }
  void ReplyShared(int, http::Headers, std::vector<std::shared_ptr<const std::string>>) override {}
  void Start(int, http::Headers) override {}
  bool Write(std::shared_ptr<const std::string>) override { return false; }
  void Finish() override {}
  size_t queued_bytes() const override { return 0; }
  void OnClose(std::function<void()>) override {}
  bool closed() const override { return false; }
  Result<std::unique_ptr<http::Stream>> Upgrade(http::Headers) override {
    return Error(Code::kBadRequest, "none");
  }

  int status_ = 0;
  std::string type_, body_;
};

Recorder Get(const http::Handler& handler, const std::string& path, const std::string& accept = "") {
  auto request = std::make_shared<http::ServerRequest>();
  request->method = "GET";
  request->path = path;
  if (!accept.empty()) request->headers.Add("Accept", accept);
  auto writer = std::make_shared<Recorder>();
  handler(request, writer);
  return *writer;
}

TEST(MetricsPages, ShowWhatTheProxyIsAndRunsWith) {
  const Running running("nftables", R"({"kubeproxy.config.k8s.io":{}})");
  const http::Handler pages = MetricsPages(running, {.flags = {{"proxy-mode", "nftables"}, {"v", "2"}}});
  EXPECT_EQ(Get(pages, "/proxyMode").body_, "nftables");
  EXPECT_EQ(Get(pages, "/healthz").body_, "ok");
  EXPECT_EQ(Get(pages, "/configz").type_, "application/json");
  EXPECT_THAT(Get(pages, "/statusz").body_, HasSubstr("\nkube-proxy statusz\n"));
  EXPECT_THAT(Get(pages, "/statusz").body_,
              HasSubstr("\nPaths: /configz /flagz /healthz /metrics /proxyMode\n"));
  EXPECT_THAT(Get(pages, "/flagz").body_, HasSubstr("\nproxy-mode=nftables\nv=2\n"));
  const Recorder object = Get(pages, "/flagz", "application/json;v=v1beta1;g=config.k8s.io;as=Flagz");
  EXPECT_EQ(object.type_, "application/json");
  EXPECT_THAT(object.body_, HasSubstr(R"("flags":{"proxy-mode":"nftables","v":"2"})"));
  EXPECT_EQ(Get(pages, "/flagz", "application/yaml").status_, 406);
  EXPECT_EQ(Get(pages, "/else").status_, 404);
}

TEST(MetricsPages, GatesTakePagesAway) {
  const Running running("nftables", "{}");
  const http::Handler pages = MetricsPages(running, {.statusz = false, .flagz = false});
  EXPECT_EQ(Get(pages, "/statusz").status_, 404);
  EXPECT_EQ(Get(pages, "/flagz").status_, 404);
}

}  // namespace
}  // namespace keelson::proxy

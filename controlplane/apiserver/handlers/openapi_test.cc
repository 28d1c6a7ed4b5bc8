#include "controlplane/apiserver/handlers/openapi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "controlplane/apiserver/testing/recorder.h"
#include "lib/http/gzip.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

class OpenApi : public testing::Test {
 protected:
  std::shared_ptr<Recorder> Get(const std::string& target, http::Headers headers = {}) {
    RecordedRequest request(target, std::move(headers));
    EXPECT_TRUE(handler_.Handle(request.context)) << target;
    return request.reply;
  }
  // The URL of a group's document as the index has it.
  std::string Url(std::string_view path) {
    json::value index = json::parse(Get("/openapi/v3")->body);
    return std::string(index.at("paths").at(path).at("serverRelativeURL").as_string());
  }

  FakeClock clock_;
  OpenApiHandler handler_{clock_};
};

TEST_F(OpenApi, DocumentsOfVersionThreeNeverChangeUnderTheirUrl) {
  std::string url = Url("apis/storage.k8s.io/v1");
  auto reply = Get(url);
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->headers.Get("Content-Type"), "application/json");
  EXPECT_EQ(reply->headers.Get("Cache-Control"), "public, immutable");
  EXPECT_THAT(std::string(reply->headers.Get("Expires")), HasSubstr(" GMT"));
  std::string etag(reply->headers.Get("ETag"));
  EXPECT_EQ(url, "/openapi/v3/apis/storage.k8s.io/v1?hash=" + etag.substr(1, etag.size() - 2));
  EXPECT_EQ(json::parse(reply->body).at("openapi"), "3.0.0");

  auto unchanged = Get("/openapi/v3/apis/storage.k8s.io/v1", {{"If-None-Match", "W/\"x\", " + etag}});
  EXPECT_EQ(unchanged->status, 304);
  EXPECT_EQ(unchanged->body, "");
  auto plain = Get("/openapi/v3/apis/storage.k8s.io/v1");
  EXPECT_EQ(plain->headers.Get("Cache-Control"), "no-cache, private");
  EXPECT_FALSE(plain->headers.Has("Expires"));

  auto elsewhere = Get("/openapi/v3/apis/storage.k8s.io/v1?hash=0123");
  EXPECT_EQ(elsewhere->status, 301);
  EXPECT_EQ(elsewhere->headers.Get("Location"), url);
}

// APIs disabled by --runtime-config are in no document; enabled ones are.
TEST_F(OpenApi, DocumentsFollowTheRuntimeConfig) {
  auto enablement = ApiEnablement::Parse({"certificates.k8s.io/v1beta1=true", "apps/v1/deployments=false"});
  ASSERT_TRUE(enablement) << enablement.error().message();
  OpenApiHandler changed(clock_, *enablement);
  auto paths = [](OpenApiHandler& handler, const std::string& target) {
    RecordedRequest request(target, {});
    EXPECT_TRUE(handler.Handle(request.context)) << target;
    return json::parse(request.reply->body).at("paths").as_object();
  };
  constexpr const char* kDeployments = "/apis/apps/v1/deployments";
  constexpr const char* kRequests = "/apis/certificates.k8s.io/v1beta1/podcertificaterequests";
  for (const char* document : {"/openapi/v2", "/openapi/v3/apis/apps/v1"}) {
    EXPECT_TRUE(paths(handler_, document).contains(kDeployments)) << document;
    EXPECT_FALSE(paths(changed, document).contains(kDeployments)) << document;
  }
  EXPECT_FALSE(paths(handler_, "/openapi/v2").contains(kRequests));
  EXPECT_TRUE(paths(changed, "/openapi/v2").contains(kRequests));
  EXPECT_FALSE(paths(handler_, "/openapi/v3").contains("apis/certificates.k8s.io/v1beta1"));
  EXPECT_TRUE(paths(changed, "/openapi/v3").contains("apis/certificates.k8s.io/v1beta1"));
}

TEST_F(OpenApi, FormsAndRefusals) {
  struct Case {
    const char *target, *accept;
    int status;
    const char* type;
  };
  constexpr Case kCases[] = {
      {"/openapi/v3/apis/node.k8s.io/v1", "*/*", 200, "application/json"},
      {"/openapi/v3/apis/node.k8s.io/v1", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf", 200,
       "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"},
      {"/openapi/v3/apis/node.k8s.io/v1", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf", 200,
       "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"},
      {"/openapi/v3/apis/node.k8s.io/v1", "text/html", 406, ""},
      {"/openapi/v3/apis/nope/v1", "*/*", 404, "text/plain; charset=utf-8"},
      {"/openapi/v3/api/v2", "*/*", 404, "text/plain; charset=utf-8"},
      {"/openapi/v3/", "text/html", 200, "application/json"},
      {"/openapi/v2", "text/html", 406, ""},
  };
  for (const Case& c : kCases) {
    auto reply = Get(c.target, {{"Accept", c.accept}});
    EXPECT_EQ(reply->status, c.status) << c.target << " " << c.accept;
    EXPECT_EQ(reply->headers.Get("Content-Type"), c.type) << c.target << " " << c.accept;
  }
}

// Documents of extension servers.
TEST_F(OpenApi, FurtherPartsJoinVersionTwo) {
  const auto plain = Get("/openapi/v2");
  std::string identity = "1", schemas = R"("com.example.Flunder":{"type":"object"})";
  bool known = false;
  handler_.SetFurtherV2([&](OpenApiForm form) -> OpenApiHandler::FurtherV2 {
    if (!known) return {};
    CustomFragment fragment{http::CompressPiece("protobuf"), {}};
    if (form == OpenApiForm::kV2Json) {
      fragment = {http::CompressPiece(R"("/apis/wardle.example.com/v1/flunders":{})"),
                  http::CompressPiece(schemas)};
    }
    return {identity, std::make_shared<const CustomFragment>(std::move(fragment))};
  });
  EXPECT_EQ(Get("/openapi/v2")->headers.Get("ETag"), plain->headers.Get("ETag"));
  known = true;
  const auto with = Get("/openapi/v2");
  EXPECT_NE(with->headers.Get("ETag"), plain->headers.Get("ETag"));
  const json::value document = json::parse(with->body);
  EXPECT_TRUE(document.at("paths").as_object().contains("/apis/wardle.example.com/v1/flunders"));
  EXPECT_TRUE(document.at("definitions").as_object().contains("com.example.Flunder"));
  EXPECT_THAT(
      Get("/openapi/v2", {{"Accept", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"}})->body,
      HasSubstr("protobuf"));
  identity = "2";
  schemas.clear();
  const auto paths_only = Get("/openapi/v2");
  EXPECT_NE(paths_only->headers.Get("ETag"), with->headers.Get("ETag"));
  EXPECT_FALSE(json::parse(paths_only->body).at("definitions").as_object().contains("com.example.Flunder"));
}

TEST_F(OpenApi, IsCompressedForWhoWantsIt) {
  auto plain = Get("/openapi/v3/apis/node.k8s.io/v1");
  auto gzip = Get("/openapi/v3/apis/node.k8s.io/v1", {{"Accept-Encoding", "gzip"}});
  EXPECT_EQ(gzip->headers.Get("Content-Encoding"), "gzip");
  EXPECT_EQ(gzip->headers.Get("Vary"), "Accept, Accept-Encoding");
  EXPECT_EQ(http::Gunzip(gzip->body), plain->body);
}

TEST_F(OpenApi, WhatNobodyAsksForIsGivenUp) {
  Get("/openapi/v3/apis/node.k8s.io/v1");
  Get("/openapi/v3/apis/policy/v1");
  EXPECT_EQ(handler_.kept(), 2U);
  clock_.Advance(std::chrono::minutes(4));
  auto before = Get("/openapi/v3/apis/node.k8s.io/v1");
  clock_.Advance(std::chrono::minutes(4));
  handler_.DropIdle();
  EXPECT_EQ(handler_.kept(), 1U);
  clock_.Advance(std::chrono::minutes(6));
  handler_.DropIdle();
  EXPECT_EQ(handler_.kept(), 0U);
  auto after = Get("/openapi/v3/apis/node.k8s.io/v1");
  EXPECT_EQ(after->body, before->body);
  EXPECT_EQ(after->headers.Get("ETag"), before->headers.Get("ETag"));
}

}  // namespace
}  // namespace keelson::apiserver

#include "controlplane/apiserver/endpoints/list_options.h"

#include <gtest/gtest.h>

#include "controlplane/apiserver/testing/recorder.h"

namespace keelson::apiserver {
namespace {

TEST(ListOptions, Parameters) {
  RecordedRequest request(
      "/api/v1/"
      "pods?labelSelector=a%3Db&fieldSelector=status.phase%3DRunning&limit=5&continue=x&timeoutSeconds=7"
      "&resourceVersion=3&resourceVersionMatch=Exact&allowWatchBookmarks&sendInitialEvents=FALSE");
  Result<registry::ListOptions> options = ParseListOptions(request.context);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->label_selector, "a=b");
  EXPECT_EQ(options->field_selector, "status.phase=Running");
  EXPECT_EQ(options->limit, 5);
  EXPECT_EQ(options->continue_token, "x");
  EXPECT_EQ(options->timeout_seconds, 7);
  EXPECT_EQ(options->resource_version, "3");
  EXPECT_EQ(options->resource_version_match, "Exact");
  EXPECT_TRUE(options->allow_bookmarks);
  EXPECT_EQ(options->send_initial_events, false);
}

TEST(ListOptions, Flags) {
  struct Case {
    const char* query;
    bool set;
  };
  constexpr Case kCases[] = {{"", false},        {"x", true},        {"x=", true},   {"x=true", true},
                             {"x=1", true},      {"x=yes", true},    {"x=0", false}, {"x=false", false},
                             {"x=FALSE", false}, {"x=False", false}, {"x=00", true}};
  for (const Case& c : kCases) EXPECT_EQ(IsSet(http::Query::Parse(c.query), "x"), c.set) << c.query;
}

TEST(ListOptions, Numbers) {
  struct Case {
    const char *query, *error;
  };
  constexpr Case kCases[] = {
      {"limit=ten", "strconv.ParseInt: parsing \"ten\": invalid syntax"},
      {"limit=", "strconv.ParseInt: parsing \"\": invalid syntax"},
      {"limit=1.5", "strconv.ParseInt: parsing \"1.5\": invalid syntax"},
      {"limit=%2B-1", "strconv.ParseInt: parsing \"+-1\": invalid syntax"},
      {"timeoutSeconds=99999999999999999999",
       "strconv.ParseInt: parsing \"99999999999999999999\": value out of range"},
  };
  for (const Case& c : kCases) {
    RecordedRequest request(std::string("/api/v1/pods?") + c.query);
    Result<registry::ListOptions> options = ParseListOptions(request.context);
    ASSERT_FALSE(options) << c.query;
    EXPECT_EQ(options.error().code(), Code::kBadRequest);
    EXPECT_EQ(options.error().message(), c.error);
  }
  EXPECT_EQ(ParseListOptions(RecordedRequest("/api/v1/pods?limit=-3").context)->limit, 0);
  EXPECT_EQ(ParseListOptions(RecordedRequest("/api/v1/pods?limit=%2B3").context)->limit, 3);
}

}  // namespace
}  // namespace keelson::apiserver

#include "controlplane/apiserver/connect/log_options.h"

#include <gtest/gtest.h>

namespace keelson::apiserver {
namespace {

TEST(LogOptions, AreCheckedBeforeAKubeletIsAsked) {
  struct Case {
    const char *query, *expected;
  } cases[] = {
      {"", "ok"},
      {"tailLines=0&limitBytes=1&sinceSeconds=1&follow=true&stream=All", "ok"},
      {"sinceTime=2026-01-01T00:00:00Z&stream=Stderr", "ok"},
      {"tailLines=x", "400 strconv.ParseInt: parsing \"x\": invalid syntax"},
      {"limitBytes=99999999999999999999",
       "400 strconv.ParseInt: parsing \"99999999999999999999\": value out of range"},
      {"sinceTime=yesterday", "400 parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\""},
      {"tailLines=-1",
       "422 PodLogOptions \"web\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to "
       "0"},
      {"limitBytes=0",
       "422 PodLogOptions \"web\" is invalid: limitBytes: Invalid value: 0: must be greater than 0"},
      {"sinceSeconds=0",
       "422 PodLogOptions \"web\" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0"},
      {"sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z",
       "422 PodLogOptions \"web\" is invalid: : Forbidden: at most one of `sinceTime` or `sinceSeconds` may "
       "be "
       "specified"},
      {"stream=x",
       "422 PodLogOptions \"web\" is invalid: stream: Unsupported value: \"x\": supported values: \"All\", "
       "\"Stderr\", \"Stdout\""},
      {"stream=Stdout&tailLines=1",
       "422 PodLogOptions \"web\" is invalid: : Forbidden: `tailLines` and specific `stream` are mutually "
       "exclusive for now"},
  };
  for (const Case& c : cases) {
    Result<> checked = CheckLogOptions(http::Query::Parse(c.query), "web");
    EXPECT_EQ(
        checked ? "ok" : std::to_string(HttpStatus(checked.error().code())) + " " + checked.error().message(),
        c.expected)
        << c.query;
  }
}

}  // namespace
}  // namespace keelson::apiserver

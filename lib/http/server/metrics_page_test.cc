#include "lib/http/server/metrics_page.h"

#include <gtest/gtest.h>

#include "lib/http/gzip.h"

namespace keelson::http {
namespace {

constexpr char kText[] = "# HELP a_total A.\n# TYPE a_total counter\na_total 1\n";
constexpr char kOpen[] = "# HELP a A.\n# TYPE a counter\na_total 1.0\n# EOF\n";

TEST(MetricsPage, FormAndEncodingAreNegotiated) {
  const struct {
    const char *accept, *encodings, *type, *encoding, *body;
  } kCases[] = {
      {"", "", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", "", kText},
      {"*/*", "gzip", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", "gzip", kText},
      {"text/plain", "gzip;q=0", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", "", kText},
      {"application/openmetrics-text;version=1.0.0,text/plain;q=0.5", "",
       "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores", "", kOpen},
      {"application/openmetrics-text;version=0.0.1,text/plain;q=0.5", "deflate, gzip",
       "application/openmetrics-text; version=0.0.1; charset=utf-8; escaping=underscores", "gzip", kOpen}};
  for (const auto& [accept, encodings, type, encoding, body] : kCases) {
    ServerRequest request;
    if (*accept) request.headers.Add("Accept", accept);
    if (*encodings) request.headers.Add("Accept-Encoding", encodings);
    const MetricsAnswer answer = AnswerMetrics(request, kText);
    EXPECT_EQ(answer.headers.Get("Content-Type"), type) << accept;
    EXPECT_EQ(answer.headers.Get("Content-Encoding"), encoding) << encodings;
    EXPECT_EQ(*encoding ? Gunzip(answer.body) : answer.body, body) << accept << encodings;
  }
}

}  // namespace
}  // namespace keelson::http

#include "lib/metrics/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/metrics/metrics.h"

namespace keelson::metrics {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(MetricsText, BoundsAreSpeltAsGoDoes) {
  const std::pair<double, const char*> kCases[] = {{0, "0"},
                                                   {0.005, "0.005"},
                                                   {1, "1"},
                                                   {1.25, "1.25"},
                                                   {100000, "100000"},
                                                   {1000000, "1e+06"},
                                                   {2592000, "2.592e+06"},
                                                   {1e9, "1e+09"},
                                                   {1048576, "1.048576e+06"},
                                                   {1e-8, "1e-08"},
                                                   {0.0001, "0.0001"},
                                                   {0.00001, "1e-05"},
                                                   {5e-7, "5e-07"},
                                                   {-1, "-1"}};
  for (const auto& [bound, text] : kCases) EXPECT_EQ(FormatBound(bound), text);
}

TEST(MetricsText, OpenMetrics) {
  const std::string text =
      "# HELP a_total Says \"a\".\n# TYPE a_total counter\na_total{x=\"1\"} 3\n"
      "# HELP attempts B.\n# TYPE attempts counter\nattempts 2\n"
      "# HELP g G.\n# TYPE g gauge\ng 1.5\ng{le=\"x} y\"} 1e+06\n"
      "# HELP h H.\n# TYPE h histogram\nh_bucket{v=\"GET\",le=\"1\"} 1\nh_bucket{v=\"GET\",le=\"1e+06\"} 2\n"
      "h_bucket{v=\"GET\",le=\"+Inf\"} 2\nh_sum{v=\"GET\"} 7\nh_count{v=\"GET\"} 2\n";
  EXPECT_EQ(ToOpenMetrics(text),
            "# HELP a Says \\\"a\\\".\n# TYPE a counter\na_total{x=\"1\"} 3.0\n"
            "# HELP attempts B.\n# TYPE attempts unknown\nattempts 2.0\n"
            "# HELP g G.\n# TYPE g gauge\ng 1.5\ng{le=\"x} y\"} 1e+06\n"
            "# HELP h H.\n# TYPE h histogram\nh_bucket{v=\"GET\",le=\"1.0\"} "
            "1\nh_bucket{v=\"GET\",le=\"1e+06\"} 2\n"
            "h_bucket{v=\"GET\",le=\"+Inf\"} 2\nh_sum{v=\"GET\"} 7.0\nh_count{v=\"GET\"} 2\n# EOF\n");
  EXPECT_EQ(ToOpenMetrics("# TYPE g gauge\ng 3 1700000000500\n"),
            "# TYPE g gauge\ng 3.0 1700000000.5\n# EOF\n");
  EXPECT_EQ(ToOpenMetrics(""), "# EOF\n");
}

TEST(MetricsText, AcceptPicksTheForm) {
  const struct {
    const char *accept, *content_type;
  } kCases[] = {
      {"", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"},
      {"*/*", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"},
      {"application/json", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"},
      {"application/openmetrics-text",
       "application/openmetrics-text; version=0.0.1; charset=utf-8; escaping=underscores"},
      {"application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
       "text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
       "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores"},
      {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5",
       "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8"},
      {"application/openmetrics-text;version=2.0.0,text/plain;version=0.0.4;q=0.3",
       "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"},
      {"application/openmetrics-text;version=1.0.0;q=0.2,text/plain;version=0.0.4;q=0.9",
       "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"},
  };
  for (const auto& [accept, content_type] : kCases) {
    const TextForm form = NegotiateText(accept);
    EXPECT_EQ(form.content_type, content_type) << accept;
    EXPECT_EQ(form.open_metrics, form.content_type.starts_with("application/openmetrics")) << accept;
  }
}

TEST(MetricsText, DescriptionsOfTextAndOfTheProcess) {
  Histograms("test_described_seconds", "D.", {0.5, 2}, {"verb"}).HistogramWith({"a\"},x=\"b"}).Observe(1);
  Counter("test_described_total", "Nobody has counted.", {"b", "a"});
  for (const std::vector<Description>& all : {Describe(), Describe(Print())}) {
    const auto it = std::find_if(all.begin(), all.end(),
                                 [](const Description& one) { return one.name == "test_described_seconds"; });
    ASSERT_NE(it, all.end());
    EXPECT_EQ(it->type, "histogram");
    EXPECT_EQ(it->help, "D.");
    EXPECT_THAT(it->labels, ElementsAre("verb"));
    EXPECT_THAT(it->bounds, ElementsAre(0.5, 2));
  }
  EXPECT_THAT(Print(), testing::Not(HasSubstr("test_described_total")));
  bool found = false;
  for (const Description& one : Describe()) found |= one.name == "test_described_total";
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace keelson::metrics

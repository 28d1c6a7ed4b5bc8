#include "lib/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/metrics/disable.h"

namespace keelson::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Metrics, PrintsCountersWithEscapedLabels) {
  Counter("test_requests_total", "Requests.", {"verb", "path"}).With({"GET", "a\"b\\c\nd"}).Add(3);
  EXPECT_THAT(Print(), HasSubstr("# HELP test_requests_total Requests.\n# TYPE test_requests_total counter\n"
                                 "test_requests_total{verb=\"GET\",path=\"a\\\"b\\\\c\\nd\"} 3\n"));
}

TEST(Metrics, HistogramBucketsAreCumulativeAndBoundsInclusive) {
  Family& family = Histograms("test_seconds", "Time.", {1, 2});
  for (double v : {0.5, 1.0, 1.5, 9.0}) family.HistogramWith().Observe(v);
  EXPECT_THAT(Print(),
              HasSubstr("test_seconds_bucket{le=\"1\"} 2\ntest_seconds_bucket{le=\"2\"} 3\n"
                        "test_seconds_bucket{le=\"+Inf\"} 4\ntest_seconds_sum 12\ntest_seconds_count 4\n"));
}

TEST(Metrics, OneNameIsOneFamily) {
  Gauge("test_gauge", "G.").With().Set(1);
  Gauge("test_gauge", "G.").With().Add(1.5);
  EXPECT_THAT(Print(), HasSubstr("test_gauge 2.5\n"));
}

TEST(Metrics, CollectorsRunBeforePrinting) {
  OnCollect([] { Gauge("test_collected", "C.").With().Set(7); });
  EXPECT_THAT(Print(), HasSubstr("test_collected 7\n"));
  for (const char* name : {"process_cpu_seconds_total", "process_virtual_memory_max_bytes",
                           "process_network_receive_bytes_total", "process_network_transmit_bytes_total"}) {
    EXPECT_THAT(Print(), HasSubstr(std::string("\n") + name + " "));
  }
}

TEST(Metrics, DisabledOnesAreNotShown) {
  Counter("test_turned_off_total", "Off.").With().Increment();
  Counter("test_turned_off_total_not", "On.").With().Increment();
  EXPECT_THAT(Print(), HasSubstr("\ntest_turned_off_total 1\n"));
  Disable({"test_turned_off_total", "test_later_seconds", "test_never"});
  Histograms("test_later_seconds", "Off.", {1}).HistogramWith().Observe(1);
  const std::string shown = Print();
  EXPECT_THAT(shown, Not(HasSubstr("test_turned_off_total ")));
  EXPECT_THAT(shown, Not(HasSubstr("test_later_seconds")));
  EXPECT_THAT(shown, HasSubstr("\ntest_turned_off_total_not 1\n"));
  EXPECT_THAT(shown, HasSubstr("\ndisabled_metrics_total 2\n"));
}

}  // namespace
}  // namespace keelson::metrics

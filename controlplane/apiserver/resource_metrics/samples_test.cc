#include "controlplane/apiserver/resource_metrics/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/apiserver/resource_metrics/usage_store.h"

namespace keelson::apiserver {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::Key;

constexpr seconds kPeriod{15};

WallTime At(int64_t second) { return WallTime(seconds(second)); }

TEST(ParseResourceMetrics, ReadsWhatKubeletsSay) {
  Result<UsageSample> sample = ParseResourceMetrics(
      "# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time\n"
      "# TYPE container_cpu_usage_seconds_total counter\n"
      "container_cpu_usage_seconds_total{container=\"a\",namespace=\"ns\",pod=\"p\"} 1.5 100500\n"
      "container_cpu_usage_seconds_total{container=\"b\", namespace=\"ns\", pod=\"p\"} 2e+01\n"
      "container_memory_working_set_bytes{container=\"a\",namespace=\"ns\",pod=\"p\"} 1.048576e+06 100500\n"
      "container_memory_working_set_bytes{container=\"b\",namespace=\"ns\",pod=\"p\"} 4096\n"
      "container_start_time_seconds{container=\"a\",namespace=\"ns\",pod=\"p\"} 90.25\n"
      // Ended: it has no size any more. Not of a container: no name.
      "container_start_time_seconds{container=\"init\",namespace=\"ns\",pod=\"p\"} 80\n"
      "container_cpu_usage_seconds_total{container=\"init\",namespace=\"ns\",pod=\"p\"} 3 100500\n"
      "pod_cpu_usage_seconds_total{namespace=\"ns\",pod=\"p\"} 30 100500\n"
      "container_cpu_usage_seconds_total{container=\"odd\\\"}name\",namespace=\"ns\",pod=\"q\"} 1 100500\n"
      "container_memory_working_set_bytes{container=\"odd\\\"}name\",namespace=\"ns\",pod=\"q\"} 1 100500\n"
      "node_cpu_usage_seconds_total 1000.125 101000\r\n"
      "node_memory_working_set_bytes 5e9 101000\n",
      At(102));
  ASSERT_TRUE(sample) << sample.error().message();
  EXPECT_EQ(sample->node.cpu_seconds, 1000.125);
  EXPECT_EQ(sample->node.memory_bytes, 5000000000);
  EXPECT_EQ(sample->node.time, At(101));
  EXPECT_THAT(sample->pods, ElementsAre(Key("ns/p"), Key("ns/q")));
  EXPECT_THAT(sample->pods["ns/p"], ElementsAre(Key("a"), Key("b")));
  const UsagePoint &a = sample->pods["ns/p"]["a"], &b = sample->pods["ns/p"]["b"];
  EXPECT_EQ(a.cpu_seconds, 1.5);
  EXPECT_EQ(a.memory_bytes, 1048576);
  EXPECT_EQ(a.time, At(100) + milliseconds(500));
  EXPECT_EQ(a.start, At(90) + milliseconds(250));
  EXPECT_EQ(b.cpu_seconds, 20);
  EXPECT_EQ(b.time, At(102));  // none was given
  EXPECT_EQ(b.start, WallTime());
  EXPECT_THAT(sample->pods["ns/q"], ElementsAre(Key("odd\"}name")));
}

TEST(ParseResourceMetrics, WhatIsNoneIsLeftOut) {
  constexpr const char* kNode = "node_cpu_usage_seconds_total 1\nnode_memory_working_set_bytes 1\n";
  constexpr const char* kMemory = "container_memory_working_set_bytes{container=\"a\",pod=\"p\"} 1\n";
  for (const char* line :
       {"container_cpu_usage_seconds_total{container=\"a\",pod=\"p\"}", "container_cpu_usage_seconds_total",
        "container_cpu_usage_seconds_total{container=\"a\",pod=\"p\"} x",
        "container_cpu_usage_seconds_total{container=\"a\",pod=\"p\"} NaN",
        "container_cpu_usage_seconds_total{container=\"a\",pod=\"p\"} -1",
        "container_cpu_usage_seconds_total{container=\"a\",pod=\"p\"} 1e300",
        "container_cpu_usage_seconds_total{container=\"a\",pod=\"p 1", "{", "{} 1", " ", "\\",
        "container_cpu_usage_seconds_total{container=a,pod=\"p\"} 1"}) {
    Result<UsageSample> sample =
        ParseResourceMetrics(std::string(kNode) + kMemory + line + "\n" + kMemory, At(1));
    ASSERT_TRUE(sample) << line;
    EXPECT_TRUE(sample->pods.empty()) << line;
  }
  for (const char* text :
       {"", "\n\n", "node_cpu_usage_seconds_total 1\n", "node_memory_working_set_bytes 1", "<html>"}) {
    EXPECT_FALSE(ParseResourceMetrics(text, At(1))) << text;
  }
}

UsagePoint Point(int64_t time, double cpu, int64_t start = 0) { return {At(time), At(start), cpu, 1 << 20}; }

TEST(Advance, RatesComeFromTwoPointsOfOneContainer) {
  struct Look {
    int64_t time, start;
    double cpu;
  };
  struct Case {
    const char* name;
    std::vector<Look> looks;
    int64_t milli_cores;  // -1: not known
    int64_t window = 0;
  };
  for (const Case& c : std::vector<Case>{
           {"one look", {{1000, 500, 5}}, -1},
           {"two looks", {{1000, 500, 5}, {1015, 500, 20}}, 1000, 15},
           {"three looks: the last two", {{1000, 500, 5}, {1015, 500, 20}, {1030, 500, 21.5}}, 100, 15},
           {"idle", {{1000, 500, 5}, {1015, 500, 5}}, 0, 15},
           {"looked at once between two rounds",
            {{1000, 500, 5}, {1015, 500, 20}, {1015, 500, 20}},
            1000,
            15},
           {"looked at once, from the start", {{1000, 500, 5}, {1000, 500, 5}}, -1},
           {"an older look", {{1000, 500, 5}, {1015, 500, 20}, {990, 500, 4}}, -1},
           {"started again", {{1000, 500, 5}, {1015, 1008, 3}}, -1},
           {"started again, some time ago", {{1000, 500, 5}, {1015, 1003, 6}}, 500, 12},
           {"new, some time ago", {{1015, 1005, 5}}, 500, 10},
           {"new, just now", {{1015, 1006, 5}}, -1},
           {"new, with the first look before", {{1005, 1001, 1}, {1020, 1001, 4}}, 200, 15},
           {"no start is known", {{1000, 0, 5}, {1010, 0, 6}}, 100, 10},
           {"the counter goes back", {{1000, 500, 5}, {1015, 500, 4}}, -1},
           {"starts later than it was looked at", {{1000, 2000, 5}, {1015, 2000, 6}}, -1},
       }) {
    UsageStore store(kPeriod);
    for (const Look& look : c.looks) {
      UsageSample sample{Point(look.time, look.cpu), {}};
      sample.pods["ns/p"]["main"] = Point(look.time, look.cpu, look.start);
      store.Put("n1", std::move(sample));
    }
    std::optional<PodUsage> usage = store.Pod("n1", "ns/p");
    ASSERT_EQ(usage.has_value(), c.milli_cores >= 0) << c.name;
    if (!usage) continue;
    EXPECT_EQ(usage->containers["main"].nano_cores, c.milli_cores * 1000000) << c.name;
    EXPECT_EQ(usage->containers["main"].memory_bytes, 1 << 20) << c.name;
    EXPECT_EQ(usage->window, seconds(c.window)) << c.name;
  }
}

TEST(UsageStore, APodIsKnownWhenAllItsContainersAre) {
  UsageStore store(kPeriod);
  UsageSample first{Point(1000, 1), {}}, second{Point(1015, 16), {}};
  first.pods["ns/p"]["a"] = Point(1000, 1);
  second.pods["ns/p"]["a"] = Point(1014, 2);
  second.pods["ns/p"]["b"] = Point(1015, 2);
  store.Put("n1", first);
  EXPECT_FALSE(store.Node("n1"));
  store.Put("n1", second);
  EXPECT_FALSE(store.Pod("n1", "ns/p"));  // b has been seen once
  ASSERT_TRUE(store.Node("n1"));
  EXPECT_EQ(store.Node("n1")->nano_cores, 1000000000);
  second.pods["ns/p"]["a"] = Point(1028, 2);
  second.pods["ns/p"]["b"] = Point(1030, 2);
  store.Put("n1", second);
  ASSERT_TRUE(store.Pod("n1", "ns/p"));
  EXPECT_EQ(store.Pod("n1", "ns/p")->time, At(1028));
  EXPECT_EQ(store.Pod("n1", "ns/p")->window, seconds(14));
  EXPECT_FALSE(store.Pod("n2", "ns/p"));  // only the node that it runs on speaks for it
  EXPECT_FALSE(store.Pod("n1", "ns/q"));
  store.Put("n1", {Point(1045, 17), {}});
  EXPECT_FALSE(store.Pod("n1", "ns/p"));
  store.Remove("n1");
  EXPECT_FALSE(store.Node("n1"));
}

}  // namespace
}  // namespace keelson::apiserver

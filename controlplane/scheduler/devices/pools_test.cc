#include "controlplane/scheduler/devices/pools.h"

#include <gtest/gtest.h>

#include "controlplane/scheduler/devices/testing/device_problem.h"

namespace keelson::scheduler {
namespace {

using testing::DeviceProblem;
using testing::Parse;
using testing::Request;
using testing::Requests;

SlicePtr PartOf(const std::string& name, int generation, int count, const std::string& spec) {
  return Parse<resourcev1::ResourceSlice>(fmt::format(
      R"({{"metadata":{{"name":"{}"}},"spec":{{"driver":"d.com","pool":{{"name":"p","generation":{},"resourceSliceCount":{}}},{}}}}})",
      name, generation, count, spec));
}

constexpr char kOne[] = R"("nodeName":"n1","devices":[{"name":"d1"}])";
constexpr char kOther[] = R"("nodeName":"n1","devices":[{"name":"d2"}])";

TEST(Pools, OnlyTheNewestGenerationCountsOnceItIsComplete) {
  DeviceProblem problem;
  const std::string one = Requests(Request("r")), all = Requests(Request("r", R"(,"allocationMode":"All")"));
  problem.pools.Set("s1", PartOf("s1", 1, 2, kOne));
  EXPECT_EQ(problem.Solve(one), "-");  // incomplete
  problem.pools.Set("s2", PartOf("s2", 1, 2, kOther));
  EXPECT_EQ(problem.Solve(all), "r=d1 r=d2");
  problem.pools.Set("s3", PartOf("s3", 2, 2, kOther));
  EXPECT_EQ(problem.Solve(one), "-");  // the driver is about to replace the slices
  EXPECT_EQ(problem.Why(),
            "claim a, request r: 0 of 0 devices fit; a resource pool of the node is incomplete or invalid");
  problem.pools.Set("s1", PartOf("s1", 2, 2, kOne));
  EXPECT_EQ(problem.Solve(all), "r=d1 r=d2");
  problem.pools.Set("s1", nullptr);
  problem.pools.Set("s3", nullptr);
  EXPECT_EQ(problem.Solve(one), "-");
  problem.pools.Set("s2", PartOf("s2", 3, 1, kOther));
  EXPECT_EQ(problem.Solve(one), "r=d2");
}

TEST(Pools, AnIncompletePoolStopsRequestsForAllDevices) {
  DeviceProblem problem;
  problem.pools.Set("s1", PartOf("s1", 1, 2, kOne));
  problem.Slice("other", kOther);
  EXPECT_EQ(problem.Solve(Requests(Request("r"))), "r=d2");
  EXPECT_EQ(problem.Solve(Requests(Request("r", R"(,"allocationMode":"All")"))), "-");
}

TEST(Pools, InvalidPoolsAreNotUsed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("nodeName":"n1","devices":[{"name":"d"},{"name":"d"}])", "duplicate device name d"},
      {R"("nodeName":"n1","devices":[{"name":"d","consumesCounters":[{"counterSet":"s","counters":{"c":{"value":"1"}}}]}])",
       "counter set s not found"},
      {R"("nodeName":"n1","sharedCounters":[{"name":"s","counters":{}}],
          "devices":[{"name":"d","consumesCounters":[{"counterSet":"s","counters":{"c":{"value":"1"}}}]}])",
       "counter c not found in counter set s"},
      {R"("nodeName":"n1","sharedCounters":[{"name":"s","counters":{}},{"name":"s","counters":{}}],
          "devices":[{"name":"d"}])",
       "duplicate counter set name s"},
  };
  for (const auto& [spec, problem_text] : cases) {
    DeviceProblem problem;
    problem.Slice("p", spec);
    EXPECT_EQ(problem.Solve(Requests(Request("r"))), "-");
    ASSERT_EQ(problem.pools.Of("n1").size(), 1u);
    EXPECT_EQ(problem.pools.Of("n1")[0]->invalid(), problem_text);
  }
}

TEST(Pools, NodesSeeTheirOwnPoolsAndThoseOfMany) {
  DeviceProblem problem;
  problem.Slice("b-here", kOne);
  problem.Slice("a-everywhere", R"("allNodes":true,"devices":[{"name":"shared"}])");
  problem.Slice("a-bound", R"("allNodes":true,"devices":[{"name":"b","bindingConditions":["Ready"]}])");
  problem.Slice("there", R"("nodeName":"n2","devices":[{"name":"d"}])");
  problem.Slice("each", R"("perDeviceNodeSelection":true,"devices":[
      {"name":"n1-only","nodeName":"n1"}, {"name":"n2-only","nodeName":"n2"}])");
  std::vector<std::string> ids;
  for (const Pool* pool : problem.pools.Of("n1")) ids.push_back(pool->id());
  EXPECT_EQ(ids,
            (std::vector<std::string>{"d.com/a-everywhere", "d.com/b-here", "d.com/each", "d.com/a-bound"}));
  EXPECT_EQ(problem.Solve(Requests(Request("r", R"(,"count":4)"))), "r=shared r=d1 r=n1-only r=b");
  EXPECT_EQ(problem.Solve(Requests(Request("r", R"(,"count":5)"))), "-");
}

}  // namespace
}  // namespace keelson::scheduler

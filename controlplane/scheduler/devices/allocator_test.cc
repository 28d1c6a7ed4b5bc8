#include "controlplane/scheduler/devices/allocator.h"

#include <gtest/gtest.h>

#include "controlplane/scheduler/devices/testing/device_problem.h"

namespace keelson::scheduler {
namespace {

using testing::DeviceProblem;
using testing::MakeClaim;
using testing::MakeClass;
using testing::MakeNode;
using testing::Request;
using testing::Requests;

std::string Selecting(const std::string& expression) {
  return R"(,"selectors":[{"cel":{"expression":")" + expression + "\"}}]";
}

constexpr char kTwo[] = R"("nodeName":"n1","devices":[
    {"name":"d1","attributes":{"size":{"int":1},"numa":{"int":0}}},
    {"name":"d2","attributes":{"size":{"int":2},"numa":{"int":1}}}])";

TEST(Allocator, TakesTheFirstDevicesThatMatch) {
  DeviceProblem problem;
  problem.Slice("p1", kTwo);
  EXPECT_EQ(problem.Solve(Requests(Request("r"))), "r=d1");
  EXPECT_EQ(problem.Solve(Requests(Request("r", R"(,"count":2)"))), "r=d1 r=d2");
  EXPECT_EQ(problem.Solve(Requests(Request("r", R"(,"count":3)"))), "-");
  EXPECT_EQ(problem.Solve(Requests(Request("r", Selecting("device.attributes['d.com'].size == 2")))), "r=d2");
  // The second request needs what the first would take.
  EXPECT_EQ(problem.Solve(Requests(Request("any") + "," +
                                   Request("small", Selecting("device.attributes['d.com'].size == 1")))),
            "any=d2 small=d1");
  EXPECT_EQ(problem.Solve({MakeClaim("a", Requests(Request("r")))}, MakeNode("n2")), "-");
}

TEST(Allocator, TheClassSelectsToo) {
  DeviceProblem problem;
  problem.Slice("p1", kTwo);
  problem.classes["c"] =
      MakeClass("c", R"("selectors":[{"cel":{"expression":"device.attributes['d.com'].size > 1"}}])");
  EXPECT_EQ(problem.Solve(Requests(Request("r"))), "r=d2");
  EXPECT_EQ(problem.Solve(Requests(R"({"name":"r","exactly":{"deviceClassName":"none"}})")),
            "request r: device class none does not exist");
}

TEST(Allocator, DevicesInUseAreLeftOut) {
  DeviceProblem problem;
  problem.Slice("p1", kTwo);
  EXPECT_EQ(problem.Solve(Requests(Request("r"))), "r=d1");
  problem.Use();
  EXPECT_EQ(problem.Solve(Requests(Request("r"))), "r=d2");
  EXPECT_EQ(problem.Solve(Requests(Request("r", R"(,"adminAccess":true)"))), "r=d1");
  problem.Use();  // administration uses nothing
  EXPECT_EQ(problem.Solve(Requests(Request("r", R"(,"count":2)"))), "-");
  EXPECT_EQ(problem.Why(), "claim a, request r: 1 of 2 devices fit, 1 in use");
}

TEST(Allocator, AllDevicesOrNone) {
  DeviceProblem problem;
  problem.Slice("p1", kTwo);
  const std::string all = R"(,"allocationMode":"All")";
  EXPECT_EQ(problem.Solve(Requests(Request("r", all))), "r=d1 r=d2");
  EXPECT_EQ(problem.Solve(Requests(Request("r", all + Selecting("device.attributes['d.com'].size > 1")))),
            "r=d2");
  problem.Use();
  EXPECT_EQ(problem.Solve(Requests(Request("r", all))), "-");
  EXPECT_EQ(problem.Solve(Requests(Request("r", all + Selecting("false")))), "-");
}

TEST(Allocator, TheFirstAlternativeThatFits) {
  DeviceProblem problem;
  problem.Slice("p1", kTwo);
  const auto alternative = [](const std::string& name, const std::string& more) {
    return R"({"name":")" + name + R"(","deviceClassName":"c")" + more + "}";
  };
  const std::string request = R"({"name":"r","firstAvailable":[)" + alternative("many", R"(,"count":3)") +
                              "," + alternative("big", Selecting("device.attributes['d.com'].size == 2")) +
                              "," + alternative("any", "") + "]}";
  EXPECT_EQ(problem.Solve(Requests(request)), "r/big=d2");
  EXPECT_EQ(problem.found[0].alternatives, std::vector<size_t>{1});
  EXPECT_EQ(ScoreOf(problem.plans, problem.found), 7);
  problem.Use();
  EXPECT_EQ(problem.Solve(Requests(request)), "r/any=d1");
}

TEST(Allocator, ConstraintsCompareAttributes) {
  DeviceProblem problem;
  problem.Slice("p1", R"("nodeName":"n1","devices":[
      {"name":"d1","attributes":{"numa":{"int":0}}}, {"name":"d2","attributes":{"numa":{"int":1}}},
      {"name":"d3"}, {"name":"d4","attributes":{"d.com/numa":{"int":1}}}])");
  const std::string two = Requests(Request("r", R"(,"count":2)"));
  const auto with = [&](const std::string& constraint) {
    return problem.Solve(two + R"(,"constraints":[{)" + constraint + "}]");
  };
  EXPECT_EQ(with(R"("matchAttribute":"d.com/numa")"), "r=d2 r=d4");
  EXPECT_EQ(with(R"("distinctAttribute":"d.com/numa")"), "r=d1 r=d2");
  EXPECT_EQ(with(R"("matchAttribute":"other.com/numa")"), "-");
  EXPECT_EQ(with(R"("requests":["other"],"matchAttribute":"d.com/numa")"), "r=d1 r=d2");
  EXPECT_EQ(with(R"("requests":["r"])"),
            "claim default/a, constraint #0: empty constraint (unsupported constraint type?)");
}

TEST(Allocator, TaintsNeedTolerations) {
  DeviceProblem problem;
  problem.Slice("p1", R"("nodeName":"n1","devices":[
      {"name":"d1","taints":[{"key":"k","value":"v","effect":"NoExecute"}]},
      {"name":"d2","taints":[{"key":"k","effect":"NoSchedule"}]},
      {"name":"d3","taints":[{"key":"k","effect":"None"}]}])");
  const auto tolerating = [&](const std::string& toleration) {
    return problem.Solve(Requests(Request("r", R"(,"tolerations":[{)" + toleration + "}]")));
  };
  EXPECT_EQ(problem.Solve(Requests(Request("r"))), "r=d3");
  EXPECT_EQ(tolerating(R"("operator":"Exists")"), "r=d1");
  EXPECT_EQ(tolerating(R"("key":"k","value":"v","operator":"Equal")"), "r=d1");
  EXPECT_EQ(tolerating(R"("key":"k","operator":"Exists","effect":"NoSchedule")"), "r=d2");
  EXPECT_EQ(tolerating(R"("key":"other","operator":"Exists")"), "r=d3");
}

TEST(Allocator, PartitionsShareCounters) {
  DeviceProblem problem;
  const auto partition = [](const std::string& name, const std::string& amount) {
    return R"({"name":")" + name +
           R"(","consumesCounters":[{"counterSet":"gpu","counters":{"memory":{"value":")" + amount +
           "\"}}}]}";
  };
  problem.Slice("p1",
                R"("nodeName":"n1","sharedCounters":[{"name":"gpu","counters":{"memory":{"value":"40Gi"}}}],
      "devices":[)" +
                    partition("whole", "40Gi") + "," + partition("half", "20Gi") + "," +
                    partition("other-half", "20Gi") + "]");
  EXPECT_EQ(problem.Solve(Requests(Request("r"))), "r=whole");
  EXPECT_EQ(problem.Solve(Requests(Request("r", R"(,"count":2)"))), "r=half r=other-half");
  EXPECT_EQ(problem.Solve(Requests(Request("r", R"(,"count":3)"))), "-");
  EXPECT_EQ(problem.Solve(Requests(Request("r", Selecting("false") + R"(,"count":1)"))), "-");
  problem.Solve(Requests(Request("r", R"(,"count":2)")));
  problem.Use();
  EXPECT_EQ(problem.Solve(Requests(Request("r"))), "-");
  EXPECT_EQ(problem.Why(), "claim a, request r: 0 of 3 devices fit, 2 in use, 1 without enough counters");
}

TEST(Allocator, SharesTakeCapacity) {
  DeviceProblem problem;
  problem.Slice("p1", R"("nodeName":"n1","devices":[{"name":"nic","allowMultipleAllocations":true,
      "capacity":{"bandwidth":{"value":"10","requestPolicy":{"default":"4","validRange":{"min":"2","step":"2"}}}}}])");
  const auto wants = [](const std::string& amount) {
    return Requests(Request("r", R"(,"capacity":{"requests":{"bandwidth":")" + amount + "\"}}"));
  };
  EXPECT_EQ(problem.Solve(wants("5")), "r=nic");
  EXPECT_EQ(problem.found[0].devices[0].consumed.at("bandwidth").ToString(), "6");  // a multiple of the step
  problem.Use();
  EXPECT_EQ(problem.Solve(wants("5")), "-");
  EXPECT_EQ(problem.Solve(Requests(Request("r"))), "r=nic");  // the default
  problem.Use();
  EXPECT_EQ(problem.Solve(wants("1")), "-");
  EXPECT_EQ(problem.Why(), "claim a, request r: 0 of 1 devices fit, 1 without enough capacity");
  EXPECT_EQ(problem.Solve(Requests(Request("r", R"(,"capacity":{"requests":{"other":"1"}})"))), "-");
}

TEST(Allocator, ResultsSayWhatIsNeededLater) {
  DeviceProblem problem;
  problem.classes["c"] =
      MakeClass("c", R"("config":[{"opaque":{"driver":"d.com","parameters":{"of":"class"}}}])");
  problem.Slice("p1", R"("nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[
      {"key":"zone","operator":"In","values":["a"]}]}]},"devices":[
      {"name":"d1","bindingConditions":["Ready"],"bindingFailureConditions":["Broken"]},
      {"name":"d2","bindsToNode":true}])");
  corev1::Node node = MakeNode("n1");
  EXPECT_EQ(problem.Solve({MakeClaim("a", Requests(Request("r")))}, node), "-");
  (*node.mutable_metadata()->mutable_labels())["zone"] = "a";
  const std::string config = R"(,"config":[{"requests":["r"],"opaque":{"driver":"d.com","parameters":{}}},
      {"requests":["other"],"opaque":{"driver":"d.com","parameters":{}}}])";
  ASSERT_EQ(
      problem.Solve({MakeClaim("a", Requests(Request("r") + "," + Request("s", R"(,"count":1)")) + config)},
                    node),
      "r=d1 s=d2");
  const auto both = ToAllocationResult(problem.plans[0], problem.found[0], "n1");
  EXPECT_EQ(both.devices().results(0).binding_conditions(0), "Ready");
  EXPECT_EQ(both.devices().results(0).binding_failure_conditions(0), "Broken");
  ASSERT_EQ(both.devices().config_size(), 2);
  EXPECT_EQ(both.devices().config(0).source(), "FromClass");
  EXPECT_EQ(both.devices().config(0).requests_size(), 2);  // r and s
  EXPECT_EQ(both.devices().config(1).source(), "FromClaim");
  EXPECT_EQ(both.node_selector().node_selector_terms(0).match_fields(0).values(0), "n1");  // d2 binds to it
  ASSERT_EQ(problem.Solve({MakeClaim("a", Requests(Request("r")))}, node), "r=d1");
  const auto one = ToAllocationResult(problem.plans[0], problem.found[0], "n1");
  EXPECT_EQ(one.node_selector().node_selector_terms(0).match_expressions(0).key(), "zone");
}

TEST(Allocator, BrokenSelectorsAreErrors) {
  DeviceProblem problem;
  problem.Slice("p1", kTwo);
  EXPECT_EQ(problem.Solve(Requests(Request("r", Selecting("device.attributes['d.com'].nothing == 1")))),
            "claim default/a: selector #0: CEL runtime error: no such key: nothing");
  EXPECT_EQ(problem.Solve(Requests(Request("r", Selecting("device.driver"))))
                .rfind("claim default/a: selector #0: CEL compile error: must evaluate to bool", 0),
            0u);
}

TEST(Allocator, AClaimHasAtMost32Devices) {
  DeviceProblem problem;
  problem.Slice("p1", kTwo);
  EXPECT_EQ(problem.Solve(Requests(Request("r", R"(,"count":33)"))),
            "claim default/a: number of requested devices 33 exceeds the claim limit of 32");
}

// There is no solution, and there are too many ways to try all.
TEST(Allocator, ASearchIsBoundInTime) {
  DeviceProblem problem;
  std::string devices;
  for (int i = 0; i < 64; ++i) {
    devices += fmt::format(R"({}{{"name":"d{}","attributes":{{"a":{{"int":{}}},"b":{{"int":{}}}}}}})",
                           i ? "," : "", i, i % 16, i / 16);
  }
  problem.Slice("p1", R"("nodeName":"n1","devices":[)" + devices + "]");
  FakeClock clock;
  SearchLimits limits;
  limits.clock = &clock;
  limits.deadline = clock.SteadyNow();
  const std::string impossible =
      Requests(Request("r", R"(,"count":30)")) +
      R"(,"constraints":[{"distinctAttribute":"d.com/a"},{"matchAttribute":"d.com/b"}])";
  EXPECT_EQ(problem.Solve({MakeClaim("a", impossible)}, MakeNode("n1"), limits),
            "timed out trying to allocate devices");
}

}  // namespace
}  // namespace keelson::scheduler

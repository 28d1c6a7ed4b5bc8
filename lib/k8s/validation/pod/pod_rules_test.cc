// Resources, QoS, taints, node affinity, admission and helpers for pods.
#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/pods/fit.h"
#include "lib/k8s/pods/node_affinity.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/qos.h"
#include "lib/k8s/pods/tolerations.h"

namespace keelson::k8s {
namespace {

template <typename T>
T Parse(const std::string& json) {
  T object;
  const Result<> decoded = api::DecodeJson(json, object);
  EXPECT_TRUE(decoded) << json << ": " << (decoded ? "" : decoded.error().message());
  return object;
}

std::string Requests(const std::string& cpu, const char* extra = "") {
  return R"({"name":"c","resources":{"requests":{"cpu":")" + cpu + R"("}})" + extra + "}";
}

TEST(PodRequests, CountsWhatRunsAtOnce) {
  const std::string sidecar = R"(,"restartPolicy":"Always")";
  struct Case {
    std::string spec;
    int64_t milli_cpu;
  } cases[] = {
      {R"("containers":[)" + Requests("100m") + "," + Requests("200m") + "]", 300},
      {R"("containers":[)" + Requests("100m") + R"(],"initContainers":[)" + Requests("1") + "]", 1000},
      // A sidecar runs beside the containers...
      {R"("containers":[)" + Requests("100m") + R"(],"initContainers":[)" + Requests("1", sidecar.c_str()) +
           "]",
       1100},
      // ...and beside the init containers after it.
      {R"("containers":[)" + Requests("100m") + R"(],"initContainers":[)" + Requests("1", sidecar.c_str()) +
           "," + Requests("500m") + "]",
       1500},
      {R"("overhead":{"cpu":"10m"},"containers":[)" + Requests("100m") + "]", 110},
      {R"("resources":{"requests":{"cpu":"2"}},"containers":[)" + Requests("100m") + "]", 2000},
  };
  for (const Case& c : cases) {
    const auto pod = Parse<corev1::Pod>(R"({"spec":{)" + c.spec + "}}");
    EXPECT_EQ(AmountOf(PodRequests(pod), "cpu").MilliValue(), c.milli_cpu) << c.spec;
  }
}

TEST(PodLimits, OverheadAddsOnlyToLimits) {
  const auto pod = Parse<corev1::Pod>(
      R"({"spec":{"overhead":{"cpu":"10m","memory":"1Mi"},"containers":[{"resources":{"limits":{"cpu":"1"}}}]}})");
  EXPECT_EQ(AmountOf(PodLimits(pod), "cpu").MilliValue(), 1010);
  EXPECT_FALSE(PodLimits(pod).contains("memory"));
}

TEST(QosClass, FollowsRequestsAndLimits) {
  const std::pair<const char*, std::string_view> cases[] = {
      {R"([{"name":"a"}])", kBestEffort},
      {R"([{"resources":{"requests":{"cpu":"1"}}}])", kBurstable},
      {R"([{"resources":{"requests":{"cpu":"1","memory":"1Mi"},"limits":{"cpu":"1","memory":"1Mi"}}}])",
       kGuaranteed},
      {R"([{"resources":{"requests":{"cpu":"1","memory":"1Mi"},"limits":{"cpu":"2","memory":"1Mi"}}}])",
       kBurstable},
      {R"([{"resources":{"requests":{"cpu":"1","memory":"1Mi"},"limits":{"cpu":"1","memory":"1Mi"}}},{"name":"b"}])",
       kBurstable},
      {R"([{"resources":{"requests":{"example.com/x":"1"},"limits":{"example.com/x":"1"}}}])", kBestEffort},
  };
  for (const auto& [containers, expected] : cases) {
    const auto pod = Parse<corev1::Pod>(std::string(R"({"spec":{"containers":)") + containers + "}}");
    EXPECT_EQ(QosClass(pod), expected) << containers;
  }
}

TEST(Tolerates, Operators) {
  struct Case {
    const char* toleration;
    const char* taint;
    bool expected;
  } cases[] = {
      {R"({"key":"a","value":"1","effect":"NoSchedule"})", R"({"key":"a","value":"1","effect":"NoSchedule"})",
       true},
      {R"({"key":"a","operator":"Equal","value":"2"})", R"({"key":"a","value":"1","effect":"NoSchedule"})",
       false},
      {R"({"key":"a","operator":"Exists"})", R"({"key":"a","value":"1","effect":"NoExecute"})", true},
      {R"({"key":"a","operator":"Exists","effect":"NoSchedule"})", R"({"key":"a","effect":"NoExecute"})",
       false},
      {R"({"operator":"Exists"})", R"({"key":"z","effect":"NoExecute"})", true},
      {R"({"key":"a","operator":"Lt","value":"5"})", R"({"key":"a","value":"4","effect":"NoSchedule"})",
       true},
      {R"({"key":"a","operator":"Gt","value":"5"})", R"({"key":"a","value":"4","effect":"NoSchedule"})",
       false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Tolerates(Parse<corev1::Toleration>(c.toleration), Parse<corev1::Taint>(c.taint)), c.expected)
        << c.toleration << c.taint;
  }
}

TEST(NodeAffinity, SelectorAndTerms) {
  const auto node =
      Parse<corev1::Node>(R"({"metadata":{"name":"n1","labels":{"zone":"a","size":"10","odd":"x1"}}})");
  const auto with_terms = [](const std::string& terms) {
    return R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)" +
           terms + "]}}}";
  };
  const auto expression = [](const char* key, const char* op, const char* values) {
    return std::string(R"({"matchExpressions":[{"key":")") + key + R"(","operator":")" + op +
           R"(","values":)" + values + "}]}";
  };
  const std::pair<std::string, bool> cases[] = {
      {"", true},
      {R"("nodeSelector":{"zone":"a"})", true},
      {R"("nodeSelector":{"zone":"b"})", false},
      {with_terms(expression("zone", "In", R"(["a","b"])")), true},
      {with_terms(expression("zone", "NotIn", R"(["a"])")), false},
      {with_terms(expression("none", "NotIn", R"(["a"])")), true},
      {with_terms(expression("none", "Exists", "[]")), false},
      {with_terms(expression("none", "DoesNotExist", "[]")), true},
      {with_terms(expression("size", "Gt", R"(["9"])")), true},
      {with_terms(expression("size", "Lt", R"(["9"])")), false},
      {with_terms(expression("odd", "Gt", R"(["0"])")), false},
      {with_terms("{}"), false},
      {with_terms(expression("zone", "In", R"(["b"])") + "," + expression("size", "In", R"(["10"])")), true},
      {with_terms(R"({"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]})"), true},
      {with_terms(R"({"matchFields":[{"key":"metadata.name","operator":"In","values":["n2"]}]})"), false},
  };
  for (const auto& [spec, expected] : cases) {
    const auto pod = Parse<corev1::Pod>(R"({"spec":{)" + spec + "}}");
    EXPECT_EQ(MatchesNodeAffinity(pod.spec(), node), expected) << spec;
  }
}

TEST(NodeAffinity, NamesOfDaemonPods) {
  const auto pod = Parse<corev1::Pod>(
      R"({"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
        {"matchFields":[{"key":"metadata.name","operator":"In","values":["n7"]}]}]}}}}})");
  const RequiredNodeAffinity affinity(pod.spec());
  ASSERT_TRUE(affinity.Names());
  EXPECT_EQ(*affinity.Names(), std::vector<std::string_view>{"n7"});
  EXPECT_FALSE(RequiredNodeAffinity(corev1::PodSpec()).Names());
}

TEST(CheckAdmission, NamesEveryReason) {
  const auto node = Parse<corev1::Node>(R"({"metadata":{"name":"n1"},
      "spec":{"taints":[{"key":"k","effect":"NoExecute"}]},
      "status":{"allocatable":{"cpu":"1","memory":"1Gi","pods":"2"}}})");
  const auto running = Parse<corev1::Pod>(R"({"spec":{"containers":[{"name":"c",
      "ports":[{"containerPort":80,"hostPort":80}],"resources":{"requests":{"cpu":"600m"}}}]}})");
  const auto pod =
      Parse<corev1::Pod>(R"({"spec":{"nodeName":"n2","nodeSelector":{"a":"b"},"containers":[{"name":"c",
      "ports":[{"containerPort":80,"hostPort":80}],"resources":{"requests":{"cpu":"500m"}}}]}})");
  std::vector<std::pair<std::string, std::string>> got;
  for (const AdmitFailure& f : CheckAdmission(pod, node, {&running})) got.emplace_back(f.reason, f.message);
  const std::vector<std::pair<std::string, std::string>> want = {
      {"OutOfcpu", "Node didn't have enough resource: cpu, requested: 500, used: 600, capacity: 1000"},
      {"NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
      {"NodeName", "Predicate NodeName failed: node(s) didn't match the requested node name"},
      {"NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"},
      {"TaintToleration",
       "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"},
  };
  EXPECT_EQ(got, want);
  EXPECT_EQ(CheckAdmission(pod, node, {&running, &running})[0].reason, "OutOfpods");
}

TEST(HostPorts, ConflictByAddressAndProtocol) {
  struct Case {
    HostPort a, b;
    bool expected;
  } cases[] = {
      {{"", "TCP", 80}, {"", "TCP", 80}, true},
      {{"", "TCP", 80}, {"10.0.0.1", "TCP", 80}, true},
      {{"10.0.0.2", "TCP", 80}, {"10.0.0.1", "TCP", 80}, false},
      {{"", "TCP", 80}, {"", "UDP", 80}, false},
      {{"", "TCP", 80}, {"", "TCP", 81}, false},
  };
  for (const Case& c : cases) EXPECT_EQ(Conflicts(c.a, c.b), c.expected);
}

TEST(SetCondition, TransitionTimeMovesWithStatusOnly) {
  corev1::PodStatus status;
  corev1::PodCondition ready;
  ready.set_type("Ready");
  ready.set_status("False");
  const WallTime start = WallTime(std::chrono::seconds(1000));
  EXPECT_TRUE(SetCondition(status, ready, start));
  EXPECT_FALSE(SetCondition(status, ready, start + std::chrono::seconds(5)));
  EXPECT_EQ(FindCondition(status, "Ready")->last_transition_time().seconds(), 1000);
  ready.set_reason("Why");
  EXPECT_TRUE(SetCondition(status, ready, start + std::chrono::seconds(6)));
  EXPECT_EQ(FindCondition(status, "Ready")->last_transition_time().seconds(), 1000);
  ready.set_status("True");
  EXPECT_TRUE(SetCondition(status, ready, start + std::chrono::seconds(7)));
  EXPECT_EQ(FindCondition(status, "Ready")->last_transition_time().seconds(), 1007);
  EXPECT_EQ(status.conditions_size(), 1);
}

TEST(IsAvailable, WaitsMinReadySeconds) {
  auto pod = Parse<corev1::Pod>(
      R"({"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"1970-01-01T00:16:40Z"}]}})");
  const WallTime ready = WallTime(std::chrono::seconds(1000));
  EXPECT_TRUE(IsAvailable(pod, 0, ready));
  EXPECT_FALSE(IsAvailable(pod, 10, ready + std::chrono::seconds(9)));
  EXPECT_TRUE(IsAvailable(pod, 10, ready + std::chrono::seconds(10)));
}

TEST(References, OfPods) {
  const auto pod = Parse<corev1::Pod>(R"({"spec":{"imagePullSecrets":[{"name":"pull"}],
      "volumes":[{"name":"a","configMap":{"name":"cm1"}},{"name":"b","secret":{"secretName":"s1"}},
                 {"name":"c","projected":{"sources":[{"configMap":{"name":"cm2"}},{"secret":{"name":"s2"}}]}}],
      "containers":[{"name":"c","envFrom":[{"configMapRef":{"name":"cm3"}}],
        "env":[{"name":"X","valueFrom":{"secretKeyRef":{"name":"s3","key":"k"}}}]}]}})");
  EXPECT_EQ(ReferencedConfigMaps(pod.spec()), (std::vector<std::string>{"cm1", "cm2", "cm3"}));
  EXPECT_EQ(ReferencedSecrets(pod.spec()), (std::vector<std::string>{"pull", "s1", "s2", "s3"}));
}

TEST(ResolvePort, ByNumberAndName) {
  const auto pod = Parse<corev1::Pod>(
      R"({"spec":{"containers":[{"name":"c","ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}]}]}})");
  EXPECT_EQ(ResolvePort(pod.spec(), FromInt(81), "TCP"), 81);
  EXPECT_EQ(ResolvePort(pod.spec(), FromString("http"), "TCP"), 8080);
  EXPECT_EQ(ResolvePort(pod.spec(), FromString("http"), "UDP"), 0);
}

TEST(IntOrString, Scales) {
  EXPECT_EQ(*ScaledValue(FromString("25%"), 10, true), 3);
  EXPECT_EQ(*ScaledValue(FromString("25%"), 10, false), 2);
  EXPECT_EQ(*ScaledValue(FromInt(7), 10, false), 7);
  EXPECT_FALSE(ScaledValue(FromString("x"), 10, false));
}

}  // namespace
}  // namespace keelson::k8s

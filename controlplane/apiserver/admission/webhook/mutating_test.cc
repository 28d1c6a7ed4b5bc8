// What mutating webhooks change, and in which version webhooks see objects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/apiserver/admission/webhook/testing/webhook_plugins.h"
#include "lib/api/proto/autoscaling_v2.pb.h"

namespace keelson::apiserver {
namespace {

using testing::StartsWith;
namespace json = boost::json;
using registry::Operation;

TEST_F(WebhookPlugins, PatchesApplyInOrder) {
  server_.On("/one", [](const json::value&) {
    return HookServer::Patch(R"([{"op":"add","path":"/data","value":{"one":"1"}}])");
  });
  server_.On("/two", [](const json::value& request) {
    EXPECT_EQ(request.at("object").at("data").at("one").as_string(), "1");
    return HookServer::Patch(R"([{"op":"add","path":"/data/two","value":"2"}])");
  });
  server_.On("/nothing", [](const json::value&) { return HookServer::Patch("[]"); });
  Mutating("a", {{"one.example.com", "/one", ""}, {"nothing.example.com", "/nothing", ""}});
  Mutating("b", {{"two.example.com", "/two", ""}});
  const corev1::ConfigMap& map = Map();
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(api::EncodeJson(map),
            R"({"metadata":{"name":"x","namespace":"ns"},"data":{"one":"1","two":"2"}})");
  EXPECT_EQ(notes_.annotations["mutation.webhook.admission.k8s.io/round_0_index_0"],
            R"({"configuration":"a","webhook":"one.example.com","mutated":true})");
  EXPECT_EQ(notes_.annotations["mutation.webhook.admission.k8s.io/round_0_index_1"],
            R"({"configuration":"a","webhook":"nothing.example.com","mutated":false})");
  EXPECT_EQ(notes_.body_annotations["patch.webhook.admission.k8s.io/round_0_index_2"],
            R"({"configuration":"b","webhook":"two.example.com","patch":[{"op":"add","path":"/data/two",)"
            R"("value":"2"}],"patchType":"JSONPatch"})");
}

TEST_F(WebhookPlugins, BadPatchesAreRefused) {
  Mutating("m", {{"m.example.com", "/m", ""}});
  struct {
    std::string answer, error;  // its beginning
    Operation operation = Operation::kCreate;
  } cases[] = {
      {HookServer::Patch("{}"),
       R"(Internal error occurred: failed calling webhook "m.example.com": received undecodable patch in )"
       "webhook response: json: cannot unmarshal object into Go value of type jsonpatch.Patch"},
      {HookServer::Patch("[{"),
       R"(Internal error occurred: failed calling webhook "m.example.com": received )"
       "undecodable patch in webhook response: unexpected end of JSON input"},
      {HookServer::Patch(R"([{"op":"remove","path":"/data/none"}])"),
       "Internal error occurred: remove operation does not apply: "},
      {HookServer::Patch(R"([{"op":"add","path":"/data","value":7}])"),
       "Internal error occurred: json: cannot unmarshal number"},
      {HookServer::Patch(R"([{"op":"replace","path":"/kind","value":"Secret"}])"),
       "Internal error occurred: unable to convert v1, Kind=Secret to v1, Kind=ConfigMap"},
      {R"("allowed":true,"patchType":"Merge","patch":"W3t9XQ==")",
       R"(Internal error occurred: failed calling webhook "m.example.com": unsupported patch type "Merge")"},
      {HookServer::Patch(R"([{"op":"add","path":"/data","value":{}}])"),
       R"(Internal error occurred: admission webhook "m.example.com" attempted to modify the object, which )"
       "is not supported for this operation",
       Operation::kDelete},
  };
  for (const auto& c : cases) {
    server_.On("/m", [&](const json::value&) { return c.answer; });
    Map();
    EXPECT_THAT(Admit(c.operation), StartsWith(c.error));
  }
}

TEST_F(WebhookPlugins, LaterChangesAreShownAgainToThoseWhoAsk) {
  auto count = [](const std::string& key) {
    return [key](const json::value& request) {
      const json::object* data = request.at("object").as_object().contains("data")
                                     ? &request.at("object").at("data").as_object()
                                     : nullptr;
      const bool again = data && data->contains(key);
      if (again) return std::string();
      const std::string path = data ? "/data/" + key : "/data";
      const std::string value = data ? "\"1\"" : "{\"" + key + "\":\"1\"}";
      return HookServer::Patch(R"([{"op":"add","path":")" + path + R"(","value":)" + value + "}]");
    };
  };
  server_.On("/first", count("first"));
  server_.On("/never", count("never"));
  server_.On("/last", count("last"));
  Mutating("m", {{"first.example.com", "/first", R"(,"reinvocationPolicy":"IfNeeded")"},
                 {"never.example.com", "/never", ""},
                 {"last.example.com", "/last", R"(,"reinvocationPolicy":"IfNeeded")"}});
  Map();
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(server_.Seen("/first").size(), 2u);
  EXPECT_EQ(server_.Seen("/never").size(), 1u);
  EXPECT_EQ(server_.Seen("/last").size(), 1u);
  EXPECT_TRUE(server_.Seen("/first")[1].at("object").at("data").as_object().contains("last"));
  EXPECT_EQ(notes_.annotations["mutation.webhook.admission.k8s.io/round_1_index_0"],
            R"({"configuration":"m","webhook":"first.example.com","mutated":false})");
}

TEST_F(WebhookPlugins, EquivalentVersionsAreConverted) {
  const std::string rules = R"(,"rules":[{"operations":["*"],"apiGroups":["autoscaling"],"apiVersions":["v2"],
      "resources":["horizontalpodautoscalers"]}])";
  Validating("v", {{"v.example.com", "/v", rules},
                   {"exact.example.com", "/exact", rules + R"(,"matchPolicy":"Exact")"}});
  Mutating("m", {{"m.example.com", "/m", rules}});
  server_.On("/m", [](const json::value&) {
    return HookServer::Patch(R"([{"op":"replace","path":"/spec/metrics/0/resource/target/averageUtilization",
                                  "value":70}])");
  });
  const auto& hpa =
      Object<autoscalingv1::HorizontalPodAutoscaler>(R"({"metadata":{"name":"x","namespace":"ns"},
      "spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d"},
              "targetCPUUtilizationPercentage":50}})");
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(hpa.spec().target_cpu_utilization_percentage(), 70);
  EXPECT_EQ(server_.Seen("/exact").size(), 0u);
  ASSERT_EQ(server_.Seen("/v").size(), 1u);
  const json::value seen = server_.Seen("/v")[0];
  EXPECT_EQ(seen.at("object").at("apiVersion").as_string(), "autoscaling/v2");
  EXPECT_EQ(seen.at("kind").at("version").as_string(), "v2");
  EXPECT_EQ(seen.at("requestKind").at("version").as_string(), "v1");
}

}  // namespace
}  // namespace keelson::apiserver

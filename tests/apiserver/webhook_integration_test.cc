// Admission webhooks through kubectl, against the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/apiserver/admission/webhook/testing/hook_server.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

using testing::HasSubstr;
namespace json = boost::json;

class Webhooks : public ClusterTest {
 protected:
  // A configuration for this test's namespace alone.
  void Configure(const std::string& kind, const std::string& resources, const std::string& path,
                 const std::string& more = "") {
    Kubectl({"label", "ns", ns_, "hooks=" + ns_, "--overwrite"});
    const std::string name = ns_ + path.substr(1);
    Output made = cluster_->Kubectl({"create", "-f", "-"},
                                    R"({"apiVersion":"admissionregistration.k8s.io/v1","kind":")" + kind +
                                        R"(WebhookConfiguration",
        "metadata":{"name":")" + name + R"("},"webhooks":[{"name":")" +
                                        name + R"(.example.com","rules":[{
        "operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":[")" +
                                        resources + R"("]}],
        "namespaceSelector":{"matchLabels":{"hooks":")" +
                                        ns_ + R"("}},"sideEffects":"None",
        "admissionReviewVersions":["v1"],"clientConfig":{"url":")" +
                                        server_.service().url() + path + R"(","caBundle":")" +
                                        EncodeBase64(server_.service().ca_pem()) + "\"}" + more + "}]}");
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(made.err, "");  // enforced: no warning
    made_.emplace_back(kind, name);
  }
  void TearDown() override {
    for (const auto& [kind, name] : made_) cluster_->Kubectl({"delete", kind + "webhookconfiguration", name});
  }
  std::string Refused(const std::vector<std::string>& arguments, const std::string& input = "") {
    Output output = Run(arguments, input);
    EXPECT_NE(output.code, 0) << output.out;
    return output.err;
  }
  static std::string Pod(const std::string& meta) {
    return R"({"apiVersion":"v1","kind":"Pod","metadata":{)" + meta +
           R"(},"spec":{"containers":[{"name":"c","image":"i"}]}})";
  }

  HookServer server_;
  std::vector<std::pair<std::string, std::string>> made_;
};

TEST_F(Webhooks, DenyAndWarnAtOnce) {
  server_.On("/deny", [](const json::value& request) {
    if (request.at("operation").as_string() == "DELETE") return std::string();
    return std::string(R"("allowed":false,"warnings":["look out"],"status":{"message":"no maps","code":403,)"
                       R"("reason":"Forbidden"})");
  });
  Configure("Validating", "configmaps", "/deny");
  const std::string map = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}})";
  const std::string error = Refused({"create", "-f", "-"}, map);
  EXPECT_THAT(error, HasSubstr("Warning: look out"));
  EXPECT_THAT(error, HasSubstr("Error from server (Forbidden)"));
  EXPECT_THAT(error,
              HasSubstr("admission webhook \"" + ns_ + "deny.example.com\" denied the request: no maps"));
  EXPECT_THAT(Refused({"patch", "configmap", "kube-root-ca.crt", "-p", R"({"data":{"x":"y"}})"}),
              HasSubstr("no maps"));
  // Not about other kinds; deletions are allowed, each object of a collection by itself.
  Kubectl({"create", "secret", "generic", "s"});
  Kubectl({"delete", "configmaps", "--all"});
  bool seen = false;
  for (const json::value& request : server_.Seen("/deny")) {
    seen = seen || request.at("operation").as_string() == "DELETE";
  }
  EXPECT_TRUE(seen);
}

TEST_F(Webhooks, MutationIsDefaultedAndValidated) {
  server_.On("/sidecar", [](const json::value& request) {
    if (request.at("operation").as_string() != "CREATE") return std::string();
    return HookServer::Patch(
        R"([{"op":"add","path":"/spec/initContainers","value":[{"name":"w","image":"x"}]},
                                 {"op":"add","path":"/metadata/labels","value":{"hooked":"yes"}}])");
  });
  Configure("Mutating", "pods", "/sidecar");
  Kubectl({"create", "-f", "-"}, Pod(R"("generateName":"g-")"));
  EXPECT_EQ(Kubectl({"get", "pods", "-l", "hooked=yes", "-o",
                     "jsonpath={.items[0].spec.initContainers[0].terminationMessagePolicy}"}),
            "File");
  const json::value seen = server_.Seen("/sidecar")[0];
  const json::object& meta = seen.at("object").at("metadata").as_object();
  EXPECT_EQ(meta.at("generateName").as_string(), "g-");
  EXPECT_FALSE(meta.contains("name"));
  EXPECT_FALSE(meta.contains("uid"));
  EXPECT_TRUE(meta.contains("managedFields"));
  EXPECT_EQ(seen.at("options").at("fieldManager").as_string(), "kubectl-create");
  EXPECT_EQ(seen.at("userInfo").at("groups").as_array()[0].as_string(), "system:masters");
  server_.On("/sidecar", [](const json::value&) {
    return HookServer::Patch(
        R"([{"op":"add","path":"/spec/initContainers","value":[{"name":"A_B","image":"x"}]}])");
  });
  EXPECT_THAT(Refused({"create", "-f", "-"}, Pod(R"("name":"bad")")),
              HasSubstr("spec.initContainers[0].name: Invalid value: \"A_B\""));
  server_.On("/sidecar", [](const json::value&) {
    return HookServer::Patch(R"([{"op":"replace","path":"/metadata/namespace","value":"default"}])");
  });
  EXPECT_THAT(
      Refused({"create", "-f", "-"}, Pod(R"("name":"away")")),
      HasSubstr("the namespace of the provided object does not match the namespace sent on the request"));
}

TEST_F(Webhooks, SchemasApplyToPatchesOfCustomResources) {
  Kubectl({"create", "-f", "-"}, R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
      "metadata":{"name":"gadgets.hooks.example.com"},"spec":{"group":"hooks.example.com","scope":"Namespaced",
      "names":{"plural":"gadgets","kind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,
      "schema":{"openAPIV3Schema":{"type":"object","properties":{"data":{"type":"object","properties":{
        "first":{"type":"string"},"second":{"type":"string","default":"given"}}}}}}}]}})");
  Kubectl({"wait", "--for=condition=Established", "crd/gadgets.hooks.example.com", "--timeout=10s"});
  server_.On("/a-change", [](const json::value&) {
    return HookServer::Patch(R"([{"op":"add","path":"/data/unknown","value":1},
                                 {"op":"remove","path":"/data/second"}])");
  });
  server_.On("/b-see", [](const json::value&) { return std::string(); });
  Configure("Mutating", "gadgets", "/a-change");
  Configure("Mutating", "gadgets", "/b-see");
  Kubectl({"create", "-f", "-"},
          R"({"apiVersion":"hooks.example.com/v1","kind":"Gadget","metadata":{"name":"g"},
      "data":{"first":"f","second":"s"}})");
  const json::object seen = server_.Seen("/b-see")[0].at("object").at("data").as_object();
  EXPECT_EQ(json::serialize(seen), R"({"first":"f","second":"given"})");
  EXPECT_EQ(Kubectl({"get", "gadget", "g", "-o", "jsonpath={.data}"}), R"({"first":"f","second":"given"})");
  Kubectl({"delete", "crd", "gadgets.hooks.example.com"});
}

TEST_F(Webhooks, ConnectionsScalesAndTokensAreAsked) {
  server_.On("/all", [](const json::value& request) {
    if (request.at("operation").as_string() == "CONNECT") {
      return std::string(R"("allowed":false,"status":{"message":"attaching is not allowed"})");
    }
    return std::string();
  });
  Kubectl({"create", "-f", "-"}, Pod(R"("name":"p")"));
  Kubectl({"create", "deployment", "d", "--image=i"});
  Configure("Validating", "*/*", "/all");
  EXPECT_THAT(Refused({"exec", "p", "--", "ls"}), HasSubstr("attaching is not allowed"));
  EXPECT_THAT(Refused({"get", "--raw", "/api/v1/namespaces/" + ns_ + "/pods/p/proxy/x"}),
              HasSubstr("attaching is not allowed"));
  Kubectl({"scale", "deployment", "d", "--replicas=0"});
  Kubectl({"create", "token", "default"});
  std::set<std::string> kinds;
  for (const json::value& request : server_.Seen("/all")) {
    const json::object& one = request.as_object();
    if (one.at("userInfo").at("groups").as_array()[0].as_string() != "system:masters") continue;
    std::string name(one.at("resource").at("resource").as_string());
    if (one.contains("subResource")) name += "/" + std::string(one.at("subResource").as_string());
    kinds.insert(name + " " + std::string(one.at("kind").at("kind").as_string()));
  }
  EXPECT_THAT(kinds,
              testing::IsSupersetOf({"pods/exec PodExecOptions", "pods/proxy PodProxyOptions",
                                     "deployments/scale Scale", "serviceaccounts/token TokenRequest"}));
}

TEST_F(Webhooks, UnreachableOnesFailClosedAndAreCounted) {
  server_.OnRaw("/broken", {500, "boom"});
  Configure("Validating", "configmaps", "/broken");
  const std::string map = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}})";
  const std::string error = Refused({"create", "-f", "-"}, map);
  EXPECT_THAT(error, HasSubstr("Error from server (InternalError)"));
  EXPECT_THAT(error,
              HasSubstr("Internal error occurred: failed calling webhook \"" + ns_ +
                        "broken.example.com\": failed to call webhook: an error on the server (\"boom\")"));
  EXPECT_THAT(Refused({"create", "configmap", "a", "--dry-run=server"}), HasSubstr("boom"));
  EXPECT_THAT(
      cluster_->Kubectl({"get", "--raw", "/metrics"}).out,
      HasSubstr("apiserver_admission_webhook_rejection_count{error_type=\"calling_webhook_error\",name=\"" +
                ns_ + "broken.example.com\",operation=\"CREATE\""));
  // The configuration itself can always be changed and removed.
  Output gone = cluster_->Kubectl({"delete", "validatingwebhookconfiguration", ns_ + "broken"});
  EXPECT_EQ(gone.code, 0) << gone.err;
  Kubectl({"create", "configmap", "a"});
}

}  // namespace
}  // namespace keelson::apiserver

// Extension API servers behind the real program, through kubectl and over HTTP.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "lib/base/base64.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "tests/apiserver/cluster_test.h"
#include "tests/apiserver/extension_server.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kName[] = "v1alpha1.wardle.example.com";
constexpr char kPath[] = "/apis/wardle.example.com/v1alpha1";
constexpr char kAggregated[] = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
constexpr std::chrono::seconds kSoon{20};

class Aggregation : public ClusterTest {
 protected:
  static void SetUpTestSuite() {
    front_ = std::make_unique<crypto::TestPki>();
    const crypto::TestCertificate proxy = front_->Client("front-proxy-client", {});
    ASSERT_TRUE(WriteFile(front_->dir() + "/proxy.crt", proxy.certificate_pem));
    ASSERT_TRUE(WriteFile(front_->dir() + "/proxy.key", proxy.key_pem, 0600));
    Start({"--proxy-client-cert-file", front_->dir() + "/proxy.crt", "--proxy-client-key-file",
           front_->dir() + "/proxy.key", "--requestheader-client-ca-file", front_->ca_file(),
           "--requestheader-allowed-names", "front-proxy-client", "--requestheader-username-headers",
           "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group",
           "--requestheader-extra-headers-prefix", "X-Remote-Extra-"});
  }
  static void TearDownTestSuite() {
    ClusterTest::TearDownTestSuite();
    front_.reset();
  }
  void TearDown() override {
    if (!missing_.empty()) return;
    cluster_->Kubectl({"delete", "apiservice", kName, "--ignore-not-found"});
    cluster_->Kubectl({"-n", "default", "delete", "svc", "wardle", "--ignore-not-found"});
  }

  // An EndpointSlice may not name loopback addresses, and a name may.
  void Register(bool aggregated) {
    server_ = std::make_unique<ExtensionServer>(front_->ca_file(), aggregated);
    Kubectl({"-n", "default", "create", "-f", "-"},
            "apiVersion: v1\nkind: Service\nmetadata: {name: wardle, namespace: default}\n"
            "spec: {type: ExternalName, externalName: localhost}\n");
    Kubectl({"create", "-f", "-"}, ApiService());
    Wait("condition=Available");
  }
  std::string ApiService() const {
    return fmt::format(
        "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {{name: {}}}\nspec:\n"
        "  group: wardle.example.com\n  version: v1alpha1\n  groupPriorityMinimum: 2000\n  versionPriority: "
        "200\n"
        "  caBundle: {}\n  service: {{name: wardle, namespace: default, port: {}}}\n",
        kName, EncodeBase64(server_->ca_pem()), server_->port());
  }
  void Wait(const std::string& what) {
    Kubectl({"wait", "--for=" + what, std::string("apiservice/") + kName, "--timeout=30s"});
  }
  http::ClientResponse Get(const std::string& target, const std::string& accept = "application/json") {
    http::ClientRequest request;
    request.target = target;
    request.headers.Add("Accept", accept);
    return cluster_->Do(request);
  }
  static std::string Flunder(const std::string& name) {
    return "apiVersion: wardle.example.com/v1alpha1\nkind: Flunder\nmetadata: {name: " + name +
           "}\nspec: {reference: fish}\n";
  }
  // The group's entry in aggregated discovery; null: none.
  json::value InDiscovery(const std::string& group) {
    const json::value parsed = json::parse(Get("/apis", kAggregated).body);
    for (const json::value& item : parsed.at("items").as_array()) {
      if (item.at("metadata").at("name").as_string() == group) return item;
    }
    return nullptr;
  }

  inline static std::unique_ptr<crypto::TestPki> front_;
  std::unique_ptr<ExtensionServer> server_;
};

TEST_F(Aggregation, KubectlUsesItsResources) {
  Register(true);
  Kubectl({"create", "-f", "-"}, Flunder("one"));
  EXPECT_EQ(Run({"create", "-f", "-"}, Flunder("one")).code, 1);
  EXPECT_THAT(Kubectl({"get", "fl", "-o", "name"}), HasSubstr("flunder.wardle.example.com/one"));
  EXPECT_EQ(Kubectl({"get", "flunder", "one", "-o", "jsonpath={.spec.reference}"}), "fish");
  EXPECT_THAT(Run({"get", "flunder", "two"}).err, HasSubstr("flunders.wardle.example.com \"two\" not found"));
  Kubectl({"delete", "flunder", "one", "--wait=false"});
  EXPECT_EQ(Kubectl({"get", "flunders", "-o", "name"}), "");
  EXPECT_THAT(server_->Users(), Contains("admin|system:masters,system:authenticated"));
  EXPECT_FALSE(server_->leaked());
  EXPECT_THAT(Kubectl({"explain", "flunder"}), HasSubstr("A flunder is a fish."));
}

TEST_F(Aggregation, OwnAuthorizationComesFirst) {
  Register(true);
  cluster_->AddUser("nobody", {});
  EXPECT_THAT(
      cluster_->Kubectl({"-n", ns_, "get", "flunders"}, "", "nobody").err,
      HasSubstr(
          "flunders.wardle.example.com is forbidden: User \"nobody\" cannot list resource \"flunders\" in "
          "API group \"wardle.example.com\""));
  EXPECT_THAT(server_->Users(), Not(Contains(StartsWith("nobody"))));
  EXPECT_THAT(Kubectl({"--as=jane", "--as-group=system:masters", "get", "flunders", "-o", "name"}), "");
  EXPECT_THAT(server_->Users(), Contains("jane|system:masters,system:authenticated"));
  http::ClientRequest claim;
  claim.target = std::string(kPath) + "/flunders";
  claim.headers = {{"X-Remote-User", "root"}, {"X-Remote-Group", "system:root"}};
  EXPECT_EQ(cluster_->Do(claim).status, 200);
  EXPECT_THAT(server_->Users(), Contains("admin|system:masters,system:authenticated"));
  EXPECT_FALSE(server_->leaked());
}

TEST_F(Aggregation, WatchesAreNotHeldBack) {
  Register(true);
  auto client = cluster_->NewClient("admin");
  http::ClientRequest request;
  request.target = std::string(kPath) + "/flunders?watch=true";
  auto reader = client->Open(request, kSoon);
  ASSERT_TRUE(reader) << reader.error().message();
  ASSERT_EQ((*reader)->status(), 200);
  Kubectl({"create", "-f", "-"}, Flunder("seen"));
  EXPECT_THAT((*reader)->Read({}, kSoon).value_or(""), StartsWith("{\"type\":\"ADDED\""));
  Kubectl({"delete", "flunder", "seen", "--wait=false"});
  EXPECT_THAT((*reader)->Read({}, kSoon).value_or(""), StartsWith("{\"type\":\"DELETED\""));
}

// The limit of the server's own resources is not that of others.
TEST_F(Aggregation, BodiesMayBeLong) {
  Register(true);
  http::ClientRequest request;
  request.method = "POST";
  request.target = fmt::format("{}/namespaces/{}/flunders", kPath, ns_);
  request.headers = {{"Content-Type", "application/json"}};
  request.body =
      R"({"apiVersion":"wardle.example.com/v1alpha1","kind":"Flunder","metadata":{"name":"whale"},"spec":{"text":")" +
      std::string(6u << 20, 'x') + "\"}}";
  http::ClientResponse response = cluster_->Do(request);
  EXPECT_EQ(response.status, 201) << response.body.substr(0, 200);
  response = Get(request.target + "/whale");
  EXPECT_EQ(response.status, 200);
  EXPECT_GT(response.body.size(), 6u << 20);
  request.target = "/api/v1/namespaces/" + ns_ + "/configmaps";
  EXPECT_EQ(cluster_->Do(request).status, 413);
}

TEST_F(Aggregation, DiscoveryIsMerged) {
  for (const bool aggregated : {true, false}) {
    Register(aggregated);
    const json::value group = InDiscovery("wardle.example.com");
    ASSERT_TRUE(group.is_object());
    const json::value& version = group.at("versions").as_array().at(0);
    EXPECT_EQ(version.at("freshness").as_string(), "Current");
    EXPECT_EQ(version.at("resources").as_array().at(0).at("resource").as_string(), "flunders");
    EXPECT_EQ(version.at("resources").as_array().at(0).at("responseKind").at("kind").as_string(), "Flunder");
    EXPECT_THAT(Get("/apis").body,
                HasSubstr(R"({"groupVersion":"wardle.example.com/v1alpha1","version":"v1alpha1"})"));
    EXPECT_THAT(Get("/apis/wardle.example.com").body,
                HasSubstr(R"("preferredVersion":{"groupVersion":"wardle.)"));
    EXPECT_THAT(Get(kPath).body, HasSubstr(R"("name":"flunders")"));
    EXPECT_THAT(Get("/openapi/v3").body, HasSubstr("apis/wardle.example.com/v1alpha1?hash=F1"));
    EXPECT_THAT(Get("/openapi/v3/apis/wardle.example.com/v1alpha1?hash=F1").body,
                HasSubstr("A flunder is a fish."));
    // Without the APIService, nothing is left.
    Kubectl({"delete", "apiservice", kName});
    Kubectl({"-n", "default", "delete", "svc", "wardle"});
    EXPECT_EQ(Get(std::string(kPath) + "/flunders").status, 404);
    EXPECT_EQ(Get("/apis/wardle.example.com").status, 404);
    EXPECT_TRUE(InDiscovery("wardle.example.com").is_null());
  }
}

TEST_F(Aggregation, AnotherServersEndIsItsOwn) {
  Register(true);
  server_->Stop();
  http::ClientResponse response = Get(std::string(kPath) + "/flunders");
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, StartsWith("error trying to reach service: "));
  // A change makes the server look at once.
  Kubectl({"annotate", "apiservice", kName, "look=now"});
  Kubectl({"label", "-n", "default", "svc", "wardle", "look=now"});
  Wait("condition=Available=False");
  EXPECT_EQ(Kubectl({"get", "apiservice", kName, "-o", "jsonpath={.status.conditions[0].reason}"}),
            "FailedDiscoveryCheck");
  response = Get(std::string(kPath) + "/flunders");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, "service unavailable\n");
  const json::value group = InDiscovery("wardle.example.com");
  ASSERT_TRUE(group.is_object());
  EXPECT_EQ(group.at("versions").as_array().at(0).at("freshness").as_string(), "Stale");
  EXPECT_EQ(Get("/api/v1/namespaces/" + ns_).status, 200);
  Kubectl({"create", "configmap", "still-works"});
}

// More requests than the server has workers wait for a server that says nothing.
TEST_F(Aggregation, SilenceDelaysNobodyElse) {
  Register(true);
  auto client = cluster_->NewClient("admin");
  http::ClientRequest request;
  request.target = fmt::format("{}/namespaces/{}/flunders/{}", kPath, ns_, ExtensionServer::kSilent);
  constexpr int kMany = 400;
  std::vector<std::unique_ptr<http::PendingResponse>> waiting;
  for (int i = 0; i < kMany; ++i) waiting.push_back(client->Start(request));
  size_t there = 0;
  const auto deadline = std::chrono::steady_clock::now() + kSoon;
  while (there < kMany && std::chrono::steady_clock::now() < deadline) {
    // Controllers read flunders too.
    const std::vector<std::string> users = server_->Users();
    there += static_cast<size_t>(
        std::count_if(users.begin(), users.end(), [](const auto& one) { return one.starts_with("admin|"); }));
  }
  ASSERT_EQ(there, static_cast<size_t>(kMany));
  EXPECT_EQ(Get("/api/v1/namespaces/" + ns_).status, 200);
  Kubectl({"create", "configmap", "still-works"});
  server_->Stop();
  for (auto& one : waiting) {
    const Result<http::ClientResponse> response = one->Await(kSoon);
    ASSERT_TRUE(response) << response.error().message();
    EXPECT_EQ(response->status, 503);
  }
}

TEST_F(Aggregation, OpenApiV2IsMerged) {
  Register(true);
  constexpr char kFlunder[] = "com.example.wardle.v1alpha1.Flunder";
  const auto document = [&] { return json::parse(Get("/openapi/v2").body); };
  const json::value merged = document();
  EXPECT_TRUE(merged.at("paths").as_object().contains(std::string(kPath) + "/flunders"));
  const json::object& definitions = merged.at("definitions").as_object();
  ASSERT_TRUE(definitions.contains(kFlunder));
  // The server's ObjectMeta is another one than ours.
  const std::string meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
  EXPECT_TRUE(definitions.at(meta).at("properties").as_object().contains("labels"));
  EXPECT_FALSE(definitions.at(meta + "_v2").as_object().contains("properties"));
  EXPECT_EQ(definitions.at(kFlunder).at("properties").at("metadata").at("$ref").as_string(),
            "#/definitions/" + meta + "_v2");
  EXPECT_THAT(Kubectl({"get", "--raw", "/metrics"}),
              AllOf(HasSubstr(std::string("aggregator_openapi_v2_regeneration_count{apiservice=\"") + kName +
                              "\",reason=\"add\"}"),
                    HasSubstr("aggregator_openapi_v2_regeneration_duration{reason=\"add\"}"),
                    HasSubstr("aggregator_discovery_aggregation_count_total ")));
  EXPECT_THAT(Get("/openapi/v2", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf").body,
              HasSubstr("A flunder is a fish."));
  Kubectl({"delete", "apiservice", kName});
  const SteadyTime deadline = SteadyTime::clock::now() + kSoon;
  while (document().at("definitions").as_object().contains(kFlunder)) {
    ASSERT_LT(SteadyTime::clock::now(), deadline);
  }
}

// The garbage collector and the namespace controller, with a server that speaks JSON alone.
TEST_F(Aggregation, ControllersTakeItsObjectsAlong) {
  Register(true);
  Kubectl({"create", "configmap", "owner"});
  const std::string uid = Kubectl({"get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}"});
  Kubectl({"create", "-f", "-"},
          "apiVersion: wardle.example.com/v1alpha1\nkind: Flunder\nmetadata:\n  name: child\n"
          "  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: " +
              uid + "}]\n");
  Kubectl({"create", "-f", "-"}, Flunder("free"));
  Kubectl({"delete", "configmap", "owner", "--cascade=background"});
  Kubectl({"wait", "--for=delete", "flunder/child", "--timeout=30s"});
  EXPECT_EQ(Kubectl({"get", "fl", "-o", "name"}), "flunder.wardle.example.com/free\n");

  const std::string doomed = ns_ + "-doomed";
  Kubectl({"create", "ns", doomed});
  cluster_->Kubectl({"-n", doomed, "create", "-f", "-"}, Flunder("one"));
  Kubectl({"delete", "ns", doomed, "--timeout=30s"});
  EXPECT_EQ(Kubectl({"get", "fl", "-A", "-o", "jsonpath={.items[*].metadata.name}"}), "free");
}

// What a server has is not known while it does not answer.
TEST_F(Aggregation, NamespacesWaitForItsDiscovery) {
  Register(true);
  const std::string doomed = ns_ + "-doomed";
  Kubectl({"create", "ns", doomed});
  server_->Stop();
  Wait("condition=Available=False");
  Kubectl({"delete", "ns", doomed, "--wait=false"});
  const std::string failure = R"(.status.conditions[?(@.type=="NamespaceDeletionDiscoveryFailure")])";
  Kubectl({"wait", "--for=jsonpath={" + failure + ".status}=True", "ns/" + doomed, "--timeout=60s"});
  EXPECT_THAT(
      Kubectl({"get", "ns", doomed, "-o", "jsonpath={" + failure + ".message}"}),
      HasSubstr("Discovery failed for some groups, 1 failing: unable to retrieve the complete list of "
                "server APIs: wardle.example.com/v1alpha1: "));
  Kubectl({"delete", "apiservice", kName});
  Kubectl({"wait", "--for=delete", "ns/" + doomed, "--timeout=30s"});
}

TEST_F(Aggregation, ConditionsNameTheReason) {
  server_ = std::make_unique<ExtensionServer>(front_->ca_file(), true);
  Kubectl({"create", "-f", "-"}, ApiService());
  Wait("condition=Available=False");
  const auto condition = [&](const char* field) {
    return Kubectl(
        {"get", "apiservice", kName, "-o", fmt::format("jsonpath={{.status.conditions[0].{}}}", field)});
  };
  EXPECT_EQ(condition("reason"), "ServiceNotFound");
  EXPECT_EQ(condition("message"), "service/wardle in \"default\" is not present");
  Kubectl({"-n", "default", "create", "-f", "-"},
          "apiVersion: v1\nkind: Service\nmetadata: {name: wardle, namespace: default}\n"
          "spec: {ports: [{port: 443}]}\n");
  Wait("jsonpath={.status.conditions[0].reason}=ServicePortError");
  Kubectl({"patch", "apiservice", kName, "--type=merge", "-p", R"({"spec":{"service":{"port":443}}})"});
  Wait("jsonpath={.status.conditions[0].reason}=EndpointsNotFound");
}

TEST_F(Aggregation, OwnGroupsHaveAPIServices) {
  Kubectl({"wait", "--for=create", "apiservice/v1beta1.metrics.k8s.io", "--timeout=30s"});
  EXPECT_EQ(
      Kubectl({"get", "apiservice", "v2.autoscaling", "-o",
               "jsonpath={.spec.groupPriorityMinimum} {.spec.versionPriority} {.status.conditions[0].reason} "
               "{.metadata.labels.kube-aggregator\\.kubernetes\\.io/automanaged}"}),
      "17500 30 Local onstart");
  EXPECT_THAT(Run({"get", "apiservice", "v1.apiregistration.k8s.io"}).err, HasSubstr("not found"));
  const std::string definition =
      "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: "
      "nets.fish.example.com}\n"
      "spec: {group: fish.example.com, scope: Cluster, names: {plural: nets, kind: Net}, versions: [{name: "
      "v1, served: "
      "true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n";
  Kubectl({"create", "-f", "-"}, definition);
  Kubectl({"wait", "--for=create", "apiservice/v1.fish.example.com", "--timeout=30s"});
  EXPECT_EQ(Kubectl({"get", "apiservice", "v1.fish.example.com", "-o",
                     "jsonpath={.spec.groupPriorityMinimum} {.spec.versionPriority} "
                     "{.metadata.labels.kube-aggregator\\.kubernetes\\.io/automanaged}"}),
            "1000 100 true");
  Kubectl({"delete", "crd", "nets.fish.example.com"});
  Kubectl({"wait", "--for=delete", "apiservice/v1.fish.example.com", "--timeout=30s"});
}

// metrics-server's manifest takes the place of the server's own metrics, and its removal brings them back.
TEST_F(Aggregation, MetricsServerMayTakeOver) {
  const std::string name = "v1beta1.metrics.k8s.io";
  Kubectl({"wait", "--for=create", "apiservice/" + name, "--timeout=30s"});
  EXPECT_EQ(Get("/apis/metrics.k8s.io/v1beta1/nodes").status, 200);
  Kubectl({"apply", "-f", "-"},
          "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: " + name +
              "}\nspec: {group: metrics.k8s.io, version: v1beta1, groupPriorityMinimum: 100, "
              "versionPriority: 100, "
              "insecureSkipTLSVerify: true, service: {name: metrics-server, namespace: kube-system}}\n");
  Kubectl({"wait", "--for=condition=Available=False", "apiservice/" + name, "--timeout=30s"});
  EXPECT_EQ(Get("/apis/metrics.k8s.io/v1beta1/nodes").status, 503);
  Kubectl({"delete", "apiservice", name, "--wait=false"});
  Kubectl({"wait", "--for=create", "apiservice/" + name, "--timeout=30s"});
  Kubectl(
      {"wait", "--for=jsonpath={.status.conditions[0].reason}=Local", "apiservice/" + name, "--timeout=30s"});
  EXPECT_EQ(Get("/apis/metrics.k8s.io/v1beta1/nodes").status, 200);
}

TEST_F(Aggregation, ExtensionServersFindOutHowToAuthenticate) {
  Kubectl({"-n", "kube-system", "wait", "--for=create", "cm/extension-apiserver-authentication",
           "--timeout=30s"});
  EXPECT_EQ(Kubectl({"-n", "kube-system", "get", "cm", "extension-apiserver-authentication", "-o",
                     "jsonpath={.data.requestheader-client-ca-file}"}),
            front_->ca_pem());
}

}  // namespace
}  // namespace keelson::apiserver

// Flags whose effect only a whole program shows.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>

#include "lib/base/fd.h"
#include "tests/controlplane/roles.h"

namespace keelson::controlplane {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A TCP port of 127.0.0.1 that takes connections and says nothing.
class MutePort {
 public:
  MutePort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_.get(), 8), 0);
    EXPECT_EQ(getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    number_ = ntohs(address.sin_port);
  }
  int number() const { return number_; }

 private:
  UniqueFd fd_;
  int number_ = 0;
};

class FlagsTest : public Roles {
 protected:
  void SetUp() override {
    if (std::string missing = TestCluster::Missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
  void StartServer(std::vector<std::string> flags) {
    flags.insert(flags.begin(), "--roles=apiserver");
    cluster_ = std::make_unique<TestCluster>(flags);
  }
  crypto::TestPki files_;
  http::ClientResponse Get(const std::string& target) { return cluster_->Do({"GET", target, {}, {}}); }
  void Apply(const std::string& json) { Kubectl({"create", "-f", "-"}, json); }
};

TEST_F(FlagsTest, OfTheApiServer) {
  StartServer({"--disabled-metrics=apiserver_request_total,apiserver_storage_objects", "--event-ttl=2s",
               "--etcd-compaction-interval=1s", "--external-hostname=api.example.com",
               "--kubelet-timeout=200ms", "--min-request-timeout=1", "--disable-http2-serving",
               "--default-not-ready-toleration-seconds=7", "--default-unreachable-toleration-seconds=8",
               "--service-node-port-range=30100-30101", "--service-account-max-token-expiration=1h",
               "--api-audiences=here", "--endpoint-reconciler-type=none"});
  Kubectl({"create", "serviceaccount", "default"});

  const std::string metrics = Get("/metrics").body;
  EXPECT_THAT(metrics, Not(HasSubstr("apiserver_request_total{")));
  EXPECT_THAT(metrics, Not(HasSubstr("apiserver_storage_objects")));
  EXPECT_THAT(metrics, HasSubstr("apiserver_request_duration_seconds_bucket{"));
  EXPECT_THAT(metrics, HasSubstr("\ndisabled_metrics_total 2\n"));

  // --event-ttl: etcd removes the event.
  Apply(R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},
            "involvedObject":{"kind":"Pod","namespace":"default","name":"p"}})");
  EXPECT_TRUE(Eventually([&] { return Get("/api/v1/namespaces/default/events/e").status == 404; }));

  // --etcd-compaction-interval: the first revisions are forgotten.
  EXPECT_TRUE(Eventually([&] {
    Kubectl({"annotate", "serviceaccount", "default", "--overwrite", "a=" + std::to_string(getpid())});
    return Get("/api/v1/configmaps?limit=1&resourceVersion=2&resourceVersionMatch=Exact").status == 410;
  }));

  // --external-hostname: in the discovery document and in that of the issuer's keys.
  EXPECT_THAT(Get("/api").body, HasSubstr("\"api.example.com:" + std::to_string(cluster_->port()) + "\""));
  EXPECT_THAT(Get("/.well-known/openid-configuration").body, HasSubstr("https://api.example.com:"));

  // --kubelet-timeout: a kubelet that says nothing. The default is 5 s.
  const MutePort kubelet;
  Apply(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"status":{
            "addresses":[{"type":"InternalIP","address":"127.0.0.1"}],
            "daemonEndpoints":{"kubeletEndpoint":{"Port":)" +
        std::to_string(kubelet.number()) + "}}}}");
  Apply(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
            "spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}})");
  SteadyTime begin = SteadyTime::clock::now();
  const http::ClientResponse log = Get("/api/v1/namespaces/default/pods/p/log");
  EXPECT_THAT(log.status, AnyOf(500, 503, 504)) << log.body;
  EXPECT_LT(SteadyTime::clock::now() - begin, seconds(4));

  // --min-request-timeout: a watch without a timeout ends after one to two times that. The default is 1800.
  begin = SteadyTime::clock::now();
  EXPECT_EQ(Get("/api/v1/namespaces/default/configmaps?watch=true").status, 200);
  EXPECT_LT(SteadyTime::clock::now() - begin, seconds(20));

  EXPECT_EQ(apiserver::RunProgram({"curl", "-sk", "--http2", "-o", "/dev/null", "-w", "%{http_version}",
                                   cluster_->url() + "/readyz"})
                .out,
            "1.1");
  EXPECT_EQ(Field("pod/p", "{.spec.tolerations[*].tolerationSeconds}"), "7 8");
  EXPECT_EQ(Field("endpoints/kubernetes", "{.subsets}"), "");

  for (const char* port : {"30100", "30101"}) {
    Kubectl({"create", "service", "nodeport", std::string("s") + port, "--tcp=80"});
  }
  const Output full = cluster_->Kubectl({"create", "service", "nodeport", "third", "--tcp=80"});
  EXPECT_THAT(full.err, HasSubstr("range is full"));

  // Tokens: at most an hour, and by default for the audiences of this server.
  const Output token = cluster_->Kubectl({"create", "token", "default", "--duration=10h", "-o", "json"});
  EXPECT_THAT(token.out, HasSubstr("\"here\"")) << token.err;
  EXPECT_THAT(token.out, HasSubstr("\"expirationSeconds\": 3600"));
}

TEST_F(FlagsTest, NodePortOfTheApiServer) {
  StartServer({"--kubernetes-service-node-port=30555"});
  EXPECT_EQ(Field("service/kubernetes", "{.spec.type} {.spec.ports[0].nodePort}", "default"),
            "NodePort 30555");
  Process process(files_.dir() + "/port.log",
                  {"--roles=apiserver", "--data-dir=" + files_.dir() + "/data",
                   "--etcd-servers=https://127.0.0.1:2379", "--kubernetes-service-node-port=80"});
  EXPECT_EQ(process.Wait(), 1);
  EXPECT_TRUE(process.Says("kubernetes service port range 30000-32767 doesn't contain 80")) << process.Log();
}

// The server never reads from elsewhere than it was told.
TEST_F(FlagsTest, OneEtcdForAllResources) {
  Process process(
      files_.dir() + "/overrides.log",
      {"--roles=apiserver", "--data-dir=" + files_.dir() + "/data", "--etcd-servers=https://127.0.0.1:2379",
       "--etcd-servers-overrides=/events#https://127.0.0.1:2381;https://127.0.0.1:2382"});
  EXPECT_EQ(process.Wait(), 1);
  EXPECT_TRUE(
      process.Says("--etcd-servers-overrides=/events#https://127.0.0.1:2381;https://127.0.0.1:2382: all "
                   "resources are in the etcd of --etcd-servers"))
      << process.Log();
}

// A client with a certificate of its own could name another user in a header.
TEST_F(FlagsTest, ProxiesHaveACertificateAuthorityOrNamesOfTheirOwn) {
  Process process(
      files_.dir() + "/proxies.log",
      {"--roles=apiserver", "--data-dir=" + files_.dir() + "/data", "--etcd-servers=https://127.0.0.1:2379",
       "--client-ca-file=" + files_.ca_file(), "--requestheader-client-ca-file=" + files_.ca_file()});
  EXPECT_EQ(process.Wait(), 1);
  EXPECT_TRUE(
      process.Says("--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; "
                   "--requestheader-allowed-names must be specified"))
      << process.Log();
}

TEST_F(FlagsTest, WhereTheKeysOfTokensAre) {
  StartServer({"--service-account-jwks-uri=https://keys.example.com/keys"});
  EXPECT_THAT(Get("/.well-known/openid-configuration").body,
              HasSubstr("\"jwks_uri\":\"https://keys.example.com/keys\""));
}

// The server listens on 127.0.0.1, where nobody else reaches it.
TEST_F(FlagsTest, OfTheAddressAndOfBrowsers) {
  StartServer({"--advertise-address=", "--cors-allowed-origins=^https://console\\.example\\.com(:|$)",
               "--strict-transport-security-directives=max-age=60,includeSubDomains"});
  const std::string address = Field("endpoints/kubernetes", "{.subsets[*].addresses[*].ip}", "default");
  EXPECT_NE(address, "");
  EXPECT_NE(address, "127.0.0.1");

  const std::string origin = "https://console.example.com";
  for (const char* target : {"/version", "/apis", "/api/v1/namespaces", "/nothing"}) {
    const auto reply = cluster_->Do({"GET", target, {{"Origin", origin}}, {}});
    EXPECT_EQ(reply.headers.Get("Access-Control-Allow-Origin"), origin) << target;
    EXPECT_EQ(reply.headers.Get("Strict-Transport-Security"), "max-age=60; includeSubDomains") << target;
  }
  EXPECT_EQ(cluster_->Do({"OPTIONS", "/api/v1/pods", {{"Origin", origin}}, {}}).status, 204);
  const auto other = cluster_->Do({"GET", "/version", {{"Origin", "https://evil.example"}}, {}});
  EXPECT_FALSE(other.headers.Has("Access-Control-Allow-Origin"));
}

TEST_F(FlagsTest, WriteConfigTo) {
  const std::string in = files_.dir() + "/scheduler.yaml", out = files_.dir() + "/written.yaml";
  const std::string text =
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
      "podMaxBackoffSeconds: 20\n";
  ASSERT_TRUE(WriteFile(in, text));
  Process good(files_.dir() + "/good.log",
               {"--roles=scheduler", "--config=" + in, "--write-config-to=" + out});
  EXPECT_EQ(good.Wait(), 0) << good.Log();
  EXPECT_THAT(ReadFile(out).value_or(""),
              AllOf(HasSubstr("podMaxBackoffSeconds: 20\n"), HasSubstr("podInitialBackoffSeconds: 1\n"),
                    HasSubstr("  leaseDuration: 15s\n"), HasSubstr("  schedulerName: default-scheduler\n"),
                    HasSubstr("- name: TaintToleration\n        weight: 3\n"),
                    HasSubstr("      minCandidateNodesAbsolute: 100\n")));
  // It is a configuration itself, and the same; what flags change is in it.
  Process again(files_.dir() + "/again.log",
                {"--roles=scheduler", "--config=" + out, "--leader-elect-lease-duration=20s",
                 "--write-config-to=" + out});
  EXPECT_EQ(again.Wait(), 0) << again.Log();
  EXPECT_THAT(ReadFile(out).value_or(""),
              AllOf(HasSubstr("podMaxBackoffSeconds: 20\n"), HasSubstr("  leaseDuration: 20s\n")));

  // A mistake ends the program, and nothing is written.
  ASSERT_TRUE(WriteFile(in, text + "nonsense: 1\n"));
  Process bad(files_.dir() + "/bad.log",
              {"--roles=scheduler", "--config=" + in, "--write-config-to=" + out + "2"});
  EXPECT_EQ(bad.Wait(), 1);
  EXPECT_THAT(bad.Log(), HasSubstr("nonsense"));
  EXPECT_FALSE(ReadFile(out + "2"));
}

TEST_F(FlagsTest, OfControllers) {
  StartServer({});
  cluster_->AddUser("stock-kube-controller-manager", {"system:masters"});
  Kubectl({"create", "namespace", "elections"});
  const auto controllers =
      Start("controllers", "controllers", "kube-controller-manager",
            {"--enable-garbage-collector=false", "--master=" + cluster_->url(),
             "--leader-elect-resource-namespace=elections", "--leader-elect-resource-lock=leases",
             "--authorization-always-allow-paths=/healthz,/metrics"});
  ASSERT_TRUE(Eventually([&] {
    return !Field("lease/kube-controller-manager", "{.spec.holderIdentity}", "elections").empty();
  })) << controllers->Log();
  ASSERT_TRUE(Eventually([&] { return !controllers->url().empty(); }));

  // --authorization-always-allow-paths: the metrics, and nothing more.
  EXPECT_THAT(Curl(controllers->url() + "/configz").out, HasSubstr("\n403"));
  const auto runs = [&](const std::string& name) {
    return Curl(controllers->url() + "/metrics").out.find("{name=\"" + name + "\",manager=") !=
           std::string::npos;
  };
  EXPECT_TRUE(Eventually([&] { return runs("job-controller"); }));
  EXPECT_FALSE(runs("garbage-collector-controller"));
}

}  // namespace
}  // namespace keelson::controlplane

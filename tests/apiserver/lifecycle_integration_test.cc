// The real program under overload, with a slow etcd, changed files, and at shutdown.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include <boost/json.hpp>

#include "controlplane/apiserver/testing/https_service.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/mutex.h"
#include "lib/base/testing/eventually.h"
#include "tests/apiserver/cluster.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using std::chrono::seconds;

class Lifecycle : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string missing = TestCluster::Missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
  static http::ClientRequest Get(const std::string& target) {
    http::ClientRequest request;
    request.target = target;
    return request;
  }
  static http::ClientRequest PostMap(const std::string& name) {
    http::ClientRequest request;
    request.method = "POST";
    request.target = "/api/v1/namespaces/default/configmaps";
    request.headers.Add("Content-Type", "application/json");
    request.body = R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":")" + name + "\"}}";
    return request;
  }
};

TEST_F(Lifecycle, EndsInOrder) {
  TestCluster cluster({"--roles=apiserver", "--shutdown-delay-duration=8s"});
  auto client = cluster.NewClient("admin");
  auto watch = client->Open(Get("/api/v1/namespaces?watch=1&resourceVersion=0"), seconds(10));
  ASSERT_TRUE(watch) << watch.error().message();
  std::atomic<bool> watch_ended{false};
  std::jthread reader([&] {
    while (true) {
      auto piece = (*watch)->Read({}, seconds(60));
      if (!piece || piece->empty()) break;
    }
    watch_ended.store(true);
  });
  ASSERT_EQ(cluster.Do(Get("/readyz")).status, 200);
  ASSERT_EQ(kill(cluster.pid(), SIGTERM), 0);
  // /readyz fails for load balancers; everything else continues.
  ASSERT_TRUE(Eventually([&] { return cluster.Do(Get("/readyz")).status == 500; }));
  EXPECT_NE(cluster.Do(Get("/readyz?verbose")).body.find("[-]shutdown failed: reason withheld"),
            std::string::npos);
  EXPECT_EQ(cluster.Do(Get("/livez")).status, 200);
  EXPECT_EQ(cluster.Do(PostMap("last-minute")).status, 201);
  EXPECT_FALSE(watch_ended.load());
  // Then watches end, and then the process.
  EXPECT_EQ(cluster.Stop(), 0);
  reader.join();
  EXPECT_TRUE(watch_ended.load());
}

TEST_F(Lifecycle, LimitsAndDeadlinesHoldWhileEtcdHangs) {
  TestCluster cluster({"--roles=apiserver", "--enable-priority-and-fairness=false",
                       "--max-mutating-requests-inflight=1", "--max-requests-inflight=1"});
  cluster.AddUser("jane", {"dev"});
  ASSERT_EQ(
      cluster.Kubectl({"create", "clusterrolebinding", "jane", "--clusterrole=admin", "--user=jane"}).code,
      0);
  const pid_t etcd = cluster.etcd_pid();
  ASSERT_GT(etcd, 0);
  ASSERT_EQ(kill(etcd, SIGSTOP), 0);

  const SteadyTime begin = SteadyTime::clock::now();
  http::ClientResponse late = cluster.Do(Get("/api/v1/namespaces/default/configmaps?timeout=1s"));
  EXPECT_LT(SteadyTime::clock::now() - begin, seconds(8));
  EXPECT_EQ(late.status, 504) << late.body;
  json::value status = json::parse(late.body);
  EXPECT_EQ(status.at("reason"), "Timeout");
  EXPECT_EQ(status.at("message"), "Timeout: request did not complete within the allotted timeout");
  EXPECT_EQ(cluster.Do(Get("/api/v1/namespaces/default/configmaps/x?timeout=500ms")).status, 504);
  // Cached reads need no etcd.
  EXPECT_EQ(cluster.Do(Get("/api/v1/namespaces/default?resourceVersion=0")).status, 200);

  // One request of jane waits for etcd, so her next one exceeds the limit; the administrator's do not count.
  std::atomic<int> first{0};
  http::ClientRequest waiting = PostMap("waits");
  std::jthread writer([&] {
    do first.store(cluster.Do(waiting, "jane").status);
    while (first.load() == 429);  // it came when the other one had not gone
  });
  http::ClientResponse refused;
  http::ClientRequest next = PostMap("refused");
  next.target += "?timeout=300ms";
  ASSERT_TRUE(Eventually([&] {
    refused = cluster.Do(next, "jane");
    return refused.status == 429;
  }));
  EXPECT_EQ(refused.headers.Get("Retry-After"), "1");
  EXPECT_EQ(refused.body, "Too many requests, please try again later.\n");
  ASSERT_EQ(kill(etcd, SIGCONT), 0);
  writer.join();
  EXPECT_EQ(first.load(), 201);
  EXPECT_NE(cluster.Kubectl({"get", "--raw", "/metrics"}).out.find("apiserver_request_terminations_total{"),
            std::string::npos);
}

TEST_F(Lifecycle, FilesAreTakenUpWhenTheyChange) {
  crypto::TestPki files;
  const std::string tokens = files.dir() + "/tokens.csv", authorization = files.dir() + "/authorization.yaml";
  const std::string head =
      "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n";
  ASSERT_TRUE(WriteFileAtomic(tokens, "secret-one,jane,1\n"));
  ASSERT_TRUE(
      WriteFileAtomic(authorization, head + "- {type: Node, name: node}\n- {type: RBAC, name: rbac}\n"));
  TestCluster cluster(
      {"--roles=apiserver", "--token-auth-file=" + tokens, "--authorization-config=" + authorization});
  auto with_token = [&](const std::string& token, const std::string& target) {
    http::ClientRequest request = Get(target);
    request.headers.Add("Authorization", "Bearer " + token);
    return cluster.Do(request, "").status;
  };
  auto reloads = [&](const std::string& status) {  // one, of any server
    const std::regex line(
        "\napiserver_authorization_config_controller_automatic_reloads_total\\{"
        "apiserver_id_hash=\"sha256:[0-9a-f]+\",status=\"" +
        status + "\"\\} 1\n");
    return std::regex_search(cluster.Kubectl({"get", "--raw", "/metrics"}).out, line);
  };
  EXPECT_EQ(with_token("secret-one", "/version"), 200);
  EXPECT_EQ(with_token("secret-two", "/version"), 401);
  ASSERT_TRUE(WriteFileAtomic(tokens, "secret-two,jane,1\n"));
  ASSERT_TRUE(Eventually([&] { return with_token("secret-two", "/version") == 200; }));
  EXPECT_EQ(with_token("secret-one", "/version"), 401);

  // An invalid file changes nothing and is logged.
  ASSERT_TRUE(WriteFileAtomic(authorization, head + "- {type: Nobody}\n"));
  EXPECT_TRUE(Eventually([&] { return reloads("failure"); }));
  EXPECT_EQ(with_token("secret-two", "/api/v1/nodes"), 403);
  ASSERT_TRUE(WriteFileAtomic(authorization, head + "- {type: AlwaysAllow, name: all}\n"));
  EXPECT_TRUE(Eventually([&] { return with_token("secret-two", "/api/v1/nodes") == 200; }));
  EXPECT_TRUE(reloads("success"));
  EXPECT_NE(ReadFile(cluster.pki().dir() + "/controlplane.log").value_or("").find("authorization-config"),
            std::string::npos);
}

TEST_F(Lifecycle, AuditReachesAWebhook) {
  Mutex mutex;
  std::set<std::string> seen;
  int requests = 0;
  HttpsService service([&](const http::ServerRequest& request) {
    MutexLock lock(mutex);
    if (++requests == 1) return HttpsService::Answer{503, ""};  // it is sent again
    const json::value list = json::parse(request.body);
    for (const json::value& event : list.at("items").as_array()) {
      if (const json::value* ref = event.as_object().if_contains("objectRef");
          ref && ref->as_object().contains("name") && event.at("stage") == "ResponseComplete") {
        seen.insert(std::string(ref->at("name").as_string()));
      }
    }
    return HttpsService::Answer{200, "{}"};
  });
  ASSERT_TRUE(WriteFile(service.dir() + "/audit.conf", service.Kubeconfig("/audit")));
  ASSERT_TRUE(WriteFile(service.dir() + "/policy.yaml",
                        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n"
                        "- {level: Metadata, resources: [{group: \"\", resources: [configmaps]}]}\n"));
  TestCluster cluster({"--roles=apiserver", "--audit-policy-file=" + service.dir() + "/policy.yaml",
                       "--audit-webhook-config-file=" + service.dir() + "/audit.conf",
                       "--audit-webhook-batch-max-wait=100ms", "--audit-webhook-initial-backoff=100ms",
                       "--audit-log-path=" + service.dir() + "/audit.log", "--audit-log-format=legacy"});
  for (const char* name : {"one", "two", "three"}) ASSERT_EQ(cluster.Do(PostMap(name)).status, 201);
  EXPECT_TRUE(Eventually([&] {
    MutexLock lock(mutex);
    return seen.count("one") + seen.count("two") + seen.count("three") == 3;
  }));
  const std::string log = ReadFile(service.dir() + "/audit.log").value_or("");
  EXPECT_NE(log.find(" AUDIT: id=\""), std::string::npos) << log;
  EXPECT_NE(log.find(" method=\"create\" user=\"admin\" groups=\"\\\"system:masters\\\""), std::string::npos)
      << log;
}

TEST_F(Lifecycle, ARestoredClusterHasWhatWasAcknowledged) {
  TestCluster cluster({"--roles=apiserver"});
  const std::string dir = cluster.pki().dir(), backup = dir + "/backup.db";
  if (RunProgram({"etcdctl", "version"}).code != 0) GTEST_SKIP() << "etcdctl is not installed (etcd-client)";
  ASSERT_EQ(cluster.Kubectl({"create", "secret", "generic", "s", "--from-literal=a=b"}).code, 0);
  // Writes continue during the reload.
  std::atomic<int> acknowledged{0};
  std::jthread writer([&](std::stop_token stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      if (cluster.Do(PostMap("m" + std::to_string(i))).status != 201) return;
      acknowledged.store(i + 1);
    }
  });
  ASSERT_TRUE(Eventually([&] { return acknowledged.load() >= 20; }));
  const int before = acknowledged.load();
  Output saved =
      RunProgram({KEELSON_CONTROLPLANE, "etcd", "snapshot", "save", backup, "--data-dir", dir + "/data"});
  ASSERT_EQ(saved.code, 0) << saved.err;
  writer.request_stop();
  writer.join();
  EXPECT_EQ(cluster.Stop(), 0);
  std::filesystem::rename(dir + "/data", dir + "/lost");
  Output restored =
      RunProgram({KEELSON_CONTROLPLANE, "etcd", "snapshot", "restore", backup, "--data-dir", dir + "/data"});
  ASSERT_EQ(restored.code, 0) << restored.err;
  cluster.Start();
  std::istringstream names(cluster.Kubectl({"get", "cm", "-o", "name"}).out);
  std::set<std::string> found;
  for (std::string name; std::getline(names, name);) found.insert(name);
  for (int i = 0; i < before; ++i) EXPECT_EQ(found.count("configmap/m" + std::to_string(i)), 1u) << i;
  EXPECT_EQ(cluster.Kubectl({"get", "secret", "s", "-o", "jsonpath={.data.a}"}).out, "Yg==");
  EXPECT_EQ(cluster.Do(PostMap("afterwards")).status, 201);
}

}  // namespace
}  // namespace keelson::apiserver

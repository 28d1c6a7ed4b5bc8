// Operations on the real program: encryption at rest, key rotation, audit, backups.
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include <boost/json.hpp>

#include "controlplane/etcd/client.h"
#include "controlplane/etcd/supervisor.h"
#include "lib/base/file.h"
#include "lib/http/gzip.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

constexpr const char* kKeys[] = {"{name: one, secret: AAECAwQFBgcICQoLDA0ODw==}",
                                 "{name: two, secret: EBESExQVFhcYGRobHB0eHw==}"};

class Operations : public ClusterTest {
 protected:
  static void Encrypt(const std::string& keys) {
    ASSERT_TRUE(WriteFileAtomic(pki_->dir() + "/encryption.yaml",
                                "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"
                                "resources:\n- resources: [secrets]\n  providers:\n  - aesgcm: {keys: [" +
                                    keys + "]}\n  - identity: {}\n"));
  }
  static void SetUpTestSuite() {
    pki_ = std::make_unique<crypto::TestPki>();
    Encrypt(kKeys[0]);
    ASSERT_TRUE(WriteFile(pki_->dir() + "/policy.yaml",
                          "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n"
                          "- {level: RequestResponse, resources: [{group: \"\", resources: [configmaps]}]}\n"
                          "- {level: Metadata}\n"));
    Start({"--encryption-provider-config=" + pki_->dir() + "/encryption.yaml",
           "--encryption-provider-config-automatic-reload",
           "--audit-policy-file=" + pki_->dir() + "/policy.yaml",
           "--audit-log-path=" + pki_->dir() + "/audit/audit.log"});
  }
  static void TearDownTestSuite() {
    ClusterTest::TearDownTestSuite();
    pki_.reset();
  }

  std::string DataDir() const { return cluster_->pki().dir() + "/data"; }
  std::string Raw(const std::string& key) {
    etcd::Client client(etcd::Supervisor::Running(DataDir() + "/etcd"));
    auto range = client.Range(key, {}, {SteadyTime::clock::now() + std::chrono::seconds(20), {}});
    EXPECT_TRUE(range) << range.error().message();
    return range && !range->kvs.empty() ? range->kvs[0].value : "";
  }
  // The audit events of one object.
  std::vector<json::object> Events(const std::string& resource, const std::string& name) {
    std::ifstream log(pki_->dir() + "/audit/audit.log");
    std::vector<json::object> out;
    for (std::string line; std::getline(log, line);) {
      json::object event = json::parse(line).get_object();
      if (!event.contains("objectRef")) continue;
      const json::object& ref = event["objectRef"].get_object();
      const json::value *kind = ref.if_contains("resource"), *named = ref.if_contains("name");
      if (kind && named && kind->as_string() == resource && named->as_string() == name) {
        out.push_back(std::move(event));
      }
    }
    return out;
  }

  inline static std::unique_ptr<crypto::TestPki> pki_;  // for its directory
};

TEST_F(Operations, SecretsAreCiphertextAndKeysRotate) {
  Kubectl({"create", "secret", "generic", "s", "--from-literal=password=correct-horse"});
  const std::string key = "/registry/secrets/" + ns_ + "/s", old_value = Raw(key);
  EXPECT_EQ(old_value.substr(0, 22), "k8s:enc:aesgcm:v1:one:");
  EXPECT_EQ(old_value.find("correct-horse"), std::string::npos);
  EXPECT_EQ(Kubectl({"get", "secret", "s", "-o", "jsonpath={.data.password}"}), "Y29ycmVjdC1ob3JzZQ==");

  // Key rotation: add a new key first, then rewrite all objects.
  Encrypt(std::string(kKeys[1]) + ", " + kKeys[0]);
  SteadyTime deadline = SteadyTime::clock::now() + std::chrono::seconds(30);
  while (Raw(key) == old_value && SteadyTime::clock::now() < deadline) {
    Kubectl({"replace", "-f", "-"}, Kubectl({"get", "secret", "s", "-o", "json"}));
  }
  EXPECT_EQ(Raw(key).substr(0, 22), "k8s:enc:aesgcm:v1:two:");
  // Once is enough.
  const std::string new_value = Raw(key);
  Kubectl({"replace", "-f", "-"}, Kubectl({"get", "secret", "s", "-o", "json"}));
  EXPECT_EQ(Raw(key), new_value);
  Encrypt(kKeys[1]);
  EXPECT_EQ(Kubectl({"get", "secret", "s", "-o", "jsonpath={.data.password}"}), "Y29ycmVjdC1ob3JzZQ==");
}

TEST_F(Operations, AuditTellsWhoDidWhat) {
  Kubectl({"create", "secret", "generic", "audited", "--from-literal=password=do-not-log"});
  Kubectl({"create", "configmap", "audited", "--from-literal=a=b"});
  cluster_->AddUser("jane", {"dev"});
  EXPECT_NE(cluster_->Kubectl({"get", "secret", "audited"}, "", "jane").code, 0);
  EXPECT_NE(cluster_->Kubectl({"get", "cm", "audited", "--as=joe", "--as-group=dev"}).code, 0);

  std::vector<json::object> secrets = Events("secrets", "audited");
  ASSERT_EQ(secrets.size(), 2u);
  const json::object& created = secrets[0];
  EXPECT_EQ(created.at("level"), "Metadata");
  EXPECT_EQ(created.at("stage"), "ResponseComplete");
  EXPECT_EQ(created.at("verb"), "create");
  EXPECT_EQ(created.at("user").at("username"), "admin");
  EXPECT_EQ(created.at("responseStatus").at("code"), 201);
  EXPECT_EQ(created.at("annotations").at("authorization.k8s.io/decision"), "allow");
  EXPECT_EQ(json::serialize(created).find("ZG8tbm90LWxvZw"), std::string::npos);
  EXPECT_EQ(secrets[1].at("user").at("username"), "jane");
  EXPECT_EQ(secrets[1].at("responseStatus").at("reason"), "Forbidden");
  EXPECT_EQ(secrets[1].at("annotations").at("authorization.k8s.io/decision"), "forbid");

  std::vector<json::object> maps = Events("configmaps", "audited");
  ASSERT_EQ(maps.size(), 2u);
  EXPECT_EQ(maps[0].at("requestObject").at("data").at("a"), "b");
  EXPECT_EQ(maps[0].at("responseObject").at("kind"), "ConfigMap");
  EXPECT_EQ(maps[1].at("user").at("username"), "admin");
  EXPECT_EQ(maps[1].at("impersonatedUser").at("username"), "joe");

  http::ClientRequest request;
  request.target = "/version";
  request.headers.Add("Audit-ID", "my-id");
  EXPECT_EQ(cluster_->Do(request).headers.Get("Audit-Id"), "my-id");
}

TEST_F(Operations, ASnapshotHoldsWhatWasAcknowledged) {
  Kubectl({"create", "configmap", "kept", "--from-literal=a=b"});
  const std::string backup = pki_->dir() + "/backup.db";
  Output saved =
      RunProgram({KEELSON_CONTROLPLANE, "etcd", "snapshot", "save", backup, "--data-dir", DataDir()});
  ASSERT_EQ(saved.code, 0) << saved.err;
  Output status = RunProgram({KEELSON_CONTROLPLANE, "etcd", "snapshot", "status", backup});
  if (status.err.find("is in PATH") != std::string::npos) GTEST_SKIP() << status.err;
  ASSERT_EQ(status.code, 0) << status.err;
  EXPECT_GT(json::parse(status.out).at("totalKey").as_int64(), 50);
  Output restored = RunProgram(
      {KEELSON_CONTROLPLANE, "etcd", "snapshot", "restore", backup, "--data-dir", pki_->dir() + "/restored"});
  ASSERT_EQ(restored.code, 0) << restored.err;
  EXPECT_TRUE(PathExists(pki_->dir() + "/restored/etcd/data/member"));
  Output again = RunProgram(
      {KEELSON_CONTROLPLANE, "etcd", "snapshot", "restore", backup, "--data-dir", pki_->dir() + "/restored"});
  EXPECT_EQ(again.code, 1);
  EXPECT_EQ(RunProgram({KEELSON_CONTROLPLANE, "etcd", "defragment", "--data-dir", DataDir()}).code, 0);
  EXPECT_EQ(
      RunProgram({KEELSON_CONTROLPLANE, "etcd", "snapshot", "save", backup, "--data-dir", "/nonexistent"})
          .code,
      1);
}

TEST_F(Operations, RequestsAreSortedIntoFlows) {
  const std::string uid = Kubectl({"get", "flowschema", "exempt", "-o", "jsonpath={.metadata.uid}"});
  http::ClientRequest request;
  request.target = "/api/v1/namespaces";
  EXPECT_EQ(cluster_->Do(request).headers.Get("X-Kubernetes-PF-FlowSchema-UID"), uid);
  cluster_->AddUser("jim", {"dev"});
  EXPECT_EQ(cluster_->Do(request, "jim").headers.Get("X-Kubernetes-PF-FlowSchema-UID"),
            Kubectl({"get", "flowschema", "global-default", "-o", "jsonpath={.metadata.uid}"}));
  // A deleted suggested object is recreated; an unchanged one is left alone.
  Kubectl({"delete", "flowschema", "service-accounts"});
  Kubectl({"wait", "--for=create", "flowschema/service-accounts", "--timeout=60s"});
  Kubectl({"wait", "--for=condition=Dangling=false", "flowschema/service-accounts", "--timeout=60s"});
  EXPECT_EQ(Kubectl({"get", "flowschema", "global-default", "-o", "jsonpath={.metadata.generation}"}), "1");

  request.target = "/api/v1/namespaces?timeout=never";
  EXPECT_EQ(cluster_->Do(request).status, 400);
  EXPECT_NE(Kubectl({"get", "--raw", "/statusz"}).find("kube-apiserver statusz"), std::string::npos);
  EXPECT_NE(Kubectl({"get", "--raw", "/flagz"}).find("secure-port="), std::string::npos);
  EXPECT_NE(cluster_->Kubectl({"get", "--raw", "/flagz"}, "", "jim").code, 0);
  EXPECT_NE(Kubectl({"get", "--raw", "/metrics"}).find("apiserver_flowcontrol_dispatched_requests_total"),
            std::string::npos);
}

TEST_F(Operations, MetricsAreNegotiated) {
  http::ClientRequest request;
  request.target = "/metrics";
  request.headers.Set("Accept", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5");
  request.headers.Set("Accept-Encoding", "gzip");
  const http::ClientResponse answer = cluster_->Do(request);
  EXPECT_EQ(answer.headers.Get("Content-Encoding"), "gzip");
  EXPECT_EQ(answer.headers.Get("Content-Type"),
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores");
  const std::string text = http::Gunzip(answer.body);
  EXPECT_TRUE(text.ends_with("\n# EOF\n"));
  EXPECT_NE(text.find("# TYPE apiserver_request counter\n"), std::string::npos);
}

TEST_F(Operations, PagesAndMetricsHaveUpstreamsNames) {
  Kubectl({"create", "configmap", "measured"});
  Kubectl({"get", "endpoints"});
  cluster_->AddUser("joan", {"dev"});
  EXPECT_NE(cluster_->Kubectl({"get", "nodes"}, "", "joan").code, 0);
  const std::string metrics = "\n" + Kubectl({"get", "--raw", "/metrics"});
  for (const char* name :
       {"etcd_request_duration_seconds_bucket{operation=\"create\",group=\"\",resource=\"configmaps\"",
        "etcd_requests_total{operation=\"create\",group=\"\",resource=\"configmaps\"}",
        "apiserver_watch_events_total{group=\"\",version=\"v1\",resource=\"",
        "apiserver_watch_events_sizes_bucket{",
        "apiserver_storage_objects{resource=\"configmaps\"}",
        "apiserver_resource_objects{group=\"apps\",resource=\"deployments\"} 0",
        "apiserver_resource_size_estimate_bytes{",
        "apiserver_request_total{verb=\"POST\",group=\"\",version=\"v1\",resource=\"configmaps\",subresource="
        "\"\","
        "scope=\"resource\",component=\"apiserver\",dry_run=\"\",code=\"201\"}",
        "apiserver_request_duration_seconds_bucket{verb=\"LIST\"",
        "apiserver_request_sli_duration_seconds_bucket{",
        "apiserver_response_sizes_bucket{verb=\"GET\"",
        "apiserver_request_body_size_bytes_bucket{group=\"\",resource=\"configmaps\",verb=\"create\"",
        "apiserver_request_filter_duration_seconds_bucket{filter=\"authorization\"",
        "apiserver_storage_size_bytes{storage_cluster_id=\"etcd-0\"} ",
        "apiserver_storage_events_received_total{group=\"\",resource=\"configmaps\"} ",
        "apiserver_storage_list_total{group=\"\",resource=\"configmaps\"} ",
        "apiserver_cache_list_total{group=\"\",index=\"\",resource=\"configmaps\"} ",
        "apiserver_watch_cache_events_dispatched_total{group=\"\",resource=\"configmaps\"} ",
        "apiserver_watch_cache_resource_version{group=\"\",resource=\"configmaps\"} ",
        "watch_cache_capacity{group=\"\",resource=\"configmaps\"} ",
        "kube_apiserver_clusterip_allocator_allocated_ips{cidr=\"",
        "kube_apiserver_nodeport_allocator_available_ports ",
        "apiserver_longrunning_requests{verb=\"WATCH\"",
        "apiserver_current_inflight_requests{request_kind=\"readOnly\"}",
        "apiserver_audit_event_total ",
        "apiserver_authorization_decisions_total{type=\"RBAC\",name=\"rbac\",decision=\"allowed\"}",
        "authorization_attempts_total{result=\"no-opinion\"}",
        "authorization_duration_seconds_bucket{",
        "authentication_attempts{result=\"success\"}",
        "authentication_duration_seconds_bucket{",
        "authenticated_user_requests{username=\"admin\"}",
        "apiserver_client_certificate_expiration_seconds_bucket{",
        "apiserver_tls_handshake_errors_total ",
        "apiserver_requested_deprecated_apis{",
        "kubernetes_build_info{major=\"1\",minor=\"36\",git_version=\"v1.36.2\"",
        "process_max_fds ",
        "process_start_time_seconds ",
        "apiserver_flowcontrol_nominal_limit_seats{priority_level=\"workload-low\"} ",
        "apiserver_flowcontrol_work_estimated_seats_bucket{",
        "apiserver_flowcontrol_request_execution_seconds_bucket{",
        "apiserver_flowcontrol_current_limit_seats{",
        "apiserver_flowcontrol_priority_level_seat_utilization_bucket{"}) {
    EXPECT_NE(metrics.find(std::string("\n") + name), std::string::npos) << name;
  }
  const std::string folder = "/debug/api_priority_and_fairness/";
  const std::string levels = Kubectl({"get", "--raw", folder + "dump_priority_levels"});
  EXPECT_EQ(levels.find("PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests,"), 0u)
      << levels;
  EXPECT_NE(levels.find("\ncatch-all,"), std::string::npos) << levels;
  EXPECT_NE(Kubectl({"get", "--raw", folder + "dump_queues"}).find("\nworkload-low,"), std::string::npos);
  const std::string requests = Kubectl({"get", "--raw", folder + "dump_requests?includeRequestDetails=1"});
  EXPECT_NE(requests.find(folder + "dump_requests"), std::string::npos) << "the request itself\n" << requests;
  const std::string ready = Kubectl({"get", "--raw", "/readyz?verbose"});
  for (const char* check :
       {"ping", "log", "etcd", "etcd-readiness", "informer-sync",
        "poststarthook/generic-apiserver-start-informers", "poststarthook/rbac/bootstrap-roles",
        "poststarthook/scheduling/bootstrap-system-priority-classes",
        "poststarthook/priority-and-fairness-config-producer", "poststarthook/bootstrap-controller",
        "poststarthook/start-apiextensions-controllers", "poststarthook/crd-informer-synced",
        "poststarthook/apiservice-registration-controller", "poststarthook/kube-apiserver-autoregistration",
        "poststarthook/apiservice-openapiv3-controller", "autoregister-completion", "shutdown"}) {
    EXPECT_NE(("\n" + ready).find("\n[+]" + std::string(check) + " ok\n"), std::string::npos) << ready;
  }
  EXPECT_EQ(Kubectl({"get", "--raw", "/readyz/poststarthook/rbac/bootstrap-roles"}), "ok");
  EXPECT_NE(Kubectl({"get", "--raw", "/debug/pprof/cmdline"}).find("--secure-port"), std::string::npos);
  http::ClientRequest request;
  request.target = "/debug/pprof/heap";
  EXPECT_EQ(cluster_->Do(request).status, 404);
}

}  // namespace
}  // namespace keelson::apiserver

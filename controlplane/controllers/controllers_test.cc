#include "controlplane/controllers/controllers.h"

#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"
#include "controlplane/controllers/testing/rbac_transport.h"
#include "lib/crypto/signing_key.h"
#include "lib/metrics/metrics.h"

namespace keelson::controllers {
namespace {

// Runs all controllers together, with their own threads, in real time.
TEST(RunTest, DeploymentBecomesPods) {
  auto fake = std::make_shared<client::FakeApi>();
  client::RestClient api(fake);
  corev1::Namespace ns;
  ns.mutable_metadata()->set_name("default");
  ASSERT_TRUE(api.Create(ns));
  auto watch = api.Watch(api::ResourceOf<corev1::Pod>(), "default", {});
  ASSERT_TRUE(watch) << watch.error().message();

  Options options;
  options.root_ca_pem = "PEM";
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  std::jthread manager([&](std::stop_token stop) {
    Result<> result = controllers::Run(api, options, stop, [&] {
      MutexLock lock(mutex);
      ready = true;
      changed.notify_all();
    });
    EXPECT_TRUE(result);
  });
  {
    MutexLock lock(mutex);
    while (!ready) changed.wait(mutex);
  }
  ASSERT_TRUE(api.Create(DeploymentNamed("web", 2)));
  for (int added = 0; added < 2;) {
    Result<client::WatchEvent> event = (*watch)->Next(std::stop_token());
    ASSERT_TRUE(event) << event.error().message();
    added += event->type == client::WatchEvent::Type::kAdded;
  }
}

// The names of the queues on /metrics.
std::set<std::string> QueueNames() {
  std::set<std::string> out;
  const std::string text = metrics::Print(), mark = "workqueue_adds_total{name=\"";
  for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos;) {
    at += mark.size();
    out.insert(text.substr(at, text.find('"', at) - at));
  }
  return out;
}

// Dashboards use these names: client-go's metrics with the queue names of kube-controller-manager.
TEST(RunTest, QueuesHaveUpstreamsNames) {
  std::set<std::string> want = {
      "ClusterRoleAggregator",
      "bootstrap_signer_queue",
      "certificate",
      "cidrallocator_node",
      "claims",
      "cronjob",
      "daemonset",
      "deployment",
      "disruption",
      "endpoint",
      "endpoint_slice",
      "endpoint_slice_mirroring",
      "ephemeral_volume",
      "garbage_collector_attempt_to_delete",
      "horizontalpodautoscaler",
      "job",
      "job_orphan_pod",
      "namespace",
      "node_lifecycle_controller",
      "noexec_taint_pod",
      "orphaned_pods_nodes",
      "pvcprotection",
      "pvprotection",
      "replicaset",
      "replicationmanager",
      "resource_claim",
      "resourcequota_primary",
      "root_ca_cert_publisher",
      "service",
      "serviceaccount",
      "serviceaccount_tokens_secret",
      "servicecidrs",
      "stale_pod_disruption",
      "statefulset",
      "storage-version-migrator-controller",
      "token_cleaner",
      "ttl_jobs_to_delete",
      "ttlcontroller",
      "vacprotection",
      "validatingadmissionpolicy-status",
      "volume_expand",
      "volumes",
  };
  // Upstream has no queue there.
  want.insert({"attachdetach", "certificate_cleaner", "discovered_informers",
               "legacy_service_account_token_cleaner", "podcertificaterequest_cleaner"});
  std::set<std::string> before = QueueNames();  // of other tests in this process

  Options options;
  options.root_ca_pem = "PEM";
  options.service_account_key_pem = crypto::SigningKey::GenerateRsa()->PrivatePem().value();
  options.pod_certificates = true;
  options.storage_migrations = true;
  options.allocate_node_cidrs = true;
  options.cluster_cidrs = {"10.244.0.0/16"};
  client::RestClient api(std::make_shared<client::FakeApi>());
  // A controller and its queue are created after the client of its account.
  std::string account;
  std::set<std::string> have = before;
  auto note = [&] {
    for (const std::string& name : QueueNames()) {
      if (!have.insert(name).second || AccountOfQueue(name).starts_with("system:")) continue;
      EXPECT_EQ(AccountOfQueue(name), account) << name << ": tests hold it to the wrong role";
    }
  };
  options.client_for = [&](const std::string& next) {
    note();
    account = next;
    return api;
  };
  std::stop_source stop;
  Result<> ran = controllers::Run(api, options, stop.get_token(), [&] { stop.request_stop(); });
  EXPECT_TRUE(ran) << ran.error().message();
  note();
  for (const std::string& name : want) EXPECT_TRUE(have.contains(name)) << name << " is missing";
  for (const std::string& name : have) {
    EXPECT_TRUE(want.contains(name) || before.contains(name)) << name << " is new";
  }
}

// The RBAC check that TestCluster applies to every controller (testing/rbac_transport.h).
TEST(RbacTransportTest, AccountsMayDoWhatTheirRolesSay) {
  struct Case {
    const char *queue, *method, *target;
    bool may;
  };
  for (const Case& c :
       {Case{"deployment", "POST", "/apis/apps/v1/namespaces/default/replicasets", true},
        {"deployment", "DELETE", "/api/v1/namespaces/default/secrets/s", false},
        {"daemonset", "PATCH", "/api/v1/namespaces/default/pods/p", true},
        {"daemonset", "PUT", "/api/v1/namespaces/default/pods/p", false},
        {"daemonset", "GET", "/api/v1/nodes?watch=true", true},
        {"bootstrap_signer_queue", "PUT", "/api/v1/namespaces/kube-public/configmaps/cluster-info", true},
        {"bootstrap_signer_queue", "PUT", "/api/v1/namespaces/kube-public/configmaps/other", false},
        {"serviceaccount_tokens_secret", "PUT", "/api/v1/namespaces/default/secrets/s", true},
        {"serviceaccount_tokens_secret", "DELETE", "/api/v1/namespaces/default/pods/p", false}}) {
    EXPECT_EQ(IsGranted(AccountOfQueue(c.queue), c.method, c.target), c.may) << c.queue << c.target;
  }
}

TEST(RbacTransportTest, WhoTellsEventsMayDoSo) {
  for (const char* queue : {"attachdetach",
                            "cidrallocator_node",
                            "claims",
                            "cronjob",
                            "daemonset",
                            "deployment",
                            "disruption",
                            "endpoint",
                            "endpoint_slice",
                            "endpoint_slice_mirroring",
                            "ephemeral_volume",
                            "garbage_collector_attempt_to_delete",
                            "horizontalpodautoscaler",
                            "job",
                            "node_lifecycle_controller",
                            "noexec_taint_pod",
                            "replicaset",
                            "replicationmanager",
                            "resource_claim",
                            "service",
                            "stale_pod_disruption",
                            "statefulset",
                            "volume_expand",
                            "volumes"}) {
    for (const auto& [method, target] : {std::pair("POST", "/api/v1/namespaces/default/events"),
                                         {"PATCH", "/api/v1/namespaces/default/events/e"}}) {
      EXPECT_TRUE(IsGranted(AccountOfQueue(queue), method, target)) << queue << " " << method;
    }
  }
}

TEST(SelectionTest, AsTheFlagSays) {
  struct Case {
    std::vector<std::string> words;
    bool deployment, job;
  };
  for (const Case& c : {Case{{"*"}, true, true},
                        {{"*", "-deployment-controller"}, false, true},
                        {{"*", "-deployment"}, false, true},
                        {{"*", "-cloud-node-lifecycle-controller"}, true, true},
                        {{"job"}, false, true},
                        {{"deployment-controller", "-job-controller", "*"}, true, false},
                        {{"-deployment", "deployment"}, false, false},
                        {{}, false, false}}) {
    auto selection = Selection::Parse(c.words);
    ASSERT_TRUE(selection) << selection.error().message();
    EXPECT_EQ(selection->Has("deployment-controller"), c.deployment);
    EXPECT_EQ(selection->Has("job-controller"), c.job);
  }
  for (const char* wrong : {"none-such", "-none-such", "device-taint-eviction-controller", "-*", ""}) {
    auto selection = Selection::Parse({"*", wrong});
    ASSERT_FALSE(selection) << wrong;
    EXPECT_NE(selection.error().message().find("is not in the list of known controllers"), std::string::npos);
  }
}

TEST(SelectionTest, NamesAreDistinct) {
  std::set<std::string_view> seen;
  for (const ControllerName& one : AllControllers()) {
    EXPECT_TRUE(seen.insert(one.name).second) << one.name;
    if (!one.alias.empty()) {
      EXPECT_TRUE(seen.insert(one.alias).second) << one.alias;
    }
  }
}

TEST(RunTest, CidrsAreRequiredForAllocation) {
  Options options;
  options.allocate_node_cidrs = true;
  EXPECT_FALSE(controllers::Run(client::RestClient(std::make_shared<client::FakeApi>()), options,
                                std::stop_token(), {}));
}

}  // namespace
}  // namespace keelson::controllers

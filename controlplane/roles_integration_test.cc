// Controllers and scheduler as processes of their own, with the rights that a stock cluster gives them,
// beside an API server that runs none: what they do, who of two leads, and their pages.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/apiserver/testing/cluster.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/http/server.h"

namespace keelson::controlplane {
namespace {

using apiserver::Output;
using apiserver::TestCluster;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// One kube-controlplane beside the cluster's. Port 0: the log tells which one it is.
class Process {
 public:
  Process(const TestCluster& cluster, const std::string& name, std::vector<std::string> flags)
      : log_(cluster.pki().dir() + "/" + name + ".log") {
    flags.insert(flags.begin(), {KEELSON_CONTROLPLANE, "--bind-address=127.0.0.1", "--secure-port=0",
                                 "--client-ca-file=" + cluster.pki().ca_file()});
    std::vector<char*> argv;
    for (std::string& flag : flags) argv.push_back(flag.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      int fd = open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
      dup2(fd, 1);
      dup2(fd, 2);
      execv(argv[0], argv.data());
      _exit(127);
    }
  }
  ~Process() { End(SIGKILL); }
  // The exit code; -1: by the signal.
  int End(int signal) {
    if (pid_ < 0) return -1;
    int status = 0;
    kill(pid_, signal);
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void Pause(bool pause) { kill(pid_, pause ? SIGSTOP : SIGCONT); }
  // Its exit code when it ends by itself.
  int Wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string Log() const { return ReadFile(log_).value_or(""); }
  bool Says(const std::string& text) const { return Log().find(text) != std::string::npos; }
  std::string url() const {
    const std::string log = Log(), mark = "port=\"";
    const size_t line = log.find("\"Pages are served\"");
    const size_t at = line == std::string::npos ? line : log.find(mark, line);
    if (at == std::string::npos) return "";
    const size_t begin = at + mark.size();
    return "https://127.0.0.1:" + log.substr(begin, log.find('"', begin) - begin);
  }

 private:
  const std::string log_;
  pid_t pid_ = -1;
};

class Roles : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string missing = TestCluster::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    cluster_ = std::make_unique<TestCluster>(std::vector<std::string>{"--roles=apiserver"});
    // Not the users that this API server knows: these have the one role that a stock one gives them.
    for (const std::string program : {"kube-controller-manager", "kube-scheduler"}) {
      const std::string user = "stock-" + program;
      cluster_->AddUser(user, {});
      Kubectl({"create", "clusterrolebinding", user, "--clusterrole=system:" + program, "--user=" + user});
    }
    Kubectl({"create", "clusterrolebinding", "stock-volume-scheduler",
             "--clusterrole=system:volume-scheduler", "--user=stock-kube-scheduler"});
  }
  std::unique_ptr<Process> Start(const std::string& name, const std::string& role, const std::string& program,
                                 std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--roles=" + role, "--kubeconfig=" + File("stock-" + program + ".conf"),
                               "--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s",
                               "--leader-elect-retry-period=1s"});
    return std::make_unique<Process>(*cluster_, name, std::move(more));
  }
  std::unique_ptr<Process> StartControllers(const std::string& name, std::vector<std::string> more = {}) {
    more.insert(more.end(),
                {"--use-service-account-credentials=true", "--root-ca-file=" + File("ca.crt"),
                 "--service-account-private-key-file=" + File("sa.key"), "--controllers=*,-cronjob",
                 "--allocate-node-cidrs=true", "--cluster-cidr=10.244.0.0/16,fd00:10::/56"});
    return Start(name, "controllers", "kube-controller-manager", std::move(more));
  }
  std::string File(const std::string& name) const {
    return name == "ca.crt" ? cluster_->pki().ca_file() : cluster_->pki().dir() + "/" + name;
  }
  std::string Kubectl(std::vector<std::string> arguments, const std::string& input = "") {
    Output output = cluster_->Kubectl(std::move(arguments), input);
    EXPECT_EQ(output.code, 0) << output.err;
    return output.out;
  }
  std::string Field(const std::string& what, const std::string& path) {
    return cluster_->Kubectl({"get", what, "-o", "jsonpath=" + path}).out;
  }
  std::string Holder(const std::string& lease) {
    return Field("lease/" + lease, "{.spec.holderIdentity}", "kube-system");
  }
  std::string Field(const std::string& what, const std::string& path, const std::string& ns) {
    return cluster_->Kubectl({"-n", ns, "get", what, "-o", "jsonpath=" + path}).out;
  }
  // Until the condition holds, for a while: other processes are asked, there is nothing to wait on.
  static bool Eventually(const std::function<bool()>& condition, seconds patience = seconds(30)) {
    const SteadyTime deadline = SteadyTime::clock::now() + patience;
    while (!condition()) {
      if (SteadyTime::clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return true;
  }
  Output Curl(const std::string& url, const std::string& user = "") {
    std::vector<std::string> command = {"curl", "-sk", "-m", "5", "-w", "\n%{http_code}", url};
    if (!user.empty())
      command.insert(command.end(), {"--cert", File(user + ".crt"), "--key", File(user + ".key")});
    return apiserver::RunProgram(command);
  }

  std::unique_ptr<TestCluster> cluster_;
};

// A stream that begins with { is JSON to kubectl.
constexpr char kObjects[] = R"(
---
{apiVersion: v1, kind: Namespace, metadata: {name: work}}
---
{apiVersion: v1, kind: Node, metadata: {name: n1}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: work}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: example}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: work}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: example}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: work}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: example}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: work}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: example}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: often, namespace: work}
spec:
  schedule: "* * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: example}]}}}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: old, namespace: work}
spec:
  selector: {app: old}
  template:
    metadata: {labels: {app: old}}
    spec: {containers: [{name: main, image: example}]}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: work}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: work}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: all, namespace: work}, spec: {hard: {pods: "20"}}}
---
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata: {name: token, namespace: work, annotations: {kubernetes.io/service-account.name: default}}
)";

TEST_F(Roles, ControllersWorkWithTheirOwnAccountsAndOneOfTwoLeads) {
  auto a = StartControllers("a");
  ASSERT_TRUE(Eventually([&] { return a->Says("\"Controllers started\""); })) << a->Log();
  auto b = StartControllers("b");
  ASSERT_TRUE(Eventually([&] { return b->Says("\"Leader seen\""); })) << b->Log();
  const std::string first = Holder("kube-controller-manager");
  EXPECT_THAT(a->Log(), HasSubstr("identity=\"" + first + "\""));

  Kubectl({"apply", "-f", "-"}, kObjects);
  Kubectl({"patch", "node", "n1", "--subresource=status", "--type=merge", "-p",
           R"({"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}})"});
  // Pods of everything, and what stands beside them.
  auto pods = [&] {
    return Field("pods", "{range .items[*]}{.metadata.labels.app}{.metadata.labels.job-name} {end}", "work");
  };
  ASSERT_TRUE(Eventually([&] {
    const std::string all = pods();
    for (const char* app : {"web", "db", "agent", "once", "old"}) {
      if (all.find(app) == std::string::npos) return false;
    }
    return true;
  })) << pods()
      << a->Log();
  struct Case {
    const char *what, *path, *ns, *want;
  };
  for (const Case& c : {
           Case{"node/n1", "{.spec.podCIDRs}", "", R"(["10.244.0.0/24","fd00:10::/64"])"},
           {"deployment/web", "{.status.replicas}", "work", "2"},
           {"job/once", "{.status.active}", "work", "1"},
           {"pdb/web", "{.status.expectedPods}", "work", "2"},
           {"quota/all", "{.status.used.pods}", "work", "6"},
           {"serviceaccount/default", "{.metadata.name}", "work", "default"},
           {"configmap/kube-root-ca.crt", "{.metadata.name}", "work", "kube-root-ca.crt"},
           {"endpoints/web", "{.metadata.name}", "work", "web"},
           {"endpointslices", "{.items[0].metadata.labels.kubernetes\\.io/service-name}", "work", "web"},
       }) {
    ASSERT_TRUE(Eventually([&] { return Field(c.what, c.path, c.ns) == c.want; }))
        << c.what << ": " << Field(c.what, c.path, c.ns);
  }
  ASSERT_TRUE(Eventually([&] { return !Field("secret/token", "{.data.token}", "work").empty(); }));
  EXPECT_EQ(Field("jobs", "{.items[*].metadata.name}", "work"), "once") << "--controllers says -cronjob";
  // Owned objects go with their owner, and the rest with the namespace.
  Kubectl({"-n", "work", "delete", "deployment", "web", "--wait=false"});
  EXPECT_TRUE(Eventually([&] { return pods().find("web") == std::string::npos; })) << pods();

  // ---- pages ----
  ASSERT_NE(a->url(), "");
  EXPECT_EQ(Curl(a->url() + "/healthz").out, "ok\n200");
  EXPECT_EQ(Curl(b->url() + "/healthz").out, "ok\n200");
  EXPECT_THAT(Curl(a->url() + "/healthz/leaderElection", "admin").out, HasSubstr("200"));
  EXPECT_THAT(Curl(a->url() + "/metrics").out, HasSubstr("\n403"));
  EXPECT_THAT(Curl(a->url() + "/metrics", "admin").out,
              AllOf(HasSubstr("\n200"),
                    HasSubstr("leader_election_master_status{name=\"kube-controller-manager\"} 1"),
                    HasSubstr("workqueue_adds_total{name=\"deployment\"}")));
  EXPECT_THAT(Curl(b->url() + "/metrics", "admin").out,
              AllOf(HasSubstr("leader_election_master_status{name=\"kube-controller-manager\"} 0"),
                    Not(HasSubstr("workqueue_adds_total{name=\"deployment\"}"))));
  EXPECT_THAT(Curl(a->url() + "/configz", "admin").out,
              AllOf(HasSubstr(R"("kubecontrollermanager.config.k8s.io":{"Generic":{"Address":"127.0.0.1")"),
                    HasSubstr(R"("LeaseDuration":"4s","RenewDeadline":"3s","RetryPeriod":"1s")"),
                    HasSubstr(R"("Controllers":["*","-cronjob"])")));
  EXPECT_THAT(Curl(a->url() + "/nowhere", "admin").out, HasSubstr("\n404"));

  // ---- the leader is killed, and freezes ----
  a->End(SIGKILL);
  ASSERT_TRUE(Eventually([&] { return b->Says("\"Controllers started\""); })) << b->Log();
  EXPECT_NE(Holder("kube-controller-manager"), first);
  EXPECT_EQ(Field("lease/kube-controller-manager", "{.spec.leaseTransitions}", "kube-system"), "1");
  Kubectl({"-n", "work", "create", "deployment", "next", "--image=example"});
  EXPECT_TRUE(Eventually([&] { return pods().find("next") != std::string::npos; }));
  EXPECT_THAT(Field("events", "{range .items[*]}{.reason}:{.message};{end}", "kube-system"),
              HasSubstr("LeaderElection:" + first + " became leader"));

  auto c = StartControllers("c");
  ASSERT_TRUE(Eventually([&] { return c->Says("\"Leader seen\""); })) << c->Log();
  b->Pause(true);
  ASSERT_TRUE(Eventually([&] { return c->Says("\"Controllers started\""); })) << c->Log();
  b->Pause(false);
  EXPECT_EQ(b->Wait(), 1) << "who finds that another leads writes nothing more";
  EXPECT_TRUE(b->Says("Leader election lost"));

  Kubectl({"delete", "namespace", "work", "--wait=false"});
  EXPECT_TRUE(Eventually([&] {
    return Field("namespaces", "{.items[*].metadata.name}").find("work") == std::string::npos;
  })) << Field("namespace/work", "{.status}");
  EXPECT_EQ(c->End(SIGTERM), 0);
  EXPECT_EQ(Holder("kube-controller-manager"), "") << "released";
  for (const auto& process : {a.get(), b.get(), c.get()})
    EXPECT_THAT(process->Log(), Not(HasSubstr("forbidden")));
}

// A node whose kubelet is this test, and what the controllers of addresses, volumes and scale work on.
constexpr char kClaimsAndScale[] = R"(
---
apiVersion: v1
kind: Node
metadata: {name: n1, annotations: {volumes.kubernetes.io/controller-managed-attach-detach: "true"}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: work}, spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  csi: {driver: csi.example.com, volumeHandle: disk-1}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: work}
spec: {storageClassName: "", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: user, namespace: work}
spec:
  nodeName: n1
  containers: [{name: main, image: example}]
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - name: scratch
    ephemeral:
      volumeClaimTemplate:
        spec: {storageClassName: none-such, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: scaled, namespace: work}
spec:
  selector: {matchLabels: {app: scaled}}
  template:
    metadata: {labels: {app: scaled}}
    spec: {containers: [{name: main, image: example, resources: {requests: {cpu: 10m}}}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaled, namespace: work}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}
  minReplicas: 2
  maxReplicas: 3
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
)";

TEST_F(Roles, ControllersOfAddressesVolumesAndScaleHaveTheRightsTheyNeed) {
  auto process = StartControllers("a", {"--horizontal-pod-autoscaler-sync-period=1s"});
  ASSERT_TRUE(Eventually([&] { return process->Says("\"Controllers started\""); })) << process->Log();
  Kubectl({"create", "namespace", "work"});
  ASSERT_TRUE(Eventually([&] { return Field("serviceaccount/default", "{.metadata.name}", "work") != ""; }));
  Kubectl({"apply", "-f", "-"}, kClaimsAndScale);
  Kubectl({"patch", "node", "n1", "--subresource=status", "--type=merge", "-p",
           R"({"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.10"}],)"
           R"("conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}})"});
  struct Case {
    const char *what, *path, *ns, *want;
  };
  auto expect = [&](std::vector<Case> cases) {
    for (const Case& c : cases) {
      EXPECT_TRUE(Eventually([&] { return Field(c.what, c.path, c.ns) == c.want; }))
          << c.what << ": " << Field(c.what, c.path, c.ns) << "\n"
          << process->Log();
    }
  };
  expect({
      {"service/web", "{.status.loadBalancer.ingress[*].ip}", "work", "192.0.2.10"},
      {"service/web", "{.metadata.finalizers}", "work", R"(["service.kubernetes.io/load-balancer-cleanup"])"},
      {"pvc/data", "{.status.phase} {.spec.volumeName} {.metadata.finalizers}", "work",
       R"(Bound disk ["kubernetes.io/pvc-protection"])"},
      {"pv/disk", "{.status.phase} {.metadata.finalizers}", "", R"(Bound ["kubernetes.io/pv-protection"])"},
      {"volumeattachments", "{range .items[*]}{.spec.nodeName} {.spec.source.persistentVolumeName}{end}", "",
       "n1 disk"},
      {"pvc/user-scratch", "{.metadata.ownerReferences[0].name}", "work", "user"},
      {"deployment/scaled", "{.spec.replicas}", "work", "2"},
      {"pods", "{range .items[?(@.metadata.labels.app=='scaled')]}x{end}", "work", "xx"},
  });
  // What an attacher does.
  const std::string attachment = Field("volumeattachments", "{.items[0].metadata.name}", "");
  Kubectl({"patch", "volumeattachment", attachment, "--subresource=status", "--type=merge", "-p",
           R"({"status":{"attached":true}})"});
  expect({{"node/n1", "{.status.volumesAttached[*].name}", "", "kubernetes.io/csi/csi.example.com^disk-1"}});
  // Metrics are asked for with the controller's own rights; nobody has any here.
  EXPECT_TRUE(Eventually([&] {
    return Field("hpa/scaled", "{.status.conditions[?(@.type=='ScalingActive')].reason}", "work") ==
           "FailedGetResourceMetric";
  })) << Field("hpa/scaled", "{.status.conditions}", "work");
  EXPECT_THAT(Field("hpa/scaled", "{.status.conditions}", "work"), Not(HasSubstr("forbidden")));

  Kubectl({"-n", "work", "delete", "pod", "user", "--grace-period=0", "--force"});
  Kubectl({"-n", "work", "delete", "pvc", "data", "--wait=false"});
  Kubectl({"-n", "work", "delete", "service", "web", "--wait=false"});
  expect({{"volumeattachments", "{.items[*].metadata.name}", "", ""},
          {"node/n1", "{.status.volumesAttached[*].name}", "", ""},
          {"pv/disk", "{.status.phase}", "", "Released"},
          {"pvc", "{.items[*].metadata.name}", "work", ""},
          {"services", "{.items[*].metadata.name}", "work", ""}});
  EXPECT_EQ(process->End(SIGTERM), 0);
  EXPECT_THAT(process->Log(), Not(HasSubstr("forbidden")));
}

TEST_F(Roles, AProxyMayAnnounceAndNoMore) {
  cluster_->AddUser("system:kube-proxy", {});
  struct Case {
    const char *verb, *what, *ns, *want;
  };
  auto expect = [&](std::vector<Case> cases) {
    for (const Case& c : cases) {
      const Output output =
          cluster_->Kubectl({"auth", "can-i", c.verb, c.what, "-n", c.ns}, "", "system:kube-proxy");
      EXPECT_EQ(output.out, c.want + std::string("\n")) << c.verb << " " << c.what << " " << output.err;
    }
  };
  expect({{"watch", "services", "default", "yes"}, {"create", "leases", "kube-system", "no"}});
  Kubectl({"apply", "-f", KEELSON_ANNOUNCE_RBAC});
  expect({{"list", "leases", "kube-system", "yes"},
          {"watch", "leases", "kube-system", "yes"},
          {"create", "leases", "kube-system", "yes"},
          {"update", "leases", "kube-system", "yes"},
          {"delete", "leases", "kube-system", "yes"},
          {"create", "leases", "default", "no"},
          {"update", "services", "default", "no"},
          {"list", "secrets", "kube-system", "no"}});
}

// One port more than the process tells of: it was free a moment ago.
std::string FreePort() {
  const auto server = http::Server::Listen({}, nullptr);
  return server ? std::to_string((*server)->port()) : "0";
}

// What asks for most of the node's CPU, with nobody to wait for when it is deleted.
std::string Hungry(const std::string& name, const std::string& priority_class = "") {
  return R"(
---
apiVersion: v1
kind: Pod
metadata: {name: )" +
         name +
         R"(}
spec:
  priorityClassName: ")" +
         priority_class + R"("
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: example, resources: {requests: {cpu: 800m}}}]
)";
}

TEST_F(Roles, ASchedulerAlone) {
  const std::string port = FreePort();
  auto process = Start("scheduler", "scheduler", "kube-scheduler", {"--scheduler-debug-port=" + port});
  Kubectl({"create", "serviceaccount", "default"});
  Kubectl({"apply", "-f", "-"}, R"(
---
{apiVersion: v1, kind: Node, metadata: {name: n1}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: main, image: example}]}}
)");
  Kubectl({"taint", "node", "n1", "node.kubernetes.io/not-ready-"});
  Kubectl({"patch", "node", "n1", "--subresource=status", "--type=merge", "-p",
           R"({"status":{"allocatable":{"cpu":"1","memory":"1Gi","pods":"10"}}})"});
  EXPECT_TRUE(Eventually([&] { return Field("pod/p", "{.spec.nodeName}", "default") == "n1"; }))
      << process->Log();
  Kubectl({"create", "priorityclass", "high", "--value=1000"});
  Kubectl({"apply", "-f", "-"}, Hungry("low"));
  EXPECT_TRUE(Eventually([&] { return Field("pod/low", "{.spec.nodeName}", "default") == "n1"; }));
  Kubectl({"apply", "-f", "-"}, Hungry("late"));
  const std::string full =
      "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption "
      "victims found for incoming pod.";
  EXPECT_TRUE(Eventually([&] {
    return Field("pod/late", "{.status.conditions[?(@.type=='PodScheduled')].message}", "default") == full;
  })) << Field("pod/late", "{.status}", "default");
  EXPECT_THAT(Curl("http://127.0.0.1:" + port + "/debug/why?pod=default%2Flate").out,
              AllOf(HasSubstr(R"("refusedBy":"NodeResourcesFit")"), HasSubstr("\n200")));
  Kubectl({"apply", "-f", "-"}, Hungry("high", "high"));
  EXPECT_TRUE(Eventually([&] { return Field("pod/high", "{.spec.nodeName}", "default") == "n1"; }));
  EXPECT_EQ(Field("pods", "{.items[*].metadata.name}", "default"), "high late p");
  // Events may come after what they tell of.
  const auto events = [&] {
    return Field("events", "{range .items[*]}{.involvedObject.name}: {.reason}: {.message}\n{end}",
                 "default");
  };
  for (const std::string& event : {std::string("p: Scheduled: Successfully assigned default/p to n1\n"),
                                   "late: FailedScheduling: " + full + "\n",
                                   "low: Preempted: Preempted by pod " +
                                       Field("pod/high", "{.metadata.uid}", "default") + " on node n1\n"}) {
    EXPECT_TRUE(Eventually([&] { return events().find(event) != std::string::npos; })) << events();
  }
  EXPECT_NE(Holder("kube-scheduler"), "");
  EXPECT_EQ(Curl(process->url() + "/healthz").out, "ok\n200");
  EXPECT_THAT(Curl(process->url() + "/configz", "admin").out,
              HasSubstr(R"("componentconfig":{"leaderElection":{"leaderElect":true,"leaseDuration":"4s")"));
  EXPECT_EQ(process->End(SIGTERM), 0);
  EXPECT_EQ(Holder("kube-scheduler"), "");
  EXPECT_THAT(process->Log(), Not(HasSubstr("forbidden")));
}

TEST_F(Roles, BadFlagsAreRefused) {
  struct Case {
    std::vector<std::string> flags;
    const char* want;
  };
  for (const Case& c :
       {Case{{"--roles=controllers"}, "--kubeconfig is needed where no API server is in the process"},
        {{"--roles=controllers", "--kubeconfig=" + File("admin.conf"), "--controllers=*,-nothing"},
         "is not in the list of known controllers"},
        {{"--roles=scheduler", "--kubeconfig=" + File("admin.conf"), "--leader-elect-renew-deadline=20s"},
         "leaseDuration must be greater than renewDeadline"},
        {{"--roles=scheduler,controllers", "--kubeconfig=" + File("admin.conf"),
          "--leader-elect-resource-name=x"},
         "--leader-elect-resource-name names one Lease"}}) {
    Process process(*cluster_, "wrong", c.flags);
    EXPECT_EQ(process.Wait(), 1);
    EXPECT_TRUE(process.Says(c.want)) << process.Log();
  }
}

}  // namespace
}  // namespace keelson::controlplane

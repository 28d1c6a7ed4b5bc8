// A scheduler as a separate process, the permissions of an announcing proxy, and invalid flags.
#include <gmock/gmock.h>

#include "lib/base/free_port.h"
#include "tests/controlplane/roles.h"

namespace keelson::controlplane {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

// A pod that requests most of the node's CPU, with grace period 0.
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
  const std::string port = std::to_string(FreePort().value_or(0));
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
  // Events may arrive after the changes that they report.
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
  EXPECT_THAT(Curl(process->url() + "/metrics/resources", "admin").out,
              AllOf(HasSubstr("kube_pod_resource_request{namespace=\"default\",pod=\"high\",node=\"n1\""),
                    HasSubstr("\n200")));
  EXPECT_THAT(Curl(process->url() + "/metrics", "admin").out,
              AllOf(HasSubstr("scheduler_schedule_attempts_total{result=\"scheduled\""),
                    HasSubstr("scheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"1\"}"),
                    HasSubstr("scheduler_preemption_victims_count 1\n"),
                    HasSubstr("scheduler_pending_pods{queue=\"unschedulable\"} 1\n")));
  EXPECT_EQ(process->End(SIGTERM), 0);
  EXPECT_EQ(Holder("kube-scheduler"), "");
  EXPECT_THAT(process->Log(), Not(HasSubstr("forbidden")));
}

// As where the file alone says which server it is and how a leader is elected.
TEST_F(Roles, ASchedulerSetByItsFile) {
  const std::string file = File("scheduler.yaml");
  ASSERT_TRUE(WriteFile(file,
                        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
                        "clientConnection: {kubeconfig: " +
                            File("stock-kube-scheduler.conf") +
                            "}\nleaderElection: {resourceName: mine, leaseDuration: 40s, renewDeadline: 20s, "
                            "retryPeriod: 1s}\n"));
  // The role of a stock cluster allows the Lease kube-scheduler alone.
  Kubectl({"-n", "kube-system", "create", "role", "mine", "--verb=get,update", "--resource=leases",
           "--resource-name=mine"});
  Kubectl(
      {"-n", "kube-system", "create", "rolebinding", "mine", "--role=mine", "--user=stock-kube-scheduler"});
  Process process(*cluster_, "file",
                  {"--roles=scheduler", "--config=" + file, "--leader-elect-lease-duration=30s"});
  EXPECT_TRUE(Eventually([&] { return !Holder("mine").empty(); })) << process.Log();
  // A flag that was given wins over the file.
  EXPECT_EQ(Field("lease/mine", "{.spec.leaseDurationSeconds}", "kube-system"), "30");
  ASSERT_TRUE(Eventually([&] { return !process.url().empty(); })) << process.Log();
  EXPECT_THAT(Curl(process.url() + "/configz", "admin").out,
              AllOf(HasSubstr(R"("leaseDuration":"30s","renewDeadline":"20s")"),
                    HasSubstr(R"("resourceName":"mine")")));
  EXPECT_EQ(process.End(SIGTERM), 0);
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
         "--leader-elect-resource-name names one Lease"},
        {{"--roles=scheduler", "--kubeconfig=" + File("admin.conf"), "--feature-gates=NodeSwap=false"},
         "cannot set feature gate NodeSwap to false, feature is locked to true"}}) {
    Process process(*cluster_, "wrong", c.flags);
    EXPECT_EQ(process.Wait(), 1);
    EXPECT_TRUE(process.Says(c.want)) << process.Log();
  }
}

}  // namespace
}  // namespace keelson::controlplane

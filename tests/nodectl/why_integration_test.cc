// nodectl why on a control plane, whose objects the test breaks. Nodes are objects: the test writes what their kubelets would.
#include <gmock/gmock.h>

#include <memory>

#include <boost/json.hpp>

#include "lib/base/free_port.h"
#include "lib/base/testing/eventually.h"
#include "tests/apiserver/cluster.h"

namespace keelson {
namespace {

using apiserver::Output;
using apiserver::TestCluster;
using ::testing::HasSubstr;

class WhyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = TestCluster::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    const auto free = FreePort();
    ASSERT_TRUE(free);
    scheduler_ = "http://127.0.0.1:" + std::to_string(*free);
    // No kubelet tells that a node is alive.
    cluster_ = std::make_unique<TestCluster>(std::vector<std::string>{
        "--node-monitor-grace-period=1h", "--scheduler-debug-port=" + std::to_string(*free)});
    Apply(
        R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default","namespace":"default"}})");
    AddNode("n1");
  }

  std::string Kubectl(std::vector<std::string> arguments, const std::string& input = "") {
    const Output output = cluster_->Kubectl(std::move(arguments), input);
    EXPECT_EQ(output.code, 0) << output.err;
    return output.out;
  }
  void Apply(const std::string& object) { Kubectl({"apply", "-f", "-"}, object); }
  void PatchStatus(const std::string& kind, const std::string& name, const std::string& status) {
    Kubectl(
        {"patch", kind, name, "--subresource=status", "--type=merge", "-p", R"({"status":)" + status + "}"});
  }
  void AddNode(const std::string& name) {
    Apply(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")" + name + R"("}})");
    PatchStatus(
        "node", name,
        R"({"allocatable":{"cpu":"4","memory":"8Gi","pods":"100"},"capacity":{"cpu":"4","memory":"8Gi","pods":"100"},
        "conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"ready"}]})");
    ASSERT_TRUE(Eventually([&] {
      cluster_->Kubectl({"taint", "node", name, "node.kubernetes.io/not-ready-"});
      return Kubectl({"get", "node", name, "-o", "jsonpath={.spec.taints}"}).empty();
    }));
  }
  // `spec` are members beside the container.
  void AddPod(const std::string& name, const std::string& spec, const std::string& metadata = "") {
    Apply(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name + "\"" + metadata +
        R"(},"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"main","image":"r.example.com/a:1",
              "ports":[{"name":"http","containerPort":8080}]}])" +
        spec + "}}");
  }
  void AddEvent(const std::string& pod, const std::string& reason, const std::string& message) {
    const std::string uid = Kubectl({"get", "pod", pod, "-o", "jsonpath={.metadata.uid}"});
    Apply(
        R"({"apiVersion":"v1","kind":"Event","metadata":{"name":")" + pod + "." + std::to_string(++events_) +
        R"("},"involvedObject":{"apiVersion":"v1","kind":"Pod","namespace":"default","name":")" + pod +
        R"(","uid":")" + uid + R"(","fieldPath":"spec.containers{main}"},"type":"Warning","reason":")" +
        reason + R"(","message":")" + message +
        R"(","firstTimestamp":"2026-01-01T00:00:00Z","lastTimestamp":"2026-01-01T00:00:00Z","count":3,"source":{"component":"kubelet"}})");
  }

  Output Why(const std::string& kind, const std::string& name, std::vector<std::string> more = {}) {
    std::vector<std::string> argv{KEELSON_NODECTL, "--kubeconfig", cluster_->pki().dir() + "/admin.conf",
                                  "why",           kind,           name};
    if (kind == "pod") more.insert(more.begin(), {"--scheduler", scheduler_});
    argv.insert(argv.end(), more.begin(), more.end());
    return apiserver::RunProgram(argv);
  }
  // Waits until the answer names this reason, and returns it.
  std::string Await(const std::string& kind, const std::string& name, const std::string& reason) {
    Output last;
    const bool found = Eventually([&] {
      last = Why(kind, name);
      return last.code == 2 && last.out.find("\n  " + reason + ": ") != std::string::npos;
    });
    EXPECT_TRUE(found) << "wanted " << reason << ", got " << last.code << "\n" << last.out << last.err;
    return last.out;
  }
  bool AwaitNoProblem(const std::string& kind, const std::string& name) {
    Output last;
    const bool found = Eventually([&] {
      last = Why(kind, name);
      return last.code == 0;
    });
    EXPECT_TRUE(found) << last.out << last.err;
    return found;
  }

  std::string scheduler_;
  std::unique_ptr<TestCluster> cluster_;
  int events_ = 0;
};

TEST_F(WhyTest, PodsWithoutANode) {
  Apply(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"big"},"spec":{"containers":[{"name":"main","image":"i",
      "resources":{"requests":{"cpu":"9"}}}]}})");
  const std::string big = Await("pod", "default/big", "Unschedulable");
  EXPECT_THAT(big, HasSubstr("Pod default/big is Pending, without a node"));
  EXPECT_THAT(big, HasSubstr("Insufficient cpu"));
  EXPECT_THAT(big, HasSubstr("9000 wanted"));  // only the scheduler tells
  EXPECT_THAT(big, HasSubstr("next: kubectl "));
  const Output json = Why("pod", "default/big", {"-o", "json"});
  boost::system::error_code malformed;
  const boost::json::value document = boost::json::parse(json.out, malformed);
  ASSERT_FALSE(malformed) << json.out;
  EXPECT_EQ(document.at("scheduling").at("nodes").at(0).at("refusedBy").as_string(), "NodeResourcesFit");
  EXPECT_EQ(document.at("problems").at(0).at("reason").as_string(), "Unschedulable");

  AddPod("gated", R"(,"schedulingGates":[{"name":"example.com/wait"}])");
  EXPECT_THAT(Await("pod", "default/gated", "SchedulingGated"), HasSubstr("example.com/wait"));
  AddPod("claims", R"(,"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"none"}}])");
  EXPECT_THAT(Await("pod", "default/claims", "ClaimMissing"), HasSubstr("PersistentVolumeClaim none"));
  const Output unknown = Why("pod", "default/nothing");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.out, HasSubstr("NoSuchPod"));
  EXPECT_EQ(Why("pod", "nothing").code, 1);

  Apply(
      R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"few"},"spec":{"hard":{"count/configmaps":"9","pods":"3"}}})");
  ASSERT_TRUE(Eventually([&] {
    return !Kubectl({"get", "resourcequota", "few", "-o", "jsonpath={.status.used.pods}"}).empty();
  }));
  Apply(
      R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"app":"web"}},
      "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"main","image":"i"}]}}}})");
  const std::string denied = Await("pod", "default/web", "QuotaExceeded");
  EXPECT_THAT(denied, HasSubstr("exceeded quota: few"));
  EXPECT_THAT(denied, HasSubstr("next: kubectl -n default describe resourcequota"));
}

TEST_F(WhyTest, PodsOnANode) {
  AddPod("p", R"(,"nodeName":"n1")");
  EXPECT_THAT(Await("pod", "default/p", "KubeletSilent"), HasSubstr("nodectl why node n1"));
  PatchStatus(
      "pod", "p",
      R"({"startTime":"2026-01-01T00:00:00Z","containerStatuses":[{"name":"main","image":"a","imageID":"",
      "ready":false,"restartCount":0,"state":{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image"}}}]})");
  AddEvent("p", "Failed", "Failed to pull image r.example.com/a:1: not found");
  const std::string image = Await("pod", "default/p", "ImageNotFound");
  EXPECT_THAT(image, HasSubstr("event Failed, 3 times: Failed to pull image r.example.com/a:1: not found"));
  EXPECT_THAT(image, HasSubstr("next: nodectl pull r.example.com/a:1"));
  PatchStatus(
      "pod", "p",
      R"({"phase":"Running","containerStatuses":[{"name":"main","image":"a","imageID":"a","ready":false,
      "restartCount":4,"containerID":"containerd://x","state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 40s"}},
      "lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","containerID":"containerd://x"}}}]})");
  EXPECT_THAT(Await("pod", "default/p", "OOMKilled"), HasSubstr("4 restart(s)"));
  EXPECT_THAT(Await("pod", "default/p", "OOMKilled"),
              HasSubstr("kubectl -n default logs p -c main --previous"));
  PatchStatus("pod", "p",
              R"({"containerStatuses":[{"name":"main","image":"a","imageID":"a","ready":true,"started":true,
      "restartCount":4,"containerID":"containerd://x","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]})");
  EXPECT_TRUE(AwaitNoProblem("pod", "default/p"));

  PatchStatus(
      "node", "n1",
      R"({"conditions":[{"type":"Ready","status":"False","reason":"KubeletNotReady","message":"down"}]})");
  EXPECT_THAT(Await("pod", "default/p", "NodeNotReady"), HasSubstr("Ready is False, KubeletNotReady: down"));
  Kubectl({"patch", "pod", "p", "--type=merge", "-p", R"({"metadata":{"finalizers":["example.com/hold"]}})"});
  Kubectl({"delete", "pod", "p", "--wait=false"});
  EXPECT_THAT(Await("pod", "default/p", "Finalizer"), HasSubstr("example.com/hold"));
  Kubectl({"delete", "node", "n1"});
  EXPECT_THAT(Await("pod", "default/p", "NodeGone"), HasSubstr("--force"));
}

TEST_F(WhyTest, Nodes) {
  const Output none = Why("node", "n9");
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(AwaitNoProblem("node", "n1"));
  Kubectl({"cordon", "n1"});
  EXPECT_THAT(Await("node", "n1", "Cordoned"), HasSubstr("next: kubectl uncordon n1"));
  Kubectl({"uncordon", "n1"});
  PatchStatus("node", "n1",
              R"({"conditions":[{"type":"Ready","status":"False","reason":"KubeletNotReady","message":
      "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"},
      {"type":"DiskPressure","status":"True","reason":"KubeletHasDiskPressure","message":"kubelet has disk pressure"}]})");
  EXPECT_THAT(Await("node", "n1", "NetworkPluginNotReady"), HasSubstr("\n  DiskPressure: "));
  Apply(
      R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"n1","namespace":"kube-node-lease"},"spec":
      {"holderIdentity":"n1","leaseDurationSeconds":40,"renewTime":"2026-01-01T00:00:00.000000Z"}})");
  PatchStatus("node", "n1",
              R"({"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown","message":
      "Kubelet stopped posting node status."}]})");
  const std::string silent = Await("node", "n1", "KubeletSilent");
  EXPECT_THAT(silent, HasSubstr("Node n1 is not Ready"));
  EXPECT_THAT(silent, HasSubstr("Lease kube-node-lease/n1 was renewed"));
  EXPECT_THAT(silent, HasSubstr("Kubelet stopped posting node status."));
}

TEST_F(WhyTest, Services) {
  Apply(
      R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"selector":{"app":"web","tier":"front"},
      "ports":[{"port":80,"targetPort":"http"}]}})");
  AddPod("p", R"(,"nodeName":"n1")", R"(,"labels":{"app":"web","tier":"back"})");
  EXPECT_THAT(Await("service", "default/web", "SelectorMatchesNothing"),
              HasSubstr("pod p has tier=back, not front"));
  Kubectl({"label", "pod", "p", "tier=front", "--overwrite"});
  EXPECT_THAT(Await("service", "default/web", "PodsNotReady"), HasSubstr("next: nodectl why pod default/p"));
  PatchStatus(
      "pod", "p",
      R"({"phase":"Running","podIP":"10.1.0.1","podIPs":[{"ip":"10.1.0.1"}],"conditions":[{"type":"Ready","status":"True"}]})");
  EXPECT_TRUE(AwaitNoProblem("service", "default/web"));
  Kubectl({"patch", "service", "web", "--type=json", "-p",
           R"([{"op":"replace","path":"/spec/ports/0/targetPort","value":"web"}])"});
  EXPECT_THAT(Await("service", "default/web", "NamedPortMissing"), HasSubstr("http=8080/TCP"));
  Kubectl({"patch", "service", "web", "--type=json", "-p",
           R"([{"op":"replace","path":"/spec/ports/0/targetPort","value":81}])"});
  Await("service", "default/web", "TargetPortUndeclared");
  Kubectl({"patch", "service", "web", "--type=json", "-p",
           R"([{"op":"replace","path":"/spec/ports/0/targetPort","value":8080}])"});
  Apply(
      R"({"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"none"},"spec":{"podSelector":{},"policyTypes":["Ingress"]}})");
  EXPECT_THAT(Await("service", "default/web", "PolicyDenies"),
              HasSubstr("nodectl why connection NAMESPACE/CLIENT default/p:8080"));
  Kubectl({"delete", "networkpolicy", "none"});
  Kubectl({"patch", "service", "web", "--type=merge", "-p",
           R"({"spec":{"type":"LoadBalancer","loadBalancerClass":"example.com/none"}})"});
  EXPECT_THAT(Await("service", "default/web", "NoLoadBalancer"), HasSubstr("example.com/none"));
  AddNode("n2");
  Kubectl({"patch", "service", "web", "--type=merge", "-p", R"({"spec":{"internalTrafficPolicy":"Local"}})"});
  EXPECT_THAT(Await("service", "default/web", "NoLocalEndpoints"), HasSubstr("node n2"));
  Apply(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"bare"},"spec":{"ports":[{"port":80}]}})");
  Await("service", "default/bare", "NoSelector");
  Apply(
      R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"out"},"spec":{"type":"ExternalName","externalName":"db.example.com"}})");
  EXPECT_THAT(Why("service", "default/out").out, HasSubstr("DNS sends clients to db.example.com"));
}

TEST_F(WhyTest, Jobs) {
  const std::string pods =
      R"("template":{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"i",
      "resources":{"requests":{"cpu":"9"}}}]}}})";
  const std::string job = R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":)";
  Apply(job + R"("idle"},"spec":{"suspend":true,)" + pods + "}");
  EXPECT_THAT(Await("job", "default/idle", "Suspended"),
              HasSubstr("next: kubectl -n default patch job idle"));
  Apply(job + R"("big"},"spec":{"backoffLimit":0,)" + pods + "}");
  const std::string pending = Await("job", "default/big", "PodsPending");
  EXPECT_THAT(pending, HasSubstr("next: nodectl why pod default/big-"));
  const std::string pod =
      Kubectl({"get", "pods", "-l", "job-name=big", "-o", "jsonpath={.items[0].metadata.name}"});
  PatchStatus(
      "pod", pod,
      R"({"phase":"Failed","containerStatuses":[{"name":"main","image":"a","imageID":"a","ready":false,"restartCount":0,
      "state":{"terminated":{"exitCode":3,"reason":"Error"}}}]})");
  EXPECT_THAT(Await("job", "default/big", "BackoffLimitExceeded"),
              HasSubstr("container main: Error, exit code 3"));
  Apply(job + R"("slow"},"spec":{"activeDeadlineSeconds":1,)" + pods + "}");
  Await("job", "default/slow", "DeadlineExceeded");
  Apply(
      R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"none"},"spec":{"hard":{"pods":"0"}}})");
  ASSERT_TRUE(Eventually([&] {
    return !Kubectl({"get", "resourcequota", "none", "-o", "jsonpath={.status.used.pods}"}).empty();
  }));
  Apply(job + R"("denied"},"spec":{)" + pods + "}");
  EXPECT_THAT(Await("job", "default/denied", "QuotaExceeded"), HasSubstr("exceeded quota: none"));

  Apply(
      R"({"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"yearly"},"spec":{"schedule":"0 0 1 1 *","suspend":true,
      "jobTemplate":{"spec":{"activeDeadlineSeconds":1,)" +
      pods + "}}}");
  Await("job", "default/yearly", "Suspended");
  Kubectl({"create", "job", "--from=cronjob/yearly", "now"});
  EXPECT_THAT(Await("job", "default/yearly", "LastJobFailed"),
              HasSubstr("next: nodectl why job default/now"));
  EXPECT_EQ(Why("job", "default/none").code, 1);
}

}  // namespace
}  // namespace keelson

// Controllers as separate processes: work with the permissions of their accounts, leader election, and
// endpoints.
#include <gmock/gmock.h>

#include "tests/controlplane/roles.h"

namespace keelson::controlplane {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// kubectl treats a stream that starts with { as JSON.
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
           {"node/n1", "{.metadata.annotations.node\\.alpha\\.kubernetes\\.io/ttl}", "", "0"},
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
  EXPECT_THAT(Curl(a->url() + "/metrics/slis", "admin").out,
              HasSubstr("kubernetes_healthcheck{name=\"leaderElection\",type=\"healthz\"} 1\n"));
  EXPECT_THAT(Curl(a->url() + "/statusz", "admin").out, HasSubstr("\nkube-controller-manager statusz\n"));
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
  for (const auto& process : {a.get(), b.get(), c.get()}) {
    EXPECT_THAT(process->Log(), Not(HasSubstr("forbidden")));
  }
}

// A node whose kubelet is this test, for the controllers of addresses, volumes and scale.
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
  ASSERT_TRUE(
      Eventually([&] { return !Field("serviceaccount/default", "{.metadata.name}", "work").empty(); }));
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
  // The controller reads metrics with its own permissions; here it has none.
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

}  // namespace
}  // namespace keelson::controlplane

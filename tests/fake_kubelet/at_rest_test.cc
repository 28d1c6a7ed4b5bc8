// An idle cluster writes nothing: except for Leases, no request of controllers, scheduler or API server
// reaches etcd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/fake_kubelet/control_plane.h"

namespace keelson::fake_kubelet {
namespace {

using std::chrono::seconds;

// kubectl treats a stream that starts with { as JSON.
constexpr char kObjects[] = R"(
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: example, ports: [{containerPort: 80}]}]}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: example}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: example}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  completions: 3
  parallelism: 2
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: example}]}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: seldom}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: example}]}}}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: all}, spec: {hard: {pods: "50"}}}
---
# One that can never be placed.
apiVersion: v1
kind: Pod
metadata: {name: nowhere}
spec: {nodeSelector: {no: such}, containers: [{name: main, image: example}]}
)";

TEST(AtRest, NothingIsWrittenButLeases) {
  if (std::string missing = apiserver::TestCluster::Missing(); !missing.empty()) GTEST_SKIP() << missing;
  Options options;
  options.nodes = 3;
  // As with several processes: the roles' Leases are renewed, too.
  ControlPlane plane({"--leader-elect=true", "--allocate-node-cidrs=true", "--cluster-cidr=10.244.0.0/16"},
                     options);
  auto kubectl = [&](std::vector<std::string> arguments, const std::string& input = "") {
    apiserver::Output output = plane.cluster().Kubectl(std::move(arguments), input);
    EXPECT_EQ(output.code, 0) << output.err;
  };
  kubectl({"wait", "--for=create", "serviceaccount/default", "--timeout=30s"});
  kubectl({"apply", "-f", "-"}, kObjects);
  for (const char* set : {"deployment/web", "statefulset/db", "daemonset/agent"}) {
    kubectl({"rollout", "status", set, "--timeout=60s"});
  }
  kubectl({"wait", "--for=condition=Complete", "job/once", "--timeout=60s"});

  // This test is about time: waits until the cluster is idle, then for all loop periods except the rarest.
  ControlPlane::Writes before = plane.CountWrites();
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(seconds(2));
    ControlPlane::Writes now = plane.CountWrites();
    const bool quiet = now == before;
    before = std::move(now);
    if (quiet) break;
  }
  ASSERT_GT(ControlPlane::Sum(before), 30) << "nothing was counted";
  const double cpu = plane.CpuSeconds();
  std::this_thread::sleep_for(seconds(22));
  EXPECT_THAT(ControlPlane::Difference(plane.CountWrites(), before), testing::IsEmpty());
  RecordProperty("cpu_milliseconds_a_second", static_cast<int>((plane.CpuSeconds() - cpu) * 1000 / 22));
}

}  // namespace
}  // namespace keelson::fake_kubelet

// Claims on a whole control plane: scheduler and binder, keelson-csi-controller with the rights of its manifest, and
// keelson-csi-local. The node is an object without a kubelet.
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <optional>

#include <gtest/gtest.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/testing/eventually.h"
#include "lib/event/process.h"
#include "tests/apiserver/cluster.h"

namespace keelson {
namespace {

using apiserver::Output;
using apiserver::TestCluster;

class CsiControllerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = TestCluster::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    char name[] = "/var/tmp/csi_integration.XXXXXX";
    dir_ = ::mkdtemp(name);
    // No kubelet tells that the node is alive.
    cluster_ = std::make_unique<TestCluster>(std::vector<std::string>{"--node-monitor-grace-period=1h"});
    Apply(*ReadFile(KEELSON_CSI_CONTROLLER_RBAC));
    cluster_->AddUser("csi", {"keelson:csi-controller"});
    Apply(kObjects);
    Kubectl({"patch", "node", "node-1", "--subresource=status", "--type=merge", "-p",
             R"({"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"100"},
                 "capacity":{"cpu":"4","memory":"8Gi","pods":"100"},
                 "conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"ready"}]}})"});
    ASSERT_TRUE(Eventually([&] {
      Kubectl({"taint", "node", "node-1", "node.kubernetes.io/not-ready-"}, "", false);
      return Get("node/node-1", "{.spec.taints}").empty();
    }));
    driver_ = Start({KEELSON_CSI_LOCAL, "--csi-endpoint=unix://" + dir_ + "/csi.sock", "--node-id=node-1",
                     "--data-dir=" + dir_ + "/data"});
    StartController();
  }
  void TearDown() override {
    Stop(controller_, SIGTERM);
    Stop(driver_, SIGTERM);
    if (HasFailure()) {
      printf("%s\n", ReadFile(dir_ + "/keelson-csi-controller.log").value_or("").c_str());
    }
    cluster_.reset();
    if (!dir_.empty()) {
      EXPECT_TRUE(RemoveTree(dir_));
    }
  }

  std::optional<event::Process> Start(const std::vector<std::string>& argv) {
    event::ProcessOptions options;
    options.argv = argv;
    options.output_file = dir_ + "/" + std::filesystem::path(argv[0]).filename().string() + ".log";
    auto process = event::Process::Start(options);
    EXPECT_TRUE(process) << process.error().message();
    return process ? std::optional(std::move(*process)) : std::nullopt;
  }
  void StartController(const std::vector<std::string>& more = {"--node-deployment", "--node-name=node-1",
                                                               "--strict-topology",
                                                               "--immediate-topology=false"}) {
    std::vector<std::string> argv{KEELSON_CSI_CONTROLLER,
                                  "--kubeconfig=" + cluster_->pki().dir() + "/csi.conf",
                                  "--csi-address=" + dir_ + "/csi.sock",
                                  "--retry-interval-start=100ms",
                                  "--retry-interval-max=1s",
                                  "--enable-capacity",
                                  "--capacity-namespace=kube-system"};
    argv.insert(argv.end(), more.begin(), more.end());
    controller_ = Start(argv);
  }
  static void Stop(std::optional<event::Process>& process, int signal) {
    if (!process) return;
    EXPECT_TRUE(process->Signal(signal));
    EXPECT_TRUE(process->Wait({}));
    process.reset();
  }

  std::string Kubectl(std::vector<std::string> arguments, const std::string& input = "", bool must = true) {
    const Output output = cluster_->Kubectl(std::move(arguments), input);
    if (must) {
      EXPECT_EQ(output.code, 0) << output.err;
    }
    return output.out;
  }
  void Apply(const std::string& objects) { Kubectl({"apply", "-f", "-"}, objects); }
  std::string Get(const std::string& what, const std::string& path) {
    return Kubectl({"get", what, "-o", "jsonpath=" + path}, "", false);
  }
  bool AwaitBound(const std::string& claim) {
    return Eventually([&] { return Get("pvc/" + claim, "{.status.phase}") == "Bound"; });
  }
  // The claim, and a pod that uses it.
  void Use(const std::string& name) {
    Apply(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":")" + name +
          R"("},"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"local","resources":{"requests":
          {"storage":"64Mi"}}}})");
    Apply(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
        R"("},"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"i","volumeMounts":[{"name":
          "d","mountPath":"/d"}]}],"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":")" +
        name + R"("}}]}})");
  }
  // Files of volumes that the driver has.
  size_t Volumes() {
    size_t out = 0;
    std::error_code failed;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_ + "/data/volumes", failed)) {
      out += entry.is_regular_file() ? 1 : 0;
    }
    return out;
  }

  static constexpr char kObjects[] = R"(
apiVersion: v1
kind: Node
metadata:
  name: node-1
  labels: {kubernetes.io/hostname: node-1, topology.local.csi.keelson.dev/node: node-1}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: node-1}
spec:
  drivers:
  - {name: local.csi.keelson.dev, nodeID: node-1, topologyKeys: [topology.local.csi.keelson.dev/node]}
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: local.csi.keelson.dev}
spec: {attachRequired: false, storageCapacity: true}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: local.csi.keelson.dev
volumeBindingMode: WaitForFirstConsumer
allowVolumeExpansion: true
reclaimPolicy: Delete
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: default}
)";
  std::string dir_;
  std::unique_ptr<TestCluster> cluster_;
  std::optional<event::Process> driver_, controller_;
};

TEST_F(CsiControllerTest, FromClaimToVolumeAndBack) {
  Use("data");
  ASSERT_TRUE(AwaitBound("data"));
  EXPECT_TRUE(Eventually([&] { return Get("pod/data", "{.spec.nodeName}") == "node-1"; }));
  const std::string volume = Get("pvc/data", "{.spec.volumeName}");
  EXPECT_EQ(volume, "pvc-" + Get("pvc/data", "{.metadata.uid}"));
  EXPECT_EQ(Get("pv/" + volume, "{.spec.csi.driver}"), "local.csi.keelson.dev");
  EXPECT_EQ(
      Get("pv/" + volume, "{.spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values[0]}"),
      "node-1");
  EXPECT_GT(Volumes(), 0U);

  EXPECT_EQ(
      Kubectl({"-n", "kube-system", "get", "csistoragecapacities", "-o",
               "jsonpath={.items[*].nodeTopology.matchLabels.topology\\.local\\.csi\\.keelson\\.dev/node}"}),
      "node-1");

  // The driver expands the file; the file system is the kubelet's task.
  Kubectl({"patch", "pvc", "data", "--type=merge", "-p",
           R"({"spec":{"resources":{"requests":{"storage":"128Mi"}}}})"});
  EXPECT_TRUE(Eventually(
      [&] { return Get("pvc/data", "{.status.allocatedResourceStatuses.storage}") == "NodeResizePending"; }));
  EXPECT_EQ(Get("pv/" + volume, "{.spec.capacity.storage}"), "128Mi");

  // A claim that comes while no controller is there.
  Stop(controller_, SIGKILL);
  Use("late");
  StartController();
  EXPECT_TRUE(AwaitBound("late"));

  Kubectl({"delete", "pod/data", "pvc/data", "pod/late", "pvc/late", "--wait=false"});
  EXPECT_TRUE(Eventually([&] { return Kubectl({"get", "pv", "-o", "name"}).empty(); }));
  EXPECT_TRUE(Eventually([&] { return Volumes() == 0; }));
}

TEST_F(CsiControllerTest, OneOfTwoLeads) {
  Stop(controller_, SIGTERM);
  // The lease of external-provisioner: a stock sidecar would wait for it as well.
  const std::vector<std::string> flags{"--leader-election",
                                       "--leader-election-namespace=kube-system",
                                       "--leader-election-lease-duration=4s",
                                       "--leader-election-renew-deadline=3s",
                                       "--leader-election-retry-period=1s",
                                       "--controllers=provisioner"};
  StartController(flags);
  std::optional<event::Process> first = std::exchange(controller_, std::nullopt);
  auto holder = [&] {
    return Kubectl({"-n", "kube-system", "get", "lease", "local.csi.keelson.dev", "-o",
                    "jsonpath={.spec.holderIdentity}"},
                   "", false);
  };
  ASSERT_TRUE(Eventually([&] { return !holder().empty(); }));
  const std::string leader = holder();
  StartController(flags);
  Use("data");
  EXPECT_TRUE(AwaitBound("data"));
  EXPECT_EQ(holder(), leader);
  Stop(first, SIGKILL);
  Use("more");
  EXPECT_TRUE(AwaitBound("more"));
  EXPECT_NE(holder(), leader);
  Kubectl({"delete", "pod/data", "pvc/data", "pod/more", "pvc/more", "--wait=false"});
  EXPECT_TRUE(Eventually([&] { return Kubectl({"get", "pv", "-o", "name"}).empty(); }));
}

}  // namespace
}  // namespace keelson

// Claims on a whole control plane: scheduler and binder, keelson-csi-controller with the rights of its manifest, and
// keelson-csi-local. The node is an object without a kubelet.
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

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
                                  "--leader-election-namespace=kube-system",
                                  "--leader-election-lease-duration=8s",
                                  "--leader-election-renew-deadline=6s",
                                  "--leader-election-retry-period=1s",
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
  void Use(const std::string& name, const std::string& more = "") {
    Apply(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":")" + name +
          R"("},"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"local","resources":{"requests":
          {"storage":"64Mi"}})" +
          more + "}}");
    Apply(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
        R"("},"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"i","volumeMounts":[{"name":
          "d","mountPath":"/d"}]}],"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":")" +
        name + R"("}}]}})");
  }
  // Files below one of the driver's directories.
  std::set<std::filesystem::path> Files(const std::string& kind) {
    std::set<std::filesystem::path> out;
    std::error_code failed;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_ + "/data/" + kind, failed)) {
      if (entry.path().extension() == ".img") out.insert(entry.path());
    }
    return out;
  }
  size_t Volumes() { return Files("volumes").size(); }
  void DefineSnapshots() {
    Apply(*ReadFile(KEELSON_CSI_SNAPSHOT_CRDS));
    Kubectl({"wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"});
    Apply(kSnapshotClasses);
  }
  void TakeSnapshot(const std::string& name, const std::string& source, const std::string& more = "") {
    Apply(R"({"apiVersion":"snapshot.storage.k8s.io/v1","kind":"VolumeSnapshot","metadata":{"name":")" +
          name + R"("},"spec":{"source":{)" + source + "}" + more + "}}");
  }
  bool AwaitSnapshot(const std::string& name) {
    return Eventually([&] { return Get("volumesnapshot/" + name, "{.status.readyToUse}") == "true"; });
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
  static constexpr char kSnapshotClasses[] = R"(
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: brief, annotations: {snapshot.storage.kubernetes.io/is-default-class: "true"}}
driver: local.csi.keelson.dev
deletionPolicy: Delete
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: kept}
driver: local.csi.keelson.dev
deletionPolicy: Retain
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

TEST_F(CsiControllerTest, SnapshotsAreTakenRestoredAndDeleted) {
  Use("data");
  ASSERT_TRUE(AwaitBound("data"));
  // The controllers wait for the definitions.
  DefineSnapshots();
  ASSERT_EQ(Volumes(), 1U);
  const std::filesystem::path source = *Files("volumes").begin();
  constexpr std::string_view kWord = "a word";
  constexpr std::streamoff kPlace = 1 << 20;
  {
    std::fstream file(source, std::ios::in | std::ios::out | std::ios::binary);
    ASSERT_TRUE(file.seekp(kPlace).write(kWord.data(), kWord.size()));
  }
  TakeSnapshot("s", R"("persistentVolumeClaimName":"data")");
  Stop(controller_, SIGKILL);
  StartController();
  ASSERT_TRUE(AwaitSnapshot("s"));
  EXPECT_EQ(Get("volumesnapshot/s", "{.spec.volumeSnapshotClassName} {.status.restoreSize}"), "brief 64Mi");
  const std::string content = Get("volumesnapshot/s", "{.status.boundVolumeSnapshotContentName}");
  EXPECT_EQ(Get("volumesnapshotcontent/" + content,
                "{.metadata.labels.snapshot\\.storage\\.kubernetes\\.io/managed-by}"),
            "node-1");
  EXPECT_EQ(Files("snapshots").size(), 1U);
  const Output changed = cluster_->Kubectl({"patch", "volumesnapshot", "s", "--type=merge", "-p",
                                            R"({"spec":{"source":{"persistentVolumeClaimName":"else"}}})"});
  EXPECT_NE(changed.code, 0);
  EXPECT_NE(changed.err.find("persistentVolumeClaimName is immutable"), std::string::npos) << changed.err;

  Use("copy", R"(,"dataSource":{"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"s"})");
  ASSERT_TRUE(AwaitBound("copy"));
  for (const std::filesystem::path& file : Files("volumes")) {
    std::ifstream copy(file, std::ios::binary);
    std::string word(kWord.size(), '\0');
    EXPECT_TRUE(copy.seekg(kPlace).read(word.data(), static_cast<std::streamsize>(word.size())));
    EXPECT_EQ(word, kWord) << file;
  }

  Kubectl({"delete", "volumesnapshot/s"});
  EXPECT_EQ(Kubectl({"get", "volumesnapshotcontents", "-o", "name"}), "");
  EXPECT_TRUE(Files("snapshots").empty());
  Kubectl({"delete", "pod/data", "pvc/data", "pod/copy", "pvc/copy", "--wait=false"});
  EXPECT_TRUE(Eventually([&] { return Volumes() == 0; }));
}

TEST_F(CsiControllerTest, ARetainedSnapshotIsTakenOver) {
  DefineSnapshots();
  Use("data");
  ASSERT_TRUE(AwaitBound("data"));
  TakeSnapshot("s", R"("persistentVolumeClaimName":"data")", R"(,"volumeSnapshotClassName":"kept")");
  ASSERT_TRUE(AwaitSnapshot("s"));
  const std::string content = Get("volumesnapshot/s", "{.status.boundVolumeSnapshotContentName}");
  const std::string handle = Get("volumesnapshotcontent/" + content, "{.status.snapshotHandle}");
  Kubectl({"delete", "volumesnapshot/s"});
  EXPECT_EQ(Kubectl({"get", "volumesnapshotcontents", "-o", "jsonpath={.items[*].metadata.name}"}), content);
  Kubectl({"delete", "volumesnapshotcontent/" + content});
  EXPECT_EQ(Files("snapshots").size(), 1U);

  Apply(R"({"apiVersion":"snapshot.storage.k8s.io/v1","kind":"VolumeSnapshotContent","metadata":{"name":"old",
      "labels":{"snapshot.storage.kubernetes.io/managed-by":"node-1"}},"spec":{"driver":"local.csi.keelson.dev",
      "deletionPolicy":"Delete","source":{"snapshotHandle":")" +
        handle + R"("},"volumeSnapshotRef":{"name":"t","namespace":"default"}}})");
  TakeSnapshot("t", R"("volumeSnapshotContentName":"old")");
  ASSERT_TRUE(AwaitSnapshot("t"));
  Kubectl({"delete", "volumesnapshot/t"});
  EXPECT_EQ(Kubectl({"get", "volumesnapshotcontents", "-o", "name"}), "");
  EXPECT_TRUE(Files("snapshots").empty());
  Kubectl({"delete", "pod/data", "pvc/data", "--wait=false"});
  EXPECT_TRUE(Eventually([&] { return Volumes() == 0; }));
}

TEST_F(CsiControllerTest, OneOfTwoLeads) {
  Stop(controller_, SIGTERM);
  // The lease of external-provisioner: a stock sidecar would wait for it as well.
  const std::vector<std::string> flags{"--leader-election", "--controllers=provisioner"};
  StartController(flags);
  std::optional<event::Process> first = std::exchange(controller_, std::nullopt);
  auto holder = [&] {
    return Kubectl({"-n", "kube-system", "get", "lease", "local-csi-keelson-dev", "-o",
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

#include "kubelet/volume/testing/volume_test.h"

namespace keelson::kubelet {
namespace {

class ClaimTest : public VolumeTest {
 protected:
  // Claim n/c, bound to the volume pv-1 with this source.
  void Bind(const std::string& source, const std::string& more = "") {
    objects_.Put<corev1::PersistentVolumeClaim>(
        R"({"metadata":{"name":"c","namespace":"n","uid":"claim-uid"},"spec":{"volumeName":"pv-1",
            "resources":{"requests":{"storage":"2Gi"}}},"status":{"phase":"Bound",
            "capacity":{"storage":"1Gi"}}})");
    objects_.Put<corev1::PersistentVolume>(
        R"({"metadata":{"name":"pv-1"},"spec":{"claimRef":{"uid":"claim-uid"},"capacity":{"storage":"2Gi"},)" +
        source + more + "}}");
  }
  corev1::Pod Claiming(const std::string& uid = "u") {
    return PodWith(R"({"name":"v","persistentVolumeClaim":{"claimName":"c"}})", uid);
  }
};

constexpr char kPending[] =
    "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process "
    "volumes=[v]: error processing PVC n/c: ";

TEST_F(ClaimTest, WaitsUntilBound) {
  struct Case {
    const char *claim, *volume, *problem;
  };
  for (const Case& c : {
           Case{"", "", "failed to fetch PVC from API server: \"c\" not found"},
           {R"({"status":{"phase":"Pending"})", "", "PVC is not bound"},
           {R"({"spec":{"volumeName":"pv-1"},"status":{"phase":"Pending"})", "", "PVC is not bound"},
           {R"({"spec":{"volumeName":"pv-1"},"status":{"phase":"Bound"})", "",
            "failed to fetch PV pv-1 from API server: \"pv-1\" not found"},
           {R"({"spec":{"volumeName":"pv-1"},"status":{"phase":"Bound"})", "{}",
            "found PV object pv-1 but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the "
            "claim"},
           {R"({"spec":{"volumeName":"pv-1"},"status":{"phase":"Bound"})", R"({"claimRef":{"uid":"other"}})",
            "found PV object pv-1 but its pv.Spec.ClaimRef.UID other does not point to claim.UID mine"},
       }) {
    if (*c.claim) {
      objects_.Put<corev1::PersistentVolumeClaim>(
          std::string(c.claim) + R"(,"metadata":{"name":"c","namespace":"n","uid":"mine"}})");
    }
    if (*c.volume) {
      objects_.Put<corev1::PersistentVolume>(R"({"metadata":{"name":"pv-1"},"spec":)" +
                                             std::string(c.volume) + "}");
    }
    EXPECT_EQ(Problem(Claiming()), std::string(kPending) + c.problem);
  }
}

TEST_F(ClaimTest, EphemeralClaimIsThePodsOwn) {
  const char* claim = R"({"metadata":{"name":"p-v","namespace":"n","uid":"mine",
      "ownerReferences":[{"uid":"%","controller":true}]},"spec":{"volumeName":"pv-1"},"status":{"phase":"Bound"}})";
  objects_.Put<corev1::PersistentVolume>(
      R"({"metadata":{"name":"pv-1"},"spec":{"claimRef":{"uid":"mine"},"hostPath":{"path":"/srv"}}})");
  corev1::Pod pod = PodWith(R"({"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{}}}})");
  std::string text = claim;
  size_t owner = text.find('%');
  objects_.Put<corev1::PersistentVolumeClaim>(std::string(text).replace(owner, 1, "stranger"));
  EXPECT_NE(Problem(pod).find("PVC n/p-v was not created for pod n/p (pod is not owner)"), std::string::npos);
  objects_.Put<corev1::PersistentVolumeClaim>(text.replace(owner, 1, "u"));
  EXPECT_EQ(Problem(pod), "");
}

TEST_F(ClaimTest, SourcesBehindClaims) {
  ASSERT_TRUE(MakeDirs(dir_ + "/disk"));
  struct Case {
    std::string source, plugin, mounted;
  };
  for (const Case& c : {
           Case{R"("local":{"path":")" + dir_ + "/disk\"}", "kubernetes.io/local-volume", dir_ + "/disk"},
           {R"("nfs":{"server":"s","path":"/x"},"mountOptions":["hard","nfsvers=4.1"])", "kubernetes.io/nfs",
            "nfs s:/x hard nfsvers=4.1"},
       }) {
    Bind(c.source);
    ASSERT_EQ(Problem(Claiming()), "");
    EXPECT_EQ(mounter_.mounts[VolumeDir(c.plugin, "pv-1")], c.mounted) << "under the volume's own name";
    ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
    EXPECT_FALSE(PathExists(node_.paths.Pod("u")));
    EXPECT_TRUE(PathExists(dir_ + "/disk"));
  }
  Bind(R"("hostPath":{"path":"/srv/data"})");
  auto paths = manager_->Mount(Claiming(), node_, {});
  ASSERT_TRUE(paths);
  EXPECT_EQ(paths->at("v").path, "/srv/data");
  EXPECT_FALSE(paths->at("v").selinux_relabel);
}

TEST_F(ClaimTest, WhatCannotBeMounted) {
  auto node = std::make_shared<corev1::Node>();
  (*node->mutable_metadata()->mutable_labels())["disk"] = "a";
  node_object_ = node;
  struct Case {
    const char *source, *problem;
  };
  for (const Case& c : {
           Case{R"("hostPath":{"path":"/x"},"nodeAffinity":{"required":{"nodeSelectorTerms":[
             {"matchExpressions":[{"key":"disk","operator":"In","values":["b"]}]}]}})",
                "MountVolume.NodeAffinity check failed for volume \"pv-1\" : no matching NodeSelectorTerms"},
           {R"("hostPath":{"path":"/x"},"nodeAffinity":{"required":{"nodeSelectorTerms":[
             {"matchExpressions":[{"key":"disk","operator":"In","values":["a"]}]}]}})",
            ""},
           {R"("hostPath":{"path":"/x"},"volumeMode":"Block")",
            "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to "
            "process "
            "volumes=[v]: volume v has volumeMode Block, but is specified in volumeMounts"},
           {R"("hostPath":{"path":"/x"},"mountOptions":["ro"])",
            "MountVolume.MountOptionSupport check failed for volume \"pv-1\" : Mount options are not "
            "supported "
            "for this volume type"},
           {R"("flocker":{"datasetName":"x"})",
            "MountVolume.SetUp failed for volume \"pv-1\" : no volume plugin matched"},
       }) {
    Bind(c.source);
    EXPECT_EQ(Problem(Claiming()), c.problem) << c.source;
  }
}

TEST_F(ClaimTest, OnePodAtATimeWhereTheVolumeSaysSo) {
  Bind(R"("hostPath":{"path":"/srv"},"accessModes":["ReadWriteOncePod"])");
  for (const char* when : {"first", "again"}) EXPECT_EQ(Problem(Claiming("one")), "") << when;
  EXPECT_EQ(
      Problem(Claiming("two")),
      "MountVolume.SetUp failed for volume \"pv-1\" : volume uses the ReadWriteOncePod access mode and is "
      "already in use by another pod");
  ASSERT_TRUE(manager_->Remove(node_.paths, "one"));
  EXPECT_EQ(Problem(Claiming("two")), "");
  Bind(R"("hostPath":{"path":"/srv"},"accessModes":["ReadWriteOnce"])");
  EXPECT_EQ(Problem(Claiming("three")), "");
}

TEST_F(ClaimTest, ContainersJoinTheVolumesGroup) {
  Bind(R"("hostPath":{"path":"/srv"})");
  struct Case {
    const char* annotations;
    std::optional<int64_t> group;
  };
  for (const Case& c : {Case{"{}", std::nullopt},
                        {R"({"pv.beta.kubernetes.io/gid":"777"})", 777},
                        {R"({"pv.beta.kubernetes.io/gid":"777 "})", std::nullopt},
                        {R"({"pv.beta.kubernetes.io/gid":"staff"})", std::nullopt},
                        {R"({"pv.beta.kubernetes.io/gid":""})", std::nullopt}}) {
    objects_.Put<corev1::PersistentVolume>(
        R"({"metadata":{"name":"pv-1","annotations":)" + std::string(c.annotations) +
        R"(},"spec":{"claimRef":{"uid":"claim-uid"},"hostPath":{"path":"/srv"}}})");
    auto paths = manager_->Mount(Claiming(), node_, {});
    ASSERT_TRUE(paths) << paths.error().message();
    EXPECT_EQ(paths->at("v").group, c.group) << c.annotations;
  }
}

// A volume that is attached, staged once a node and published to each pod; files tell what was done.
class Disk : public VolumePlugin {
 public:
  Disk(std::string dir, std::vector<std::string>& calls) : dir_(std::move(dir)), calls_(calls) {}
  std::string name() const override { return "example.com/disk"; }
  bool Supports(const VolumeInput& input) const override { return input.persistent != nullptr; }
  std::string AttachName(const VolumeInput& input) const override { return name() + "/" + input.name(); }
  std::string StagePath(const VolumeInput& input) const override { return dir_ + "/stage/" + input.name(); }
  Result<> Stage(const VolumeInput& input, std::stop_token) override {
    if (PathExists(StagePath(input))) return {};
    calls_.push_back("stage " + input.device);
    return MakeDirs(StagePath(input));
  }
  Result<std::string> SetUp(const VolumeInput& input, std::stop_token) override {
    calls_.push_back("publish " + input.pod.metadata().uid());
    return input.node.paths.Volume(input.pod.metadata().uid(), name(), input.name());
  }
  Result<> Expand(const VolumeInput&, const std::string&, std::stop_token) override {
    calls_.push_back("expand");
    return {};
  }
  std::string Reconstruct(const Paths&, const PublishedVolume& published) const override {
    return dir_ + "/stage/" + published.name;
  }
  Result<> TearDown(const PublishedVolume& published, std::stop_token) override {
    calls_.push_back("unpublish " + published.uid);
    return {};
  }
  Result<> Unstage(const std::string& path, std::stop_token) override {
    calls_.push_back("unstage");
    return RemoveTree(path);
  }

 private:
  const std::string dir_;
  std::vector<std::string>& calls_;
};

TEST_F(ClaimTest, StagedOnceAndUnstagedByTheLastAlsoAfterARestart) {
  std::vector<std::string> calls;
  auto restart = [&] {
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::make_unique<Disk>(dir_, calls));
    Use(std::move(plugins));
  };
  restart();
  Bind(R"("hostPath":{"path":"/x"})");
  EXPECT_EQ(Problem(Claiming()), "Volume not attached according to node status for volume \"pv-1\"");
  EXPECT_EQ(manager_->VolumesInUse(), std::vector<std::string>{"example.com/disk/pv-1"});
  auto node = std::make_shared<corev1::Node>();
  node->mutable_status()->add_volumes_in_use("example.com/disk/pv-1");
  auto* attached = node->mutable_status()->add_volumes_attached();
  attached->set_name("example.com/disk/pv-1");
  attached->set_device_path("/dev/x");
  node_object_ = node;
  EXPECT_EQ(Problem(Claiming("one")), "");
  EXPECT_EQ(Problem(Claiming("two")), "");
  EXPECT_EQ(objects_.expanded.size(), 1u) << "the claim's status says so now";
  restart();
  ASSERT_TRUE(manager_->Remove(node_.paths, "one"));
  ASSERT_TRUE(manager_->Remove(node_.paths, "two"));
  EXPECT_EQ(calls, (std::vector<std::string>{"stage /dev/x", "publish one", "expand", "publish two",
                                             "unpublish one", "unpublish two", "unstage"}));
}

}  // namespace
}  // namespace keelson::kubelet

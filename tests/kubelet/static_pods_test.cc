#include "kubelet/testing/kubelet_test.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {
namespace {

class StaticPodTest : public KubeletTest {
 protected:
  void SetUp() override {
    KubeletTest::SetUp();
    manifests_ = dir_ + "/manifests";
    ASSERT_TRUE(MakeDirs(manifests_));
    harness_->settings().config.static_pod_path = manifests_;
  }
  void Write(const std::string& container) {
    ASSERT_TRUE(WriteFileAtomic(
        manifests_ + "/web.yaml",
        "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: " + container +
            ", image: 'img:1'}]}}"));
  }
  std::string manifests_;
};

constexpr char kMirror[] = "web-node-under-test";

TEST_F(StaticPodTest, RunsAndIsMirrored) {
  Write("main");
  harness_->Start();
  ASSERT_TRUE(harness_->Await(kMirror, IsPodReady));
  corev1::Pod mirror = harness_->Get(kMirror);
  EXPECT_TRUE(k8s::IsMirror(mirror));
  EXPECT_EQ(mirror.metadata().owner_references(0).name(), "node-under-test");
  EXPECT_EQ(mirror.status().container_statuses(0).name(), "main");
  // The mirror is a picture only: its end does not end the pod.
  const std::string uid = mirror.metadata().uid();
  harness_->Delete(kMirror, 0);
  ASSERT_TRUE(harness_->Await(
      kMirror, [&](const corev1::Pod* pod) { return IsPodReady(pod) && pod->metadata().uid() != uid; }));
  EXPECT_EQ(runtime_.Count("StopContainer main"), 0u);
  // Another manifest is another pod.
  Write("other");
  ASSERT_TRUE(harness_->Await(kMirror, [](const corev1::Pod* pod) {
    return IsPodReady(pod) && pod->status().container_statuses(0).name() == "other";
  }));
  EXPECT_EQ(runtime_.Count("StopContainer main"), 1u);
  ASSERT_TRUE(RemoveFile(manifests_ + "/web.yaml"));
  ASSERT_TRUE(harness_->Await(kMirror, [](const corev1::Pod* pod) { return pod == nullptr; }));
}

TEST_F(StaticPodTest, NeedsNoApiServer) {
  Write("main");
  harness_->Start(true);
  runtime_.Await([&] { return runtime_.Count("StartContainer main") > 0; });
  ASSERT_TRUE(RemoveFile(manifests_ + "/web.yaml"));
  runtime_.Await([&] { return runtime_.Count("RemovePodSandbox web-node-under-test") > 0; });
}

}  // namespace
}  // namespace keelson::kubelet

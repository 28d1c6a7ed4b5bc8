// A whole kubelet with a CSI driver: from the registration to the pod that has gone.
#include <gmock/gmock.h>

#include <thread>

#include "kubelet/testing/kubelet_test.h"
#include "kubelet/volume/csi/testing/fake_driver.h"
#include "lib/api/codec/codec.h"
#include "lib/api/proto/storage_v1.pb.h"

namespace keelson::kubelet {
namespace {

namespace storagev1 = api::storage::v1;

constexpr char kNode[] = "node-under-test", kAttached[] = "kubernetes.io/csi/disk.example.com^vol-1";

class CsiPodTest : public KubeletTest {
 protected:
  void SetUp() override {
    KubeletTest::SetUp();
    ASSERT_TRUE(MakeDirs(dir_ + "/kubelet/plugins_registry"));
    driver_ = std::make_unique<csi::FakeDriver>(dir_ + "/csi.sock");
    driver_->SetInfo("id-1", 5, {{"example.com/zone", "a"}});
    driver_->SetCapabilities({"STAGE_UNSTAGE_VOLUME"});
    driver_->RegisterAt(dir_ + "/kubelet/plugins_registry/disk-reg.sock");
    harness_->ManageResources();
    Put<storagev1::CSIDriver>(R"({"metadata":{"name":"disk.example.com"},"spec":{"attachRequired":true,
        "fsGroupPolicy":"None","volumeLifecycleModes":["Persistent"]}})");
    Put<corev1::PersistentVolume>(R"({"metadata":{"name":"pv-1"},"spec":{"capacity":{"storage":"1Gi"},
        "accessModes":["ReadWriteOnce"],"claimRef":{"uid":"cu"},
        "csi":{"driver":"disk.example.com","volumeHandle":"vol-1"}}})");
    Put<corev1::PersistentVolumeClaim>(R"({"metadata":{"name":"c","namespace":"default","uid":"cu"},
        "spec":{"volumeName":"pv-1"},"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}})");
  }
  void TearDown() override {
    EXPECT_THAT(driver_->Violations(), ::testing::IsEmpty());
    KubeletTest::TearDown();
    driver_.reset();
  }

  template <typename T>
  void Put(const std::string& json) {
    T object;
    ASSERT_TRUE(api::DecodeJson(json, object));
    harness_->fake_api().Put(object);
  }
  // Reads the node until its status has the volume in use, or has it no more.
  void AwaitInUse(bool wanted) {
    while (true) {
      const corev1::Node node = *harness_->api().Get<corev1::Node>("", kNode);
      const auto& in_use = node.status().volumes_in_use();
      if ((std::find(in_use.begin(), in_use.end(), kAttached) != in_use.end()) == wanted) return;
      std::this_thread::yield();
    }
  }
  void AwaitRegistered() {
    while (true) {
      auto object = harness_->api().Get<storagev1::CSINode>("", kNode);
      if (object && object->spec().drivers_size() == 1) return;
      std::this_thread::yield();
    }
  }
  // As the attach-detach controller and the driver's attacher do.
  void Attach() {
    Put<storagev1::VolumeAttachment>(R"({"metadata":{"name":"csi-)" + kAttachment +
                                     R"("},"spec":{"attacher":"disk.example.com","nodeName":"node-under-test",
        "source":{"persistentVolumeName":"pv-1"}},"status":{"attached":true,"attachmentMetadata":{"lun":"7"}}})");
    auto stored = client::UpdateWithRetry<corev1::Node>(
        harness_->api(), "", kNode, "status", [](corev1::Node& node) -> Result<bool> {
          node.mutable_status()->add_volumes_attached()->set_name(kAttached);
          return true;
        });
    ASSERT_TRUE(stored) << stored.error().message();
  }
  void CreatePod() {
    harness_->Create(R"({"metadata":{"name":"web"},"spec":{"containers":[{"name":"main","image":"img:1",
        "volumeMounts":[{"name":"data","mountPath":"/data"}]}],
        "volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"c"}}]}})");
  }
  void DeletePod() {
    harness_->Delete("web", 1);
    ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* pod) { return pod == nullptr; }));
  }

  // printf 'vol-1disk.example.comnode-under-test' | sha256sum
  const std::string kAttachment = "c584f31270825721edd848007095561b188357f00437754dd2d413999bdbdf7c";
  std::unique_ptr<csi::FakeDriver> driver_;
};

TEST_F(CsiPodTest, FromTheRegistrationToTheLastUnmount) {
  harness_->Start();
  AwaitRegistered();
  const corev1::Node node = *harness_->api().Get<corev1::Node>("", kNode);
  EXPECT_EQ(node.metadata().labels().at("example.com/zone"), "a");
  CreatePod();
  AwaitInUse(true);
  EXPECT_THAT(driver_->Calls(), ::testing::IsEmpty()) << "it is not attached";
  Attach();
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  EXPECT_EQ(driver_->Staged().size(), 1u);
  EXPECT_EQ(driver_->Published().size(), 1u);
  EXPECT_THAT(driver_->LastRequest("NodePublishVolume"),
              ::testing::HasSubstr("publish_context { key: \"lun\" value: \"7\" }"));
  DeletePod();
  AwaitInUse(false);
  EXPECT_THAT(driver_->Staged(), ::testing::IsEmpty());
  EXPECT_THAT(driver_->Published(), ::testing::IsEmpty());
}

TEST_F(CsiPodTest, ARestartKeepsTheVolume) {
  harness_->Start();
  CreatePod();
  AwaitInUse(true);
  Attach();
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  harness_->Stop();
  harness_->Start();
  AwaitInUse(true);
  EXPECT_EQ(driver_->Staged().size(), 1u);
  DeletePod();
  AwaitInUse(false);
  EXPECT_THAT(driver_->Staged(), ::testing::IsEmpty());
  EXPECT_THAT(driver_->Published(), ::testing::IsEmpty());
}

TEST_F(CsiPodTest, APodGoesElsewhereWhenTheNodeTakesNoMoreVolumes) {
  Put<storagev1::CSIDriver>(R"({"metadata":{"name":"disk.example.com"},"spec":{"attachRequired":true,
      "fsGroupPolicy":"None","volumeLifecycleModes":["Persistent"],"nodeAllocatableUpdatePeriodSeconds":3600}})");
  Put<storagev1::VolumeAttachment>(R"({"metadata":{"name":"csi-)" + kAttachment +
                                   R"("},"spec":{"attacher":"disk.example.com","nodeName":"node-under-test",
      "source":{"persistentVolumeName":"pv-1"}},"status":{"attachError":{"message":"full","errorCode":8}}})");
  harness_->Start();
  AwaitRegistered();
  driver_->SetInfo("id-1", 3, {{"example.com/zone", "a"}});
  CreatePod();
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* pod) {
    return pod && pod->status().phase() == "Failed" &&
           pod->status().reason() == "VolumeAttachmentLimitExceeded";
  }));
  while (harness_->api().Get<storagev1::CSINode>("", kNode)->spec().drivers(0).allocatable().count() != 3) {
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace keelson::kubelet

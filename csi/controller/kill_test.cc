// Controllers that end between any two writes: the next ones finish the work, and nothing is left over.
#include <gmock/gmock.h>

#include "csi/controller/attacher/attacher.h"
#include "csi/controller/provisioner/deleter.h"
#include "csi/controller/provisioner/provisioner.h"
#include "csi/controller/resizer/resizer.h"
#include "csi/controller/testing/controller_test.h"

namespace keelson::csi::controller {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class ControllerKillTest : public ControllerTest {
 protected:
  void SetUp() override {
    ControllerTest::SetUp();
    driver_->SetCapabilities({"CREATE_DELETE_VOLUME", "PUBLISH_UNPUBLISH_VOLUME", "EXPAND_VOLUME"});
    Put<storagev1::StorageClass>(
        R"({"metadata":{"name":"fast"},"provisioner":"disk.example.com","volumeBindingMode":"Immediate"})");
    Put<storagev1::CSINode>(
        R"({"metadata":{"name":"n1"},"spec":{"drivers":[{"name":"disk.example.com","nodeID":"id-n1"}]}})");
  }
  void TearDown() override {
    fake_->SetInterceptor(nullptr);
    ControllerTest::TearDown();
  }
  void Start() {
    StartControllers([&](const Environment& environment) {
      controllers_.push_back(std::make_unique<Provisioner>(environment, ProvisionerOptions{}));
      controllers_.push_back(std::make_unique<Deleter>(environment));
      controllers_.push_back(std::make_unique<Attacher>(environment, "ext4"));
      controllers_.push_back(std::make_unique<AttachedVolumes>(environment));
      controllers_.push_back(std::make_unique<Resizer>(environment));
    });
  }
  bool CutAfter(int writes, const std::function<bool()>& done) {
    return ControllerTest::CutAfter([&] { Start(); }, writes, done);
  }
};

TEST_F(ControllerKillTest, LifeOfAVolume) {
  bool cut = true;
  for (int writes = 0; cut; ++writes) {
    SCOPED_TRACE(writes);
    ASSERT_LT(writes, 20);
    cut = false;
    const std::string name = "data-" + std::to_string(writes), volume = "pvc-uid-" + name;
    Put<Claim>(
        R"({"metadata":{"name":")" + name + R"(","namespace":"default","uid":"uid-)" + name +
        R"(","annotations":{"volume.kubernetes.io/storage-provisioner":"disk.example.com"}},"spec":{"accessModes":
        ["ReadWriteOnce"],"volumeMode":"Block","storageClassName":"fast","resources":{"requests":{"storage":"1Gi"}}},
        "status":{"phase":"Pending"}})");
    cut |= CutAfter(writes, [&] { return Get<Volume>("", volume).has_value(); });
    EXPECT_THAT(driver_->Volumes(), SizeIs(1));

    // What the binder does; then the claim asks for more.
    Volume bound = *Get<Volume>("", volume);
    bound.mutable_status()->set_phase("Bound");
    fake_->Put(bound);
    Claim claim = *Get<Claim>("default", name);
    claim.mutable_spec()->set_volume_name(volume);
    claim.mutable_status()->set_phase("Bound");
    (*claim.mutable_status()->mutable_capacity())["storage"].set_string("1Gi");
    (*claim.mutable_spec()->mutable_resources()->mutable_requests())["storage"].set_string("2Gi");
    fake_->Put(claim);
    cut |= CutAfter(writes, [&] {
      return StorageOf(Get<Claim>("default", name)->status().capacity()).ToString() == "2Gi";
    });
    EXPECT_EQ(driver_->Volumes().begin()->second, int64_t{2} << 30);

    Put<VolumeAttachment>(
        R"({"metadata":{"name":"a","uid":"u)" + name +
        R"("},"spec":{"attacher":"disk.example.com","nodeName":"n1","source":{"persistentVolumeName":")" +
        volume + R"("}}})");
    cut |= CutAfter(writes, [&] { return Get<VolumeAttachment>("", "a")->status().attached(); });
    EXPECT_THAT(driver_->Published(), SizeIs(1));

    ASSERT_TRUE(api_.Delete<VolumeAttachment>("", "a"));
    ASSERT_TRUE(api_.Delete<Claim>("default", name));
    bound = *Get<Volume>("", volume);
    bound.mutable_status()->set_phase("Released");
    fake_->Put(bound);
    cut |= CutAfter(writes, [&] { return !Get<VolumeAttachment>("", "a") && !Get<Volume>("", volume); });
    EXPECT_THAT(driver_->Published(), IsEmpty());
    EXPECT_THAT(driver_->Volumes(), IsEmpty());
  }
}

}  // namespace
}  // namespace keelson::csi::controller

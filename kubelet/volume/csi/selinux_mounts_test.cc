// SELinux labels of CSI volumes, from pods to drivers.
#include <gmock/gmock.h>

#include "kubelet/volume/csi/testing/csi_test.h"

namespace keelson::kubelet::csi {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SeLinuxMountsTest : public CsiTest {
 protected:
  void SetUp() override {
    selinux_ = {SeLinuxLabels("system_u:object_r:container_file_t:s0"), true};
    CsiTest::SetUp();
    Driver(true);
  }
  void Driver(bool takes) {
    DriverObject(
        std::string(
            R"("attachRequired":false,"fsGroupPolicy":"File","volumeLifecycleModes":["Persistent"],)") +
        R"("seLinuxMount":)" + (takes ? "true" : "false"));
  }
  corev1::Pod Labelled(const std::string& uid, const std::string& level) {
    corev1::Pod pod = Claiming(uid);
    pod.mutable_spec()->mutable_security_context()->mutable_se_linux_options()->set_level(level);
    return pod;
  }
};

TEST_F(SeLinuxMountsTest, TheVolumeIsMountedWithThePodsLabel) {
  Bind("", R"(,"accessModes":["ReadWriteOnce"],"mountOptions":["noatime"])");
  auto paths = manager_->Mount(Labelled("u", "s0:c1,c2"), node_, {});
  ASSERT_TRUE(paths) << paths.error().message();
  EXPECT_FALSE(paths->at("v").selinux_relabel);
  for (const char* method : {"NodeStageVolume", "NodePublishVolume"}) {
    EXPECT_THAT(
        driver_->LastRequest(method),
        HasSubstr(
            R"(mount_flags: "noatime" mount_flags: "context=\"system_u:object_r:container_file_t:s0:c1,c2\"")"));
  }
  constexpr char kRecord[] = R"("seLinuxMountContext":"system_u:object_r:container_file_t:s0:c1,c2")";
  EXPECT_THAT(*ReadFile(VolumeDir(kPluginName, "pv-1") + "/vol_data.json"), HasSubstr(kRecord));
  EXPECT_THAT(*ReadFile(Staging() + "/../vol_data.json"), HasSubstr(kRecord));
}

TEST_F(SeLinuxMountsTest, DriversThatDoNotTakeALabelGetNone) {
  Driver(false);
  auto paths = manager_->Mount(Labelled("u", "s0:c1,c2"), node_, {});
  ASSERT_TRUE(paths);
  EXPECT_TRUE(paths->at("v").selinux_relabel);
  EXPECT_THAT(driver_->LastRequest("NodeStageVolume"), Not(HasSubstr("context=")));
}

TEST_F(SeLinuxMountsTest, AnotherLabelWaitsUntilThePodBeforeHasGone) {
  ASSERT_EQ(Problem(Labelled("one", "s0:c1,c2")), "");
  EXPECT_THAT(Problem(Labelled("two", "s0:c3,c4")), HasSubstr("conflicting SELinux labels of volume pv-1"));
  // This kubelet has not seen the first pod, whose volume is still there.
  Restart();
  EXPECT_THAT(
      Problem(Labelled("two", "s0:c3,c4")),
      HasSubstr(
          "the volume is mounted with the SELinux label \"system_u:object_r:container_file_t:s0:c1,c2\""));
  ASSERT_TRUE(Remove("one"));
  EXPECT_EQ(Problem(Labelled("two", "s0:c3,c4")), "");
  EXPECT_THAT(driver_->LastRequest("NodeStageVolume"), HasSubstr("s0:c3,c4"));
}

TEST_F(SeLinuxMountsTest, APodKeepsTheLabelThatItsVolumeHas) {
  Driver(false);
  ASSERT_EQ(Problem(Labelled("u", "s0:c1,c2")), "");
  Driver(true);
  Restart();
  EXPECT_EQ(Problem(Labelled("u", "s0:c1,c2")), "");
  EXPECT_THAT(driver_->LastRequest("NodeStageVolume"), Not(HasSubstr("context=")));
}

}  // namespace
}  // namespace keelson::kubelet::csi

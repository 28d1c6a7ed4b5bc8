// A kubelet is killed and another one goes on: what was staged and published is found by files alone.
#include <gmock/gmock.h>

#include "kubelet/volume/csi/testing/csi_test.h"

namespace keelson::kubelet::csi {
namespace {

constexpr int kUnavailable = 14;

class CsiRestartTest : public CsiTest {};

TEST_F(CsiRestartTest, PodsKeepTheirVolumes) {
  ASSERT_EQ(Problem(Claiming("one")), "");
  ASSERT_EQ(Problem(Claiming("two")), "");
  driver_->Calls();
  Restart();
  EXPECT_EQ(manager_->VolumesInUse(), Strings{kAttached}) << "not to be detached meanwhile";
  ASSERT_EQ(Problem(Claiming("one")), "");
  ASSERT_EQ(Problem(Claiming("one")), "");
  EXPECT_EQ(driver_->Calls(), (Strings{"stage vol-1", "publish vol-1 one"})) << "each once more";
  ASSERT_TRUE(Remove("two"));
  ASSERT_TRUE(Remove("one"));
  EXPECT_EQ(driver_->Calls(), (Strings{"unpublish vol-1 two", "unpublish vol-1 one", "unstage vol-1"}));
}

TEST_F(CsiRestartTest, PodsThatHaveGoneMeanwhileAreCleanedUp) {
  const std::string handle = EphemeralHandle("w", "v");
  ASSERT_EQ(Problem(Claiming("u")), "");
  ASSERT_EQ(Problem(Inline("", "w")), "");
  Restart();
  objects_.Map<corev1::PersistentVolume>().clear();
  objects_.Map<api::storage::v1::CSIDriver>().clear();
  driver_->Calls();
  ASSERT_TRUE(Remove("u"));
  ASSERT_TRUE(Remove("w"));
  EXPECT_EQ(driver_->Calls(), (Strings{"unpublish vol-1 u", "unstage vol-1", "unpublish " + handle + " w"}));
  EXPECT_EQ(ListDir(node_.paths.Pods())->size(), 0u);
  EXPECT_TRUE(manager_->VolumesInUse().empty());
}

// Fails right after the driver's work: to disk that is the same as a kill at this moment.
TEST_F(CsiRestartTest, EachCallMayBeTheLastOfAKubelet) {
  for (const char* method : {"NodeStageVolume", "NodePublishVolume"}) {
    for (const bool goes_on : {false, true}) {
      SCOPED_TRACE(method);
      driver_->Fail(method, kUnavailable, "killed", 1, true);
      EXPECT_NE(Problem(Claiming()), "");
      Restart();
      if (goes_on) {
        ASSERT_EQ(Problem(Claiming()), "");
      }
      ASSERT_TRUE(Remove());
      EXPECT_TRUE(driver_->Staged().empty());
      EXPECT_TRUE(driver_->Published().empty());
      EXPECT_FALSE(PathExists(node_.paths.Pod("u")));
    }
  }
  for (const char* method : {"NodeUnpublishVolume", "NodeUnstageVolume"}) {
    SCOPED_TRACE(method);
    ASSERT_EQ(Problem(Claiming()), "");
    driver_->Fail(method, kUnavailable, "killed", 1, true);
    EXPECT_FALSE(Remove());
    Restart();
    ASSERT_TRUE(Remove());
    EXPECT_TRUE(driver_->Staged().empty());
    EXPECT_TRUE(driver_->Published().empty());
    EXPECT_FALSE(PathExists(node_.paths.Pod("u")));
    EXPECT_EQ(ListDir(dir_ + "/plugins/kubernetes.io/csi/disk.example.com")->size(), 0u);
  }
}

// Before the first record there is nothing to undo.
TEST_F(CsiRestartTest, ADirectoryWithoutARecordIsRemoved) {
  ASSERT_TRUE(MakeDirs(VolumeDir(kPluginName, "pv-1")));
  ASSERT_TRUE(MakeDirs(Staging()));
  ASSERT_TRUE(Remove());
  EXPECT_TRUE(driver_->Calls().empty());
  EXPECT_FALSE(PathExists(node_.paths.Pod("u")));
}

TEST_F(CsiRestartTest, ARecordThatCannotBeReadIsNotPassedOver) {
  ASSERT_EQ(Problem(Claiming()), "");
  ASSERT_TRUE(WriteFile(VolumeDir(kPluginName, "pv-1") + "/vol_data.json", "{\"driverName\":"));
  Restart();
  auto removed = Remove();
  ASSERT_FALSE(removed);
  EXPECT_THAT(removed.error().message(), ::testing::HasSubstr("failed to parse volume data file"));
  EXPECT_TRUE(PathExists(Target()));
}

}  // namespace
}  // namespace keelson::kubelet::csi

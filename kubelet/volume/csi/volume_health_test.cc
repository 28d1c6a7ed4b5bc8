// What drivers say of a volume's condition reaches its pods.
#include <gmock/gmock.h>

#include "kubelet/volume/csi/testing/csi_test.h"
#include "kubelet/volume/volume_meter.h"

namespace keelson::kubelet::csi {
namespace {

class VolumeHealthTest : public CsiTest {};

TEST_F(VolumeHealthTest, AVolumeThatIsNotInOrderIsTold) {
  driver_->SetCapabilities({"STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS", "VOLUME_CONDITION"});
  ASSERT_EQ(Problem(Claiming()), "");
  Strings told;
  VolumeMeter meter(*manager_, node_.paths,
                    [&](const std::string& uid, const std::string& volume, const std::string& condition) {
                      told.push_back(uid + " " + volume + ": " + condition);
                    });
  const std::string path = manager_->volumes().All().at(0).Directory();
  const VolumeMeter::Measure measure = meter.function();
  driver_->SetUsage({100, 60, 40}, {10, 7, 3});
  ASSERT_TRUE(*measure(path));
  EXPECT_TRUE(told.empty());
  driver_->SetUsage({100, 60, 40}, {10, 7, 3}, "the disk is full");
  ASSERT_TRUE(*measure(path));
  EXPECT_EQ(told, Strings{"u v: the disk is full"});
  driver_->SetCapabilities({"STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS"});
  ASSERT_TRUE(*measure(path));
  EXPECT_EQ(told.size(), 1u) << "the driver does not say that it knows";
}

}  // namespace
}  // namespace keelson::kubelet::csi

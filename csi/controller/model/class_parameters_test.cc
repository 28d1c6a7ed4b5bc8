#include "csi/controller/model/class_parameters.h"

#include <gmock/gmock.h>

namespace keelson::csi::controller {
namespace {

using ::testing::HasSubstr;

TEST(ClassParametersTest, KeepsWhatIsTheDrivers) {
  Strings in;
  in["pool"] = "p";
  in["csi.storage.k8s.io/fstype"] = "xfs";
  in["csi.storage.k8s.io/provisioner-secret-name"] = "n";
  in["csiProvisionerSecretName"] = "n";
  const auto read = ReadClassParameters(in, "ext4");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->fs_type, "xfs");
  EXPECT_EQ(read->driver.size(), 2U);
  EXPECT_EQ(read->driver.count("csiProvisionerSecretName"), 1U);
}

TEST(ClassParametersTest, FileSystem) {
  Strings in;
  EXPECT_EQ(ReadClassParameters(in, "ext4")->fs_type, "ext4");
  in["FsType"] = "btrfs";
  EXPECT_EQ(ReadClassParameters(in, "ext4")->fs_type, "btrfs");
  EXPECT_EQ(ReadClassParameters(in, "ext4")->driver.count("FsType"), 1U);
  in["csi.storage.k8s.io/fstype"] = "xfs";
  EXPECT_THAT(ReadClassParameters(in, "").error().message(),
              HasSubstr("fstype specified in parameters with both"));
}

TEST(ClassParametersTest, RefusesUnknownKeysWithThePrefix) {
  Strings in;
  in["csi.storage.k8s.io/else"] = "x";
  EXPECT_THAT(ReadClassParameters(in, "").error().message(),
              HasSubstr(R"(found unknown parameter key "csi.storage.k8s.io/else" with reserved namespace)"));
}

}  // namespace
}  // namespace keelson::csi::controller

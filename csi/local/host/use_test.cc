#include "csi/local/host/use.h"

#include <gtest/gtest.h>

namespace keelson::csi::local {
namespace {

linux::LoopDevice Device(const std::string& path) {
  linux::LoopDevice device;
  device.path = path;
  return device;
}

linux::MountInfo Mount(const std::string& root, const std::string& at, const std::string& type,
                       const std::string& source, const std::string& options) {
  linux::MountInfo mount;
  mount.root = root;
  mount.mount_point = at;
  mount.fs_type = type;
  mount.source = source;
  mount.options = options;
  return mount;
}

// Stands for a look at the device's number.
bool IsNode(const std::string& path, const std::string&) {
  return path.find("impostor") == std::string::npos;
}

TEST(UseTest, FindsFileSystemsAndDevices) {
  const std::vector<linux::MountInfo> mounts = {
      Mount("/", "/", "ext4", "/dev/vda", "rw"),
      Mount("/", "/dev", "devtmpfs", "devtmpfs", "rw"),
      Mount("/", "/staging", "xfs", "/dev/loop3", "rw,nodev"),
      Mount("/", "/target", "xfs", "/dev/loop3", "ro,nodev"),
      Mount("/", "/other", "xfs", "/dev/loop30", "rw"),
      Mount("/loop4", "/device", "devtmpfs", "devtmpfs", "rw"),
      Mount("/loop4", "/impostor", "ext4", "/dev/vda", "rw"),
  };
  const Use use = UseOf({Device("/dev/loop3"), Device("/dev/loop4")}, mounts, IsNode);
  ASSERT_EQ(use.mounts.size(), 3u);
  EXPECT_EQ(use.At("/staging")->device, "/dev/loop3");
  EXPECT_FALSE(use.At("/staging")->read_only);
  EXPECT_TRUE(use.At("/target")->read_only);
  EXPECT_FALSE(use.At("/target")->node);
  EXPECT_TRUE(use.At("/device")->node);
  EXPECT_EQ(use.At("/other"), nullptr);
  EXPECT_EQ(use.At("/impostor"), nullptr);
  EXPECT_TRUE(use.Mounts("/dev/loop4"));
  EXPECT_FALSE(use.Mounts("/dev/loop5"));
}

}  // namespace
}  // namespace keelson::csi::local

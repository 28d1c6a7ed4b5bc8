#include "kubelet/volume/format_and_mount.h"

#include "kubelet/volume/testing/volume_test.h"
#include "lib/base/text.h"

namespace keelson::kubelet {
namespace {

TEST(PlanDisk, ByWhatIsThereAndWhatIsWanted) {
  struct Case {
    linux::DiskContents found;
    const char* fs_type;
    std::vector<std::string> options;
    const char *format, *check, *doubt, *problem;
  };
  const char* check = "fsck -a /dev/x";
  const std::vector<std::string> ro = {"noatime,ro"};
  for (const Case& c : {
           Case{{}, "", {}, "mkfs.ext4 -F -m0 /dev/x", "", "", ""},
           {{}, "ext4", {"noatime"}, "mkfs.ext4 -F -m0 /dev/x", "", "", ""},
           {{}, "ext3", {}, "mkfs.ext3 -F -m0 /dev/x", "", "", ""},
           {{}, "xfs", {}, "mkfs.xfs -f /dev/x", "", "", ""},
           {{}, "btrfs", {}, "mkfs.btrfs /dev/x", "", "", ""},
           {{}, "ext4", ro, "", "", "", "cannot mount unformatted disk /dev/x as it is in read-only mode"},
           {{}, "../../bin/x", {}, "", "", "", "invalid fsType \"../../bin/x\""},
           {{"ext4", ""}, "", {}, "", check, "", ""},
           {{"ext4", ""}, "ext4", ro, "", "", "", ""},
           {{"xfs", ""}, "xfs", {"noatime"}, "", check, "", ""},
           {{"ext4", ""},
            "xfs",
            {},
            "",
            "",
            "Configured to mount disk /dev/x as xfs but current format is ext4",
            ""},
           {{"ext3", ""},
            "ext4",
            {},
            "",
            check,
            "Configured to mount disk /dev/x as ext4 but current format is ext3",
            ""},
           {{"LVM2_member", ""},
            "ext4",
            ro,
            "",
            "",
            "Configured to mount disk /dev/x as ext4 but current format is LVM2_member",
            ""},
           {{"", "gpt"},
            "ext4",
            {},
            "",
            "",
            "Configured to mount disk /dev/x as ext4 but current format is unknown data, probably partitions",
            ""},
           {{"ext4", "dos"},
            "ext4",
            {},
            "",
            check,
            "Configured to mount disk /dev/x as ext4 but current format is unknown data, probably partitions",
            ""},
       }) {
    auto work = PlanDisk(c.found, {"/dev/x", "/mnt", c.fs_type, c.options});
    const std::string what = c.found.fs_type + "/" + c.found.partition_table + " as " + c.fs_type;
    ASSERT_EQ(work ? "" : work.error().message(), c.problem) << what;
    if (!work) continue;
    EXPECT_EQ(Join(work->format, " "), c.format) << what;
    EXPECT_EQ(Join(work->check, " "), c.check) << what;
    EXPECT_EQ(work->doubt, c.doubt) << what;
  }
}

using Runs = std::vector<std::string>;

class FormatAndMountTest : public ::testing::Test {
 protected:
  std::string Problem(const DiskMount& wanted) {
    auto done = FormatAndMount(mounter_, wanted, {});
    return done ? "" : done.error().message();
  }
  FakeMounter mounter_;
  FakeDisks& disks_ = mounter_.fake_disks;
  const DiskMount wanted_ = {"/dev/x", "/mnt", "ext4", {"noatime"}};
};

TEST_F(FormatAndMountTest, OnceFormattedNeverAgain) {
  disks_.devices["/dev/x"] = linux::DiskContents{};
  for (const char* when : {"blank", "again"}) {
    mounter_.mounts.clear();
    ASSERT_EQ(Problem(wanted_), "") << when;
    EXPECT_EQ(mounter_.mounts["/mnt"], "ext4 /dev/x noatime") << when;
  }
  EXPECT_EQ(disks_.runs, (Runs{"mkfs.ext4 -F -m0 /dev/x", "fsck -a /dev/x"}));
}

TEST_F(FormatAndMountTest, WhatCannotBeReadIsLeftAlone) {
  disks_.devices["/dev/x"] = Error(Code::kInvalid, "/dev/x: ambivalent result");
  EXPECT_EQ(Problem(wanted_), "failed to get disk format of disk /dev/x: /dev/x: ambivalent result");
  EXPECT_TRUE(disks_.runs.empty());
  EXPECT_TRUE(mounter_.mounts.empty());
}

TEST_F(FormatAndMountTest, AFailedFormatSaysWhy) {
  disks_.devices["/dev/x"] = linux::DiskContents{};
  disks_.ends["mkfs.ext4"] = ProgramEnd{event::ExitStatus{1, 0}, "in use"};
  EXPECT_EQ(Problem(wanted_),
            "format of disk \"/dev/x\" failed: type:(\"ext4\") target:(\"/mnt\") options:(\"noatime\") "
            "errcode:(exit code 1) output:(in use)");
  disks_.ends["mkfs.ext4"] = Error(Code::kNotFound, "start mkfs.ext4: No such file or directory");
  EXPECT_EQ(Problem(wanted_),
            "format of disk \"/dev/x\" failed: type:(\"ext4\") target:(\"/mnt\") options:(\"noatime\") "
            "errcode:(start mkfs.ext4: No such file or directory) output:()");
  EXPECT_TRUE(mounter_.mounts.empty());
}

TEST_F(FormatAndMountTest, OnlyErrorsThatFsckCouldNotRepairKeepFromTheMount) {
  disks_.devices["/dev/x"] = linux::DiskContents{"ext4", ""};
  const std::string refused = "'fsck' found errors on device /dev/x but could not correct them: bad";
  struct Case {
    Result<ProgramEnd> end;
    std::string problem;
  };
  for (const Case& c : {Case{ProgramEnd{event::ExitStatus{0, 0}, ""}, ""},
                        {ProgramEnd{event::ExitStatus{1, 0}, "mended"}, ""},
                        {ProgramEnd{event::ExitStatus{3, 0}, "mended"}, ""},
                        {ProgramEnd{event::ExitStatus{4, 0}, "bad"}, refused},
                        {ProgramEnd{event::ExitStatus{12, 0}, "bad"}, refused},
                        {ProgramEnd{event::ExitStatus{8, 0}, "no superblock"}, ""},
                        {ProgramEnd{event::ExitStatus{0, 9}, ""}, ""},
                        {Error(Code::kNotFound, "start fsck: No such file or directory"), ""}}) {
    mounter_.mounts.clear();
    disks_.ends["fsck"] = c.end;
    const std::string how = c.end ? c.end->Why() : c.end.error().message();
    EXPECT_EQ(Problem(wanted_), c.problem) << how;
    EXPECT_EQ(mounter_.mounts.count("/mnt"), c.problem.empty() ? 1u : 0u) << how;
  }
}

TEST_F(FormatAndMountTest, AMountThatFailsSaysWhatIsThere) {
  disks_.devices["/dev/x"] = linux::DiskContents{"xfs", ""};
  mounter_.fail_mount = true;
  EXPECT_EQ(Problem(wanted_),
            "mount failed: exit code 32\n"
            "Configured to mount disk /dev/x as ext4 but current format is xfs");
  EXPECT_TRUE(disks_.runs.empty());
}

TEST_F(FormatAndMountTest, FileSystemsGrow) {
  struct Case {
    const char *fs_type, *run, *problem;
  };
  for (const Case& c :
       {Case{"ext4", "resize2fs /dev/x", ""},
        {"ext3", "resize2fs /dev/x", ""},
        {"xfs", "xfs_growfs -d /mnt", ""},
        {"btrfs", "btrfs filesystem resize max /mnt", ""},
        {"vfat", "", "resize of format vfat is not supported for device /dev/x mounted at /mnt"}}) {
    disks_.runs.clear();
    disks_.devices["/dev/x"] = linux::DiskContents{c.fs_type, ""};
    auto grown = GrowFileSystem(disks_, "/dev/x", "/mnt");
    EXPECT_EQ(grown ? "" : grown.error().message(), c.problem);
    EXPECT_EQ(disks_.runs, *c.run ? Runs{c.run} : Runs{});
  }
  disks_.devices["/dev/x"] = linux::DiskContents{"xfs", ""};
  disks_.ends["xfs_growfs"] = ProgramEnd{event::ExitStatus{1, 0}, "too small"};
  EXPECT_EQ(GrowFileSystem(disks_, "/dev/x", "/mnt").error().message(),
            "resize of device /mnt failed: exit code 1. xfs_growfs output: too small");
}

}  // namespace
}  // namespace keelson::kubelet

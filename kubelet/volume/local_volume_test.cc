// Volumes of type local: directories, and devices with a file system of their own.
#include <sys/stat.h>

#include "kubelet/volume/testing/volume_test.h"

namespace keelson::kubelet {
namespace {

class LocalVolumeTest : public VolumeTest {
 protected:
  void Use(const std::string& source, const std::string& more = "") {
    objects_.Put<corev1::PersistentVolumeClaim>(
        R"({"metadata":{"name":"c","namespace":"n","uid":"cu"},"spec":{"volumeName":"pv-1",
            "resources":{"requests":{"storage":"2Gi"}}},
            "status":{"phase":"Bound","capacity":{"storage":"2Gi"}}})");
    objects_.Put<corev1::PersistentVolume>(
        R"({"metadata":{"name":"pv-1"},"spec":{"claimRef":{"uid":"cu"},"capacity":{"storage":"2Gi"},"local":)" +
        source + more + "}}");
  }
  void UseDevice(const linux::DiskContents& contents, const std::string& more = "") {
    disks_.devices["/dev/x"] = contents;
    Use(R"({"path":"/dev/x"})", more);
  }
  // A kubelet that knows nothing of the one before.
  void Restart() { VolumeTest::Use(NewVolumePlugins(mounter_, objects_, clock_)); }
  corev1::Pod Claiming(const std::string& uid, bool read_only = false) {
    return PodWith(R"({"name":"v","persistentVolumeClaim":{"claimName":"c","readOnly":)" +
                       std::string(read_only ? "true" : "false") + "}}",
                   uid);
  }
  std::string PodPath(const std::string& uid) { return VolumeDir("kubernetes.io/local-volume", "pv-1", uid); }
  std::string Global() const { return dir_ + "/plugins/kubernetes.io/local-volume/mounts/pv-1"; }

  FakeDisks& disks_ = mounter_.fake_disks;
};

using Runs = std::vector<std::string>;

TEST_F(LocalVolumeTest, ADeviceIsMountedOnceAndBoundForEachPod) {
  UseDevice({}, R"(,"mountOptions":["noatime"])");
  ASSERT_EQ(Problem(Claiming("one")), "");
  EXPECT_EQ(mounter_.mounts[Global()], "ext4 /dev/x noatime");
  EXPECT_EQ(mounter_.mounts[PodPath("one")], Global());
  ASSERT_EQ(Problem(Claiming("two", true)), "");
  ASSERT_EQ(Problem(Claiming("one")), "") << "as it is";
  EXPECT_EQ(mounter_.mounts[PodPath("two")], Global() + " ro");
  EXPECT_EQ(disks_.runs, Runs{"mkfs.ext4 -F -m0 /dev/x"});
  EXPECT_TRUE(manager_->VolumesInUse().empty()) << "nobody attaches it";

  Restart();
  ASSERT_TRUE(manager_->Remove(node_.paths, "one"));
  EXPECT_EQ(mounter_.mounts.count(Global()), 1u) << "the other pod has it";
  ASSERT_TRUE(manager_->Remove(node_.paths, "two"));
  EXPECT_TRUE(mounter_.mounts.empty());
  EXPECT_FALSE(PathExists(Global()));
}

TEST_F(LocalVolumeTest, WhatCannotBeMounted) {
  ASSERT_TRUE(WriteFile(dir_ + "/file", ""));
  const std::string device =
      "MountVolume.MountDevice failed for volume \"pv-1\" : local: failed to mount device /dev/x at " +
      Global();
  const std::string before = "MountVolume.NewMounter initialization failed for volume \"pv-1\" : ";
  struct Case {
    std::string source;
    linux::DiskContents contents;
    bool read_only;
    std::string problem;
  };
  for (const Case& c : {
           Case{R"({"path":"/absent/disk"})", {}, false, before + "path \"/absent/disk\" does not exist"},
           {R"({"path":")" + dir_ + "/file\"}",
            {},
            false,
            before + "only directory and block device are supported"},
           {R"({"path":"/dev/x"})",
            {},
            true,
            device +
                " (fstype: ext4), error cannot mount unformatted disk /dev/x as it is in read-only mode"},
           {R"({"path":"/dev/x","fsType":"xfs"})",
            {"ext4", ""},
            false,
            device + " (fstype: xfs), error mount failed: exit code 32\n"
                     "Configured to mount disk /dev/x as xfs but current format is ext4"},
           {R"({"path":"/dev/x"})",
            {"", "gpt"},
            false,
            device + " (fstype: ext4), error mount failed: exit code 32\n"
                     "Configured to mount disk /dev/x as ext4 but current format is unknown data, probably "
                     "partitions"},
       }) {
    disks_.devices["/dev/x"] = c.contents;
    mounter_.fail_mount = true;
    Use(c.source);
    EXPECT_EQ(Problem(Claiming("u", c.read_only)), c.problem);
    EXPECT_FALSE(PathExists(Global()));
    EXPECT_TRUE(disks_.runs.empty());
    ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
    EXPECT_FALSE(PathExists(node_.paths.Pod("u")));
  }
}

TEST_F(LocalVolumeTest, APodThatRunsKeepsWhatItHas) {
  UseDevice({"ext4", ""});
  ASSERT_EQ(Problem(Claiming("u")), "");
  const auto mounts = mounter_.mounts;
  disks_.devices.clear();  // the device's node goes
  EXPECT_EQ(Problem(Claiming("u")), "");
  EXPECT_EQ(mounter_.mounts, mounts);
}

// What is left when a kubelet dies between two steps, and what the next one makes of it.
TEST_F(LocalVolumeTest, EveryStepMayBeTheLastOfAKubelet) {
  for (const char* reached : {"directories", "format", "mount", "bind", "unbound", "unmounted", "unstaged"}) {
    SCOPED_TRACE(reached);
    const std::string step = reached;
    disks_.runs.clear();
    const bool formatted = step != "directories";
    UseDevice(linux::DiskContents{formatted ? "ext4" : "", ""});
    ASSERT_TRUE(MakeDirs(PodPath("u")));
    if (step != "unstaged") {
      ASSERT_TRUE(MakeDirs(Global()));
    }
    if (step == "mount" || step == "bind" || step == "unbound") mounter_.mounts[Global()] = "ext4 /dev/x";
    if (step == "bind") mounter_.mounts[PodPath("u")] = Global();

    Restart();
    if (step == "directories" || step == "format" || step == "mount" || step == "bind") {
      ASSERT_EQ(Problem(Claiming("u")), "");
      EXPECT_EQ(mounter_.mounts,
                (std::map<std::string, std::string>{{Global(), "ext4 /dev/x"}, {PodPath("u"), Global()}}));
      EXPECT_EQ(disks_.runs, !formatted         ? Runs{"mkfs.ext4 -F -m0 /dev/x"}
                             : step == "format" ? Runs{"fsck -a /dev/x"}
                                                : Runs{});
    }
    Restart();
    ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
    EXPECT_TRUE(mounter_.mounts.empty());
    EXPECT_FALSE(PathExists(Global()));
    EXPECT_FALSE(PathExists(node_.paths.Pod("u")));
  }
}

TEST_F(LocalVolumeTest, ABusyDeviceKeepsThePodsDirectory) {
  UseDevice({"ext4", ""});
  ASSERT_EQ(Problem(Claiming("u")), "");
  mounter_.busy.insert(Global());
  EXPECT_FALSE(manager_->Remove(node_.paths, "u"));
  EXPECT_TRUE(PathExists(PodPath("u"))) << "it tells of the mount";
  mounter_.busy.clear();
  Restart();
  ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
  EXPECT_TRUE(mounter_.mounts.empty());
}

TEST_F(LocalVolumeTest, TheFirstPodsGroupOwnsIt) {
  ASSERT_TRUE(MakeDirs(dir_ + "/disk"));
  Use(R"({"path":")" + dir_ + "/disk\"}");
  auto mode = [this] {
    struct stat info = {};
    EXPECT_EQ(::stat((dir_ + "/disk").c_str(), &info), 0);
    return info.st_mode & 07777;
  };
  ASSERT_EQ(::chmod((dir_ + "/disk").c_str(), 0700), 0);
  auto claiming = [&](const std::string& uid, bool read_only) {
    corev1::Pod pod = Claiming(uid, read_only);
    pod.mutable_spec()->mutable_security_context()->set_fs_group(::getgid());
    return pod;
  };
  ASSERT_EQ(Problem(claiming("reader", true)), "");
  EXPECT_EQ(mode(), 0700u) << "who only reads changes nothing";
  ASSERT_TRUE(manager_->Remove(node_.paths, "reader"));
  ASSERT_EQ(Problem(claiming("first", false)), "");
  EXPECT_EQ(mode(), 02770u);
  ASSERT_EQ(::chmod((dir_ + "/disk").c_str(), 0700), 0);
  ASSERT_EQ(Problem(claiming("second", false)), "");
  EXPECT_EQ(mode(), 0700u) << "the first one has it still";
}

TEST_F(LocalVolumeTest, DirectoriesTakeMountOptions) {
  ASSERT_TRUE(MakeDirs(dir_ + "/disk"));
  Use(R"({"path":")" + dir_ + "/disk\"}", R"(,"mountOptions":["noexec"])");
  ASSERT_EQ(Problem(Claiming("one", true)), "");
  EXPECT_EQ(mounter_.mounts[PodPath("one")], "none " + dir_ + "/disk rbind ro noexec");
}

TEST_F(LocalVolumeTest, GrowsWhereThereIsSomethingToGrow) {
  auto ask = [this] {
    objects_.Put<corev1::PersistentVolumeClaim>(
        R"({"metadata":{"name":"c","namespace":"n","uid":"cu"},"spec":{"volumeName":"pv-1",
            "resources":{"requests":{"storage":"2Gi"}}},
            "status":{"phase":"Bound","capacity":{"storage":"1Gi"}}})");
  };
  UseDevice({"ext4", ""});
  ask();
  ASSERT_EQ(Problem(Claiming("u")), "");
  EXPECT_EQ(disks_.runs, (Runs{"fsck -a /dev/x", "resize2fs /dev/x"}));
  EXPECT_EQ(objects_.expanded.size(), 1u);
  ASSERT_TRUE(manager_->Remove(node_.paths, "u"));

  disks_.runs.clear();
  ASSERT_TRUE(MakeDirs(dir_ + "/disk"));
  Use(R"({"path":")" + dir_ + "/disk\"}");
  ask();
  ASSERT_EQ(Problem(Claiming("u")), "");
  EXPECT_TRUE(disks_.runs.empty());
  EXPECT_EQ(objects_.expanded.size(), 2u) << "a directory is as large as it is";
}

}  // namespace
}  // namespace keelson::kubelet

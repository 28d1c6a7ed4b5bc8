// Devices with a file system of their own, on real loop devices and in a mount namespace of the test's own.
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>

#include "kubelet/testing/loop_device.h"
#include "kubelet/volume/testing/volume_test.h"
#include "lib/base/fd.h"

namespace keelson::kubelet {
namespace {

constexpr size_t kMega = size_t{1} << 20;

class DeviceTest : public VolumeTest {
 protected:
  void SetUp() override {
    VolumeTest::SetUp();
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      GTEST_SKIP() << "no mount namespace can be made: root is needed";
    }
    SetSize(16);
    device_ = std::make_unique<LoopDevice>(Image());
    if (device_->path().empty()) GTEST_SKIP() << "no loop device can be had on this machine";
    manager_ = std::make_unique<VolumeManager>(*real_, objects_, NewVolumePlugins(*real_, objects_, clock_),
                                               [] { return nullptr; });
  }
  void TearDown() override {
    auto left = real_->MountPointsUnder(dir_);
    EXPECT_TRUE(left && left->empty());
    for (const std::string& point : *left) EXPECT_TRUE(real_->Unmount(point, true));
    device_.reset();
    VolumeTest::TearDown();
  }
  std::string Image() const { return dir_ + "/disk.img"; }
  void SetSize(size_t mega) {
    auto file = OpenFile(Image(), O_RDWR | O_CREAT);
    ASSERT_TRUE(file);
    ASSERT_EQ(::ftruncate(file->get(), static_cast<off_t>(mega * kMega)), 0);
  }
  void Put(size_t at, const std::string& bytes) {
    auto device = OpenFile(device_->path(), O_RDWR);
    ASSERT_TRUE(device);
    ASSERT_EQ(::pwrite(device->get(), bytes.data(), bytes.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(bytes.size()));
    ASSERT_EQ(::fsync(device->get()), 0);
  }
  void Run(const std::string& command) {
    ASSERT_EQ(::system(("(" + command + ") >/dev/null 2>&1").c_str()), 0) << command;
  }
  // Claim n/c with a capacity of 1 GiB, and a request and a volume of `asked`.
  void Claim(const std::string& fs_type, const std::string& options = "[]", const char* asked = "1Gi") {
    objects_.Put<corev1::PersistentVolumeClaim>(
        std::string(R"({"metadata":{"name":"c","namespace":"n","uid":"cu"},"spec":{"volumeName":"pv-1",
            "resources":{"requests":{"storage":")") +
        asked + R"("}}},"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}})");
    objects_.Put<corev1::PersistentVolume>(
        std::string(
            R"({"metadata":{"name":"pv-1"},"spec":{"claimRef":{"uid":"cu"},"capacity":{"storage":")") +
        asked + R"("},"mountOptions":)" + options + R"(,"local":{"path":")" + device_->path() +
        R"(","fsType":")" + fs_type + "\"}}}");
  }
  corev1::Pod Claiming(const std::string& uid, bool read_only = false) {
    return PodWith(R"({"name":"v","persistentVolumeClaim":{"claimName":"c","readOnly":)" +
                       std::string(read_only ? "true" : "false") + "}}",
                   uid);
  }
  std::string PodPath(const std::string& uid) { return VolumeDir("kubernetes.io/local-volume", "pv-1", uid); }
  std::string Format() {
    auto found = linux::ProbeDisk(device_->path());
    return found ? found->fs_type + "/" + found->partition_table : "error: " + found.error().message();
  }
  unsigned long FlagsOf(const std::string& path) {
    struct statvfs info = {};
    EXPECT_EQ(::statvfs(path.c_str(), &info), 0);
    return info.f_flag;
  }

  const std::unique_ptr<Mounter> real_ = NewMounter();
  std::unique_ptr<LoopDevice> device_;
};

TEST_F(DeviceTest, IsFormattedOnceAndItsFilesOutlivePods) {
  Claim("", R"(["noexec"])");
  ASSERT_EQ(Problem(Claiming("one")), "");
  EXPECT_EQ(Format(), "ext4/");
  ASSERT_TRUE(WriteFile(PodPath("one") + "/x", "hello"));
  ASSERT_EQ(Problem(Claiming("two", true)), "");
  EXPECT_EQ(*ReadFile(PodPath("two") + "/x"), "hello");
  EXPECT_FALSE(WriteFile(PodPath("two") + "/x", "no"));
  EXPECT_EQ(FlagsOf(PodPath("one")) & (ST_RDONLY | ST_NOEXEC), static_cast<unsigned long>(ST_NOEXEC));
  EXPECT_EQ(FlagsOf(PodPath("two")) & (ST_RDONLY | ST_NOEXEC),
            static_cast<unsigned long>(ST_RDONLY | ST_NOEXEC));
  ASSERT_TRUE(manager_->Remove(node_.paths, "one"));
  ASSERT_TRUE(manager_->Remove(node_.paths, "two"));
  EXPECT_TRUE(real_->MountPointsUnder(dir_)->empty());
  ASSERT_EQ(Problem(Claiming("three")), "");
  EXPECT_EQ(*ReadFile(PodPath("three") + "/x"), "hello");
  ASSERT_TRUE(manager_->Remove(node_.paths, "three"));
}

TEST_F(DeviceTest, WhatHoldsSomethingElseIsLeftAsItIs) {
  struct Case {
    const char* name;
    std::string prepare, format;
  };
  for (const Case& c :
       {Case{"another file system", "mkfs.ext4 -q -F " + device_->path(), "ext4/"},
        {"partitions",
         "printf '\\0\\0\\0\\0\\203\\0\\0\\0\\0\\10\\0\\0\\0\\10\\0\\0' | dd bs=1 seek=446 of=" +
             device_->path() + " && printf '\\125\\252' | dd bs=1 seek=510 of=" + device_->path(),
         "/dos"},
        {"swap", "mkswap " + device_->path(), "swap/"}}) {
    Put(0, std::string(2 * kMega, '\0'));
    ASSERT_NO_FATAL_FAILURE(Run(c.prepare)) << c.name;
    Put(8 * kMega, "precious");  // and what was prepared is in the file
    ASSERT_EQ(Format(), c.format) << c.name;
    const std::string before = *ReadFile(Image());
    Claim("xfs");
    const std::string problem = Problem(Claiming("u"));
    const std::string begins =
        "MountVolume.MountDevice failed for volume \"pv-1\" : local: failed to mount device " +
        device_->path() + " at " + dir_ +
        "/plugins/kubernetes.io/local-volume/mounts/pv-1 (fstype: xfs), error mount failed: ";
    EXPECT_EQ(problem.substr(0, begins.size()), begins) << c.name;
    EXPECT_TRUE(*ReadFile(Image()) == before) << c.name << ": some byte has changed";
    ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
  }
}

TEST_F(DeviceTest, WhatIsInUseIsNotFormatted) {
  Claim("ext4");
  {
    // As another mkfs holds it, which a kubelet began before this one.
    auto held = OpenFile(device_->path(), O_RDWR | O_EXCL);
    ASSERT_TRUE(held);
    const std::string problem = Problem(Claiming("u"));
    EXPECT_NE(problem.find("format of disk \"" + device_->path() + "\" failed: type:(\"ext4\")"),
              std::string::npos)
        << problem;
    EXPECT_EQ(Format(), "/");
  }
  EXPECT_EQ(Problem(Claiming("u")), "");
  ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
}

TEST_F(DeviceTest, DamageIsRepairedOrKeepsFromTheMount) {
  Run("mkfs.ext4 -q -F -b 1024 " + device_->path());
  Claim("ext4");
  const std::string state = "dumpe2fs -h " + device_->path() + " | grep 'Filesystem state:  *";
  Run("debugfs -w -R 'set_super_value state 2' " + device_->path());
  Run(state + "not clean with errors'");
  EXPECT_EQ(Problem(Claiming("u")), "");
  ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
  Run(state + "clean$'");
  // The root directory is a file: only an answer of somebody's can repair that.
  Run("debugfs -w -R 'set_inode_field <2> mode 0100644' " + device_->path());
  Run("debugfs -w -R 'set_super_value state 2' " + device_->path());
  const std::string problem = Problem(Claiming("u"));
  EXPECT_NE(
      problem.find("'fsck' found errors on device " + device_->path() + " but could not correct them: "),
      std::string::npos)
      << problem;
  ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
}

TEST_F(DeviceTest, AReaderDoesNotKeepWritersOut) {
  Claim("ext4");
  const std::string refused = Problem(Claiming("reader", true));
  EXPECT_NE(refused.find("cannot mount unformatted disk " + device_->path() + " as it is in read-only mode"),
            std::string::npos)
      << refused;
  EXPECT_EQ(Format(), "/");
  Run("mkfs.ext4 -q -F " + device_->path());
  ASSERT_EQ(Problem(Claiming("reader", true)), "");
  EXPECT_FALSE(WriteFile(PodPath("reader") + "/x", "no"));
  ASSERT_EQ(Problem(Claiming("writer")), "");
  EXPECT_TRUE(WriteFile(PodPath("writer") + "/x", "yes"));
  EXPECT_FALSE(WriteFile(PodPath("reader") + "/x", "no"));
  EXPECT_EQ(*ReadFile(PodPath("reader") + "/x"), "yes");
  ASSERT_TRUE(manager_->Remove(node_.paths, "writer"));
  ASSERT_TRUE(manager_->Remove(node_.paths, "reader"));
}

// What the kernel lets only some grow, and what only some machines can make.
bool CanGrow(const std::string& fs_type) {
  if (fs_type == "ext4") return ::prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE) == 1;
  return ::system(("command -v mkfs." + fs_type + " >/dev/null").c_str()) == 0;
}

TEST_F(DeviceTest, GrowsWithItsDevice) {
  int grown = 0;
  for (const char* fs_type : {"ext4", "xfs"}) {
    if (!CanGrow(fs_type)) continue;
    device_.reset();
    ASSERT_TRUE(RemoveFile(Image()));
    SetSize(400);  // the least that xfs takes is 300
    device_ = std::make_unique<LoopDevice>(Image());
    ASSERT_FALSE(device_->path().empty());
    Claim(fs_type);
    ASSERT_EQ(Problem(Claiming("u")), "");
    EXPECT_EQ(Format(), std::string(fs_type) + "/");
    auto size = [this] {
      struct statvfs info = {};
      EXPECT_EQ(::statvfs(PodPath("u").c_str(), &info), 0);
      return info.f_blocks * info.f_frsize;
    };
    const auto before = size();
    SetSize(600);
    ASSERT_TRUE(device_->Resize());
    Claim(fs_type, "[]", "2Gi");
    EXPECT_EQ(Problem(Claiming("u")), "");
    EXPECT_GT(size(), before + 150 * kMega);
    EXPECT_EQ(objects_.expanded.size(), static_cast<size_t>(++grown));
    ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
  }
  if (grown == 0) GTEST_SKIP() << "to grow ext4 takes CAP_SYS_RESOURCE; there is no mkfs.xfs either";
}

}  // namespace
}  // namespace keelson::kubelet

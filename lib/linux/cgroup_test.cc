#include "lib/linux/cgroup.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "lib/base/file.h"
#include "lib/linux/mount.h"

namespace keelson::linux {
namespace {

class CgroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/cgroup_test.XXXXXX";
    dir_ = ::mkdtemp(name);
  }
  void TearDown() override { (void)RemoveTree(dir_); }
  std::string dir_;
};

TEST_F(CgroupTest, WritesV2Limits) {
  Cgroups cgroups(dir_, {});
  CgroupLimits limits{
      .cpu_shares = 1024, .cpu_quota_us = 50000, .memory_limit_bytes = 1 << 20, .pids_max = -1};
  ASSERT_TRUE(cgroups.Create("/kubepods/burstable/pod1", limits));
  std::string pod = dir_ + "/kubepods/burstable/pod1";
  EXPECT_EQ(*ReadFile(pod + "/cpu.weight"), "39");
  EXPECT_EQ(*ReadFile(pod + "/cpu.max"), "50000 100000");
  EXPECT_EQ(*ReadFile(pod + "/memory.max"), "1048576");
  EXPECT_EQ(*ReadFile(pod + "/pids.max"), "max");
  EXPECT_EQ(cgroups.Children("/kubepods/burstable"), std::vector<std::string>{"pod1"});
}

TEST_F(CgroupTest, ProtectsMemoryAndLimitsHugePagesWhereTheKernelCan) {
  Cgroups cgroups(dir_, {});
  ASSERT_TRUE(MakeDirs(dir_ + "/pod1"));
  ASSERT_TRUE(WriteFile(dir_ + "/pod1/hugetlb.2MB.max", "max"));
  CgroupLimits limits;
  limits.memory_min_bytes = 1;
  limits.memory_low_bytes = 2;
  limits.huge_pages = {{"2MB", 4 << 20}, {"1GB", 0}};
  ASSERT_TRUE(cgroups.Create("/pod1", limits));
  EXPECT_EQ(*ReadFile(dir_ + "/pod1/memory.min"), "1");
  EXPECT_EQ(*ReadFile(dir_ + "/pod1/memory.low"), "2");
  EXPECT_EQ(*ReadFile(dir_ + "/pod1/hugetlb.2MB.max"), "4194304");
  EXPECT_FALSE(PathExists(dir_ + "/pod1/hugetlb.1GB.max"));
}

TEST_F(CgroupTest, TellsWhatAreUsedAndWaitedFor) {
  const std::string dir = dir_ + "/pod1/cri-containerd-abc.scope";
  ASSERT_TRUE(MakeDirs(dir));
  const std::pair<const char*, const char*> kFiles[] = {
      {"cpu.stat", "usage_usec 7\nuser_usec 5\n"},
      {"memory.current", "100\n"},
      {"memory.max", "500\n"},
      {"memory.stat", "anon 40\nfile 50\ninactive_file 30\npgfault 9\npgmajfault 2\n"},
      {"memory.swap.current", "8\n"},
      {"memory.swap.max", "max\n"},
      {"pids.current", "3\n"},
      {"cpu.pressure",
       "some avg10=1.50 avg60=0.25 avg300=0.00 total=1234\n"
       "full avg10=0.00 avg60=0.00 avg300=0.00 total=56\n"},
      {"memory.pressure", "nonsense\n"}};
  for (const auto& [name, text] : kFiles) ASSERT_TRUE(WriteFile(dir + "/" + name, text));
  Cgroups cgroups(dir_, {});
  const std::string path = cgroups.ChildWith("/pod1", "abc");
  EXPECT_EQ(path, "/pod1/cri-containerd-abc.scope");
  EXPECT_EQ(cgroups.ChildWith("/pod1", "abd"), "");
  ASSERT_TRUE(MakeDirs(dir_ + "/pod2/crio-conmon-def.scope"));
  EXPECT_EQ(cgroups.ChildWith("/pod2", "def"), "") << "who watches it";
  ASSERT_TRUE(MakeDirs(dir_ + "/pod2/crio-def.scope"));
  EXPECT_EQ(cgroups.ChildWith("/pod2", "def"), "/pod2/crio-def.scope");
  CgroupUsage usage = cgroups.Usage(path);
  EXPECT_EQ(usage.cpu_nanos, 7000u);
  EXPECT_EQ(usage.memory_working_set_bytes, 70u);
  EXPECT_EQ(usage.memory_rss_bytes, 40u);
  EXPECT_EQ(usage.memory_limit_bytes, 500u);
  EXPECT_EQ(usage.page_faults, 9u);
  EXPECT_EQ(usage.major_page_faults, 2u);
  EXPECT_EQ(usage.swap_bytes, 8u);
  EXPECT_FALSE(usage.swap_limit_bytes);
  CgroupPressure pressure = cgroups.Pressures(path);
  ASSERT_TRUE(pressure.cpu);
  EXPECT_EQ(pressure.cpu->some.total_us, 1234u);
  EXPECT_EQ(pressure.cpu->some.avg10, 1.5);
  EXPECT_EQ(pressure.cpu->full.total_us, 56u);
  EXPECT_FALSE(pressure.memory || pressure.io);
  EXPECT_EQ(cgroups.LimitsSwap(), PathExists("/proc/swaps"));
  ASSERT_TRUE(WriteFile(dir_ + "/pod1/memory.max", "max\n"));
  EXPECT_FALSE(cgroups.LimitsSwap());
  ASSERT_TRUE(WriteFile(dir_ + "/pod1/memory.swap.max", "max\n"));
  EXPECT_TRUE(cgroups.LimitsSwap());
}

TEST_F(CgroupTest, AccountsInDetailOnBothVersions) {
  const std::pair<const char*, const char*> kV2[] = {
      {"cpu.stat",
       "usage_usec 7\nuser_usec 5\nsystem_usec 2\nnr_periods 9\nnr_throttled 3\nthrottled_usec 11\n"},
      {"cpu.max", "50000 100000\n"},
      {"cpu.weight", "39\n"},
      {"memory.stat", "anon 40\nfile 50\nfile_mapped 6\n"},
      {"memory.swap.current", "8\n"},
      {"memory.peak", "90\n"},
      {"memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 2\n"},
      {"cgroup.procs", "100\n200\n"},
      {"io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n"}};
  ASSERT_TRUE(MakeDirs(dir_ + "/v2/pod1"));
  for (const auto& [name, text] : kV2) ASSERT_TRUE(WriteFile(dir_ + "/v2/pod1/" + name, text));
  const std::pair<const char*, const char*> kV1[] = {
      {"cpu/pod1/cpu.stat", "nr_periods 9\nnr_throttled 3\nthrottled_time 11000\n"},
      {"cpu/pod1/cpu.cfs_quota_us", "50000\n"},
      {"cpu/pod1/cpu.cfs_period_us", "100000\n"},
      {"cpu/pod1/cpu.shares", "998\n"},
      {"cpuacct/pod1/cpuacct.usage_user", "5000\n"},
      {"cpuacct/pod1/cpuacct.usage_sys", "2000\n"},
      {"memory/pod1/memory.stat", "cache 1\ntotal_cache 50\ntotal_mapped_file 6\ntotal_swap 8\n"},
      {"memory/pod1/memory.max_usage_in_bytes", "90\n"},
      {"memory/pod1/memory.failcnt", "12\n"},
      {"memory/pod1/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"},
      {"memory/pod1/cgroup.procs", "100\n200\n"},
      {"blkio/pod1/blkio.throttle.io_serviced_recursive", "8:0 Read 3\n8:0 Write 4\n8:0 Total 7\nTotal 7\n"},
      {"blkio/pod1/blkio.throttle.io_service_bytes_recursive", "8:0 Read 1\n8:0 Write 2\nTotal 3\n"}};
  for (const char* controller : {"cpu", "cpuacct", "memory", "blkio"}) {
    ASSERT_TRUE(MakeDirs(dir_ + "/" + controller + "/pod1"));
  }
  for (const auto& [name, text] : kV1) ASSERT_TRUE(WriteFile(dir_ + "/" + name, text));
  const Cgroups v1("", {{"cpu", dir_ + "/cpu"},
                        {"cpuacct", dir_ + "/cpuacct"},
                        {"memory", dir_ + "/memory"},
                        {"blkio", dir_ + "/blkio"}});
  for (const Cgroups& cgroups : {Cgroups(dir_ + "/v2", {}), v1}) {
    const CgroupAccount account = cgroups.Account("/pod1");
    EXPECT_EQ(account.cpu_user_nanos, 5000u);
    EXPECT_EQ(account.cpu_system_nanos, 2000u);
    EXPECT_EQ(account.periods, 9u);
    EXPECT_EQ(account.throttled_periods, 3u);
    EXPECT_EQ(account.throttled_nanos, 11000u);
    EXPECT_EQ(account.cpu_quota_us, 50000u);
    EXPECT_EQ(account.cpu_period_us, 100000u);
    EXPECT_EQ(account.cpu_shares, 998u);
    EXPECT_EQ(account.cache_bytes, 50u);
    EXPECT_EQ(account.mapped_file_bytes, 6u);
    EXPECT_EQ(account.swap_bytes, 8u);
    EXPECT_EQ(account.memory_peak_bytes, 90u);
    EXPECT_EQ(account.memory_limit_hits, 12u);
    EXPECT_EQ(account.oom_kills, 2u);
    EXPECT_EQ(account.processes, 2u);
    EXPECT_EQ(account.io, (std::vector<DeviceIo>{{"8:0", 3, 4, 1, 2}}));
    EXPECT_FALSE(cgroups.Account("/none").cpu_quota_us);
  }
  ASSERT_TRUE(WriteFile(dir_ + "/v2/pod1/cpu.max", "max 100000\n"));
  ASSERT_TRUE(WriteFile(dir_ + "/cpu/pod1/cpu.cfs_quota_us", "-1\n"));
  EXPECT_FALSE(Cgroups(dir_ + "/v2", {}).Account("/pod1").cpu_quota_us);
  EXPECT_FALSE(v1.Account("/pod1").cpu_quota_us);
}

TEST_F(CgroupTest, NewCpusetInheritsFromItsParent) {
  ASSERT_TRUE(MakeDirs(dir_ + "/cpuset/a/b"));
  ASSERT_TRUE(WriteFile(dir_ + "/cpuset/cpuset.cpus", "0-1\n"));
  ASSERT_TRUE(WriteFile(dir_ + "/cpuset/cpuset.mems", "0\n"));
  for (const char* path : {"/a", "/a/b"}) {
    for (const char* file : {"/cpuset.cpus", "/cpuset.mems"}) {
      ASSERT_TRUE(WriteFile(dir_ + "/cpuset" + path + file, "\n"));
    }
  }
  Cgroups cgroups("", {{"cpuset", dir_ + "/cpuset"}, {"cpu", dir_ + "/cpu"}});
  ASSERT_TRUE(cgroups.Create("/a/b", {.cpu_shares = 2}));
  EXPECT_EQ(*ReadFile(dir_ + "/cpuset/a/b/cpuset.cpus"), "0-1");
  EXPECT_EQ(*ReadFile(dir_ + "/cpuset/a/b/cpuset.mems"), "0");
  EXPECT_EQ(*ReadFile(dir_ + "/cpu/a/b/cpu.shares"), "2");
}

TEST_F(CgroupTest, DetectPrefersV1WhenTheUnifiedMountHasNoControllers) {
  std::string hybrid =
      "30 24 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "31 24 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:1 - cgroup cgroup rw,cpu,cpuacct\n"
      "32 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  ASSERT_TRUE(WriteFile(dir_ + "/hybrid", hybrid));
  ASSERT_TRUE(WriteFile(dir_ + "/v2", "30 24 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"));
  ASSERT_TRUE(WriteFile(dir_ + "/none", "30 24 0:25 / / rw - ext4 /dev/vda rw\n"));
  EXPECT_FALSE(Cgroups::Detect(dir_ + "/hybrid")->unified());
  EXPECT_TRUE(Cgroups::Detect(dir_ + "/v2")->unified());
  EXPECT_EQ(Cgroups::Detect(dir_ + "/none").error().code(), Code::kNotFound);
}

TEST(Weight, FollowsShares) {
  EXPECT_EQ(Cgroups::WeightOfShares(2), 1u);
  EXPECT_EQ(Cgroups::WeightOfShares(1024), 39u);
  EXPECT_EQ(Cgroups::WeightOfShares(262144), 10000u);
}

TEST_F(CgroupTest, MountInfoUndoesEscapes) {
  ASSERT_TRUE(WriteFile(
      dir_ + "/m", "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"));
  auto mounts = ListMounts(dir_ + "/m");
  ASSERT_TRUE(mounts);
  ASSERT_EQ(mounts->size(), 1u);
  EXPECT_EQ((*mounts)[0].mount_point, "/mnt 2");
  EXPECT_EQ((*mounts)[0].root, "/mnt1");
  EXPECT_EQ((*mounts)[0].super_options, "rw,errors=continue");
}

}  // namespace
}  // namespace keelson::linux

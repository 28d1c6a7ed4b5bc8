// What the driver asks of LVM: one contract for the real one (tests/vm) and for the fake that stands in for it elsewhere.
#include "csi/local/host/lvm.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include "csi/local/testing/lvm_host.h"
#include "lib/base/file.h"

namespace keelson::csi::local {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kMi = int64_t{1} << 20;

class LvmContractTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/var/tmp/csi_lvm.XXXXXX";
    dir_ = ::mkdtemp(name);
    host_.emplace(dir_);
  }
  void TearDown() override {
    for (const std::string& name : host_->Names()) {
      host_->Run({"lvremove", "--yes", std::string(kTestGroup) + "/" + name});
    }
    host_.reset();
    EXPECT_TRUE(RemoveTree(dir_));
  }
  LogicalVolume Made(const std::string& name, int64_t bytes = 16 * kMi) {
    auto created = lvm_.Create(name, bytes, {"mark"});
    EXPECT_TRUE(created) << created.error().message();
    return Find(name);
  }
  LogicalVolume Find(const std::string& name) {
    auto found = lvm_.Volume(name);
    EXPECT_TRUE(found) << found.error().message();
    return found ? *found : LogicalVolume();
  }
  static void Write(const LogicalVolume& volume, off_t at, const std::string& text) {
    auto fd = OpenFile(volume.device, O_RDWR);
    ASSERT_TRUE(fd) << fd.error().message();
    ASSERT_EQ(::pwrite(fd->get(), text.data(), text.size(), at), static_cast<ssize_t>(text.size()));
    ASSERT_EQ(::fsync(fd->get()), 0);
  }
  static std::string Read(const LogicalVolume& volume, off_t at, size_t size) {
    auto fd = OpenFile(volume.device, O_RDONLY);
    EXPECT_TRUE(fd) << fd.error().message();
    std::string text(size, '?');
    EXPECT_EQ(::pread(fd->get(), text.data(), size, at), static_cast<ssize_t>(size));
    return text;
  }

  std::string dir_;
  std::optional<LvmHost> host_;
  Lvm lvm_{{kTestGroup, kTestPool, kTestTag}};
};

TEST_F(LvmContractTest, AVolumeIsCreatedAndRemoved) {
  const LogicalVolume made = Made("vol-1", 18 * kMi);
  EXPECT_EQ(made.size, 20 * kMi) << "a multiple of the extent";
  EXPECT_TRUE(made.active);
  EXPECT_TRUE(made.HasTag(kTestTag));
  EXPECT_TRUE(made.HasTag("mark"));
  EXPECT_EQ(made.taken, 0) << "nothing is written to it";
  EXPECT_EQ(Read(made, 8 * kMi, 5), std::string(5, '\0'));
  EXPECT_EQ(lvm_.Create("vol-1", kMi, {}).error().code(), Code::kConflict);
  EXPECT_EQ(lvm_.Volumes()->size(), 1u);
  ASSERT_TRUE(lvm_.Remove(made));
  EXPECT_THAT(host_->Names(), IsEmpty());
  EXPECT_EQ(lvm_.Volume("vol-1").error().code(), Code::kNotFound);
  EXPECT_EQ(lvm_.Remove(made).error().code(), Code::kConflict);
}

TEST_F(LvmContractTest, AWriteIsSeenInTheReport) {
  const LogicalVolume made = Made("vol-1", 512 * kMi);
  Write(made, 100 * kMi, "x");
  EXPECT_GT(Find("vol-1").taken, 0) << "however small it is";
}

TEST_F(LvmContractTest, DataOfARemovedVolumeIsNotSeenAgain) {
  LogicalVolume made = Made("vol-1");
  for (off_t at = 0; at < 16 * kMi; at += kMi) Write(made, at, "secret");
  ASSERT_TRUE(lvm_.Remove(made));
  made = Made("vol-2");
  Write(made, 1, "x");  // a block of which the rest has not been written
  for (off_t at = 0; at < 16 * kMi; at += kMi) {
    EXPECT_EQ(Read(made, at + 2, 5), std::string(5, '\0'));
  }
}

TEST_F(LvmContractTest, ASnapshotStandsOnItsOwn) {
  const LogicalVolume made = Made("vol-1");
  Write(made, kMi, "first");
  ASSERT_TRUE(lvm_.Snapshot(made, "snap-1", {"other"}));
  Write(made, kMi, "later");
  const LogicalVolume snapshot = Find("snap-1");
  EXPECT_TRUE(snapshot.active);
  EXPECT_TRUE(snapshot.HasTag(kTestTag));
  EXPECT_TRUE(snapshot.HasTag("other"));
  EXPECT_FALSE(snapshot.HasTag("mark"));
  EXPECT_EQ(snapshot.size, made.size);
  EXPECT_EQ(Read(snapshot, kMi, 5), "first");
  ASSERT_TRUE(lvm_.Remove(made));
  EXPECT_EQ(Read(snapshot, kMi, 5), "first");
  ASSERT_TRUE(lvm_.Snapshot(snapshot, "vol-2", {}));
  Write(Find("vol-2"), kMi, "third");
  EXPECT_EQ(Read(snapshot, kMi, 5), "first");
}

TEST_F(LvmContractTest, AVolumeGrowsAndNeverShrinks) {
  const LogicalVolume made = Made("vol-1");
  Write(made, kMi, "kept");
  ASSERT_TRUE(lvm_.Extend(made, 24 * kMi));
  const LogicalVolume grown = Find("vol-1");
  EXPECT_EQ(grown.size, 24 * kMi);
  EXPECT_EQ(Read(grown, 24 * kMi - 4, 4), std::string(4, '\0'));
  EXPECT_EQ(Read(grown, kMi, 4), "kept");
  ASSERT_TRUE(lvm_.Extend(grown, 8 * kMi));
  EXPECT_EQ(Find("vol-1").size, 24 * kMi);
}

TEST_F(LvmContractTest, MarksComeAndGo) {
  LogicalVolume made = Made("vol-1");
  ASSERT_TRUE(lvm_.SetMark(made, "mark", false));
  ASSERT_TRUE(lvm_.SetMark(made, "a.b/c", true));
  made = Find("vol-1");
  EXPECT_THAT(made.tags, testing::UnorderedElementsAre(kTestTag, "a.b/c"));
  EXPECT_TRUE(lvm_.SetMark(made, "a.b/c", true));
}

TEST_F(LvmContractTest, AVolumeIsActivated) {
  Made("vol-1");
  host_->Run({"lvchange", "--yes", "--activate", "n", "group/vol-1"});
  const LogicalVolume idle = Find("vol-1");
  EXPECT_FALSE(idle.active);
  EXPECT_FALSE(idle.taken);
  ASSERT_TRUE(lvm_.Activate(idle));
  const LogicalVolume active = Find("vol-1");
  EXPECT_TRUE(active.active);
  EXPECT_EQ(Read(active, 0, 1), std::string(1, '\0'));
}

TEST_F(LvmContractTest, OthersVolumesAreNotTouched) {
  host_->Run({"lvcreate", "--yes", "--type", "thin", "--thinpool", kTestPool, "--name", "theirs",
              "--virtualsize", "16777216b", kTestGroup});
  EXPECT_THAT(*lvm_.Volumes(), IsEmpty());
  EXPECT_EQ(lvm_.Volume("theirs").error().code(), Code::kConflict);
  EXPECT_EQ(Lvm({kTestGroup, kTestPool, "keelson.csi.local/other/node1"}).Volumes()->size(), 0u);
  EXPECT_THAT(host_->Names(), ElementsAre("theirs"));
}

TEST_F(LvmContractTest, ThePoolIsDescribed) {
  const auto pool = lvm_.Pool();
  ASSERT_TRUE(pool) << pool.error().message();
  EXPECT_EQ(pool->size, int64_t{1} << 30);
  EXPECT_EQ(pool->extent, 4 * kMi);
  EXPECT_TRUE(pool->zeroes);
  const LogicalVolume made = Made("vol-1");
  Write(made, 0, std::string(16 * kMi, 'x'));
  EXPECT_LT(lvm_.Pool()->free, pool->free - 15 * kMi);
  host_->StopZeroing();
  EXPECT_EQ(lvm_.Pool().error().code(), Code::kConflict);
}

TEST_F(LvmContractTest, GroupAndPoolHaveToBeThere) {
  EXPECT_EQ(Lvm({"missing", kTestPool, kTestTag}).Pool().error().code(), Code::kConflict);
  EXPECT_EQ(Lvm({"missing", kTestPool, kTestTag}).Volumes().error().code(), Code::kConflict);
  EXPECT_EQ(Lvm({kTestGroup, "missing", kTestTag}).Pool().error().code(), Code::kConflict);
}

}  // namespace
}  // namespace keelson::csi::local

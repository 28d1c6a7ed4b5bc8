// Snapshot controllers that end between any two writes: the next ones finish the work, and nothing is left over.
#include <gmock/gmock.h>

#include "csi/controller/testing/snapshot_test.h"

namespace keelson::csi::controller {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class SnapshotKillTest : public SnapshotTest {
 protected:
  void SetUp() override {
    SnapshotTest::SetUp();
    PutClass("fast");
    PutClass("kept", "Retain");
    PutClaim("data");
  }
  bool CutAfter(int writes, const std::function<bool()>& done) {
    return ControllerTest::CutAfter([&] { Start(); }, writes, done);
  }
  bool IsReady(const std::string& name) {
    const auto snapshot = GetSnapshot(name);
    return snapshot && snapshot->IsReady();
  }
};

TEST_F(SnapshotKillTest, LifeOfASnapshot) {
  bool cut = true;
  for (int writes = 0; cut; ++writes) {
    SCOPED_TRACE(writes);
    ASSERT_LT(writes, 30);
    cut = false;
    const std::string name = "s" + std::to_string(writes);
    const std::string content = "snapcontent-" + PutSnapshot(name, "data").meta.uid();
    cut |= CutAfter(writes, [&] { return IsReady(name) && !IsProtected("data"); });
    EXPECT_THAT(driver_->Snapshots(), SizeIs(1));
    DeleteSnapshot(name);
    cut |= CutAfter(writes, [&] { return !GetSnapshot(name) && !GetContent(content); });
    EXPECT_THAT(driver_->Snapshots(), IsEmpty());
  }
}

// Deleted while nothing is known of its beginning.
TEST_F(SnapshotKillTest, AnEarlyEnd) {
  bool cut = true;
  for (int writes = 0; cut; ++writes) {
    SCOPED_TRACE(writes);
    ASSERT_LT(writes, 30);
    const std::string name = "s" + std::to_string(writes);
    const std::string content = "snapcontent-" + PutSnapshot(name, "data").meta.uid();
    cut = RunUntilCut([&] { Start(); }, writes, [&] { return IsReady(name); });
    DeleteSnapshot(name);
    Start();
    EXPECT_TRUE(
        Eventually([&] { return !GetSnapshot(name) && !GetContent(content) && !IsProtected("data"); }));
    StopControllers();
    EXPECT_THAT(driver_->Snapshots(), IsEmpty());
  }
}

TEST_F(SnapshotKillTest, ARetainedContent) {
  bool cut = true;
  for (int writes = 0; cut; ++writes) {
    SCOPED_TRACE(writes);
    ASSERT_LT(writes, 30);
    const std::string name = "s" + std::to_string(writes);
    const std::string content = "snapcontent-" + PutSnapshot(name, "data", "kept").meta.uid();
    cut = CutAfter(writes, [&] { return IsReady(name) && !IsProtected("data"); });
    DeleteSnapshot(name);
    cut |= CutAfter(writes, [&] { return !GetSnapshot(name); });
    EXPECT_TRUE(GetContent(content));
  }
  EXPECT_EQ(driver_->Count("DeleteSnapshot"), 0);
}

}  // namespace
}  // namespace keelson::csi::controller

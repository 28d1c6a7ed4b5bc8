#include "kubelet/stats/slow_volumes.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "lib/base/mutex.h"

namespace keelson::kubelet {
namespace {

using std::chrono::minutes;

// Measures at once, but for servers that are away.
class Servers {
 public:
  FsUsage Measure(const std::string& path) {
    MutexLock lock(mutex_);
    ++asked_[path];
    changed_.notify_all();
    while (away_) changed_.wait(mutex_);
    FsUsage out;
    out.used = used_;
    return out;
  }
  void Set(bool away, uint64_t used) {
    MutexLock lock(mutex_);
    away_ = away;
    used_ = used;
    changed_.notify_all();
  }
  int Asked(const std::string& path) {
    MutexLock lock(mutex_);
    return asked_[path];
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool away_ KEELSON_GUARDED_BY(mutex_) = false;
  uint64_t used_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int> asked_ KEELSON_GUARDED_BY(mutex_);
};

class SlowVolumesTest : public ::testing::Test {
 protected:
  // Long patience where an answer will come, none where it cannot.
  SlowVolumes Make(std::chrono::milliseconds patience) {
    return SlowVolumes([servers = servers_](const std::string& path) { return servers->Measure(path); },
                       minutes(1), clock_, patience);
  }
  std::shared_ptr<Servers> servers_ = std::make_shared<Servers>();  // threads may outlive the test
  FakeClock clock_;
};

TEST_F(SlowVolumesTest, FiguresAreGoodForAPeriod) {
  SlowVolumes volumes = Make(minutes(1));
  servers_->Set(false, 7);
  EXPECT_EQ(volumes.Latest("/a")->used, 7u);
  servers_->Set(false, 8);
  clock_.Advance(std::chrono::seconds(59));
  EXPECT_EQ(volumes.Latest("/a")->used, 7u);
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(volumes.Latest("/a")->used, 8u);
  EXPECT_EQ(volumes.Latest("/b")->used, 8u);
  EXPECT_EQ(servers_->Asked("/a"), 2);
  clock_.Advance(minutes(10));
  volumes.Forget(minutes(9));
  EXPECT_EQ(volumes.Latest("/a")->used, 8u);
  EXPECT_EQ(servers_->Asked("/a"), 3);
}

TEST_F(SlowVolumesTest, AServerThatIsAwayHoldsNobodyUp) {
  SlowVolumes volumes = Make(std::chrono::milliseconds(0));
  servers_->Set(true, 7);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(volumes.Latest("/a"));
    clock_.Advance(minutes(2));
  }
  EXPECT_LE(servers_->Asked("/a"), 1) << "one look hangs, and no other is begun";
  servers_->Set(false, 7);
  clock_.Advance(minutes(2));
  while (!volumes.Latest("/a")) std::this_thread::yield();
  servers_->Set(true, 9);
  clock_.Advance(minutes(2));
  EXPECT_EQ(volumes.Latest("/a")->used, 7u) << "what was found last";
  volumes.Forget(minutes(0));
  EXPECT_EQ(volumes.Latest("/a")->used, 7u) << "it is being measured";
  servers_->Set(false, 9);
}

}  // namespace
}  // namespace keelson::kubelet

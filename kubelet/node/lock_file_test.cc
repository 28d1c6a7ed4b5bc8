#include "kubelet/node/lock_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <future>

#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

class LockFileTest : public ::testing::Test {
 protected:
  const std::string path_ = ::testing::TempDir() + "lock_file_test." + std::to_string(::getpid());
  void TearDown() override { ::unlink(path_.c_str()); }
};

TEST_F(LockFileTest, OneHoldsItAndTheNextFollows) {
  auto first = std::make_optional(LockFile::Take(path_));
  ASSERT_TRUE(*first) << first->error().message();
  // Gives way as soon as it hears of the other.
  auto given_way = std::async(std::launch::async, [&] {
    auto asked = (*first)->AwaitOther({});
    EXPECT_TRUE(asked) << asked.error().message();
    first.reset();
  });
  auto second = LockFile::Take(path_);
  ASSERT_TRUE(second) << second.error().message();
  given_way.get();
  EXPECT_FALSE(first.has_value()) << "both held it";
}

TEST_F(LockFileTest, WhoStopsWaitsNoLonger) {
  auto lock = LockFile::Take(path_);
  ASSERT_TRUE(lock);
  std::stop_source stop;
  stop.request_stop();
  auto asked = lock->AwaitOther(stop.get_token());
  ASSERT_FALSE(asked);
  EXPECT_TRUE(asked.error().Is(Code::kCancelled));
}

TEST_F(LockFileTest, APlaceThatIsNotThereIsSaid) {
  auto lock = LockFile::Take("/nonexistent/lock");
  ASSERT_FALSE(lock);
  EXPECT_NE(lock.error().message().find("/nonexistent/lock"), std::string::npos) << lock.error().message();
}

}  // namespace
}  // namespace keelson::kubelet

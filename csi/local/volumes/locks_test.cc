#include "csi/local/volumes/locks.h"

#include <gtest/gtest.h>

#include <optional>

namespace keelson::csi::local {
namespace {

TEST(LocksTest, OneExclusiveOrSeveralShared) {
  Locks locks;
  {
    auto one = locks.Exclusive("a");
    ASSERT_TRUE(one);
    EXPECT_EQ(locks.Exclusive("a").error().code(), Code::kUnavailable);
    EXPECT_EQ(locks.Shared("a").error().message(), "another operation on a is in progress");
    EXPECT_TRUE(locks.Exclusive("b"));
  }
  {
    auto one = locks.Shared("a");
    std::optional<Result<Locks::Held>> two = locks.Shared("a");
    ASSERT_TRUE(one);
    ASSERT_TRUE(*two);
    EXPECT_FALSE(locks.Exclusive("a"));
    two.reset();
    EXPECT_FALSE(locks.Exclusive("a"));
  }
  EXPECT_TRUE(locks.Exclusive("a"));
}

}  // namespace
}  // namespace keelson::csi::local

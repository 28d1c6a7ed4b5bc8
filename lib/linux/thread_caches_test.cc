#include "lib/linux/thread_caches.h"

#include <gtest/gtest.h>

namespace keelson::linux {
namespace {

TEST(ThreadCaches, AreTurnedOffWhereNobodyHasSaidAnything) {
  EXPECT_EQ(WithoutThreadCaches(nullptr), "glibc.malloc.tcache_count=0");
  EXPECT_EQ(WithoutThreadCaches(""), "glibc.malloc.tcache_count=0");
  EXPECT_EQ(WithoutThreadCaches("glibc.malloc.check=1"), "glibc.malloc.check=1:glibc.malloc.tcache_count=0");
}

TEST(ThreadCaches, StayAsTheyWereAskedFor) {
  EXPECT_EQ(WithoutThreadCaches("glibc.malloc.tcache_count=7"), std::nullopt);
  EXPECT_EQ(WithoutThreadCaches("glibc.malloc.check=1:glibc.malloc.tcache_count=0"), std::nullopt);
}

}  // namespace
}  // namespace keelson::linux

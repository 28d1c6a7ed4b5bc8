#include "lib/linux/file_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace keelson::linux {
namespace {

const char kText[] = "constants stay what they are";

// Code that is let go of meanwhile, and data that is not in any file as it is.
TEST(FilePagesTest, ProgramsGoOn) {
  std::string changed = "heap";
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 50; ++round) {
        ReleaseFilePages();
        std::string text;
        for (int n = 0; n < 100; ++n) text += std::to_string(n);
        EXPECT_EQ(text.size(), 190u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(changed, "heap");
  EXPECT_EQ(std::string(kText), "constants stay what they are");
  EXPECT_EQ(::getpid(), ::getpid());
}

}  // namespace
}  // namespace keelson::linux

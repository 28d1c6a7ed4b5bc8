#include "lib/k8s/text/index_ranges.h"

#include <gtest/gtest.h>

namespace keelson::k8s {
namespace {

TEST(IndexRanges, Parses) {
  const auto ranges = ParseIndexRanges("0,2-4,7", 8);
  ASSERT_TRUE(ranges);
  EXPECT_EQ(*ranges, (IndexRanges{{0, 0}, {2, 4}, {7, 7}}));
  EXPECT_EQ(CountIndexes(*ranges), 5);
  EXPECT_EQ(CountIndexes(*ParseIndexRanges("", 8)), 0);
  EXPECT_EQ(FirstOverlap(*ranges, {{1, 1}, {4, 6}}), 4);
  EXPECT_EQ(FirstOverlap(*ranges, {{5, 6}}), std::nullopt);
}

TEST(IndexRanges, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"a", R"(cannot convert string to integer for index: "a")"},
      {"9", R"(too large index: "9")"},
      {"1-9", R"(too large index: "9")"},
      {"3-2", "non-increasing order, previous: 3, current: 2"},
      {"3,3", "non-increasing order, previous: 3, current: 3"},
      {"1-2-3",
       R"(the fragment "1-2-3" violates the requirement that an index interval can have at most two )"
       R"(parts separated by '-')"},
  };
  for (const auto& [text, message] : cases) {
    const auto ranges = ParseIndexRanges(text, 8);
    ASSERT_FALSE(ranges) << text;
    EXPECT_EQ(ranges.error().message(), message);
  }
}

}  // namespace
}  // namespace keelson::k8s

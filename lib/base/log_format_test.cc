#include "lib/base/log_format.h"

#include <gtest/gtest.h>

namespace keelson::log {
namespace {

TEST(LogFormat, Json) {
  const std::pair<std::string_view, std::string> fields[] = {{"pod", "default/\"web\""},
                                                             {"err", "a\nb\x01\xff\xc3\xa4"}};
  EXPECT_EQ(
      JsonLine(1732396800123.5, 0, "Pod started", fields, 2),
      R"({"ts":1732396800123.500,"msg":"Pod started","v":0,"pod":"default/\"web\"","err":"a\nb\u0001\ufffd)"
      "\xc3\xa4\"}");
  EXPECT_EQ(JsonLine(1, -1, "It failed", nullptr, 0), R"({"ts":1.000,"msg":"It failed"})");
}

TEST(LogFormat, Names) {
  EXPECT_TRUE(SetFormat("json"));
  EXPECT_TRUE(SetFormat("text"));
  const Result<> other = SetFormat("xml");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message(), "Unsupported log format: \"xml\"");
}

}  // namespace
}  // namespace keelson::log

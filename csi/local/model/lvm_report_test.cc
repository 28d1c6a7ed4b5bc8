#include "csi/local/model/lvm_report.h"

#include <gtest/gtest.h>

namespace keelson::csi::local {
namespace {

// As lvm 2.03 prints them.
constexpr char kVolumes[] = R"({"report": [{"lv": [
  {"lv_name":"pool", "lv_size":"1073741824", "lv_tags":"", "pool_lv":"", "lv_dm_path":"/dev/mapper/g-pool", "lv_active":"active", "data_percent":"3.12"},
  {"lv_name":"vol-a", "lv_size":"67108864", "lv_tags":"x/y,z", "pool_lv":"pool", "lv_dm_path":"/dev/mapper/g-vol--a", "lv_active":"active", "data_percent":"25.00"},
  {"lv_name":"vol-b", "lv_size":"4194304", "lv_tags":"", "pool_lv":"pool", "lv_dm_path":"/dev/mapper/g-vol--b", "lv_active":"", "data_percent":""}
]}]})";

std::string Pool(const std::string& type, const std::string& data, const std::string& zero) {
  return R"({"report": [{"lv": [{"lv_name":"pool", "segtype":")" + type +
         R"(", "lv_size":"1073741824", "data_percent":")" + data +
         R"(", "metadata_percent":"10.84", "zero":")" + zero + R"(", "vg_extent_size":"4194304"}]}]})";
}

TEST(LvmReportTest, Volumes) {
  const auto volumes = ParseVolumes(kVolumes);
  ASSERT_TRUE(volumes) << volumes.error().message();
  ASSERT_EQ(volumes->size(), 3u);
  const LogicalVolume& a = volumes->at(1);
  EXPECT_EQ(a.name, "vol-a");
  EXPECT_EQ(a.size, 64 << 20);
  EXPECT_EQ(a.pool, "pool");
  EXPECT_EQ(a.device, "/dev/mapper/g-vol--a");
  EXPECT_TRUE(a.active);
  EXPECT_EQ(a.Taken(), 16 << 20);
  EXPECT_TRUE(a.HasTag("x/y"));
  EXPECT_TRUE(a.HasTag("z"));
  EXPECT_FALSE(a.HasTag("x"));
  const LogicalVolume& b = volumes->at(2);
  EXPECT_FALSE(b.active);
  EXPECT_FALSE(b.taken);
  EXPECT_EQ(b.Taken(), 0);
  EXPECT_FALSE(b.HasTag(""));
}

TEST(LvmReportTest, ThePool) {
  const auto pool = ParsePool(Pool("thin-pool", "25.00", "1"));
  ASSERT_TRUE(pool) << pool.error().message();
  EXPECT_EQ(pool->size, 1 << 30);
  EXPECT_EQ(pool->free, (1 << 30) / 4 * 3);
  EXPECT_EQ(pool->extent, 4 << 20);
  EXPECT_EQ(pool->metadata, 10.84);
  EXPECT_TRUE(pool->zeroes);
  EXPECT_FALSE(ParsePool(Pool("thin-pool", "25.00", "0"))->zeroes);
  EXPECT_FALSE(ParsePool(Pool("thin-pool", "25.00", "-1"))->zeroes) << "not known";
  EXPECT_EQ(ParsePool(Pool("linear", "", "")).error().code(), Code::kConflict);
  EXPECT_EQ(ParsePool(Pool("thin-pool", "", "1")).error().code(), Code::kConflict) << "it is not active";
}

TEST(LvmReportTest, WhatIsNoReport) {
  for (
      const char* text :
      {"", "{", "[]", R"({"report": []})", R"({"report": [{"lv": 1}]})", R"({"report": [{"lv": [1]}]})",
       R"({"report": [{"lv": [{"lv_name":"a"}]}]})",
       R"({"report": [{"lv": [{"lv_name":"a","lv_size":"4m","lv_tags":"","pool_lv":"","lv_dm_path":"","lv_active":"","data_percent":""}]}]})"}) {
    const auto volumes = ParseVolumes(text);
    ASSERT_FALSE(volumes) << text;
    EXPECT_EQ(volumes.error().code(), Code::kInternal) << text;
  }
  EXPECT_FALSE(ParsePool(kVolumes));
}

}  // namespace
}  // namespace keelson::csi::local

#include "csi/local/model/condition.h"

#include <gtest/gtest.h>

namespace keelson::csi::local {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;

VolumeRecord Volume(bool thick) { return {"vol-1", "a", kGi, thick, false, 0, "", ""}; }

TEST(ConditionTest, AVolumeIsInOrderWithItsFileAndRoom) {
  EXPECT_EQ(Complaint(Volume(false), {kGi, 0, kGi}), "");
  EXPECT_EQ(Complaint(Volume(false), {2 * kGi, 0, kGi}), "");
}

TEST(ConditionTest, WhatIsWrongIsNamed) {
  EXPECT_EQ(Complaint(Volume(false), {std::nullopt, std::nullopt, kGi}),
            "the volume's file is missing or cannot be read");
  EXPECT_EQ(Complaint(Volume(false), {4096, 0, kGi}), "the volume's file has 4096 bytes of 1073741824");
  EXPECT_EQ(Complaint(Volume(false), {kGi, 0, std::nullopt}),
            "the file system of the data directory cannot be read");
  EXPECT_EQ(Complaint(Volume(false), {kGi, 0, 4096}),
            "the data directory has only 4096 bytes left: writes to this thin volume may fail");
}

TEST(ConditionTest, AFullDiskDoesNotConcernWhatIsReserved) {
  EXPECT_EQ(Complaint(Volume(true), {kGi, kGi, 0}), "");
  EXPECT_EQ(Complaint(Volume(false), {kGi, kGi, 0}), "");
}

}  // namespace
}  // namespace keelson::csi::local

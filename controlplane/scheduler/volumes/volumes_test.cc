// Assumed claims and events of the same claims, in any order.
#include "controlplane/scheduler/volumes/volumes.h"

#include <gtest/gtest.h>

namespace keelson::scheduler {
namespace {

VolumeCatalog::Claim ClaimAt(int version, const std::string& volume = "") {
  VolumeCatalog::Claim claim;
  claim.mutable_metadata()->set_namespace_("default");
  claim.mutable_metadata()->set_name("c");
  claim.mutable_metadata()->set_resource_version(std::to_string(version));
  claim.mutable_spec()->set_volume_name(volume);
  return claim;
}

class VolumeCatalogTest : public ::testing::Test {
 protected:
  void Told(const VolumeCatalog::Claim& claim) {
    catalog_.SetClaim("default/c", std::make_shared<const VolumeCatalog::Claim>(claim));
  }
  std::string VolumeOfClaim() {
    const auto claim = catalog_.FindClaim("default", "c");
    return claim ? claim->spec().volume_name() : "no claim";
  }
  VolumeCatalog catalog_;
};

TEST_F(VolumeCatalogTest, WhatIsAssumedStandsUntilNewerIsTold) {
  Told(ClaimAt(5));
  catalog_.Assume(ClaimAt(5, "assumed"));
  EXPECT_EQ(VolumeOfClaim(), "assumed");
  Told(ClaimAt(5));
  EXPECT_EQ(VolumeOfClaim(), "assumed");
  Told(ClaimAt(6, "told"));
  EXPECT_EQ(VolumeOfClaim(), "told");
}

TEST_F(VolumeCatalogTest, AnAnswerThatComesLateHidesNothingNewer) {
  Told(ClaimAt(5));
  catalog_.Assume(ClaimAt(5, "assumed"));
  Told(ClaimAt(6, "written"));
  Told(ClaimAt(7, "bound"));
  catalog_.Assume(ClaimAt(6, "written"));
  EXPECT_EQ(VolumeOfClaim(), "bound");
}

TEST_F(VolumeCatalogTest, NothingIsAssumedOfWhatIsGone) {
  Told(ClaimAt(5));
  catalog_.SetClaim("default/c", nullptr);
  catalog_.Assume(ClaimAt(6, "written"));
  EXPECT_EQ(VolumeOfClaim(), "no claim");
}

TEST_F(VolumeCatalogTest, ForgettingBringsBackWhatWasTold) {
  Told(ClaimAt(5, "told"));
  catalog_.Assume(ClaimAt(5, "assumed"));
  catalog_.RestoreClaim("default/c");
  EXPECT_EQ(VolumeOfClaim(), "told");
}

}  // namespace
}  // namespace keelson::scheduler

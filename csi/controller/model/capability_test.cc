#include "csi/controller/model/capability.h"

#include <gtest/gtest.h>

namespace keelson::csi::controller {
namespace {

using Mode = v1::VolumeCapability::AccessMode;

struct Case {
  std::vector<std::string> modes;
  Mode::Mode plain, multi_writer;  // UNKNOWN: an error
};

TEST(CapabilityTest, TakesTheModeThatAllowsAll) {
  const Case cases[] = {
      {{"ReadWriteOnce"}, Mode::SINGLE_NODE_WRITER, Mode::SINGLE_NODE_MULTI_WRITER},
      {{"ReadWriteOncePod"}, Mode::SINGLE_NODE_WRITER, Mode::SINGLE_NODE_SINGLE_WRITER},
      {{"ReadOnlyMany"}, Mode::MULTI_NODE_READER_ONLY, Mode::MULTI_NODE_READER_ONLY},
      {{"ReadWriteMany"}, Mode::MULTI_NODE_MULTI_WRITER, Mode::MULTI_NODE_MULTI_WRITER},
      {{"ReadWriteOnce", "ReadWriteMany"}, Mode::MULTI_NODE_MULTI_WRITER, Mode::MULTI_NODE_MULTI_WRITER},
      {{"ReadWriteOnce", "ReadOnlyMany"}, Mode::UNKNOWN, Mode::UNKNOWN},
      {{"ReadWriteOncePod", "ReadWriteOnce"}, Mode::UNKNOWN, Mode::UNKNOWN},
      {{"Else"}, Mode::UNKNOWN, Mode::UNKNOWN},
      {{}, Mode::UNKNOWN, Mode::UNKNOWN},
  };
  for (const Case& c : cases) {
    Volume volume;
    for (const std::string& mode : c.modes) volume.mutable_spec()->add_access_modes(mode);
    for (const bool multi : {false, true}) {
      const auto made = VolumeCapability(volume, multi);
      const Mode::Mode expected = multi ? c.multi_writer : c.plain;
      ASSERT_EQ(made.has_value(), expected != Mode::UNKNOWN) << volume.ShortDebugString();
      if (made) {
        EXPECT_EQ(made->access_mode().mode(), expected) << volume.ShortDebugString();
      }
    }
  }
}

TEST(CapabilityTest, ToldApartForANewVolume) {
  Claim claim;
  claim.mutable_spec()->add_access_modes("ReadWriteOnce");
  claim.mutable_spec()->add_access_modes("ReadOnlyMany");
  auto made = ClaimCapabilities(claim, {"xfs", {"noatime"}}, false);
  ASSERT_TRUE(made);
  ASSERT_EQ(made->size(), 2U);
  EXPECT_EQ((*made)[0].access_mode().mode(), Mode::SINGLE_NODE_WRITER);
  EXPECT_EQ((*made)[1].access_mode().mode(), Mode::MULTI_NODE_READER_ONLY);
  EXPECT_EQ((*made)[0].mount().fs_type(), "xfs");
  EXPECT_EQ((*made)[0].mount().mount_flags(0), "noatime");
  claim.mutable_spec()->set_volume_mode("Block");
  made = ClaimCapabilities(claim, {"xfs", {}}, false);
  ASSERT_TRUE(made);
  EXPECT_TRUE((*made)[0].has_block());
}

}  // namespace
}  // namespace keelson::csi::controller

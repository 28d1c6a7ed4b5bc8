#include "csi/local/model/requests.h"

#include <gtest/gtest.h>

#include "csi/local/model/ids.h"

namespace keelson::csi::local {
namespace {

using Mode = v1::VolumeCapability::AccessMode;
using Capabilities = google::protobuf::RepeatedPtrField<v1::VolumeCapability>;

v1::VolumeCapability Mount(const std::string& type = "", Mode::Mode mode = Mode::SINGLE_NODE_WRITER) {
  v1::VolumeCapability out;
  out.mutable_mount()->set_fs_type(type);
  out.mutable_access_mode()->set_mode(mode);
  return out;
}

v1::VolumeCapability Block(Mode::Mode mode = Mode::SINGLE_NODE_WRITER) {
  v1::VolumeCapability out;
  out.mutable_block();
  out.mutable_access_mode()->set_mode(mode);
  return out;
}

v1::CapacityRange Range(int64_t required, int64_t limit) {
  v1::CapacityRange out;
  out.set_required_bytes(required);
  out.set_limit_bytes(limit);
  return out;
}

Strings Map(const std::map<std::string, std::string>& values) { return {values.begin(), values.end()}; }

TEST(RequestsTest, NamesHaveUpTo128Bytes) {
  EXPECT_EQ(CheckName("").error().code(), Code::kInvalid);
  EXPECT_TRUE(CheckName(std::string(128, 'x')));
  EXPECT_TRUE(CheckName("../../etc/passwd \n\t\xc3\xa4"));
  EXPECT_EQ(CheckName(std::string(129, 'x')).error().code(), Code::kInvalid);
}

TEST(RequestsTest, IdentitiesAreHashesAndNeverPaths) {
  const std::string id = MakeId(Kind::kVolume, "node1", "../../etc");
  EXPECT_TRUE(IsId(Kind::kVolume, id));
  EXPECT_EQ(id, MakeId(Kind::kVolume, "node1", "../../etc"));
  EXPECT_NE(id, MakeId(Kind::kVolume, "node2", "../../etc"));
  EXPECT_NE(MakeId(Kind::kVolume, "a", "bc"), MakeId(Kind::kVolume, "ab", "c"));
  EXPECT_FALSE(IsId(Kind::kSnapshot, id));
  for (const char* other : {"", "vol-", "fake-vol-id", "vol-../../../../../../../../../../../etc/passwd"}) {
    EXPECT_FALSE(IsId(Kind::kVolume, other)) << other;
  }
  EXPECT_FALSE(IsId(Kind::kVolume, id + "0"));
  std::string upper = id;
  upper.back() = 'F';
  EXPECT_FALSE(IsId(Kind::kVolume, upper));
}

TEST(RequestsTest, ParametersAreKnownOrRefused) {
  EXPECT_FALSE(ParseParameters({})->thick);
  EXPECT_FALSE(ParseParameters(Map({{"type", "file"}, {"provisioning", "thin"}}))->thick);
  EXPECT_TRUE(ParseParameters(Map({{"provisioning", "thick"}}))->thick);
  EXPECT_TRUE(ParseParameters(Map({{"csi.storage.k8s.io/pvc/name", "data"}})));
  EXPECT_EQ(ParseParameters(Map({{"provisioning", "fat"}})).error().message(),
            "parameter provisioning: \"fat\" is none of: thin, thick");
  EXPECT_TRUE(ParseParameters(Map({{"type", "directory"}}))->directory);
  EXPECT_EQ(ParseParameters(Map({{"type", "directory"}, {"provisioning", "thick"}})).error().code(),
            Code::kInvalid);
  EXPECT_TRUE(ParseParameters(Map({{"type", "lvm"}}))->logical);
  EXPECT_EQ(ParseParameters(Map({{"type", "lvm"}, {"provisioning", "thick"}})).error().code(),
            Code::kInvalid);
  EXPECT_EQ(ParseParameters(Map({{"type", "nfs"}})).error().message(),
            "parameter type: \"nfs\" is none of: file, directory, lvm");
  EXPECT_EQ(ParseParameters(Map({{"replicas", "3"}})).error().message(), "parameter \"replicas\" is unknown");
  EXPECT_TRUE(CheckSnapshotParameters(Map({{"csi.storage.k8s.io/volumesnapshot/name", "s"}})));
  EXPECT_FALSE(CheckSnapshotParameters(Map({{"x", "y"}})));
  EXPECT_TRUE(CheckVolumeContext(Map({{"storage.kubernetes.io/csiProvisionerIdentity", "1-local"}})));
  EXPECT_FALSE(CheckVolumeContext(Map({{"x", "y"}})));
}

TEST(RequestsTest, CapabilitiesAreOfOneNode) {
  for (auto mode : {Mode::SINGLE_NODE_WRITER, Mode::SINGLE_NODE_READER_ONLY, Mode::SINGLE_NODE_SINGLE_WRITER,
                    Mode::SINGLE_NODE_MULTI_WRITER}) {
    EXPECT_TRUE(CheckCapability(Mount("", mode)));
    EXPECT_TRUE(CheckCapability(Block(mode)));
  }
  for (auto mode : {Mode::UNKNOWN, Mode::MULTI_NODE_READER_ONLY, Mode::MULTI_NODE_SINGLE_WRITER,
                    Mode::MULTI_NODE_MULTI_WRITER}) {
    EXPECT_EQ(CheckCapability(Mount("", mode)).error().code(), Code::kInvalid);
  }
  EXPECT_TRUE(CheckCapability(Mount("xfs")));
  EXPECT_FALSE(CheckCapability(Mount("btrfs")));
  EXPECT_FALSE(CheckCapability(Mount("../ext4")));
  v1::VolumeCapability neither = Mount();
  neither.clear_mount();
  EXPECT_FALSE(CheckCapability(neither));
  v1::VolumeCapability group = Mount();
  group.mutable_mount()->set_volume_mount_group("1000");
  EXPECT_FALSE(CheckCapability(group));
  EXPECT_FALSE(CheckCapabilities({}));
}

TEST(RequestsTest, CapacityIsWithinTheRange) {
  struct Case {
    int64_t required, limit, least, want;  // want 0: OUT_OF_RANGE, -1: INVALID_ARGUMENT
  };
  constexpr int64_t kMi = 1 << 20;
  const Case cases[] = {
      {0, 0, 4 * kMi, kDefaultCapacity},
      {0, 64 * kMi, 4 * kMi, 64 * kMi},
      {0, 64 * kMi + 1, 4 * kMi, 64 * kMi},
      {1, 0, 4 * kMi, 4 * kMi},
      {8 * kMi, 8 * kMi, 4 * kMi, 8 * kMi},
      {8 * kMi + 1, 0, 4 * kMi, 8 * kMi + kBlock},
      {8 * kMi + 1, 8 * kMi + 2, 4 * kMi, 0},
      {1, 1 * kMi, 4 * kMi, 0},
      {8 * kMi, 4 * kMi, 4 * kMi, -1},
      {-1, 0, 4 * kMi, -1},
      {0, -1, 4 * kMi, -1},
      {INT64_MAX, 0, 4 * kMi, 0},
      {8 * kMi, 8 * kMi, 16 * kMi, 0},
      {8 * kMi, 0, 16 * kMi, 16 * kMi},
  };
  for (const Case& c : cases) {
    auto capacity = DecideCapacity(Range(c.required, c.limit), c.least);
    if (c.want > 0) {
      ASSERT_TRUE(capacity) << c.required << " " << c.limit;
      EXPECT_EQ(*capacity, c.want) << c.required << " " << c.limit;
    } else {
      ASSERT_FALSE(capacity) << c.required << " " << c.limit;
      EXPECT_EQ(capacity.error().code(), c.want == 0 ? Code::kGone : Code::kInvalid) << c.required;
    }
  }
}

TEST(RequestsTest, XfsNeedsMore) {
  Capabilities capabilities;
  *capabilities.Add() = Block();
  EXPECT_EQ(LeastCapacity(capabilities), 4 << 20);
  *capabilities.Add() = Mount("xfs");
  EXPECT_EQ(LeastCapacity(capabilities), 300 << 20);
}

TEST(RequestsTest, ARequirementNamesTheNode) {
  v1::TopologyRequirement requirement;
  EXPECT_TRUE(Reaches(requirement, "key", "a"));
  (*requirement.add_preferred()->mutable_segments())["key"] = "b";
  EXPECT_TRUE(Reaches(requirement, "key", "a"));
  (*requirement.add_requisite()->mutable_segments())["key"] = "b";
  EXPECT_FALSE(Reaches(requirement, "key", "a"));
  (*requirement.add_requisite()->mutable_segments())["key"] = "a";
  EXPECT_TRUE(Reaches(requirement, "key", "a"));
}

TEST(RequestsTest, ThinVolumesPromiseUpToTheRatio) {
  EXPECT_EQ(ThinCapacity(100, 1, 0, 0), 100);
  EXPECT_EQ(ThinCapacity(100, 1, 60, 20), 60);
  EXPECT_EQ(ThinCapacity(100, 10, 60, 20), 960);
  EXPECT_EQ(ThinCapacity(100, 1, 200, 20), 0);
  EXPECT_EQ(ThinCapacity(0, 10, 0, 0), 0);
  EXPECT_EQ(ThinCapacity(100, 1, 20, 60), 100);
}

TEST(RequestsTest, PagesGoOnAfterTheLastIdentity) {
  const std::vector<std::string> ids = {"b", "d", "f"};
  auto is_token = [](const std::string& token) { return token.size() == 1; };
  auto page = MakePage(ids, 0, "", is_token);
  EXPECT_EQ(page->end, 3u);
  EXPECT_EQ(page->next_token, "");
  page = MakePage(ids, 2, "", is_token);
  EXPECT_EQ(page->end, 2u);
  EXPECT_EQ(page->next_token, "d");
  page = MakePage(ids, 2, "d", is_token);
  EXPECT_EQ(page->begin, 2u);
  EXPECT_EQ(page->end, 3u);
  EXPECT_EQ(page->next_token, "");
  // The token's own entry may be gone, and others may have come.
  page = MakePage(ids, 1, "c", is_token);
  EXPECT_EQ(page->begin, 1u);
  EXPECT_EQ(page->next_token, "d");
  page = MakePage(ids, 3, "", is_token);
  EXPECT_EQ(page->next_token, "");
  EXPECT_EQ(MakePage(ids, 1, "invalid-token", is_token).error().code(), Code::kUnavailable);
  EXPECT_EQ(MakePage(ids, -1, "", is_token).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace keelson::csi::local

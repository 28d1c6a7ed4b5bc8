#include "csi/local/model/records.h"

#include <gtest/gtest.h>

namespace keelson::csi::local {
namespace {

TEST(RecordsTest, VolumesReadWhatTheyWrite) {
  const VolumeRecord record{"vol-1", "a \"name\"\n\xc3\xa4", int64_t{1} << 40, true, true, 7, "snap-1", "",
                            true};
  VolumeRecord read;
  ASSERT_TRUE(FromJson(ToJson(record), "vol-1", read));
  EXPECT_EQ(read.id, record.id);
  EXPECT_EQ(read.name, record.name);
  EXPECT_EQ(read.capacity, record.capacity);
  EXPECT_TRUE(read.thick);
  EXPECT_TRUE(read.directory);
  EXPECT_EQ(read.project, 7);
  EXPECT_EQ(read.source_snapshot, "snap-1");
  EXPECT_EQ(read.source_volume, "");
  EXPECT_TRUE(read.logical);
  EXPECT_STREQ(TypeOf(VolumeRecord{}), "file");
}

TEST(RecordsTest, SnapshotsAndGroupsReadWhatTheyWrite) {
  SnapshotRecord snapshot;
  ASSERT_TRUE(FromJson(ToJson(SnapshotRecord{"snap-1", "s", "vol-1", 4096, 12345, "group-1", true, true}),
                       "snap-1", snapshot));
  EXPECT_EQ(snapshot.name, "s");
  EXPECT_EQ(snapshot.source_volume, "vol-1");
  EXPECT_EQ(snapshot.size, 4096);
  EXPECT_EQ(snapshot.created, 12345);
  EXPECT_EQ(snapshot.group, "group-1");
  EXPECT_TRUE(snapshot.directory);
  EXPECT_TRUE(snapshot.logical);
  GroupRecord group;
  ASSERT_TRUE(FromJson(ToJson(GroupRecord{"group-1", "g", {"s1", "s2"}, {"v1", "v2"}, 7}), "group-1", group));
  EXPECT_EQ(group.name, "g");
  EXPECT_EQ(group.snapshots, (std::vector<std::string>{"s1", "s2"}));
  EXPECT_EQ(group.source_volumes, (std::vector<std::string>{"v1", "v2"}));
  EXPECT_EQ(group.created, 7);
}

TEST(RecordsTest, RecordsFromBeforeDirectoriesAreOfImages) {
  VolumeRecord read;
  ASSERT_TRUE(
      FromJson(R"({"version":1,"id":"vol-1","name":"a","capacity":4096,"thick":false,"sourceSnapshot":"",
      "sourceVolume":""})",
               "vol-1", read));
  EXPECT_FALSE(read.directory);
  EXPECT_FALSE(read.logical);
  EXPECT_EQ(read.project, 0);
}

TEST(RecordsTest, DamageIsAnError) {
  const std::string good = ToJson(VolumeRecord{"vol-1", "a", 4096, false, false, 0, "", ""});
  auto why = [](const std::string& text, const std::string& id) {
    VolumeRecord out;
    auto read = FromJson(text, id, out);
    return read ? std::string() : read.error().message();
  };
  EXPECT_EQ(why(good, "vol-1"), "");
  EXPECT_EQ(why(good, "vol-2"), "record of vol-2: it is of vol-1");
  EXPECT_NE(why(good.substr(0, good.size() / 2), "vol-1"), "");
  EXPECT_EQ(why("[]", "vol-1"), "record of vol-1: not an object");
  EXPECT_EQ(why(R"({"version":2,"id":"vol-1"})", "vol-1"), "record of vol-1: version 2 is unknown");
  EXPECT_EQ(why(R"({"version":1,"id":"vol-1","name":"a"})", "vol-1"), "record of vol-1: capacity is missing");
  EXPECT_EQ(why(R"({"version":1,"id":"vol-1","name":"a","capacity":"1"})", "vol-1"),
            "record of vol-1: capacity is of another type");
}

}  // namespace
}  // namespace keelson::csi::local

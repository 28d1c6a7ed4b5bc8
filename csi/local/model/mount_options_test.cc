#include "csi/local/model/mount_options.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

namespace keelson::csi::local {
namespace {

TEST(MountOptionsTest, FlagsAndDataAreApart) {
  auto options = ParseMountOptions({"noatime,nodev", "discard", "commit=30", "ro"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->flags, static_cast<unsigned long>(MS_NOATIME | MS_NODEV | MS_RDONLY));
  EXPECT_EQ(options->data, "discard,commit=30");
}

TEST(MountOptionsTest, TheLastOneWins) {
  EXPECT_EQ(ParseMountOptions({"ro", "rw"})->flags, 0ul);
  EXPECT_EQ(ParseMountOptions({"suid", "nosuid"})->flags, static_cast<unsigned long>(MS_NOSUID));
  EXPECT_EQ(ParseMountOptions({"", "defaults"})->data, "");
}

TEST(MountOptionsTest, AnotherMountIsRefused) {
  for (const char* option : {"bind", "remount", "loop", "loop=/dev/loop1", "user", "x-systemd.automount",
                             "a b", "data=\"x\"", "journal_path=/dev/sda"}) {
    EXPECT_FALSE(ParseMountOptions({"noatime", option})) << option;
  }
}

}  // namespace
}  // namespace keelson::csi::local

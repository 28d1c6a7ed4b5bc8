#include "kubelet/volume/csi/version.h"

#include <gtest/gtest.h>

namespace keelson::kubelet::csi {
namespace {

TEST(CsiVersion, TheHighestOfTheFirstMajorVersion) {
  struct Case {
    std::vector<std::string> versions;
    const char *highest, *problem;
  };
  for (const Case& c :
       {Case{{"1.0.0"}, "1.0.0", ""},
        {{"0.3.0", "v1.2.0", "1.10.0", "1.9.1"}, "1.10.0", ""},
        {{"1.0.0", "2.0.0"}, "1.0.0", ""},
        {{"1.4-rc1"}, "1.4", ""},
        {{"1.0.0", "x"}, "1.0.0", ""},
        {{}, "", "empty array for supported versions"},
        {{"0.3.0"}, "", "highest supported version reported by plugin is 0.3.0, must be v1.x"},
        {{"2.0.0"},
         "",
         "could not find a highest supported version from versions ([2.0.0]) reported by this "
         "plugin: <nil>"},
        {{"one", "2.0"},
         "",
         "could not find a highest supported version from versions ([one 2.0]) reported by this "
         "plugin: could not parse \"one\" as version"},
        {{"1"},
         "",
         "could not find a highest supported version from versions ([1]) reported by this plugin: "
         "illegal version string \"1\""}}) {
    auto found = HighestSupportedVersion(c.versions);
    EXPECT_EQ(found ? found->text : "", c.highest);
    EXPECT_EQ(found ? "" : found.error().message(), c.problem);
  }
}

TEST(CsiVersion, PartsThatAreMissingAreZero) {
  EXPECT_FALSE(*ParseVersion("1.2") < *ParseVersion("1.2.0"));
  EXPECT_FALSE(*ParseVersion("1.2.0") < *ParseVersion("1.2"));
  EXPECT_TRUE(*ParseVersion("1.2") < *ParseVersion("1.2.1"));
  EXPECT_FALSE(ParseVersion("1.02"));
}

}  // namespace
}  // namespace keelson::kubelet::csi

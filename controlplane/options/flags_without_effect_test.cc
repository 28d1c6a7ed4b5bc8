#include "controlplane/options/flags_without_effect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "lib/base/file.h"
#include "lib/component/testing/flags.h"

namespace keelson::controlplane {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Told(const std::vector<std::string>& arguments) {
  CLI::App app;
  component::AddFlagsWithoutEffect(app, FlagsWithoutEffect());
  std::ostringstream out;
  EXPECT_FALSE(ParseFlags(app, arguments, out, out)) << out.str();
  std::vector<std::string> names;
  for (const auto* flag : component::GivenWithoutEffect(app, FlagsWithoutEffect())) {
    names.emplace_back(flag->name);
  }
  return names;
}

TEST(FlagsWithoutEffect, AreToldOfWhereTheyAskForSomething) {
  EXPECT_THAT(Told({}), IsEmpty());
  EXPECT_THAT(Told({"--watch-cache=false", "--cloud-provider=aws", "--log-flush-frequency=1s"}),
              ElementsAre("cloud-provider", "log-flush-frequency", "watch-cache"));
  EXPECT_THAT(Told({"--watch-cache", "--cloud-provider=external", "--log-flush-frequency=5000ms",
                    "--emulated-version=1.36", "--min-compatibility-version=kube=1.35"}),
              IsEmpty());
}

TEST(FlagsWithoutEffect, AreReadNonetheless) {
  for (const char* wrong :
       {"--log-flush-frequency=soon", "--delete-collection-workers=many", "--watch-cache=maybe"}) {
    CLI::App app;
    component::AddFlagsWithoutEffect(app, FlagsWithoutEffect());
    std::ostringstream out;
    EXPECT_EQ(ParseFlags(app, {wrong}, out, out), 1) << wrong;
  }
}

// docs/flags.md has a row for each: "| `--name` | why |".
TEST(FlagsWithoutEffect, AreInTheDocumentation) {
  std::istringstream in(ReadFile(KEELSON_SOURCE "/docs/flags.md").value_or(""));
  std::map<std::string, std::string> rows;
  std::string line;
  while (std::getline(in, line) && line != "| flag | why |") continue;
  while (std::getline(in, line)) {
    const size_t end = line.find("` | ");
    if (!line.starts_with("| `--") || end == std::string::npos || !line.ends_with(" |")) continue;
    rows[line.substr(5, end - 5)] = line.substr(end + 4, line.size() - end - 6);
  }
  std::map<std::string, std::string> want;
  std::string_view last;
  for (const component::FlagWithoutEffect& flag : FlagsWithoutEffect()) {
    EXPECT_LT(last, flag.name);
    last = flag.name;
    want.emplace(flag.name, flag.why);
  }
  EXPECT_EQ(rows, want);
}

}  // namespace
}  // namespace keelson::controlplane

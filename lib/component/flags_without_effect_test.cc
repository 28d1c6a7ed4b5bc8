#include "lib/component/flags_without_effect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "lib/component/flags.h"

namespace keelson::component {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Kind = FlagWithoutEffect::Kind;
constexpr FlagWithoutEffect kFlags[] = {
    {"a-switch", Kind::kSwitch, "true", "it is always so"},     {"count", Kind::kNumber, "1", "there is one"},
    {"field", Kind::kText, kAnyValue, "nothing reads it"},      {"names", Kind::kList, "", "there are none"},
    {"period", Kind::kDuration, "1m0s", "nothing is periodic"},
};

// The flags of `arguments` without effect; or the error.
std::vector<std::string> Told(const std::vector<std::string>& arguments) {
  CLI::App app;
  std::string field;
  app.add_option("--field", field);
  AddFlagsWithoutEffect(app, kFlags);
  std::ostringstream out;
  if (ParseFlags(app, arguments, out, out)) return {out.str()};
  std::vector<std::string> names;
  for (const FlagWithoutEffect* flag : GivenWithoutEffect(app, kFlags)) names.emplace_back(flag->name);
  return names;
}

TEST(FlagsWithoutEffect, AreNamedWhereTheyAskForSomething) {
  EXPECT_THAT(Told({}), IsEmpty());
  EXPECT_THAT(Told({"--a-switch", "--count=1", "--names=", "--period=60s"}), IsEmpty());
  EXPECT_THAT(Told({"--period=2m", "--a-switch=false", "--names=a,b", "--count=2"}),
              ElementsAre("a-switch", "count", "names", "period"));
  EXPECT_THAT(Told({"--field="}), ElementsAre("field"));
}

TEST(FlagsWithoutEffect, AreReadNonetheless) {
  EXPECT_THAT(Told({"--a-switch=perhaps"}), ElementsAre(HasSubstr("strconv.ParseBool: parsing \"perhaps\"")));
  EXPECT_THAT(Told({"--count=many"}), ElementsAre(HasSubstr("strconv.ParseInt: parsing \"many\"")));
  EXPECT_THAT(Told({"--period=often"}), ElementsAre(HasSubstr("time: invalid duration \"often\"")));
  EXPECT_THAT(Told({"--help"}), ElementsAre(HasSubstr("No effect: nothing is periodic")));
}

}  // namespace
}  // namespace keelson::component

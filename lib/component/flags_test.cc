#include "lib/component/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/component/testing/flags.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Values {
  std::string name = "default";
  std::vector<std::string> list = {"default"};
  bool on = true;
  int number = 7;
  double ratio = 0.5;
  std::string file;
};

void AddAll(CLI::App& app, Values& values) {
  app.add_option("--name", values.name);
  app.add_option("--a-list", values.list)->delimiter(',');
  app.add_flag("--on", values.on);
  app.add_option("-v,--v", values.number);
  app.add_option("--ratio", values.ratio);
  app.set_version_flag("--version", "1.2");
  app.add_subcommand("save")->fallthrough()->add_option("file", values.file);
}

struct Parsed {
  Values values;
  std::optional<int> code;
  std::string out, err;
};

Parsed Parse(const std::vector<std::string>& arguments) {
  Parsed parsed;
  CLI::App app("about", "program");
  AddAll(app, parsed.values);
  std::ostringstream out, err;
  parsed.code = ParseFlags(app, arguments, out, err);
  parsed.out = out.str();
  parsed.err = err.str();
  return parsed;
}

TEST(Flags, ValuesAsPflagReadsThem) {
  struct {
    std::vector<std::string> arguments;
    const char* name;
    std::vector<std::string> list;
    bool on;
    int number;
  } cases[] = {
      {{}, "default", {"default"}, true, 7},
      {{"--name=", "--on=false"}, "", {"default"}, false, 7},
      {{"--name=a=b", "--v=3"}, "a=b", {"default"}, true, 3},
      {{"--name", "--on=false"}, "--on=false", {"default"}, true, 7},
      {{"--name", "", "-v=4"}, "", {"default"}, true, 4},
      {{"--name", "-5", "-v", "-4"}, "-5", {"default"}, true, -4},
      {{"--a-list=a,b", "--a-list", "c"}, "default", {"a", "b", "c"}, true, 7},
      {{"--a_list=a", "--name=x_y"}, "x_y", {"a"}, true, 7},
      {{"--a-list=", "--on"}, "default", {""}, true, 7},
      {{"-v=4", "--name=a", "--on", "--name=b", "--on=false", "--v", "5"}, "b", {"default"}, false, 5},
  };
  for (const auto& c : cases) {
    Parsed out = Parse(c.arguments);
    const std::string what = ::testing::PrintToString(c.arguments);
    EXPECT_FALSE(out.code) << what << out.err;
    EXPECT_EQ(out.values.name, c.name) << what;
    EXPECT_EQ(out.values.list, c.list) << what;
    EXPECT_EQ(out.values.on, c.on) << what;
    EXPECT_EQ(out.values.number, c.number) << what;
  }
}

TEST(Flags, Errors) {
  struct {
    std::vector<std::string> arguments;
    const char* error;
  } cases[] = {
      {{"--on="}, "invalid argument \"\" for \"--on\" flag: want a boolean"},
      {{"-v="}, "invalid argument \"\" for \"-v\" flag: want a number"},
      {{"--ratio="}, "invalid argument \"\" for \"--ratio\" flag: want a number"},
      {{"--on=perhaps"}, "invalid argument \"perhaps\" for \"--on\" flag: strconv.ParseBool: parsing"},
      {{"--name"}, "flag needs an argument: --name"},
      {{"--v=x"}, "--v"},
      {{"--unknown="}, "unknown flag: --unknown"},
      {{"-x=3"}, "unknown shorthand flag: 'x' in -x=3"},
      {{"word"}, "word"},
      {{"--a-list=a", "word"}, "word"},
      {{"--", "--name=x"}, "--name=x"},
  };
  for (const auto& c : cases) {
    Parsed out = Parse(c.arguments);
    EXPECT_EQ(out.code, 1) << c.error;
    EXPECT_THAT(out.err, HasSubstr(c.error));
    EXPECT_EQ(out.out, "");
  }
}

TEST(Flags, HelpAndVersionEndWell) {
  for (const char* flag : {"--help", "-h", "--version"}) {
    Parsed out = Parse({flag});
    EXPECT_EQ(out.code, 0) << flag;
    EXPECT_EQ(out.err, "") << flag;
    EXPECT_THAT(out.out, HasSubstr(std::string(flag) == "--version" ? "1.2" : "Usage: program")) << flag;
  }
}

TEST(Flags, StandAnywhereAmongSubcommands) {
  Parsed out = Parse({"--name=", "save", "f", "--a-list=a"});
  EXPECT_FALSE(out.code) << out.err;
  EXPECT_EQ(out.values.name, "");
  EXPECT_EQ(out.values.file, "f");
  EXPECT_THAT(out.values.list, ElementsAre("a"));
}

TEST(Flags, NoneTakesTheNextWord) {
  Values values;
  EXPECT_THAT(FlagsThatAreNotEmpty([&](CLI::App& app) { AddAll(app, values); }), IsEmpty());
}

// A command's own flags come before those around it, and a command line in the arguments stays as it is.
TEST(Flags, CommandsHaveTheirOwnMeaningOfALetter) {
  CLI::App app("about", "program");
  std::string timeout, endpoint;
  bool tty = false, input = false;
  app.add_option("-t,--timeout", timeout);
  app.add_option("-i,--image-endpoint", endpoint);
  CLI::App* exec = app.add_subcommand("exec");
  exec->prefix_command();
  exec->add_flag("-t,--tty", tty);
  exec->add_flag("-i,--interactive", input);
  std::ostringstream out, err;
  EXPECT_EQ(
      ParseFlags(app, {"-t", "5s", "exec", "-t", "-i", "c1", "ls", "-t", "--all_files", "-v=2"}, out, err),
      std::nullopt)
      << err.str();
  EXPECT_EQ(timeout, "5s");
  EXPECT_EQ(endpoint, "");
  EXPECT_TRUE(tty && input);
  EXPECT_THAT(exec->remaining(), ElementsAre("c1", "ls", "-t", "--all_files", "-v=2"));
}

}  // namespace
}  // namespace keelson

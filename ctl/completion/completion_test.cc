#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "ctl/completion/man_page.h"
#include "ctl/completion/shells.h"
#include "lib/base/file.h"

namespace keelson::ctl {
namespace {

class CompletionTest : public ::testing::Test {
 protected:
  CompletionTest() {
    app_.add_flag("-D,--debug", debug_, "Say \"more\"; it's $HOME: `all` of it");
    CLI::App* token = app_.add_subcommand("token", "Tokens");
    token->alias("tok");
    token->add_subcommand("create", "Make one")->add_option("--ttl", ttl_, "How long");
    token->add_subcommand("delete", ".Remove one")->add_option("token", names_, "Which")->required();
    app_.add_subcommand("hidden", "")->group("");
    char name[] = "/tmp/ctl_completion.XXXXXX";
    dir_ = ::mkdtemp(name);
  }
  ~CompletionTest() override { EXPECT_TRUE(RemoveTree(dir_)); }

  // What a shell prints that runs `script`, and how it ends.
  std::pair<std::string, int> Shell(const std::string& shell, const std::string& script) const {
    EXPECT_TRUE(WriteFile(dir_ + "/script", script));
    FILE* pipe = ::popen((shell + " " + dir_ + "/script 2>&1").c_str(), "r");
    char piece[4096];
    std::string out;
    for (size_t got = 0; pipe && (got = ::fread(piece, 1, sizeof(piece), pipe)) > 0;) out.append(piece, got);
    return {out, pipe ? WEXITSTATUS(::pclose(pipe)) : -1};
  }
  std::string Bash(const std::string& words, int current) const {
    return Shell("bash", BashCompletion(CommandsOf(app_)) + "COMP_WORDS=(nodectl " + words +
                             ")\nCOMP_CWORD=" + std::to_string(current) +
                             "\n_nodectl\necho \"${COMPREPLY[*]}\"\n")
        .first;
  }

  CLI::App app_{"nodectl", "nodectl"};
  std::string ttl_, dir_;
  std::vector<std::string> names_;
  bool debug_ = false;
};

TEST_F(CompletionTest, BashCompletesVerbsAndFlagsAtTheirPlace) {
  EXPECT_EQ(Bash("to", 1), "token\n");
  EXPECT_EQ(Bash("--de", 1), "--debug\n");
  EXPECT_EQ(Bash("hid", 1), "\n");
  EXPECT_EQ(Bash("token ''", 2), "create delete -h --help\n");
  EXPECT_EQ(Bash("tok de", 2), "delete\n");
  EXPECT_EQ(Bash("-D token create --t", 4), "--ttl\n");
}

TEST_F(CompletionTest, ShellsTakeTheScripts) {
  const Command program = CommandsOf(app_);
  const struct {
    const char* shell;
    std::string script;
  } cases[] = {
      {"bash", BashCompletion(program)}, {"zsh", ZshCompletion(program)}, {"fish", FishCompletion(program)}};
  for (const auto& one : cases) {
    if (Shell("sh", std::string("command -v ") + one.shell).second != 0) continue;
    const auto [output, code] = Shell(std::string(one.shell) + " -n", one.script);
    EXPECT_EQ(code, 0) << one.shell << ": " << output;
  }
  EXPECT_NE(ZshCompletion(program).find(R"x('create:Make one')x"), std::string::npos);
  EXPECT_NE(ZshCompletion(program).find(R"x('--debug:Say "more"; it'\''s $HOME: `all` of it')x"),
            std::string::npos);
  EXPECT_NE(FishCompletion(program).find(
                R"x(complete -c nodectl -n '__nodectl_at " token create"' -l ttl -r -d 'How long')x"),
            std::string::npos);
}

TEST_F(CompletionTest, AManualPageListsVerbsAndFlags) {
  const std::string page = ManPage(CommandsOf(app_));
  EXPECT_NE(page.find(".TH NODECTL\\-COMMANDS 8 "), std::string::npos);
  EXPECT_NE(page.find(".TP\n\\fB\\-D\\fR, \\fB\\-\\-debug\\fR\nSay \"more\"; it's $HOME: `all` of it\n"),
            std::string::npos);
  EXPECT_NE(page.find(".SS \"nodectl token create\"\n"), std::string::npos);
  EXPECT_NE(page.find("\\fB\\-\\-ttl\\fR \\fIVALUE\\fR\nHow long\n"), std::string::npos);
  EXPECT_NE(
      page.find("\\fBnodectl token delete\\fR [\\fIoptions\\fR] \\fITOKEN\\fR...\n.PP\n\\&.Remove one\n"),
      std::string::npos)
      << page;
  EXPECT_NE(page.find("Also: tok\n"), std::string::npos);
  EXPECT_EQ(page.find("hidden"), std::string::npos);
  if (Shell("sh", "command -v man").second != 0) GTEST_SKIP() << "needs man to render the page";
  EXPECT_TRUE(WriteFile(dir_ + "/page.8", page));
  const auto [output, code] =
      Shell("sh", "LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l " + dir_ + "/page.8 2>&1 >" + dir_ + "/text");
  EXPECT_EQ(output, "");
  EXPECT_EQ(code, 0);
  const Result<std::string> text = ReadFile(dir_ + "/text");
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("--ttl VALUE"), std::string::npos) << *text;
}

}  // namespace
}  // namespace keelson::ctl

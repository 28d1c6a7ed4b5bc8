#include "kubelet/server/log_query.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "kubelet/server/system_logs.h"
#include "lib/base/file.h"
#include "lib/http/client/client.h"
#include "lib/http/testing/fixture.h"

namespace keelson::kubelet::server {
namespace {

Result<std::optional<LogQuery>> Parse(const std::string& query) {
  return ParseLogQuery(http::Query::Parse(query));
}

TEST(LogQuery, MistakesAreToldInUpstreamsWords) {
  struct Case {
    const char *query, *problem;
  };
  for (
      const Case& c : {
          Case{"query=%20", R"(query: Invalid value: [" "]: query cannot be empty)"},
          {"query=a&sinceTime=yesterday", R"(sinceTime: Invalid value: "yesterday": invalid time format)"},
          {"boot=x&tailLines=1.5",
           R"([boot: Invalid value: "x": strconv.Atoi: parsing "x": invalid syntax, tailLines: Invalid value: )"
           R"("1.5": strconv.Atoi: parsing "1.5": invalid syntax])"},
          {"boot=0", "query: Required value: cannot be empty with options"},
          {"query=a&query=/b", R"(query: Invalid value: ["/b"], ["a"]: cannot specify a file and service)"},
          {"query=/a&query=/b", R"(query: Invalid value: ["/a","/b"]: cannot specify more than one file)"},
          {"query=/a&boot=0", R"(query: Invalid value: ["/a"]: cannot specify file with options)"},
          {"query=a%3Bb", R"(query: Invalid value: "a;b": input contains unsupported characters)"},
          {"query=a&boot=1", "boot: Invalid value: 1: must be less than 1"},
          {"query=a&tailLines=100001",
           "tailLines: Invalid value: 100001: must be between 0 and 100000, inclusive"},
          {"query=a&query=b&query=c&query=d&query=e", "query: Too many: 5: must have at most 4 items"},
      }) {
    auto query = Parse(c.query);
    auto checked = !query ? Result<>(query.error()) : CheckLogQuery(**query);
    ASSERT_FALSE(checked) << c.query;
    EXPECT_EQ(checked.error().message(), c.problem);
  }
  auto none = Parse("pretty=true");
  EXPECT_TRUE(none && !*none);
}

TEST(LogQuery, BecomesACommand) {
  auto query = Parse(
      "query=kubelet&query=containerd&sinceTime=2026-01-02T03:04:05%2B01:00&untilTime=2026-01-03T00:00:00Z&"
      "tailLines=5&pattern=a%20b&boot=-1");
  ASSERT_TRUE(query && *query);
  EXPECT_TRUE(CheckLogQuery(**query));
  EXPECT_EQ(JournalCommand(**query, {"kubelet"}),
            (std::vector<std::string>{"journalctl", "--utc", "--no-pager", "--output=short-precise",
                                      "--since=2026-01-02 02:04:05 UTC", "--until=2026-01-03 00:00:00 UTC",
                                      "--lines=5", "--unit=kubelet", "--grep=a b", "--case-sensitive=false",
                                      "--boot=-1"}));
}

class ServiceLogsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/service_logs_test.XXXXXX";
    dir_ = ::mkdtemp(name);
    const std::string journal = dir_ + "/bin/journalctl";
    ASSERT_TRUE(MakeDirs(dir_ + "/bin") && MakeDirs(dir_ + "/log/deep"));
    ASSERT_TRUE(WriteFile(journal,
                          "#!/bin/sh\n"
                          "case $1 in --field) echo kubelet.service; echo ssh.service;;\n"
                          "*) echo \"words: $*\"; echo trouble >&2;; esac\n"));
    ASSERT_EQ(::chmod(journal.c_str(), 0755), 0);
    path_ = ::getenv("PATH");
    ::setenv("PATH", (dir_ + "/bin:" + path_).c_str(), 1);
    ASSERT_TRUE(WriteFile(dir_ + "/log/app.log", "of app\n"));
    ASSERT_TRUE(WriteFile(dir_ + "/log/deep/deep.log", "of deep\n"));
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    (void)RemoveTree(dir_);
  }
  std::string Get(const std::string& target) {
    http::RunningServer server(
        [this](auto request, auto writer) { ServeSystemLogs(dir_ + "/log", *request, *writer, true); });
    http::ClientOptions options;
    options.base_url = server.Url();
    auto client = *http::Client::Create(options);
    auto response = client->Do({"GET", target, {}, ""}, http::kSoon);
    return response ? std::to_string(response->status) + " " + response->body : response.error().message();
  }
  std::string dir_, path_;
};

TEST_F(ServiceLogsTest, ComeFromTheJournalOrFromFiles) {
  struct Case {
    const char *target, *answer;
  };
  for (const Case& c : {
           Case{"/logs/?query=kubelet&tailLines=2",
                "200 words: --utc --no-pager --output=short-precise --lines=2 --unit=kubelet\ntrouble\n"},
           {"/logs/?query=app&query=deep", "200 of app\nof deep\n"},
           {"/logs/?query=kube", "200 \nlog not found for kube\n"},
           {"/logs/?query=app&query=deep&boot=0",
            "200 \noptions present and query resolved to log files for [app deep]\ntry without specifying "
            "options\n"},
           {"/logs/?query=/app.log", "200 of app\n"},
           {"/logs/?query=deep%5Cdeep.log", "200 of deep\n"},
           {"/logs/?query=/../bin/journalctl", "404 404 page not found\n"},
           {"/logs/app.log", "200 of app\n"},
           {"/logs/app.log?query=app", "406 path not allowed in query mode\n"},
           {"/logs/?query=a.b", "406 query: Invalid value: \"a.b\": input contains unsupported characters\n"},
           {"/logs/?query=a&boot=x",
            "400 boot: Invalid value: \"x\": strconv.Atoi: parsing \"x\": invalid syntax\n"},
       }) {
    EXPECT_EQ(Get(c.target), c.answer) << c.target;
  }
}

}  // namespace
}  // namespace keelson::kubelet::server

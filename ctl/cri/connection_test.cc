#include "ctl/cri/connection.h"

#include <gtest/gtest.h>

#include <map>

#include "ctl/cri/filter.h"

namespace keelson::ctl {
namespace {

ReadEnvironment Environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

TEST(CriConnectionTest, FlagsWinOverTheEnvironmentAndTheFile) {
  const auto file = ParseCriConfig(
      "runtime-endpoint: unix:///file.sock\nimage-endpoint: /image.sock\ntimeout: 10\ndebug: true\n"
      "pull-image-on-create: true\n");
  ASSERT_TRUE(file) << file.error().message();
  const auto from_file = PlanCriConnection({}, Environment({}), *file);
  ASSERT_TRUE(from_file);
  EXPECT_EQ(from_file->runtime_sockets, std::vector<std::string>{"/file.sock"});
  EXPECT_EQ(from_file->image_sockets, std::vector<std::string>{"/image.sock"});
  EXPECT_EQ(from_file->timeout, std::chrono::seconds(10));
  EXPECT_TRUE(from_file->debug && from_file->pull_image_on_create && !from_file->disable_pull_on_run);

  const auto environment = Environment({{"CONTAINER_RUNTIME_ENDPOINT", "unix:///variable.sock"}});
  EXPECT_EQ(PlanCriConnection({}, environment, *file)->runtime_sockets[0], "/variable.sock");
  CriFlags flags;
  flags.runtime_endpoint = "unix:///flag.sock";
  flags.timeout = std::chrono::milliseconds(20);
  flags.debug = false;
  const auto from_flags = PlanCriConnection(flags, environment, *file);
  ASSERT_TRUE(from_flags);
  EXPECT_EQ(from_flags->runtime_sockets, std::vector<std::string>{"/flag.sock"});
  EXPECT_EQ(from_flags->timeout, std::chrono::seconds(1));  // the smallest there is
  EXPECT_FALSE(from_flags->debug);
}

TEST(CriConnectionTest, WithoutAnythingTriesTheWellKnownSockets) {
  const auto plan = PlanCriConnection({}, Environment({}), {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->runtime_sockets,
            (std::vector<std::string>{"/run/containerd/containerd.sock", "/run/crio/crio.sock",
                                      "/var/run/cri-dockerd.sock"}));
  EXPECT_EQ(plan->image_sockets, plan->runtime_sockets);
  EXPECT_EQ(plan->timeout, std::chrono::seconds(2));
}

TEST(CriConnectionTest, RefusesWhatItCannotUse) {
  CriFlags flags;
  for (const char* endpoint : {"tcp://10.0.0.1:3735", "", "containerd.sock"}) {
    flags.runtime_endpoint = endpoint;
    EXPECT_FALSE(PlanCriConnection(flags, Environment({}), {})) << endpoint;
  }
  for (const char* text : {"runtime: x\n", "timeout: soon\n", "- a\n", "a: [\n"}) {
    EXPECT_FALSE(ParseCriConfig(text)) << text;
  }
  EXPECT_TRUE(ParseCriConfig(""));
  CriFlags named;
  named.config = "/nonexistent/crictl.yaml";
  EXPECT_FALSE(ReadCriConnection(named));
}

TEST(CriFilterTest, LabelsPatternsAndCounts) {
  const auto labels = ParseLabels({"a=b", "c="});
  ASSERT_TRUE(labels);
  EXPECT_EQ(labels->at("a"), "b");
  EXPECT_EQ(labels->at("c"), "");
  EXPECT_FALSE(ParseLabels({"a"}));
  EXPECT_FALSE(ParseLabels({"a=b=c"}));
  EXPECT_TRUE(NamePattern::Parse("^we")->Matches("web"));
  EXPECT_FALSE(NamePattern::Parse("^eb")->Matches("web"));
  EXPECT_TRUE(NamePattern::Parse("")->Matches("web"));
  EXPECT_FALSE(NamePattern::Parse("("));
  CriFilter filter;
  EXPECT_EQ(ShownCount(5, filter), 5u);
  filter.latest = true;
  EXPECT_EQ(ShownCount(5, filter), 1u);
  EXPECT_EQ(ShownCount(0, filter), 0u);
  filter.last = 3;
  EXPECT_EQ(ShownCount(5, filter), 3u);
}

}  // namespace
}  // namespace keelson::ctl

#include "kubelet/staticpod/running_pods.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/staticpod/parse.h"
#include "kubelet/staticpod/sources.h"
#include "lib/base/file.h"
#include "lib/base/wall_time.h"

namespace keelson::kubelet {
namespace {

constexpr char kManifest[] =
    "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {b: c, d: e}}, spec: {containers: [{name: f, "
    "image: g}]}}";
constexpr char kKey[] = "default/a-n";
// What earlier Keelson kubelets have called it.
constexpr char kEarlier[] = "ce71603518ae08433881b8e35da1c969";

TEST(RunningPods, KeepTheirIdentityWhileTheManifestIsTheSame) {
  const WallTime noon = WallTimeOf(1'700'000'000), before = noon - std::chrono::seconds(1),
                 after = noon + std::chrono::seconds(1);
  const std::string own = ParseStaticPods(kManifest, {"file", "/m/a.yaml", "n"})->front().metadata().uid();
  const struct {
    std::vector<std::pair<std::string, WallTime>> running;
    WallTime changed;
    std::string uid;
    const char* why;
  } cases[] = {
      {{}, before, own, "nothing runs"},
      {{{kEarlier, before}}, after, kEarlier, "an earlier kubelet's, of the same contents"},
      {{{"other", noon}}, before, "other", "some kubelet's, which has read the file as it is"},
      {{{"other", noon}}, after, own, "touched since"},
      {{{"other", noon}}, noon, own, "perhaps touched since"},
      {{{"other", noon}}, WallTime::max(), own, "nobody knows when it was touched"},
      {{{"other", noon}, {own, before}}, before, own, "its own goes first"},
      {{{"other", noon}, {kEarlier, before}}, before, kEarlier, "then the earlier one"},
  };
  for (const auto& c : cases) {
    RunningPods running;
    for (const auto& [uid, seen] : c.running) running.Add(kKey, uid, seen);
    running.Add("default/b-n", "b", noon);  // not of this name
    const corev1::Pod pod =
        ParseStaticPods(kManifest, {"file", "/m/a.yaml", "n", &running, c.changed})->front();
    EXPECT_EQ(pod.metadata().uid(), c.uid) << c.why;
    EXPECT_EQ(pod.metadata().annotations().at("kubernetes.io/config.hash"), c.uid) << c.why;
  }
}

TEST(RunningPods, OfAnotherManifestThatSaysItsOwnUidAreLeftAlone) {
  RunningPods running;
  running.Add(kKey, "other", WallTimeOf(1'700'000'000));
  auto pods = ParseStaticPods(
      "{apiVersion: v1, kind: Pod, metadata: {name: a, uid: mine}, spec: {containers: [{name: f, image: "
      "g}]}}",
      {"file", "/m/a.yaml", "n", &running, WallTime::min()});
  ASSERT_TRUE(pods) << pods.error().message();
  EXPECT_EQ(pods->front().metadata().uid(), "mine");
}

TEST(RunningPods, AreFoundInTheRuntime) {
  cri::FakeRuntime runtime;
  auto sandbox = [&](const std::string& name, const std::string& uid, const std::string& source,
                     const std::string& seen) {
    cri::SandboxConfig config;
    config.metadata = {name, uid, "default", 0};
    config.labels["io.kubernetes.pod.uid"] = uid;
    config.annotations = {{"kubernetes.io/config.source", source}, {"kubernetes.io/config.seen", seen}};
    return *runtime.RunPodSandbox(config, "", {});
  };
  sandbox("a-n", "1", "file", "2026-01-01T00:00:00.123456789Z");
  sandbox("b-n", "2", "api", "2026-01-01T00:00:00Z");
  sandbox("c-n", "3", "file", "some day");
  sandbox("d-n", "4", "file", "2026-01-01T00:00:00Z");
  runtime.KillSandbox("4");
  auto running = FindRunningPods(runtime, "file", {});
  ASSERT_TRUE(running) << running.error().message();
  const WallTime year_before = WallTimeOf(1'735'689'600), year_after = WallTimeOf(1'798'761'600);
  using Found = std::optional<std::string>;
  EXPECT_EQ(running->Find("default/a-n", {}, year_before), Found("1"));
  EXPECT_EQ(running->Find("default/a-n", {}, year_after), std::nullopt);
  EXPECT_EQ(running->Find("default/b-n", {"2"}, year_before), std::nullopt);  // the API's
  EXPECT_EQ(running->Find("default/c-n", {}, year_before), std::nullopt);
  EXPECT_EQ(running->Find("default/c-n", {"3"}, year_before), Found("3"));
  EXPECT_EQ(running->Find("default/d-n", {"4"}, year_before), std::nullopt);  // does not run
}

TEST(RunningPods, FilesTellWhenTheyWereTouched) {
  char name[] = "/tmp/kubelet_running_test.XXXXXX";
  const std::string dir = ::mkdtemp(name);
  ASSERT_TRUE(WriteFile(dir + "/a.yaml", kManifest));
  struct stat info = {};
  ASSERT_EQ(::stat((dir + "/a.yaml").c_str(), &info), 0);
  const WallTime changed = WallTimeOf(info.st_ctim.tv_sec, static_cast<int32_t>(info.st_ctim.tv_nsec));
  // An old time of modification hides no change.
  const timespec old[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (dir + "/a.yaml").c_str(), old, 0), 0);
  std::map<std::string, std::string> told;
  for (const bool touched : {true, false}) {
    FileSourceOptions options{.path = dir, .node_name = "n"};
    options.running.Add(kKey, "other",
                        touched ? changed - std::chrono::seconds(1) : changed + std::chrono::hours(1));
    auto pods = ReadStaticPodFiles(options, told);
    ASSERT_EQ(pods.size(), 1u);
    EXPECT_EQ(pods.front().metadata().uid() == "other", !touched);
  }
  (void)RemoveTree(dir);
}

}  // namespace
}  // namespace keelson::kubelet

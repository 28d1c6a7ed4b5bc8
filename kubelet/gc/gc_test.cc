#include <gtest/gtest.h>
#include <stdlib.h>

#include "kubelet/container/labels.h"
#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/gc/containers.h"
#include "kubelet/gc/images.h"
#include "kubelet/gc/log_rotation.h"
#include "lib/base/file.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Names = std::vector<std::string>;

TEST(LogPlan, KeepsTheNewestAndCompressesWhatStays) {
  struct Case {
    Names files;
    int max_files;
    Names remove, compress;
  };
  for (const Case& c : {
           Case{{}, 5, {}, {}},
           {{"0.log.20260101-000001"}, 5, {}, {"0.log.20260101-000001"}},
           {{"0.log.3", "0.log.1.gz", "0.log.2.gz", "0.log.4"}, 5, {"0.log.1.gz"}, {"0.log.3", "0.log.4"}},
           {{"0.log.1", "0.log.2"}, 2, {"0.log.1", "0.log.2"}, {}},
           // What a kill while compressing leaves: half a copy, or both.
           {{"0.log.1", "0.log.1.tmp"}, 5, {"0.log.1.tmp"}, {"0.log.1"}},
           {{"0.log.1", "0.log.1.gz"}, 5, {"0.log.1"}, {}},
       }) {
    LogPlan plan = PlanLogs(c.files, c.max_files);
    EXPECT_EQ(plan.remove, c.remove);
    EXPECT_EQ(plan.compress, c.compress);
  }
}

class Rotation : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/kubelet_gc_test.XXXXXX";
    dir_ = ::mkdtemp(name);
    runtime_.AddImage("img:1");
    cri::SandboxConfig sandbox;
    sandbox.metadata = {"web", "u1", "default", 0};
    auto sandbox_id = runtime_.RunPodSandbox(sandbox, "", {});
    cri::ContainerConfig container;
    container.name = "main";
    container.image = "img:1";
    container.labels = {{kPodNameLabel, "web"},
                        {kPodNamespaceLabel, "default"},
                        {kPodUidLabel, "u1"},
                        {kContainerNameLabel, "main"}};
    id_ = *runtime_.CreateContainer(*sandbox_id, container, sandbox, {});
    EXPECT_TRUE(runtime_.StartContainer(id_, {}));
    logs_ = dir_ + "/default_web_u1/main";
    EXPECT_TRUE(MakeDirs(logs_));
  }
  void TearDown() override { (void)RemoveTree(dir_); }
  Names Files() { return *ListDir(logs_); }
  LogRotator::Running Running() {
    return [this] { return std::vector<ContainerLog>{{id_, logs_ + "/0.log"}}; };
  }

  FakeClock clock_;
  cri::FakeRuntime runtime_;
  std::string dir_, logs_, id_;
};

TEST_F(Rotation, TurnsAwayALogThatHasGrown) {
  LogRotationOptions options;
  options.max_size = 10;
  options.max_files = 3;
  LogRotator rotator(runtime_, Running(), options, clock_);
  ASSERT_TRUE(WriteFile(logs_ + "/0.log", "short"));
  rotator.RotateAll({});
  EXPECT_EQ(Files(), Names{"0.log"});
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(WriteFile(logs_ + "/0.log", "longer than that"));
    rotator.RotateAll({});
    EXPECT_FALSE(PathExists(logs_ + "/0.log"));  // the runtime creates it again
    clock_.Advance(seconds(10));
  }
  Names files = Files();
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].substr(files[0].size() - 3), ".gz");
  EXPECT_EQ(runtime_.Count("ReopenContainerLog main"), 4u);
}

TEST_F(Rotation, IsTakenBackWhenTheRuntimeDoesNotFollow) {
  LogRotationOptions options;
  options.max_size = 1;
  LogRotator rotator(runtime_, Running(), options, clock_);
  ASSERT_TRUE(WriteFile(logs_ + "/0.log", "text"));
  runtime_.Fail("ReopenContainerLog", Error(Code::kUnavailable, "away"));
  rotator.RotateAll({});
  EXPECT_EQ(Files(), Names{"0.log"});
}

TEST(ImageGcPlan, FreesDownToTheLowThreshold) {
  ImageGcOptions options;  // 85, 80
  EXPECT_EQ(BytesToFree({1000, 160}, options), 0u);
  EXPECT_EQ(BytesToFree({1000, 150}, options), 50u);
  EXPECT_EQ(BytesToFree({1000, 0}, options), 200u);
  EXPECT_EQ(BytesToFree({199, 0}, options), 39u);
  options.high_percent = 100;
  EXPECT_EQ(BytesToFree({1000, 0}, options), 0u);
}

TEST(ImageGcPlan, OrdersByLastUse) {
  const WallTime now = FakeClock().Now();
  std::map<std::string, ImageRecord> images = {
      {"old", {"old", now - hours(9), now - hours(1), 1, false, false}},
      {"older", {"older", now - hours(9), now - hours(2), 1, false, false}},
      {"never", {"never", now - hours(9), WallTime(), 1, false, false}},
      {"young", {"young", now - minutes(1), WallTime(), 1, false, false}},
      {"used", {"used", now - hours(9), now, 1, false, true}},
      {"pinned", {"pinned", now - hours(9), WallTime(), 1, true, false}}};
  Names ids;
  for (const ImageRecord& image : RemovableImages(images, now, minutes(2))) ids.push_back(image.id);
  EXPECT_EQ(ids, (Names{"never", "older", "old"}));
}

TEST(ImageGc, TellsWhatItCannotFree) {
  FakeClock clock;
  cri::FakeRuntime runtime(clock);
  runtime.AddImage("a:1");
  runtime.AddImage("registry.k8s.io/pause:3.9");
  FileSystemSpace space{100000, 10000};
  Names events, messages;
  ImageGc gc(
      runtime, runtime, [&](std::stop_token) { return Result<FileSystemSpace>(space); },
      [&](const std::string& reason, const std::string& message) {
        events.push_back(reason);
        messages.push_back(message);
      },
      {}, clock);
  EXPECT_FALSE(gc.Collect({}));  // too young
  EXPECT_EQ(runtime.ListImages({})->size(), 2u);
  clock.Advance(minutes(3));
  EXPECT_FALSE(gc.Collect({}));  // it has no size that would be enough
  EXPECT_EQ(events, (Names{"FreeDiskSpaceFailed", "FreeDiskSpaceFailed"}));
  EXPECT_EQ(
      messages.back(),
      "Insufficient free disk space on the node's image filesystem (90% of 97.7 KiB used). Failed to free "
      "sufficient space by deleting unused images (freed 1000 bytes). Investigate disk usage, as it could "
      "be used by active images, logs, volumes, or other data.");
  EXPECT_NE(metrics::Print().find("kubelet_image_garbage_collected_total{reason=\"space\"} 1\n"),
            std::string::npos);
  auto left = runtime.ListImages({});
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ((*left)[0].repo_tags, Names{"registry.k8s.io/pause:3.9"});
  space.available = 50000;
  EXPECT_TRUE(gc.Collect({}));
}

// Tells how often it was asked what a container has mounted, and may refuse to.
class AskedRuntime : public cri::FakeRuntime {
 public:
  using FakeRuntime::FakeRuntime;
  Result<cri::ContainerStatus> GetContainerStatus(const std::string& id, std::stop_token stop) override {
    ++asked;
    if (away) return Error(Code::kUnavailable, "away");
    return FakeRuntime::GetContainerStatus(id, stop);
  }
  int asked = 0;
  bool away = false;
};

class UnusedImages : public ::testing::Test {
 protected:
  Names Left() {
    Names out;
    const auto images = runtime_.ListImages({});
    for (const cri::Image& image : *images) out.push_back(image.repo_tags.front());
    std::sort(out.begin(), out.end());
    return out;
  }

  FakeClock clock_;
  AskedRuntime runtime_{clock_};
  ImageGc gc_{
      runtime_,
      runtime_,
      [](std::stop_token) {
        return FileSystemSpace{100, 100};
      },
      [](const std::string& reason, const std::string& message) { ADD_FAILURE() << reason << message; },
      {},
      clock_};
};

TEST_F(UnusedImages, OfPodsToComeAreLeftAWhile) {
  runtime_.AddImage("old:1");
  EXPECT_TRUE(gc_.RemoveUnused({}));
  EXPECT_EQ(Left(), Names{"old:1"});
  clock_.Advance(minutes(1));
  runtime_.AddImage("young:1");
  EXPECT_TRUE(gc_.RemoveUnused({}));
  clock_.Advance(minutes(1));
  EXPECT_TRUE(gc_.RemoveUnused({}));
  EXPECT_EQ(Left(), Names{"young:1"});
}

TEST_F(UnusedImages, AreNotThoseOfVolumes) {
  for (const char* name : {"main:1", "data:1", "digest:1", "other:1"}) runtime_.AddImage(name);
  cri::SandboxConfig sandbox;
  const std::string sandbox_id = *runtime_.RunPodSandbox(sandbox, "", {});
  cri::ContainerConfig container;
  container.name = "main";
  container.image = "sha256:main:1";
  container.mounts.resize(2);
  container.mounts[0].image = "sha256:data:1";
  container.mounts[1].image = "digest:1@sha256:digest";
  const std::string id = *runtime_.CreateContainer(sandbox_id, container, sandbox, {});
  EXPECT_TRUE(gc_.RemoveUnused({}));
  clock_.Advance(minutes(3));
  EXPECT_TRUE(gc_.RemoveUnused({}));
  EXPECT_EQ(Left(), (Names{"data:1", "digest:1", "main:1"}));
  EXPECT_EQ(runtime_.asked, 1) << "mounts never change";
  ASSERT_TRUE(runtime_.RemoveContainer(id, {}));
  EXPECT_TRUE(gc_.RemoveUnused({}));
  EXPECT_EQ(Left(), Names());
}

// Nothing goes while it is not known what is in use.
TEST_F(UnusedImages, StayWhereTheRuntimeDoesNotTell) {
  runtime_.AddImage("data:1");
  cri::SandboxConfig sandbox;
  const std::string sandbox_id = *runtime_.RunPodSandbox(sandbox, "", {});
  ASSERT_TRUE(gc_.RemoveUnused({}));
  clock_.Advance(minutes(3));
  ASSERT_TRUE(runtime_.CreateContainer(sandbox_id, {}, sandbox, {}));
  runtime_.away = true;
  EXPECT_FALSE(gc_.RemoveUnused({}));
  EXPECT_EQ(Left(), Names{"data:1"});
}

TEST_F(UnusedImages, ThatCannotBeRemovedAreTold) {
  for (const char* name : {"a:1", "b:1", "c:1"}) runtime_.AddImage(name);
  ASSERT_TRUE(gc_.RemoveUnused({}));
  clock_.Advance(minutes(3));
  runtime_.Fail("RemoveImage", Error(Code::kUnavailable, "busy"));
  auto removed = gc_.RemoveUnused({});
  ASSERT_FALSE(removed);
  EXPECT_EQ(
      removed.error().message(),
      "wanted to free 9223372036854775807 bytes, but freed 2000 bytes space with errors in image deletion: "
      "busy");
}

TEST(ContainerGc, KeepsTheNewestOfEachAndFewInAll) {
  const WallTime now = FakeClock().Now();
  const int64_t at = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
  std::vector<cri::Container> containers;
  auto add = [&](const char* id, const char* uid, seconds age, cri::ContainerState state) {
    cri::Container& c = containers.emplace_back();
    c.id = id;
    c.name = "main";
    c.state = state;
    c.created_at = at - std::chrono::nanoseconds(age).count();
    c.labels[kPodUidLabel] = uid;
  };
  using State = cri::ContainerState;
  add("a1", "a", seconds(30), State::kExited);
  add("a2", "a", seconds(20), State::kExited);
  add("a3", "a", seconds(10), State::kRunning);
  add("b1", "b", seconds(50), State::kExited);
  add("b2", "b", seconds(40), State::kExited);
  struct Case {
    ContainerGcOptions options;
    Names removed;
  };
  for (const Case& c : {
           Case{{milliseconds(0), 1, -1}, {"b1", "a1"}},
           {{milliseconds(0), -1, -1}, {}},
           {{milliseconds(0), 0, -1}, {"b1", "b2", "a1", "a2"}},
           {{seconds(45), 0, -1}, {"b1"}},
           {{milliseconds(0), 2, 2}, {"b1", "a1"}},
           {{milliseconds(0), 1, 1}, {"b1", "b2", "a1"}},
       }) {
    EXPECT_EQ(PlanContainerGc(containers, c.options, now), c.removed);
  }
}

// The latest run is the one of the highest number: times may come from a clock that was set back in between.
TEST(ContainerGc, KeepsTheLatestByNumber) {
  std::vector<cri::Container> containers(2);
  for (size_t i = 0; i < 2; ++i) {
    containers[i].id = "run" + std::to_string(i);
    containers[i].attempt = static_cast<uint32_t>(i);
    containers[i].created_at = 100 - static_cast<int64_t>(i);
    containers[i].labels[kPodUidLabel] = "a";
    containers[i].state = cri::ContainerState::kExited;
  }
  EXPECT_EQ(PlanContainerGc(containers, {milliseconds(0), 1, -1}, FakeClock().Now()), Names{"run0"});
}

TEST(ContainerGc, TakesTheFilesOfARunWithIt) {
  char dir[] = "/tmp/kubelet_gc.XXXXXX";
  const std::string root = ::mkdtemp(dir);
  const Paths paths{root, root + "/logs"};
  cri::FakeRuntime runtime;
  cri::ContainerStatus run;
  run.id = "absent";
  run.labels = {{kPodUidLabel, "uid"}, {kContainerNameLabel, "main"}};
  run.log_path = root + "/logs/main/1.log";
  run.mounts.resize(2);
  run.mounts[0].host_path = paths.Container("uid", "main") + "/message";
  run.mounts[1].host_path = root + "/volume";
  const Names kept = {root + "/logs/main/10.log", root + "/logs/main/2.log", root + "/volume",
                      paths.Container("uid", "main") + "/other"};
  const Names removed = {run.log_path, run.log_path + ".20260101-000000",
                         run.log_path + ".20260101-000000.gz", run.mounts[0].host_path};
  ASSERT_TRUE(MakeDirs(root + "/logs/main"));
  ASSERT_TRUE(MakeDirs(paths.Container("uid", "main")));
  for (const Names& files : {kept, removed}) {
    for (const std::string& file : files) ASSERT_TRUE(WriteFile(file, ""));
  }
  ASSERT_TRUE(RemoveRun(runtime, paths, run, {}));
  for (const std::string& file : kept) EXPECT_TRUE(PathExists(file)) << file;
  for (const std::string& file : removed) EXPECT_FALSE(PathExists(file)) << file;
  (void)RemoveTree(root);
}

}  // namespace
}  // namespace keelson::kubelet

// Kills the controller after each of its writes. The next one must finish: every pod is counted once, and no
// finalizer remains.
#include <gtest/gtest.h>

#include "controlplane/controllers/job/controller.h"
#include "controlplane/controllers/job/orphans.h"
#include "controlplane/controllers/job/testing/job_world.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;

// Lets `allowed` writes pass, and fails all later ones: the controller is dead.
struct Fuse {
  std::atomic<int> left;
  std::atomic<int> used = 0;
};

// Runs the Job with a controller that dies after `writes` writes, then with a new one. Returns the writes of
// the first; fewer than `writes`: it did not die.
int RunKilled(const batchv1::Job& job, const std::function<int(const corev1::Pod&)>& exit_code, int writes,
              batchv1::Job& end, std::vector<corev1::Pod>& pods) {
  JobWorld world;
  auto fuse = std::make_shared<Fuse>();
  fuse->left = writes;
  world.gate = [fuse](const client::ApiRequest& request) {
    if (request.method == "GET") return true;
    if (fuse->left-- <= 0) return false;
    ++fuse->used;
    return true;
  };
  world.Start(job);
  for (int i = 0; i < 2000 && fuse->left > 0 && !IsFinished(world.Job()); ++i) world.Round(exit_code);
  const int used = fuse->used;
  fuse->left = std::numeric_limits<int>::max();
  world.Restart();
  for (int i = 0; i < 2000 && !IsFinished(world.Job()); ++i) world.Round(exit_code);
  for (int i = 0; i < 3; ++i) world.Round(exit_code);
  end = world.Job();
  pods = world.cluster.List<corev1::Pod>();
  EXPECT_EQ(world.Problems(), "") << "after " << writes << " writes";
  return used;
}

struct Scenario {
  const char* what;
  batchv1::Job job;
  std::function<int(const corev1::Pod&, int attempt)> exit_code;  // attempt of this index, or of all
  int32_t succeeded, failed;
  const char* completed_indexes;
  const char* condition;
};

class KillTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(KillTest, EndsTheSameAfterAnyWrite) {
  const Scenario& scenario = GetParam();
  for (int writes = 1;; ++writes) {
    std::map<std::string, int> attempts;  // by index
    std::map<std::string, int> codes;     // by UID: a pod ends but once
    const auto exit_code = [&](const corev1::Pod& pod) {
      auto [it, first] = codes.try_emplace(pod.metadata().uid(), 0);
      if (first) {
        const std::optional<int32_t> index = CompletionIndex(pod);
        it->second = scenario.exit_code(pod, attempts[index ? std::to_string(*index) : ""]++);
      }
      return it->second;
    };
    batchv1::Job end;
    std::vector<corev1::Pod> pods;
    const int used = RunKilled(scenario.job, exit_code, writes, end, pods);
    ASSERT_EQ(TrueConditions(end).back(), scenario.condition) << writes;
    ASSERT_EQ(end.status().succeeded(), scenario.succeeded) << writes;
    ASSERT_EQ(end.status().failed(), scenario.failed) << writes;
    ASSERT_EQ(end.status().completed_indexes(), scenario.completed_indexes) << writes;
    ASSERT_EQ(end.status().uncounted_terminated_pods().ByteSizeLong(), 0u) << writes;
    int ended_well = 0;
    for (const corev1::Pod& pod : pods) {
      ASSERT_FALSE(IsTracked(pod)) << writes << " " << pod.metadata().name();
      ended_well += pod.status().phase() == "Succeeded";
    }
    ASSERT_EQ(ended_well, scenario.succeeded) << writes;
    if (used < writes) {
      EXPECT_GT(used, 8);  // or this tests nothing
      return;
    }
  }
}

batchv1::Job LimitedTo(batchv1::Job job, int32_t backoff) {
  job.mutable_spec()->set_backoff_limit(backoff);
  return job;
}

INSTANTIATE_TEST_SUITE_P(
    All, KillTest,
    ::testing::Values(Scenario{"NonIndexed", JobNamed("j", 3, 2),
                               [](const corev1::Pod&, int attempt) { return attempt == 1 ? 1 : 0; }, 3, 1, "",
                               "Complete/CompletionsReached"},
                      Scenario{"Indexed", IndexedJob("j", 3, 2),
                               [](const corev1::Pod& pod, int attempt) {
                                 return *CompletionIndex(pod) == 1 && attempt < 1;
                               },
                               3, 1, "0-2", "Complete/CompletionsReached"},
                      Scenario{"PerIndex", PerIndexJob("j", 3, 3, 1),
                               [](const corev1::Pod& pod, int) { return *CompletionIndex(pod) == 1 ? 1 : 0; },
                               2, 2, "0,2", "Failed/FailedIndexes"},
                      Scenario{"Failing", LimitedTo(JobNamed("j", 2, 1), 1),
                               [](const corev1::Pod&, int) { return 1; }, 0, 2, "",
                               "Failed/BackoffLimitExceeded"}),
    [](const auto& made) { return made.param.what; });

}  // namespace
}  // namespace keelson::controllers

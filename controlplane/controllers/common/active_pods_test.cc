#include "controlplane/controllers/common/active_pods.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/common/expectations.h"
#include "controlplane/controllers/common/slow_start_batch.h"
#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;

const WallTime kNow{std::chrono::seconds(1'800'000'000)};

struct PodSpec {
  std::string name;
  std::string node;
  std::string phase = "Running";
  bool ready = true;
  std::string cost;
  std::chrono::seconds ready_for{100};
  int restarts = 0;
  std::chrono::seconds age{1000};
  int sidecar_restarts = 0;
};

std::shared_ptr<const corev1::Pod> Make(const PodSpec& spec) {
  corev1::Pod pod = PodNamed(spec.name, {}, spec.node);
  pod.mutable_metadata()->set_uid(spec.name);
  *pod.mutable_metadata()->mutable_creation_timestamp() = api::ToTime(kNow - spec.age);
  if (!spec.cost.empty()) {
    (*pod.mutable_metadata()->mutable_annotations())["controller.kubernetes.io/pod-deletion-cost"] =
        spec.cost;
  }
  if (spec.ready) MakeReady(pod, kNow - spec.ready_for);
  pod.mutable_status()->set_phase(spec.phase);
  pod.mutable_status()->add_container_statuses()->set_restart_count(spec.restarts);
  for (const char* name : {"setup", "sidecar"}) {
    const bool sidecar = std::string(name) == "sidecar";
    corev1::Container& container = *pod.mutable_spec()->add_init_containers();
    container.set_name(name);
    if (sidecar) container.set_restart_policy("Always");
    corev1::ContainerStatus& status = *pod.mutable_status()->add_init_container_statuses();
    status.set_name(name);
    // Those of init containers that have ended say nothing.
    status.set_restart_count(sidecar ? spec.sidecar_restarts : 9 - spec.sidecar_restarts);
  }
  return std::make_shared<corev1::Pod>(pod);
}

TEST(PodsToDeleteTest, WeighsInOrder) {
  struct Case {
    const char* what;
    PodSpec first, second;  // first must go
  };
  const Case cases[] = {
      {"no node", {"b", ""}, {"a", "n1"}},
      {"pending", {"b", "n1", "Pending", false}, {"a", "n1", "Running", false}},
      {"not ready", {"b", "n1", "Running", false}, {"a", "n1"}},
      {"not ready outweighs cost", {"b", "n1", "Running", false, "100"}, {"a", "n1", "Running", true, "-5"}},
      {"deletion cost", {"b", "n1", "Running", true, "-5"}, {"a", "n1"}},
      {"unknown phase", {"b", "n1", "Unknown", false}, {"a", "n1", "Running", false}},
      {"no phase is pending", {"b", "n1", "", false}, {"a", "n1", "Unknown", false}},
      {"pending outweighs unknown", {"b", "n1", "Pending", false}, {"a", "n1", "Unknown", false}},
      {"cost outweighs time",
       {"b", "n1", "Running", true, "1", 1000s},
       {"a", "n1", "Running", true, "2", 10s}},
      {"no plus sign", {"a", "n1", "Running", true, "+5"}, {"b", "n1", "Running", true, "1"}},
      {"no leading zeros", {"a", "n1", "Running", true, "08"}, {"b", "n1", "Running", true, "1"}},
      {"no more than 32 bits", {"a", "n1", "Running", true, "2147483648"}, {"b", "n1", "Running", true, "1"}},
      {"the largest cost",
       {"b", "n1", "Running", true, "2147483646"},
       {"a", "n1", "Running", true, "2147483647"}},
      {"malformed cost is none", {"a", "n1", "Running", true, "x"}, {"b", "n1", "Running", true, "1"}},
      {"ready for less time", {"b", "n1", "Running", true, "", 10s}, {"a", "n1", "Running", true, "", 1000s}},
      {"ready about as long: by uid",
       {"a", "n1", "Running", true, "", 100s},
       {"b", "n1", "Running", true, "", 101s}},
      {"more restarts", {"b", "n1", "Running", true, "", 100s, 3}, {"a", "n1"}},
      {"more restarts of a sidecar",
       {"b", "n1", "Running", true, "", 100s, 0, 1000s, 3},
       {"a", "n1", "Running", true, "", 100s, 0, 1000s, 1}},
      {"restarts outweigh those of sidecars",
       {"b", "n1", "Running", true, "", 100s, 1},
       {"a", "n1", "Running", true, "", 100s, 0, 1000s, 5}},
      {"younger",
       {"b", "n1", "Running", true, "", 100s, 0, 50s},
       {"a", "n1", "Running", true, "", 100s, 0, 5000s}},
  };
  for (const Case& c : cases) {
    PodPointers pods = {Make(c.second), Make(c.first)};
    auto chosen = PodsToDelete(pods, pods, 1, kNow);
    ASSERT_EQ(chosen.size(), 1u);
    EXPECT_EQ(chosen[0]->metadata().name(), c.first.name) << c.what;
  }
}

TEST(PodsToDeleteTest, CrowdedNodesFirst) {
  PodPointers pods = {Make({"a", "n1"}), Make({"b", "n2"})};
  PodPointers related = pods;
  related.push_back(Make({"sibling", "n2"}));
  EXPECT_EQ(PodsToDelete(pods, related, 1, kNow)[0]->metadata().name(), "b");
}

TEST(PodsToDeleteTest, CostOutweighsCrowdsAndCrowdsTime) {
  PodPointers pods = {Make({"a", "n1", "Running", true, "-1"}), Make({"b", "n2", "Running", true, "", 1000s}),
                      Make({"c", "n3", "Running", true, "", 10s})};
  PodPointers related = pods;
  related.push_back(Make({"sibling", "n2"}));
  auto ended = std::make_shared<corev1::Pod>(*Make({"ended", "n3"}));
  ended->mutable_status()->set_phase("Failed");  // does not count as a neighbor
  related.push_back(ended);
  std::vector<std::string> names;
  for (const auto& pod : PodsToDelete(pods, related, 2, kNow)) names.push_back(pod->metadata().name());
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
}

TEST(PodsToDeleteTest, AgesOfThoseChosen) {
  auto aged = [](const char* name, std::chrono::seconds age, bool ready = true) {
    PodSpec spec{name, "n1"};
    spec.age = age;
    spec.ready = ready;
    return Make(spec);
  };
  const PodPointers pods = {aged("old", 400s), aged("young", 100s), aged("newest, not ready", 10s, false)};
  EXPECT_EQ(AgeRatios(pods, {pods[0], pods[2]}, kNow), std::vector<double>{4});
  EXPECT_EQ(AgeRatios({pods[2]}, {pods[2]}, kNow), std::vector<double>{});
  EXPECT_EQ(AgeRatios({aged("now", 0s)}, {aged("now", 0s)}, kNow), std::vector<double>{});
}

TEST(PodsToDeleteTest, AllWhenAsked) {
  PodPointers pods = {Make({"a", "n1"}), Make({"b", "n2"})};
  EXPECT_EQ(PodsToDelete(pods, pods, 5, kNow).size(), 2u);
}

TEST(SlowStartBatchTest, DoublesAndStopsAtTheFirstFailure) {
  struct Case {
    int count, capacity;
    std::vector<int> batches;
    int made;
  };
  for (const Case& c : {Case{0, 99, {}, 0}, Case{1, 99, {1}, 1}, Case{10, 99, {1, 2, 4, 3}, 10},
                        Case{10, 0, {1}, 0}, Case{10, 2, {1, 2}, 2}, Case{7, 7, {1, 2, 4}, 7}}) {
    std::vector<int> batches;
    int capacity = c.capacity;
    int made = SlowStartBatch(c.count, [&](int n) {
      batches.push_back(n);
      int done = std::min(n, capacity);
      capacity -= done;
      return done;
    });
    EXPECT_EQ(batches, c.batches) << c.count;
    EXPECT_EQ(made, c.made) << c.count;
  }
}

TEST(ExpectationsTest, SatisfiedWhenSeenOrLost) {
  FakeClock clock;
  Expectations expectations(clock);
  EXPECT_TRUE(expectations.Satisfied("a"));
  expectations.ExpectCreations("a", 2);
  expectations.CreationObserved("a");
  EXPECT_FALSE(expectations.Satisfied("a"));
  expectations.CreationObserved("a");
  EXPECT_TRUE(expectations.Satisfied("a"));
  expectations.ExpectDeletions("a", {"p", "q"});
  expectations.DeletionObserved("a", "p");
  expectations.DeletionObserved("a", "p");  // twice the same
  EXPECT_FALSE(expectations.Satisfied("a"));
  clock.Advance(301s);
  EXPECT_TRUE(expectations.Satisfied("a"));
  expectations.ExpectCreations("b", 1);
  expectations.Forget("b");
  EXPECT_TRUE(expectations.Satisfied("b"));
}

}  // namespace
}  // namespace keelson::controllers

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "kubelet/eviction/manager.h"
#include "lib/api/codec/codec.h"
#include "lib/k8s/defaulting/defaulting.h"

namespace keelson::kubelet {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr int64_t kMi = 1 << 20;

corev1::Pod PodOf(const std::string& name, int priority, const std::string& request,
                  const std::string& extra = "") {
  corev1::Pod pod;
  const std::string requests =
      request.empty() ? "" : R"(,"resources":{"requests":{"memory":")" + request + R"("}})";
  auto decoded =
      api::DecodeJson(R"({"metadata":{"name":")" + name + R"(","uid":")" + name +
                          R"("},"spec":{"priority":)" + std::to_string(priority) +
                          R"(,"containers":[{"name":"main","image":"i")" + requests + "}]" + extra + "}}",
                      pod);
  EXPECT_TRUE(decoded) << (decoded ? "" : decoded.error().message());
  k8s::SetDefaults(pod);
  return pod;
}

TEST(Thresholds, AreParsedAndMistakesTold) {
  EvictionOptions options;
  options.hard = {{"memory.available", "100Mi"}, {"nodefs.available", "10%"}, {"pid.available", "0%"}};
  options.soft = {{"memory.available", "200Mi"}};
  options.soft_grace_period = {{"memory.available", "1m30s"}};
  options.minimum_reclaim = {{"nodefs.available", "1Gi"}, {"memory.available", "10Mi"}};
  auto thresholds = ParseThresholds(options);
  ASSERT_TRUE(thresholds) << thresholds.error().message();
  ASSERT_EQ(thresholds->size(), 4u);
  EXPECT_EQ((*thresholds)[0].value.Of(0), 100 * kMi);
  EXPECT_EQ((*thresholds)[1].value.Of(1000), 100);
  EXPECT_EQ((*thresholds)[1].min_reclaim->Of(0), 1024 * kMi);
  EXPECT_EQ((*thresholds)[2].signal, "allocatableMemory.available");
  EXPECT_EQ((*thresholds)[2].min_reclaim->Of(0), 10 * kMi);
  EXPECT_EQ((*thresholds)[3].grace, seconds(90));

  struct Case {
    std::map<std::string, std::string> hard, soft, grace;
    const char* message;
    std::map<std::string, std::string> reclaim = {};
  };
  for (const Case& c : {
           Case{{{"memory.left", "1"}}, {}, {}, "unsupported eviction signal memory.left"},
           {{{"memory.available", "101%"}},
            {},
            {},
            "eviction percentage threshold memory.available must be <= 100%: 101%"},
           {{{"memory.available", "-1Mi"}},
            {},
            {},
            "eviction threshold memory.available must be positive: -1Mi"},
           {{},
            {{"memory.available", "1Mi"}},
            {},
            "grace period must be specified for the soft eviction threshold memory.available"},
           {{},
            {},
            {},
            "eviction percentage minimum reclaim memory.available must be positive: 0%",
            {{"memory.available", "0%"}}},
           {{},
            {},
            {},
            "negative eviction minimum reclaim specified for memory.available",
            {{"memory.available", "-1Mi"}}},
       }) {
    EvictionOptions bad;
    bad.hard = c.hard;
    bad.soft = c.soft;
    bad.soft_grace_period = c.grace;
    bad.minimum_reclaim = c.reclaim;
    auto parsed = ParseThresholds(bad);
    ASSERT_FALSE(parsed) << c.message;
    EXPECT_EQ(parsed.error().message(), c.message);
  }
}

TEST(EvictionPlan, SoftThresholdsWaitAndPressureLasts) {
  EvictionOptions options;
  options.hard = {{"memory.available", "100Mi"}};
  options.soft = {{"memory.available", "200Mi"}};
  options.soft_grace_period = {{"memory.available", "1m"}};
  options.enforce_allocatable = false;
  auto thresholds = *ParseThresholds(options);
  EvictionState state;
  const SteadyTime begin{};
  auto look = [&](seconds at, int64_t available) {
    return UpdateEviction(thresholds, {{"memory.available", {available * kMi, 1000 * kMi}}}, options,
                          begin + minutes(60) + at, state);
  };
  EXPECT_TRUE(look(seconds(0), 300).empty());
  EXPECT_TRUE(state.pressures.empty());
  EXPECT_TRUE(look(seconds(10), 150).empty());  // within the grace
  EXPECT_EQ(state.pressures, std::set<Pressure>{Pressure::kMemory});
  ASSERT_EQ(look(seconds(70), 150).size(), 1u);
  EXPECT_EQ(look(seconds(80), 50).size(), 2u);
  EXPECT_TRUE(look(seconds(90), 300).empty());
  EXPECT_EQ(state.pressures.size(), 1u);
  EXPECT_TRUE(look(seconds(90) + minutes(5), 300).empty());
  EXPECT_TRUE(state.pressures.empty());
  // The grace period starts again.
  EXPECT_TRUE(look(seconds(900), 150).empty());
}

TEST(EvictionPlan, ReclaimsTheMinimumOnceBegun) {
  EvictionOptions options;
  options.hard = {{"nodefs.available", "100Mi"}};
  options.minimum_reclaim = {{"nodefs.available", "50Mi"}};
  auto thresholds = *ParseThresholds(options);
  EvictionState state;
  auto look = [&](int64_t available) {
    return !UpdateEviction(thresholds, {{"nodefs.available", {available * kMi, 1000 * kMi}}}, options,
                           SteadyTime(minutes(60)), state)
                .empty();
  };
  EXPECT_FALSE(look(120));
  EXPECT_TRUE(look(90));
  EXPECT_TRUE(look(120));
  EXPECT_FALSE(look(160));
  EXPECT_FALSE(look(120));
}

// What is within its grace calls for no action: nothing is reclaimed, and no minimum of it.
TEST(EvictionPlan, ReclaimsNoMinimumOfWhatHasRecovered) {
  EvictionOptions options;
  options.soft = {{"nodefs.available", "100Mi"}};
  options.soft_grace_period = {{"nodefs.available", "1m"}};
  options.minimum_reclaim = {{"nodefs.available", "50Mi"}};
  auto thresholds = *ParseThresholds(options);
  EvictionState state;
  auto look = [&](seconds at, int64_t available) {
    return !UpdateEviction(thresholds, {{"nodefs.available", {available * kMi, 1000 * kMi}}}, options,
                           SteadyTime(minutes(60)) + at, state)
                .empty();
  };
  EXPECT_FALSE(look(seconds(0), 90));
  EXPECT_FALSE(look(seconds(10), 120));
  EXPECT_FALSE(look(seconds(70), 120));
  EXPECT_FALSE(look(seconds(80), 90));
  EXPECT_TRUE(look(seconds(140), 90));
  EXPECT_TRUE(look(seconds(150), 120));
}

TEST(EvictionPlan, RanksPodsWithoutStatisticsFirst) {
  const corev1::Pod unknown = PodOf("unknown", 10, "500Mi"), greedy = PodOf("greedy", 0, "");
  const struct {
    const char* signal;
    const char* first;
  } kCases[] = {{"memory.available", "unknown"},
                {"nodefs.available", "unknown"},
                {"nodefs.inodesFree", "unknown"},
                {"pid.available", "greedy"}};  // by priority first: no pod requests processes
  for (const auto& test : kCases) {
    std::vector<Candidate> candidates(2);
    candidates[0].pod = &greedy;
    candidates[0].usage.memory = candidates[0].usage.disk = candidates[0].usage.inodes = kMi;
    candidates[1].pod = &unknown;
    candidates[1].usage.known = false;
    RankCandidates(test.signal, {}, candidates);
    EXPECT_EQ(candidates[0].pod->metadata().name(), test.first) << test.signal;
  }
  const corev1::Pod peer = PodOf("peer", 10, "");
  std::vector<Candidate> candidates(2);
  candidates[0].pod = &peer;
  candidates[0].usage.processes = 100;
  candidates[1].pod = &unknown;
  candidates[1].usage.known = false;
  RankCandidates("pid.available", {}, candidates);
  EXPECT_EQ(candidates[0].pod, &unknown);
}

TEST(EvictionPlan, RanksByExcessPriorityAndAmount) {
  corev1::Pod modest = PodOf("modest", 0, "500Mi"), greedy = PodOf("greedy", 0, "10Mi");
  corev1::Pod greedier = PodOf("greedier", 0, ""), high = PodOf("high", 100, "");
  auto with = [](const corev1::Pod& pod, int64_t memory) {
    Candidate candidate;
    candidate.pod = &pod;
    candidate.usage.memory = memory * kMi;
    return candidate;
  };
  std::vector<Candidate> candidates = {with(modest, 400), with(high, 900), with(greedy, 100),
                                       with(greedier, 200)};
  RankCandidates("memory.available", {}, candidates);
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates) names.push_back(candidate.pod->metadata().name());
  EXPECT_EQ(names, (std::vector<std::string>{"greedier", "greedy", "high", "modest"}));
}

TEST(EvictionPlan, MessagesNameTheCulprit) {
  corev1::Pod pod = PodOf("a", 0, "10Mi");
  Candidate candidate;
  candidate.pod = &pod;
  candidate.usage.containers = {{"main", 20 * kMi, 0, 0}};
  Threshold threshold;
  threshold.signal = "memory.available";
  threshold.value.text = "100Mi";
  EXPECT_EQ(EvictionMessage(threshold, {{"memory.available", {51200 * 1024, 0}}}, candidate),
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 51200Ki. Container "
            "main was using 20480Ki, request is 10Mi, has larger consumption of memory. ");
}

TEST(EvictionPlan, LimitsOfLocalStorage) {
  corev1::Pod pod = PodOf("a", 0, "", R"(,"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Mi"}}])");
  PodUsage usage;
  usage.empty_dirs["v"] = kMi;
  EXPECT_TRUE(HasStorageLimit(pod));
  EXPECT_FALSE(StorageLimitExceeded(pod, usage));
  usage.empty_dirs["v"] = kMi + 1;
  EXPECT_EQ(StorageLimitExceeded(pod, usage)->message,
            "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". ");
  EXPECT_STREQ(StorageLimitExceeded(pod, usage)->signal, "emptydirfs.limit");
  corev1::Pod limited = PodOf("b", 0, "");
  EXPECT_FALSE(HasStorageLimit(limited));
  (*limited.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_limits())["ephemeral-storage"]
      .set_string("2Mi");
  EXPECT_TRUE(HasStorageLimit(limited));
  PodUsage over;
  over.disk = 3 * kMi;
  EXPECT_STREQ(StorageLimitExceeded(limited, over)->signal, "ephemeralpodfs.limit");
  EXPECT_EQ(StorageLimitExceeded(limited, over)->message,
            "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. ");
}

class ManagerTest : public ::testing::Test {
 protected:
  void Make(const EvictionOptions& options) {
    options_ = options;
    manager_ = std::make_unique<EvictionManager>(
        EvictionManager::Dependencies{
            [this](std::stop_token) { return observations_; }, [this] { return pods_; },
            [this](const corev1::Pod& pod) { return usage_[pod.metadata().name()]; },
            [this](const corev1::Pod& pod, const std::string& message, seconds grace) {
              evicted_.push_back(pod.metadata().name());
              message_ = message;
              grace_ = grace;
            },
            [this](const std::string&) { return cleaned_up_.load(); },
            [this](std::stop_token) {
              did_.push_back("containers");
              if (containers_help_) observations_["nodefs.available"].available = 500;
            },
            [this](std::stop_token) {
              did_.push_back("images");
              if (images_help_) observations_["nodefs.available"].available = 500;
            },
            [this](const std::string& reason, const std::string& message) {
              did_.push_back(reason + ": " + message);
            }},
        options_, *ParseThresholds(options_), clock_);
  }
  std::vector<std::string> Look() {
    std::vector<std::string> out;
    for (const auto& evicted : manager_->Synchronize({})) out.push_back(evicted.pod->metadata().name());
    return out;
  }
  void Add(corev1::Pod pod, int64_t memory, int64_t disk = 0) {
    PodUsage& usage = usage_[pod.metadata().name()];
    usage.memory = memory;
    usage.disk = disk;
    pods_.push_back(std::make_shared<const corev1::Pod>(std::move(pod)));
  }

  FakeClock clock_;
  EvictionOptions options_;
  Observations observations_;
  std::vector<EvictionManager::PodPtr> pods_;
  std::map<std::string, PodUsage> usage_;
  std::vector<std::string> evicted_, did_;
  std::string message_;
  seconds grace_{0};
  bool images_help_ = false, containers_help_ = false;
  std::atomic<bool> cleaned_up_ = true;
  std::unique_ptr<EvictionManager> manager_;
};

TEST_F(ManagerTest, EndsOnePodALookButNoCriticalOne) {
  EvictionOptions options;
  options.hard = {{"memory.available", "100"}};
  Make(options);
  observations_["memory.available"] = {50, 1000};
  Add(PodOf("critical", 2000000000, ""), 900);
  Add(PodOf("small", 0, ""), 10);
  Add(PodOf("large", 0, ""), 20);
  EXPECT_EQ(Look(), std::vector<std::string>{"large"});
  EXPECT_EQ(evicted_, std::vector<std::string>{"large"});
  EXPECT_EQ(grace_, seconds(1));
  EXPECT_EQ(did_, std::vector<std::string>{"EvictionThresholdMet: Attempting to reclaim memory"});
  // BestEffort pods are not taken meanwhile, others are.
  auto refused = manager_->Admit(PodOf("new", 0, ""));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->reason, "Evicted");
  EXPECT_EQ(refused->message, "The node had condition: [MemoryPressure]. ");
  EXPECT_FALSE(manager_->Admit(PodOf("burstable", 0, "1Mi")));
  EXPECT_FALSE(manager_->Admit(PodOf("critical2", 2000000000, "")));
}

TEST_F(ManagerTest, FreesTheDiskBeforePodsGo) {
  EvictionOptions options;
  options.hard = {{"nodefs.available", "10%"}};
  Make(options);
  observations_["nodefs.available"] = {50, 1000};
  Add(PodOf("a", 0, ""), 0, 5);
  images_help_ = true;
  const std::vector<std::string> freed = {"EvictionThresholdMet: Attempting to reclaim ephemeral-storage",
                                          "containers", "images"};
  EXPECT_EQ(Look(), std::vector<std::string>());
  EXPECT_EQ(did_, freed);
  // Both, also where the first would have done.
  images_help_ = false;
  containers_help_ = true;
  observations_["nodefs.available"] = {50, 1000};
  did_.clear();
  EXPECT_EQ(Look(), std::vector<std::string>());
  EXPECT_EQ(did_, freed);
  containers_help_ = false;
  observations_["nodefs.available"] = {50, 1000};
  EXPECT_EQ(Look(), std::vector<std::string>{"a"});
  ASSERT_TRUE(manager_->Admit(PodOf("burstable", 0, "1Mi")));
}

TEST_F(ManagerTest, SoftEvictionHasItsGrace) {
  EvictionOptions options;
  options.soft = {{"memory.available", "100"}};
  options.soft_grace_period = {{"memory.available", "30s"}};
  options.max_pod_grace_period = 20;
  Make(options);
  observations_["memory.available"] = {50, 1000};
  Add(PodOf("a", 0, ""), 5);
  EXPECT_EQ(Look(), std::vector<std::string>());
  clock_.Advance(seconds(30));
  EXPECT_EQ(Look(), std::vector<std::string>{"a"});
  EXPECT_EQ(grace_, seconds(20));
}

// The minimum reclaim of each threshold is what has to be free after something was freed on the node.
TEST_F(ManagerTest, PodsGoWhereTheNodeFreesTooLittle) {
  EvictionOptions options;
  options.hard = {{"nodefs.available", "100"}};
  options.minimum_reclaim = {{"nodefs.available", "500"}};
  Make(options);
  images_help_ = true;  // 500 are free: below 600
  observations_["nodefs.available"] = {50, 1000};
  Add(PodOf("a", 0, ""), 0, 5);
  EXPECT_EQ(Look(), std::vector<std::string>{"a"});
}

TEST_F(ManagerTest, LooksAgainAsSoonAsThePodIsCleanedUp) {
  EvictionOptions options;
  options.hard = {{"memory.available", "100"}};
  Make(options);
  cleaned_up_ = false;
  observations_["memory.available"] = {50, 1000};
  for (const char* name : {"a", "b", "c"}) Add(PodOf(name, 0, ""), 10);
  std::jthread thread([this](std::stop_token stop) { manager_->Run(stop); });
  const auto pass = [this](int count) {
    for (int i = 0; i < count; ++i) {
      clock_.AwaitWaiters(1);
      clock_.Advance(seconds(1));
    }
    clock_.AwaitWaiters(1);
  };
  pass(20);
  EXPECT_EQ(evicted_.size(), 1u) << "its memory may still be in use";
  cleaned_up_ = true;
  pass(1);
  EXPECT_EQ(evicted_.size(), 2u);
  cleaned_up_ = false;
  pass(30);
  EXPECT_EQ(evicted_.size(), 2u);
  pass(1);
  EXPECT_EQ(evicted_.size(), 3u) << "a pod that does not go holds nothing up for longer";
}

TEST(Disks, ThoseOfContainersAreWhereTheContainersAre) {
  EvictionOptions options;
  options.hard = {{"nodefs.available", "1"}, {"imagefs.available", "2"}, {"containerfs.available", "3"}};
  options.minimum_reclaim = {{"imagefs.available", "5"}};
  options.enforce_allocatable = false;
  const std::vector<Threshold> thresholds = *ParseThresholds(options);
  const struct {
    DiskLayout layout;
    const char* threshold;
    bool reclaims;
  } kCases[] = {{{false, false}, "1", false}, {{true, false}, "2", true}, {{true, true}, "1", false}};
  for (const auto& test : kCases) {
    const std::vector<Threshold> all = WithContainerFs(thresholds, test.layout);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all.back().signal, "containerfs.available");
    EXPECT_EQ(all.back().value.text, test.threshold);
    EXPECT_EQ(all.back().min_reclaim.has_value(), test.reclaims);
  }
}

TEST(Disks, PodsAreRankedByWhatTheyHaveOnTheDiskThatIsShort) {
  corev1::Pod layers, logs;
  layers.mutable_metadata()->set_name("layers");
  logs.mutable_metadata()->set_name("logs");
  std::vector<Candidate> candidates(2);
  candidates[0].pod = &layers;
  candidates[0].usage.disk = 10;
  candidates[0].usage.writable = 9;
  candidates[1].pod = &logs;
  candidates[1].usage.disk = 8;
  const DiskLayout one, apart{true, false}, split{true, true};
  const struct {
    const char* signal;
    DiskLayout layout;
    const char* first;
  } kCases[] = {{"nodefs.available", one, "layers"},        {"imagefs.available", one, "layers"},
                {"nodefs.available", apart, "logs"},        {"imagefs.available", apart, "layers"},
                {"containerfs.available", apart, "layers"}, {"nodefs.available", split, "layers"},
                {"containerfs.available", split, "layers"}};
  for (const auto& test : kCases) {
    std::vector<Candidate> ranked = {candidates[1], candidates[0]};
    if (std::string(test.first) == "logs") std::swap(ranked[0], ranked[1]);
    RankCandidates(test.signal, test.layout, ranked);
    EXPECT_EQ(ranked.front().pod->metadata().name(), test.first) << test.signal;
  }
}

TEST(Disks, WhatIsFreedFirstIsOnTheDiskThatIsShort) {
  const DiskLayout one, apart{true, false}, split{true, true};
  const struct {
    const char* signal;
    DiskLayout layout;
    bool containers, images;
  } kCases[] = {{"memory.available", one, false, false},       {"nodefs.available", one, true, true},
                {"nodefs.inodesFree", apart, false, false},    {"imagefs.available", apart, true, true},
                {"containerfs.available", apart, true, true},  {"nodefs.available", split, true, false},
                {"containerfs.available", split, true, false}, {"imagefs.available", split, false, true}};
  for (const auto& test : kCases) {
    const NodeReclaim reclaim = ReclaimFor(test.signal, test.layout);
    EXPECT_EQ(reclaim.containers, test.containers) << test.signal;
    EXPECT_EQ(reclaim.images, test.images) << test.signal;
  }
}

TEST(Memory, IsAlarmedBeforeTheNearestThreshold) {
  EvictionOptions options;
  options.hard = {{"memory.available", "100"}};
  options.soft = {{"memory.available", "25%"}};
  options.soft_grace_period = {{"memory.available", "1m"}};
  const std::vector<Threshold> thresholds = *ParseThresholds(options);
  EXPECT_EQ(MemoryLeft(thresholds, {{"memory.available", {600, 1000}}}, "memory.available"), 350);
  EXPECT_EQ(MemoryLeft(thresholds, {{"memory.available", {200, 1000}}}, "memory.available"), 100);
  EXPECT_EQ(MemoryLeft(thresholds, {{"memory.available", {50, 1000}}}, "memory.available"), std::nullopt);
  EXPECT_EQ(MemoryLeft(thresholds, {}, "memory.available"), std::nullopt);
}

}  // namespace
}  // namespace keelson::kubelet

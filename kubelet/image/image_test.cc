#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/image/image_manager.h"
#include "kubelet/testing/metric_value.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(NormalizeImage, AddsRegistryAndTag) {
  struct Case {
    const char *in, *out;
  };
  for (const Case& c : {Case{"busybox", "docker.io/library/busybox:latest"},
                        {"a/b:1", "docker.io/a/b:1"},
                        {"localhost/x", "localhost/x:latest"},
                        {"r.io:5000/x/y:2", "r.io:5000/x/y:2"},
                        {"r.io/x@sha256:0123456789012345678901234567890123456789012345678901234567890123",
                         "r.io/x@sha256:0123456789012345678901234567890123456789012345678901234567890123"},
                        {"Bad Name", ""},
                        {"UPPER", ""}}) {
    EXPECT_EQ(NormalizeImage(c.in), c.out) << c.in;
  }
}

TEST(Backoff, DoublesUpToTheMaximumAndForgets) {
  FakeClock clock;
  Backoff backoff(seconds(10), seconds(35), clock);
  EXPECT_EQ(backoff.Left("k", clock.Now()), milliseconds(0));
  for (int want : {10, 20, 35, 35}) {
    backoff.Next("k");
    EXPECT_EQ(backoff.Left("k", clock.Now()), seconds(want));
  }
  WallTime failed = clock.Now();
  clock.Advance(seconds(30));
  EXPECT_EQ(backoff.Left("k", failed), seconds(5));
  clock.Advance(seconds(60));
  backoff.Next("k");
  EXPECT_EQ(backoff.Left("k", clock.Now()), seconds(10)) << "quiet for twice the maximum";
  clock.Advance(seconds(71));
  EXPECT_EQ(backoff.Left("k", clock.Now()), milliseconds(0)) << "it has failed after having gone well";
}

// The time between a restart and the next failure counts, not the wait after it.
TEST(Backoff, ARunThatEndsSoonKeepsTheMaximum) {
  using std::chrono::minutes;
  for (const auto max : {minutes(1), minutes(5)}) {
    FakeClock clock;
    Backoff backoff(seconds(10), max, clock, minutes(10));
    const auto run_and_fail = [&](std::chrono::seconds run) {
      clock.Advance(run);
      const WallTime end = clock.Now();
      clock.Advance(backoff.Left("k", end));
      EXPECT_EQ(backoff.Left("k", end), milliseconds(0));
      backoff.Next("k", end);
      return backoff.Current("k");
    };
    for (int i = 0; i < 7; ++i) run_and_fail(seconds(1));
    EXPECT_EQ(backoff.Current("k"), max);
    EXPECT_EQ(run_and_fail(minutes(5)), max);
    EXPECT_EQ(run_and_fail(minutes(10)), max);
    EXPECT_EQ(run_and_fail(minutes(10) + seconds(1)), seconds(10));
  }
}

class ImageTest : public ::testing::Test {
 protected:
  bool Ensure(const std::string& policy) {
    failure_ = {};
    events_.clear();
    cri::SandboxConfig sandbox;
    std::vector<corev1::Secret> secrets;
    pod_.mutable_metadata()->set_uid("u");
    return manager_.Ensure({pod_, "img:1", policy, sandbox, secrets,
                            [this](const std::string&, const std::string& reason, const std::string&) {
                              events_.push_back(reason);
                            }},
                           {}, out_, failure_);
  }
  FakeClock clock_;
  cri::FakeRuntime runtime_{clock_};
  ImageManager manager_{runtime_, {}, clock_};
  corev1::Pod pod_;
  EnsuredImage out_;
  ImageFailure failure_;
  std::vector<std::string> events_;
};

TEST_F(ImageTest, PresentImageIsNotPulled) {
  runtime_.AddImage("img:1");
  EXPECT_TRUE(Ensure("IfNotPresent"));
  EXPECT_EQ(out_.ref, "sha256:img:1");
  EXPECT_EQ(events_, std::vector<std::string>{"Pulled"});
  EXPECT_EQ(runtime_.Count("PullImage img:1"), 0u);
}

TEST_F(ImageTest, NeverWithoutImageFails) {
  EXPECT_FALSE(Ensure("Never"));
  EXPECT_EQ(failure_.reason, "ErrImageNeverPull");
  EXPECT_EQ(events_, (std::vector<std::string>{"ErrImageNeverPull", "Failed"}));
}

TEST_F(ImageTest, WhatIsAskedForIsCounted) {
  runtime_.SetPullable("img:1");
  auto sample = [](const std::string& policy, const std::string& present, const std::string& pull) {
    return "kubelet_image_manager_ensure_image_requests_total{pull_policy=\"" + policy +
           "\",present_locally=\"" + present + "\",pull_required=\"" + pull + "\"}";
  };
  struct Case {
    const char* policy;
    std::string sample;
    bool fails = false;
  };
  for (const Case& c : {Case{"Never", sample("never", "false", "false")},
                        {"IfNotPresent", sample("ifnotpresent", "unknown", "unknown"), true},
                        {"IfNotPresent", sample("ifnotpresent", "false", "true")},
                        {"IfNotPresent", sample("ifnotpresent", "true", "false")},
                        {"Always", sample("always", "true", "true")}}) {
    const double before = MetricValue(c.sample);
    if (c.fails) runtime_.Fail("ImageStatus", Error(Code::kUnavailable, "connection refused"));
    (void)Ensure(c.policy);
    EXPECT_EQ(MetricValue(c.sample), before + 1) << c.sample;
  }
}

TEST_F(ImageTest, FailedPullBacksOff) {
  EXPECT_FALSE(Ensure("IfNotPresent"));
  EXPECT_EQ(failure_.reason, "ErrImagePull");
  EXPECT_EQ(events_, (std::vector<std::string>{"Pulling", "Failed", "Failed"}));
  EXPECT_FALSE(Ensure("IfNotPresent"));
  EXPECT_EQ(failure_.reason, "ImagePullBackOff");
  EXPECT_EQ(events_, (std::vector<std::string>{"BackOff", "Failed"}));
  EXPECT_EQ(failure_.retry, seconds(10));
  EXPECT_EQ(runtime_.Count("PullImage img:1"), 1u);
  runtime_.SetPullable("img:1");
  clock_.Advance(seconds(11));
  EXPECT_TRUE(Ensure("IfNotPresent"));
  EXPECT_EQ(events_, (std::vector<std::string>{"Pulling", "Pulled"}));
}

// A registry whose pulls take as long as the test likes.
class SlowRegistry : public cri::FakeRuntime {
 public:
  using cri::FakeRuntime::FakeRuntime;
  Result<std::string> PullImage(const std::string& image, const std::optional<cri::AuthConfig>& auth,
                                const cri::SandboxConfig& sandbox, std::stop_token stop) override {
    {
      MutexLock lock(mutex_);
      most_ = std::max(most_, ++under_way_);
      changed_.notify_all();
      while (allowed_ == 0) changed_.wait(mutex_);
      --allowed_;
      --under_way_;
      changed_.notify_all();
    }
    return cri::FakeRuntime::PullImage(image, auth, sandbox, stop);
  }
  void AwaitPulls(int count) {
    MutexLock lock(mutex_);
    while (under_way_ != count) changed_.wait(mutex_);
  }
  void LetEnd(int count) {
    MutexLock lock(mutex_);
    allowed_ += count;
    changed_.notify_all();
  }
  int most() {
    MutexLock lock(mutex_);
    return most_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int under_way_ KEELSON_GUARDED_BY(mutex_) = 0, most_ KEELSON_GUARDED_BY(mutex_) = 0,
                 allowed_ KEELSON_GUARDED_BY(mutex_) = 0;
};

TEST(PullRate, WhatIsBeyondItFailsAndIsTriedAgain) {
  FakeClock clock;
  cri::FakeRuntime runtime;
  ImageManager::Options options;
  options.pulls_per_second = 1;
  options.pull_burst = 2;
  ImageManager manager(runtime, options, clock);
  corev1::Pod pod;
  const cri::SandboxConfig sandbox;
  const std::vector<corev1::Secret> secrets;
  auto event = [](const std::string&, const std::string&, const std::string&) {};
  auto pull = [&](const std::string& uid) {
    pod.mutable_metadata()->set_uid(uid);
    EnsuredImage out;
    ImageFailure failure;
    return manager.Ensure({pod, "img:1", "Always", sandbox, secrets, event}, {}, out, failure)
               ? "pulled"
               : failure.reason + ": " + failure.message;
  };
  runtime.SetPullable("img:1");
  EXPECT_EQ(pull("a"), "pulled");
  EXPECT_EQ(pull("b"), "pulled");
  EXPECT_EQ(pull("c"), "ErrImagePull: pull QPS exceeded");
  clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(pull("d"), "pulled");
  EXPECT_EQ(pull("e"), "ErrImagePull: pull QPS exceeded");
}

TEST(ParallelPulls, AsManyAtATimeAsTheConfigurationSays) {
  struct Case {
    bool serialize;
    int limit, at_a_time;
  };
  for (const Case& c : {Case{true, 3, 1}, {false, 2, 2}, {false, 0, 5}}) {
    SlowRegistry registry;
    ImageManager::Options options;
    options.serialize_pulls = c.serialize;
    options.max_parallel_pulls = c.limit;
    ImageManager manager(registry, options);
    std::vector<std::future<bool>> pulls;
    for (int i = 0; i < 5; ++i) {
      const std::string image = "img:" + std::to_string(i);
      registry.SetPullable(image);
      pulls.push_back(std::async(std::launch::async, [&manager, image, i] {
        corev1::Pod pod;
        pod.mutable_metadata()->set_uid(std::to_string(i));
        const cri::SandboxConfig sandbox;
        const std::vector<corev1::Secret> secrets;
        EnsuredImage out;
        ImageFailure failure;
        auto event = [](const std::string&, const std::string&, const std::string&) {};
        return manager.Ensure({pod, image, "IfNotPresent", sandbox, secrets, event}, {}, out, failure);
      }));
    }
    for (int left = 5; left > 0; --left) {
      registry.AwaitPulls(std::min(left, c.at_a_time));
      registry.LetEnd(1);
    }
    for (auto& pull : pulls) EXPECT_TRUE(pull.get());
    EXPECT_EQ(registry.most(), c.at_a_time);
  }
}

}  // namespace
}  // namespace keelson::kubelet

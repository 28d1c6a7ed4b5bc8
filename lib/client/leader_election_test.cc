#include "lib/client/leader_election.h"

#include <atomic>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/api/meta.h"
#include "lib/client/backoff.h"
#include "lib/client/testing/fake_api.h"

namespace keelson::client {
namespace {

using namespace std::chrono_literals;
using Lease = coordinationv1::Lease;

// A clock with the wrong date that runs at the right speed.
class SkewedClock : public Clock {
 public:
  SkewedClock(FakeClock& base, std::chrono::hours skew) : base_(base), skew_(skew) {}
  WallTime Now() const override { return base_.Now() + skew_; }
  SteadyTime SteadyNow() const override { return base_.SteadyNow(); }
  void WaitUntil(Mutex& mutex, CondVar& cv, SteadyTime deadline) override {
    base_.WaitUntil(mutex, cv, deadline);
  }

 private:
  FakeClock& base_;
  const std::chrono::hours skew_;
};

// A candidate's connection to the API, which a test can cut.
class Wire : public Transport {
 public:
  explicit Wire(std::shared_ptr<Transport> next) : next_(std::move(next)) {}
  Result<ApiResponse> Do(const ApiRequest& request, std::chrono::milliseconds timeout,
                         std::stop_token stop) override {
    if (cut.load()) return Error(Code::kUnavailable, "cut");
    return next_->Do(request, timeout, stop);
  }
  Result<std::unique_ptr<ApiStream>> Open(const ApiRequest& request, std::stop_token stop) override {
    return next_->Open(request, stop);
  }
  std::atomic<bool> cut{false};

 private:
  std::shared_ptr<Transport> next_;
};

struct Candidate {
  Candidate(std::shared_ptr<Transport> api, FakeClock& base, const std::string& identity,
            std::chrono::hours skew)
      : clock(base, skew), wire(std::make_shared<Wire>(std::move(api))) {
    LeaderElectionOptions options;
    options.name = "kube-scheduler";
    options.identity = identity;
    elector = std::make_unique<LeaderElector>(RestClient(wire), events, options, clock);
  }
  ~Candidate() { End(); }

  void Begin() {
    thread = std::jthread([this](std::stop_token stop) {
      result = elector->Run(
          stop,
          [this](std::stop_token s) -> Result<> {
            leads.store(true);
            std::stop_callback wake(s, [this] {
              MutexLock lock(mutex);
              changed.notify_all();
            });
            MutexLock lock(mutex);
            while (!s.stop_requested() || !may_end) changed.wait(mutex);
            leads.store(false);
            return {};
          },
          [this, stop] {
            lost.store(true);
            SleepFor(clock, 10000h, stop);  // the process takes its time to end
          });
    });
  }
  void Hold(bool hold) {
    MutexLock lock(mutex);
    may_end = !hold;
    changed.notify_all();
  }
  void End() { thread = std::jthread(); }

  SkewedClock clock;
  std::shared_ptr<Wire> wire;
  EventRecorder events{RestClient(wire), "kube-scheduler", "", clock};
  std::unique_ptr<LeaderElector> elector;
  std::atomic<bool> leads{false}, lost{false};
  Mutex mutex;
  CondVar changed;
  bool may_end KEELSON_GUARDED_BY(mutex) = true;
  Result<> result;
  std::jthread thread;
};

class LeaderElectionTest : public ::testing::Test {
 protected:
  std::unique_ptr<Candidate> Make(const std::string& identity, std::chrono::hours skew = 0h) {
    return std::make_unique<Candidate>(fake_, clock_, identity, skew);
  }
  // Advances second by second until `until` or the limit; returns the seconds that passed. `sleepers`:
  // number of candidates that wait.
  int Pass(int seconds, size_t sleepers, const std::function<bool()>& until = nullptr) {
    clock_.AwaitWaiters(sleepers);
    for (int i = 0; i < seconds; ++i) {
      if (until && until()) return i;
      clock_.Advance(1s);
      clock_.AwaitWaiters(sleepers);
    }
    return seconds;
  }
  template <typename Condition>
  void Await(const Condition& condition) {
    while (!condition()) std::this_thread::yield();
  }
  coordinationv1::LeaseSpec Record() {
    auto lease = RestClient(fake_).Get<Lease>("kube-system", "kube-scheduler");
    return lease ? lease->spec() : coordinationv1::LeaseSpec();
  }

  FakeClock clock_;
  std::shared_ptr<FakeApi> fake_ = std::make_shared<FakeApi>(clock_);
};

TEST_F(LeaderElectionTest, TheFirstLeadsAndReleasesAtItsEnd) {
  auto a = Make("a");
  a->Begin();
  Await([&] { return a->leads.load(); });
  const auto first = Record();
  EXPECT_EQ(first.holder_identity(), "a");
  EXPECT_EQ(first.lease_duration_seconds(), 15);
  EXPECT_EQ(first.lease_transitions(), 0);
  Pass(10, 1);
  const auto renewed = Record();
  EXPECT_GE(renewed.renew_time().seconds(), first.renew_time().seconds() + 8);
  EXPECT_EQ(renewed.acquire_time().seconds(), first.acquire_time().seconds());
  EXPECT_EQ(renewed.lease_transitions(), 0);

  auto b = Make("b");
  b->Begin();
  Pass(60, 2);
  EXPECT_TRUE(a->leads.load());
  EXPECT_FALSE(b->leads.load());
  EXPECT_EQ(b->elector->holder(), "a");
  a->End();
  EXPECT_TRUE(a->result);
  EXPECT_FALSE(a->lost.load());
  EXPECT_EQ(Record().holder_identity(), "");
  EXPECT_EQ(Record().lease_duration_seconds(), 1);
  EXPECT_LE(Pass(10, 1, [&] { return Record().holder_identity() == "b"; }), 5) << "it is free at once";
  Await([&] { return b->leads.load(); });
  EXPECT_EQ(Record().holder_identity(), "b");
  EXPECT_EQ(Record().lease_transitions(), 1);
}

TEST_F(LeaderElectionTest, OneThatFallsSilentStopsBeforeTheNextBegins) {
  for (auto [skew_a, skew_b] : {std::pair(0h, 0h), {5h, -5h}, {-5h, 5h}}) {
    fake_ = std::make_shared<FakeApi>(clock_);
    auto a = Make("a", skew_a), b = Make("b", skew_b);
    a->Begin();
    Await([&] { return a->leads.load(); });
    b->Begin();
    Pass(40, 2);
    ASSERT_TRUE(a->leads.load() && !b->leads.load());
    a->wire->cut.store(true);
    const int until_lost = Pass(30, 2, [&] {
      if (!a->lost.load()) return false;
      EXPECT_FALSE(b->leads.load());
      return true;
    });
    EXPECT_LE(until_lost, 15) << "two seconds, and ten of trying";
    a->End();
    EXPECT_FALSE(a->leads.load());
    EXPECT_FALSE(a->result);
    // At most the Lease's fifteen seconds from b's last check, and the time to its next one.
    EXPECT_LE(until_lost + Pass(30, 1, [&] { return Record().holder_identity() == "b"; }), 15 + 2 * 5);
    Await([&] { return b->leads.load(); });
    EXPECT_EQ(Record().lease_transitions(), 1);
  }
}

TEST_F(LeaderElectionTest, AShortOutageIsGotOver) {
  auto a = Make("a");
  a->Begin();
  Await([&] { return a->leads.load(); });
  a->wire->cut.store(true);
  Pass(9, 1);
  a->wire->cut.store(false);
  Pass(30, 1);
  EXPECT_TRUE(a->leads.load());
  EXPECT_EQ(Record().lease_transitions(), 0);
  EXPECT_TRUE(a->elector->Healthy(20s));
}

TEST_F(LeaderElectionTest, AStolenLeaseEndsLeadershipAtOnce) {
  auto a = Make("a");
  a->Begin();
  Await([&] { return a->leads.load(); });
  clock_.AwaitWaiters(1);
  auto lease = *RestClient(fake_).Get<Lease>("kube-system", "kube-scheduler");
  lease.mutable_spec()->set_holder_identity("thief");
  ASSERT_TRUE(RestClient(fake_).Update(lease));
  clock_.Advance(2s);
  Await([&] { return a->lost.load(); });
  a->End();
  EXPECT_FALSE(a->result);
  EXPECT_EQ(Record().holder_identity(), "thief") << "what is another's is not released";
}

// A leader may take its time to end: until then nobody else starts.
TEST_F(LeaderElectionTest, IsHeldUntilTheWorkHasEnded) {
  auto a = Make("a"), b = Make("b");
  a->Hold(true);
  a->Begin();
  Await([&] { return a->leads.load(); });
  b->Begin();
  clock_.AwaitWaiters(2);
  a->thread.request_stop();
  Pass(60, 2);
  EXPECT_TRUE(a->leads.load());
  EXPECT_FALSE(b->leads.load());
  a->Hold(false);
  a->End();
  EXPECT_LE(Pass(10, 1, [&] { return Record().holder_identity() == "b"; }), 5);
}

TEST_F(LeaderElectionTest, WaitingIsStopped) {
  auto a = Make("a"), b = Make("b");
  a->Begin();
  Await([&] { return a->leads.load(); });
  b->Begin();
  clock_.AwaitWaiters(2);
  b->End();
  EXPECT_TRUE(b->result);
  EXPECT_FALSE(b->leads.load());
  EXPECT_EQ(Record().holder_identity(), "a");
}

// The other candidate may be upstream's controller manager: its fields are kept.
TEST_F(LeaderElectionTest, TakesOverAnOldRecord) {
  Lease lease;
  lease.mutable_metadata()->set_namespace_("kube-system");
  lease.mutable_metadata()->set_name("kube-scheduler");
  lease.mutable_spec()->set_holder_identity("gone");
  lease.mutable_spec()->set_lease_duration_seconds(15);
  lease.mutable_spec()->set_lease_transitions(6);
  lease.mutable_spec()->set_strategy("OldestEmulationVersion");
  // Far in the future by its own clock, which does not matter.
  *lease.mutable_spec()->mutable_renew_time() = api::ToMicroTime(clock_.Now() + 100h);
  fake_->Put(lease);
  auto a = Make("a");
  a->Begin();
  const int waited = Pass(30, 1, [&] { return Record().holder_identity() == "a"; });
  EXPECT_GE(waited, 15);
  EXPECT_LE(waited, 20);
  EXPECT_EQ(Record().lease_transitions(), 7);
  EXPECT_EQ(Record().strategy(), "OldestEmulationVersion");
}

TEST_F(LeaderElectionTest, OneThatHangsIsUnhealthy) {
  auto a = Make("a");
  EXPECT_TRUE(a->elector->Healthy(0s));
  a->Begin();
  Await([&] { return a->leads.load(); });
  a->wire->cut.store(true);
  EXPECT_TRUE(a->elector->Healthy(20s));
  clock_.AwaitWaiters(1);
  clock_.Advance(36s);
  Result<> health = a->elector->Healthy(20s);
  ASSERT_FALSE(health);
  EXPECT_EQ(health.error().message(), "failed election to renew leadership on lease kube-scheduler");
}

TEST(LeaderElectionOptionsTest, AreChecked) {
  struct Case {
    std::chrono::milliseconds lease, renew, retry;
    const char* want;
  };
  for (const Case& c : {Case{15s, 10s, 2s, ""},
                        {10s, 10s, 2s, "leaseDuration must be greater than renewDeadline"},
                        {15s, 2400ms, 2s, "renewDeadline must be greater than retryPeriod*JitterFactor"},
                        {15s, 10s, 0s, "retryPeriod must be greater than zero"},
                        {900ms, 500ms, 100ms, "leaseDuration must be at least a second"}}) {
    LeaderElectionOptions options{"kube-system", "x", "me", c.lease, c.renew, c.retry};
    Result<> checked = ValidateLeaderElection(options);
    EXPECT_EQ(checked ? "" : checked.error().message(), c.want);
  }
}

}  // namespace
}  // namespace keelson::client

// Leader election with a Lease, like client-go's: one candidate leads, and another takes over when it ends
// or stops renewing.
//
// A candidate watches the Lease for changes and measures time on its own clock, so differences between
// clocks do not matter. A leader that cannot renew within `renew_deadline` stops leading before
// `lease_duration` has passed, after which others may start.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <stop_token>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"
#include "lib/client/events.h"
#include "lib/client/rest.h"

namespace keelson::client {

struct LeaderElectionOptions {
  std::string ns = "kube-system", name;  // of the Lease
  std::string identity;                  // of this candidate; NewIdentity()
  std::chrono::milliseconds lease_duration{std::chrono::seconds(15)};
  std::chrono::milliseconds renew_deadline{std::chrono::seconds(10)};
  std::chrono::milliseconds retry_period{std::chrono::seconds(2)};
};

Result<> ValidateLeaderElection(const LeaderElectionOptions& options);  // kInvalid
std::string NewIdentity();                                              // host name and a random part

class LeaderElector {
 public:
  // Calls through `api` should take at most half of `renew_deadline`. `events` records who starts and stops
  // leading.
  LeaderElector(RestClient api, EventRecorder& events, LeaderElectionOptions options,
                Clock& clock = Clock::Real());

  // Waits for the Lease, then runs `lead` until `stop`; keeps the Lease until `lead` has returned, and
  // releases it. If the Lease is lost earlier, calls `lost` at once. `lost` should end the process, because
  // another candidate may already lead; if it returns, `lead` is stopped and the result is an error.
  Result<> Run(std::stop_token stop, const std::function<Result<>(std::stop_token)>& lead,
               const std::function<void()>& lost);

  bool IsLeader() const KEELSON_EXCLUDES(mutex_);
  std::string holder() const KEELSON_EXCLUDES(mutex_);  // last seen holder; empty: none
  // kUnavailable when we lead but did not renew in time: more than `tolerance` has passed since the Lease
  // ran out.
  Result<> Healthy(std::chrono::nanoseconds tolerance) const KEELSON_EXCLUDES(mutex_);

 private:
  bool TryAcquireOrRenew(const RestClient& api) KEELSON_EXCLUDES(mutex_);
  // Renews our own last record without reading it first.
  bool RenewKnown(const RestClient& api, WallTime now) KEELSON_EXCLUDES(mutex_);
  void Observe(const coordinationv1::Lease& lease, SteadyTime at) KEELSON_EXCLUDES(mutex_);
  coordinationv1::LeaseSpec NextRecord(const coordinationv1::LeaseSpec* before, WallTime now) const;
  bool Acquire(std::stop_token stop);
  bool KeepRenewing(std::stop_token over);
  void Release();
  void Tell(const char* what);

  const RestClient api_;
  EventRecorder& events_;
  const LeaderElectionOptions options_;
  Clock& clock_;
  std::minstd_rand random_{std::random_device{}()};
  mutable Mutex mutex_;
  std::optional<coordinationv1::Lease> seen_ KEELSON_GUARDED_BY(mutex_);
  SteadyTime seen_at_ KEELSON_GUARDED_BY(mutex_);  // when its record was first seen, or sent if it is ours
};

}  // namespace keelson::client

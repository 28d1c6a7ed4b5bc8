// Leader election over a Lease, after client-go's: of all who take part one leads, and another takes over
// when it ends or falls silent.
//
// A candidate watches the Lease change and counts from what it has seen by its own clock: how the clocks of
// others go does not matter. Who cannot renew for `renew_deadline` stops leading before `lease_duration` has
// passed, after which the others may begin.
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
  // A call of `api` should take no longer than half of `renew_deadline`. `events` is told who begins and
  // ends.
  LeaderElector(RestClient api, EventRecorder& events, LeaderElectionOptions options,
                Clock& clock = Clock::Real());

  // Waits until the Lease is ours, then runs `lead` until `stop`; the Lease is kept until `lead` has
  // returned, and released. When it is lost before that, `lost` is called at once, which had better end the
  // process: another may lead already. If it returns, `lead` is stopped, and the result is an error.
  Result<> Run(std::stop_token stop, const std::function<Result<>(std::stop_token)>& lead,
               const std::function<void()>& lost);

  bool IsLeader() const EXCLUDES(mutex_);
  std::string holder() const EXCLUDES(mutex_);  // as last seen; empty: nobody
  // kUnavailable when we lead and should have renewed `tolerance` before the Lease's end at the latest.
  Result<> Healthy(std::chrono::nanoseconds tolerance) const EXCLUDES(mutex_);

 private:
  bool TryAcquireOrRenew(const RestClient& api) EXCLUDES(mutex_);
  // Only the holder's next record is to be stored: no read is needed before.
  bool RenewKnown(const RestClient& api, WallTime now) EXCLUDES(mutex_);
  void Observe(const coordinationv1::Lease& lease, SteadyTime at) EXCLUDES(mutex_);
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
  std::optional<coordinationv1::Lease> seen_ GUARDED_BY(mutex_);
  SteadyTime seen_at_ GUARDED_BY(mutex_);  // when its record was first seen, or sent if it is ours
};

}  // namespace keelson::client

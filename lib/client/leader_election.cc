#include "lib/client/leader_election.h"

#include <unistd.h>

#include <thread>

#include <google/protobuf/util/message_differencer.h>

#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/client/backoff.h"
#include "lib/metrics/metrics.h"

namespace keelson::client {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr double kJitter = 1.2;

metrics::Value& MasterStatus(const std::string& name) {
  return metrics::Gauge("leader_election_master_status",
                        "Gauge of if the reporting system is master of the relevant lease, 0 indicates "
                        "backup, 1 indicates master. 'name' is the string used to identify the lease. "
                        "Please make sure to group by name.",
                        {"name"})
      .With({name});
}

void CountSlowPath(const std::string& name) {
  metrics::Counter("leader_election_slowpath_total",
                   "Total number of slow path exercised in renewing leader leases. 'name' is the string "
                   "used to identify the lease. Please make sure to group by name.",
                   {"name"})
      .With({name})
      .Increment();
}

}  // namespace

Result<> ValidateLeaderElection(const LeaderElectionOptions& options) {
  const milliseconds zero{0};
  const char* wrong = nullptr;
  if (options.lease_duration <= options.renew_deadline) {
    wrong = "leaseDuration must be greater than renewDeadline";
  } else if (options.renew_deadline <= duration_cast<milliseconds>(options.retry_period * kJitter)) {
    wrong = "renewDeadline must be greater than retryPeriod*JitterFactor";
  } else if (options.retry_period <= zero) {
    wrong = "retryPeriod must be greater than zero";
  } else if (options.lease_duration < std::chrono::seconds(1)) {
    wrong = "leaseDuration must be at least a second";
  } else if (options.name.empty() || options.ns.empty()) {
    wrong = "the Lease must have a name and a namespace";
  }
  if (wrong) return Error(Code::kInvalid, wrong);
  return {};
}

std::string NewIdentity() {
  char host[256] = {};
  (void)gethostname(host, sizeof host - 1);
  return std::string(host) + "_" + api::NewUid();
}

LeaderElector::LeaderElector(RestClient api, EventRecorder& events, LeaderElectionOptions options,
                             Clock& clock)
    : api_(std::move(api)), events_(events), options_(std::move(options)), clock_(clock) {}

bool LeaderElector::IsLeader() const { return holder() == options_.identity; }

std::string LeaderElector::holder() const {
  MutexLock lock(mutex_);
  return seen_ ? seen_->spec().holder_identity() : "";
}

Result<> LeaderElector::Healthy(std::chrono::nanoseconds tolerance) const {
  MutexLock lock(mutex_);
  if (!seen_ || seen_->spec().holder_identity() != options_.identity) return {};
  if (clock_.SteadyNow() <= seen_at_ + options_.lease_duration + tolerance) return {};
  return Error(Code::kUnavailable, "failed election to renew leadership on lease " + options_.name);
}

void LeaderElector::Tell(const char* what) {
  corev1::ObjectReference lease;
  lease.set_kind("Lease");
  lease.set_api_version("coordination.k8s.io/v1");
  lease.set_namespace_(options_.ns);
  lease.set_name(options_.name);
  events_.Record(lease, "Normal", "LeaderElection", options_.identity + " " + what);
}

// A record's time counts from when we first saw it; for our own, from when we sent it.
void LeaderElector::Observe(const coordinationv1::Lease& lease, SteadyTime at) {
  MutexLock lock(mutex_);
  const bool news =
      !seen_ || !google::protobuf::util::MessageDifferencer::Equals(seen_->spec(), lease.spec());
  if (news) seen_at_ = at;
  if (news && (!seen_ || seen_->spec().holder_identity() != lease.spec().holder_identity())) {
    log::Info("Leader seen", {{"lease", options_.name}, {"leader", lease.spec().holder_identity()}});
  }
  seen_ = lease;
}

coordinationv1::LeaseSpec LeaderElector::NextRecord(const coordinationv1::LeaseSpec* before,
                                                    WallTime now) const {
  coordinationv1::LeaseSpec next;
  if (before) next = *before;  // keep strategy and preferredHolder
  const bool ours = before && before->holder_identity() == options_.identity;
  next.set_holder_identity(options_.identity);
  next.set_lease_duration_seconds(
      static_cast<int32_t>(duration_cast<std::chrono::seconds>(options_.lease_duration).count()));
  *next.mutable_renew_time() = api::ToMicroTime(now);
  if (!ours) *next.mutable_acquire_time() = api::ToMicroTime(now);
  next.set_lease_transitions(!before ? 0 : before->lease_transitions() + (ours ? 0 : 1));
  return next;
}

bool LeaderElector::RenewKnown(const RestClient& api, WallTime now) {
  coordinationv1::Lease lease;
  const SteadyTime sent = clock_.SteadyNow();
  {
    MutexLock lock(mutex_);
    if (!seen_ || seen_->spec().holder_identity() != options_.identity) return false;
    if (sent >= seen_at_ + options_.lease_duration) return false;
    lease = *seen_;
  }
  *lease.mutable_spec() = NextRecord(&lease.spec(), now);
  Result<coordinationv1::Lease> stored = api.Update(lease);
  if (!stored) {
    log::Debug("Lease not renewed at once", {{"lease", options_.name}, {"err", stored.error()}});
    return false;
  }
  Observe(*stored, sent);
  return true;
}

bool LeaderElector::TryAcquireOrRenew(const RestClient& api) {
  const WallTime now = clock_.Now();
  if (RenewKnown(api, now)) return true;
  if (IsLeader()) CountSlowPath(options_.name);
  const SteadyTime sent = clock_.SteadyNow();
  auto failed = [&](const char* step, const Error& error) {
    log::Write(
        error.Is(Code::kConflict) || error.Is(Code::kAlreadyExists) ? log::Level::kDebug : log::Level::kWarn,
        "Cannot take part in the election", {{"lease", options_.name}, {"step", step}, {"err", error}});
    return false;
  };
  Result<coordinationv1::Lease> stored = api.Get<coordinationv1::Lease>(options_.ns, options_.name);
  if (!stored && !stored.error().Is(Code::kNotFound)) return failed("get", stored.error());
  if (!stored) {
    coordinationv1::Lease fresh;
    fresh.mutable_metadata()->set_namespace_(options_.ns);
    fresh.mutable_metadata()->set_name(options_.name);
    *fresh.mutable_spec() = NextRecord(nullptr, now);
    stored = api.Create(fresh);
    if (!stored) return failed("create", stored.error());
    Observe(*stored, sent);
    return true;
  }
  Observe(*stored, sent);
  const coordinationv1::LeaseSpec& record = stored->spec();
  if (!record.holder_identity().empty() && record.holder_identity() != options_.identity) {
    MutexLock lock(mutex_);
    if (clock_.SteadyNow() < seen_at_ + std::chrono::seconds(record.lease_duration_seconds())) return false;
  }
  *stored->mutable_spec() = NextRecord(&record, now);
  Result<coordinationv1::Lease> taken = api.Update(*stored);
  if (!taken) return failed("update", taken.error());
  Observe(*taken, sent);
  return true;
}

bool LeaderElector::Acquire(std::stop_token stop) {
  log::Info("Waiting to lead", {{"lease", options_.ns + "/" + options_.name}});
  const RestClient api = api_.With(stop);
  for (;;) {
    if (stop.stop_requested()) return false;
    if (TryAcquireOrRenew(api)) return true;
    const double spread = std::uniform_real_distribution<double>(1.0, 1.0 + kJitter)(random_);
    const auto pause = duration_cast<std::chrono::nanoseconds>(options_.retry_period * spread);
    if (!SleepFor(clock_, pause, stop)) return false;
  }
}

// True: `over` was requested. False: another holds the Lease, or it was not renewed in time.
bool LeaderElector::KeepRenewing(std::stop_token over) {
  const RestClient api = api_.With(over);
  while (SleepFor(clock_, options_.retry_period, over)) {
    const SteadyTime deadline = clock_.SteadyNow() + options_.renew_deadline;
    while (!TryAcquireOrRenew(api)) {
      if (over.stop_requested()) return true;
      if (!IsLeader() || clock_.SteadyNow() >= deadline) return false;
      if (!SleepFor(clock_, options_.retry_period, over)) return true;
    }
  }
  return true;
}

// Clears the holder, so that the next leader need not wait.
void LeaderElector::Release() {
  coordinationv1::Lease lease;
  {
    MutexLock lock(mutex_);
    if (!seen_ || seen_->spec().holder_identity() != options_.identity) return;
    lease = *seen_;
  }
  lease.mutable_spec()->set_holder_identity("");
  lease.mutable_spec()->set_lease_duration_seconds(1);
  *lease.mutable_spec()->mutable_renew_time() = api::ToMicroTime(clock_.Now());
  *lease.mutable_spec()->mutable_acquire_time() = api::ToMicroTime(clock_.Now());
  const SteadyTime sent = clock_.SteadyNow();
  Result<coordinationv1::Lease> stored = api_.Update(lease);
  if (!stored) {
    log::Warn("Lease not released: the next leader has to wait for its end",
              {{"lease", options_.name}, {"err", stored.error()}});
    return;
  }
  Observe(*stored, sent);
}

Result<> LeaderElector::Run(std::stop_token stop, const std::function<Result<>(std::stop_token)>& lead,
                            const std::function<void()>& lost) {
  MasterStatus(options_.name).Set(0);
  if (!Acquire(stop)) return {};
  MasterStatus(options_.name).Set(1);
  log::Info("Leading", {{"lease", options_.name}, {"identity", options_.identity}});
  Tell("became leader");

  std::stop_source ending, over;
  std::stop_callback pass_on(stop, [&] { ending.request_stop(); });
  Result<> outcome;
  std::jthread leading([&] {
    outcome = lead(ending.get_token());
    over.request_stop();
  });
  const bool kept = KeepRenewing(over.get_token());
  MasterStatus(options_.name).Set(0);
  if (!kept) {
    log::Error("Leader election lost", {{"lease", options_.name}, {"leader", holder()}});
    if (lost) lost();
  }
  ending.request_stop();
  leading.join();
  Tell("stopped leading");
  if (!kept) return Error(Code::kUnavailable, "leader election lost: " + options_.name);
  Release();
  return outcome;
}

}  // namespace keelson::client

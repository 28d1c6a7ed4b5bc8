#include "proxy/announce/election.h"

#include <algorithm>

#include "lib/api/meta.h"

namespace keelson::proxy {

using std::chrono::duration_cast;
using std::chrono::seconds;

Move NextMove(const Candidacy& own, const ElectionTimes& times, SteadyTime now) {
  const SteadyTime never = now + std::chrono::minutes(10);
  auto at = [&](Move::Step step, SteadyTime due) -> Move {
    if (own.failed) due = std::max(due, *own.failed + times.retry);
    if (now >= due) return {step, now};
    return {Move::kWait, due};
  };
  if (!own.eligible) return own.Holds() ? at(Move::kRelease, now) : Move{Move::kWait, never};
  // One that was killed finds its own name, and goes on.
  if (own.Holds()) return at(Move::kRenew, own.renewed ? *own.renewed + times.renew : now);
  if (!own.record || own.record->holder_identity().empty()) return at(Move::kTake, own.seen + own.rank);
  return at(Move::kTake, own.seen + seconds(own.record->lease_duration_seconds()) + own.rank);
}

coordinationv1::LeaseSpec NextRecord(const Candidacy& own, const ElectionTimes& times, WallTime now) {
  coordinationv1::LeaseSpec next;
  if (own.record) next = *own.record;
  next.set_holder_identity(own.identity);
  next.set_lease_duration_seconds(static_cast<int32_t>(duration_cast<seconds>(times.lease).count()));
  *next.mutable_renew_time() = api::ToMicroTime(now);
  if (own.Holds()) return next;
  *next.mutable_acquire_time() = api::ToMicroTime(now);
  next.set_lease_transitions(own.record ? own.record->lease_transitions() + 1 : 0);
  return next;
}

coordinationv1::LeaseSpec ReleasedRecord(const coordinationv1::LeaseSpec& record, WallTime now) {
  coordinationv1::LeaseSpec out;
  out.set_holder_identity("");
  out.set_lease_duration_seconds(1);
  *out.mutable_renew_time() = api::ToMicroTime(now);
  *out.mutable_acquire_time() = api::ToMicroTime(now);
  out.set_lease_transitions(record.lease_transitions());
  return out;
}

std::chrono::milliseconds RankOf(const std::string& identity, const std::string& group,
                                 const ElectionTimes& times) {
  // FNV-1a, with a last stir: names that differ in one digit end far apart.
  uint64_t hash = 14695981039346656037u;
  for (char c : identity + "/" + group) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  hash ^= hash >> 29;
  if (times.spread.count() <= 0) return {};
  return std::chrono::milliseconds(hash % static_cast<uint64_t>(times.spread.count()));
}

}  // namespace keelson::proxy

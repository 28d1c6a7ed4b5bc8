// Who of several nodes speaks for a group of addresses: the one that a Lease names. Pure.
//
// As in client-go a candidate counts the holder's time from when it has seen the Lease change, by its own
// clock. Unlike there, who cannot renew goes on until it sees or hears of another (responder.h): while the
// API server is away nobody else can take over, and clients are better served than not.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::proxy {

struct ElectionTimes {
  std::chrono::milliseconds lease{6000};  // of a holder's silence; whole seconds
  std::chrono::milliseconds renew{2000};  // between two renewals
  std::chrono::milliseconds retry{1000};  // after a write that failed
  std::chrono::milliseconds spread{500};  // candidates for what is vacant come one after another within
};

struct Candidacy {
  std::string identity;
  bool eligible = false;
  std::optional<coordinationv1::LeaseSpec> record;  // as last seen or written; none: there is no Lease
  SteadyTime seen;                                  // when that was first so
  std::optional<SteadyTime> renewed;                // when our last write that succeeded was sent
  std::optional<SteadyTime> failed;                 // when the last write failed, if none has succeeded since
  std::chrono::milliseconds rank{0};                // how long to wait for others to come first

  bool Holds() const { return record && record->holder_identity() == identity; }
};

struct Move {
  enum Step { kWait, kTake, kRenew, kRelease } step = kWait;
  SteadyTime again;  // kWait: when to look again, at the latest
};

Move NextMove(const Candidacy& candidacy, const ElectionTimes& times, SteadyTime now);

// The record that takes or renews the Lease.
coordinationv1::LeaseSpec NextRecord(const Candidacy& candidacy, const ElectionTimes& times, WallTime now);
// The one that gives it up: whoever comes next need not wait.
coordinationv1::LeaseSpec ReleasedRecord(const coordinationv1::LeaseSpec& record, WallTime now);

// A place in the row of candidates for this group: the same for one node and group, different for others.
std::chrono::milliseconds RankOf(const std::string& identity, const std::string& group,
                                 const ElectionTimes& times);

}  // namespace keelson::proxy

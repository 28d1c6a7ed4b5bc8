// Leader election: the node that a Lease names announces a group of addresses. Pure.
//
// As in client-go a candidate measures the holder's silence by its own clock, from when it has seen the Lease
// change. Unlike there, a holder that cannot renew goes on until it sees another holder in the Lease or on
// the link (responder.h): while the API server is away no other node can take over, and clients are still
// served.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::proxy {

struct ElectionTimes {
  std::chrono::milliseconds lease{6000};  // of a holder's silence before others take over; whole seconds
  std::chrono::milliseconds renew{2000};  // between two renewals
  std::chrono::milliseconds retry{1000};  // after a write that failed
  std::chrono::milliseconds spread{500};  // in which candidates for a vacant Lease try one after another
};

struct Candidacy {
  std::string identity;
  bool eligible = false;
  std::optional<coordinationv1::LeaseSpec> record;  // as last seen or written; nullopt: there is no Lease
  SteadyTime seen;                                  // when the record was first seen so
  std::optional<SteadyTime> renewed;                // when our last write that succeeded was sent
  std::optional<SteadyTime> failed;                 // when the last write failed, if none has succeeded since
  std::chrono::milliseconds rank{0};                // how long to wait for other candidates

  bool Holds() const { return record && record->holder_identity() == identity; }
};

struct Move {
  enum Step { kWait, kTake, kRenew, kRelease } step = kWait;
  SteadyTime again;  // kWait: when to look again, at the latest
};

// What the candidate does now.
Move NextMove(const Candidacy& candidacy, const ElectionTimes& times, SteadyTime now);

// The record that takes or renews the Lease.
coordinationv1::LeaseSpec NextRecord(const Candidacy& candidacy, const ElectionTimes& times, WallTime now);
// The record that releases the Lease, so that the next holder need not wait.
coordinationv1::LeaseSpec ReleasedRecord(const coordinationv1::LeaseSpec& record, WallTime now);

// Candidacy::rank of a node for a group: always the same for both, and different for other nodes and groups.
std::chrono::milliseconds RankOf(const std::string& identity, const std::string& group,
                                 const ElectionTimes& times);

}  // namespace keelson::proxy

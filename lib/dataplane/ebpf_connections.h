// Connections that are translated at devices (`connections` in ebpf_maps.h), decoded, and how long they live.
// Pure.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

#include "lib/dataplane/addresses.h"
#include "lib/dataplane/ebpf_maps.h"

namespace keelson::dataplane {

// ConnectionTuple.
struct Connection {
  uint8_t protocol = 0;
  EndpointAddress source, destination;
  auto operator<=>(const Connection&) const = default;
};

// NatEntry.
struct Nat {
  EndpointAddress source, destination;  // what packets get
  bool reply = false, masquerade = false, direct = false, dsr = false;
  bool finished = false, reset = false;
  std::chrono::nanoseconds last_used{0};  // CLOCK_MONOTONIC; 0: not yet
};

Connection Decode(const ConnectionTuple& tuple);
Nat Decode(const NatEntry& entry);

// The key of the other direction's entry, given this direction's.
ConnectionTuple ReplyTuple(const NatEntry& entry, uint8_t protocol);

// Whether a connection has neither ended nor been silent for as long as connection tracking would remember it
// (UDP 3 minutes, TCP a day, 2 minutes while unanswered). `now` is of CLOCK_MONOTONIC.
bool IsOpen(const Nat& forward, const Nat& reply, uint8_t protocol, std::chrono::nanoseconds now);

// The same for direct server return, where only the client's packets are seen.
bool IsOpenDsr(const Nat& forward, std::chrono::nanoseconds now);

}  // namespace keelson::dataplane

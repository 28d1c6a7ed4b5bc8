// What the rules at one hook do with the first packet of a connection. Pure: tables in, outcomes out.
//
// Where a rule draws a number, every number is followed: each way the packet may go is an outcome. A rule
// that is not understood is taken as one that does not match, and named in the outcome.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/nft/program.h"

namespace keelson::nft {

struct Packet {
  IpAddress source, destination;
  uint8_t protocol = 6;
  uint16_t source_port = 0, destination_port = 0;
  uint32_t mark = 0;
  std::string in_link;             // empty: it comes from this machine
  bool translated = false;         // has another destination than it began with
  IpAddress first_destination;     // then: that one
  bool source_translated = false;  // leaves with another source
};

struct TraceStep {
  std::string chain;  // "ip keelson-proxy pick-3"
  std::string what;
};

struct TraceOutcome {
  enum End { kGoesOn, kDropped, kRejected } end = kGoesOn;
  Packet packet;
  std::vector<TraceStep> steps;
  std::vector<std::string> not_understood;  // chain and expression
};

// RTN_LOCAL (2) and the like.
using AddressTypeOf = std::function<uint32_t(const IpAddress&)>;

// The chains of all `tables` that the packet meets at `point`, in the order of their priorities.
std::vector<TraceOutcome> TraceHook(const std::vector<LiveTable>& tables, HookPoint point,
                                    const Packet& packet, const AddressTypeOf& address_type);

}  // namespace keelson::nft

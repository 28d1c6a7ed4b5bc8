// Traces the first packet of a connection through the rules at one hook. Pure: tables in, outcomes out.
//
// Where a rule draws a random number, the trace follows every number: each way that the packet may take is
// an outcome. A rule that is not understood counts as not matching, and the outcome names it.
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
  std::string in_link;             // empty: locally generated
  bool translated = false;         // its destination has been changed
  IpAddress first_destination;     // before that change
  bool source_translated = false;  // its source will be changed
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

// The route type of an address: RTN_LOCAL (2) and the like.
using AddressTypeOf = std::function<uint32_t(const IpAddress&)>;

// Follows the packet through the chains of all `tables` at `point`, in the order of their priorities. At
// least one outcome.
std::vector<TraceOutcome> TraceHook(const std::vector<LiveTable>& tables, HookPoint point,
                                    const Packet& packet, const AddressTypeOf& address_type);

}  // namespace keelson::nft

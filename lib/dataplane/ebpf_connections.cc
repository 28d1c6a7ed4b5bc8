#include "lib/dataplane/ebpf_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "lib/dataplane/ebpf_codec.h"

namespace keelson::dataplane {
namespace {

using std::chrono::nanoseconds, std::chrono::seconds;

constexpr seconds kUdpTimeout{180}, kUnansweredTimeout{120}, kTcpTimeout{86400};

}  // namespace

Connection Decode(const ConnectionTuple& tuple) {
  return {.protocol = tuple.protocol,
          .source = {DecodeIp(tuple.source), ntohs(tuple.source_port)},
          .destination = {DecodeIp(tuple.destination), ntohs(tuple.destination_port)}};
}

Nat Decode(const NatEntry& entry) {
  return {.source = {DecodeIp(entry.source), ntohs(entry.source_port)},
          .destination = {DecodeIp(entry.destination), ntohs(entry.destination_port)},
          .reply = (entry.flags & kNatReply) != 0,
          .masquerade = (entry.flags & kNatMasquerade) != 0,
          .direct = (entry.flags & kNatDirect) != 0,
          .dsr = (entry.flags & kNatDsr) != 0,
          .finished = (entry.closing & kNatFinished) != 0,
          .reset = (entry.closing & kNatReset) != 0,
          .last_used = nanoseconds(entry.last_used)};
}

ConnectionTuple ReplyTuple(const NatEntry& entry, uint8_t protocol) {
  ConnectionTuple out{};
  out.source_port = entry.destination_port;
  out.destination_port = entry.source_port;
  out.protocol = protocol;
  std::memcpy(out.source, entry.destination, sizeof out.source);
  std::memcpy(out.destination, entry.source, sizeof out.destination);
  return out;
}

bool IsOpen(const Nat& forward, const Nat& reply, uint8_t protocol, nanoseconds now) {
  const nanoseconds idle = now - std::max(forward.last_used, reply.last_used);
  if (protocol == IPPROTO_UDP) return idle < kUdpTimeout;
  if (forward.reset || reply.reset || (forward.finished && reply.finished)) return false;
  return idle < (reply.last_used.count() == 0 ? kUnansweredTimeout : kTcpTimeout);
}

bool IsOpenDsr(const Nat& forward, nanoseconds now) {
  return !forward.reset && now - forward.last_used < (forward.finished ? kUnansweredTimeout : kTcpTimeout);
}

}  // namespace keelson::dataplane

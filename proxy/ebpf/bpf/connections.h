// NAT entries of connections of external traffic. For external_traffic.h.
//
// Both directions of a connection have an entry in one map, keyed by what packets look like before they are
// translated. Either entry leads to the other one.
#ifndef KEELSON_PROXY_EBPF_CONNECTIONS_H_
#define KEELSON_PROXY_EBPF_CONNECTIONS_H_

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/endpoint_selection.h"
#include "proxy/ebpf/bpf/packet.h"
#include "proxy/ebpf/bpf/service_maps.h"

// The key of the other direction.
static __always_inline struct ConnectionTuple ReplyTuple(const struct NatEntry* connection, __u8 protocol) {
  struct ConnectionTuple out = {.source_port = connection->destination_port,
                                .destination_port = connection->source_port,
                                .protocol = protocol};
  __builtin_memcpy(out.source, connection->destination, sizeof out.source);
  __builtin_memcpy(out.destination, connection->source, sizeof out.destination);
  return out;
}

static __always_inline int SameAddress(const __u32* a, const __u32* b) {
  return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3];
}

static __always_inline void NotePacket(struct NatEntry* connection, const struct Packet* packet) {
  connection->last_used = bpf_ktime_get_ns();
  if (packet->tcp_flags & KP_FIN) connection->closing |= kNatFinished;
  if (packet->tcp_flags & KP_RST) connection->closing |= kNatReset;
}

// Nanoseconds since the last packet of either direction.
static __always_inline __u64 IdleFor(const struct NatEntry* one, const struct NatEntry* other) {
  const __u64 last = one->last_used > other->last_used ? one->last_used : other->last_used;
  return bpf_ktime_get_ns() - last;
}

static __always_inline int HasEnded(const struct NatEntry* one, const struct NatEntry* other) {
  return ((one->closing | other->closing) & kNatReset) || (one->closing & other->closing & kNatFinished);
}

static __always_inline struct ConnectionTuple Reversed(const struct ConnectionTuple* tuple) {
  struct ConnectionTuple out = {.source_port = tuple->destination_port,
                                .destination_port = tuple->source_port,
                                .protocol = tuple->protocol};
  __builtin_memcpy(out.source, tuple->destination, sizeof out.source);
  __builtin_memcpy(out.destination, tuple->source, sizeof out.destination);
  return out;
}

// The entry of packets in the opposite direction of `tuple`; null: none.
static __always_inline struct NatEntry* FindReverse(const struct ConnectionTuple* tuple) {
  const struct ConnectionTuple key = Reversed(tuple);
  return bpf_map_lookup_elem(&connections, &key);
}

// Whether the Service at that address, or of that NodePort, has the endpoint.
static __always_inline int IsEndpointOf(const struct ServiceKey* original, const struct Endpoint* endpoint) {
  if (IsMember(original, endpoint)) return 1;
  struct ServiceKey vip = *original;
  __builtin_memset(vip.ip, 0xff, sizeof vip.ip);
  return IsMember(&vip, endpoint);
}

// Whether a packet that may begin a connection, and for which there is an entry, begins a new one: the old
// one has ended, or its endpoint has gone. UDP has no end.
static __always_inline int IsNewConnection(const struct ConnectionTuple* original,
                                           const struct NatEntry* forward) {
  if (forward->flags & kNatDsr) {
    if (forward->closing) return 1;
  } else {
    const struct ConnectionTuple key = ReplyTuple(forward, original->protocol);
    const struct NatEntry* reply = bpf_map_lookup_elem(&connections, &key);
    if (!reply || (original->protocol == IPPROTO_TCP && HasEnded(forward, reply))) return 1;
  }
  struct ServiceKey vip = {.port = original->destination_port, .protocol = original->protocol};
  __builtin_memcpy(vip.ip, original->destination, sizeof vip.ip);
  struct Endpoint endpoint = {.port = forward->destination_port};
  __builtin_memcpy(endpoint.ip, forward->destination, sizeof endpoint.ip);
  return !IsEndpointOf(&vip, &endpoint);
}

// Stores both directions of a connection whose packets `original` become as `forward` says. 0: not stored.
// The same client has another connection to the same endpoint through another Service, and answers could not
// be told apart.
static __always_inline int StoreConnection(const struct ConnectionTuple* original,
                                           const struct NatEntry* forward) {
  const struct ConnectionTuple key = ReplyTuple(forward, original->protocol);
  struct NatEntry reply = {.source_port = original->destination_port,
                           .destination_port = original->source_port,
                           .flags = kNatReply};
  __builtin_memcpy(reply.source, original->destination, sizeof reply.source);
  __builtin_memcpy(reply.destination, original->source, sizeof reply.destination);
  const struct NatEntry* holder = bpf_map_lookup_elem(&connections, &key);
  if (holder && !(SameAddress(holder->source, reply.source) && holder->source_port == reply.source_port)) {
    const struct ConnectionTuple holder_key = ReplyTuple(holder, original->protocol);
    const struct NatEntry* other = bpf_map_lookup_elem(&connections, &holder_key);
    const int idle = original->protocol == IPPROTO_UDP && other && IdleFor(holder, other) > 180 * KP_SECOND;
    if (other && !idle && !HasEnded(holder, other)) return 0;
  }
  // The reply entry first: answers are never seen untranslated.
  if (bpf_map_update_elem(&connections, &key, &reply, BPF_ANY)) return 0;
  return bpf_map_update_elem(&connections, original, forward, BPF_ANY) == 0;
}

// A client connects to an address that is no Service's, perhaps to an endpoint itself: its answers must not
// be translated any more, unless the same client's connection through a Service is alive.
static __always_inline void ForgetStaleReply(const struct ConnectionTuple* original) {
  const struct NatEntry* reply = FindReverse(original);
  if (!reply || !(reply->flags & kNatReply)) return;
  const struct ConnectionTuple key = Reversed(original);
  const struct ConnectionTuple holder_key = ReplyTuple(reply, original->protocol);
  const struct NatEntry* forward = bpf_map_lookup_elem(&connections, &holder_key);
  if (forward && IdleFor(forward, reply) < 300 * KP_SECOND && !HasEnded(forward, reply)) return;
  bpf_map_delete_elem(&connections, &holder_key);
  bpf_map_delete_elem(&connections, &key);
}

#endif  // KEELSON_PROXY_EBPF_CONNECTIONS_H_

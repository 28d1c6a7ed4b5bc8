// What is remembered of connections from outside. For outside.h.
//
// Both ways of a connection are entries of one map, each keyed by what its packets look like before they are
// translated; either leads to the other one.
#ifndef KEELSON_PROXY_EBPF_CONNECTIONS_H_
#define KEELSON_PROXY_EBPF_CONNECTIONS_H_

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/maps.h"
#include "proxy/ebpf/bpf/packet.h"
#include "proxy/ebpf/bpf/pick.h"

// The size is set when loading, by the machine's memory. When it is full the longest unused go.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 1);
  __type(key, struct Tuple);
  __type(value, struct Connection);
} connections SEC(".maps");

// By which packets of the other way are known.
static __always_inline struct Tuple OtherWay(const struct Connection* connection, __u8 protocol) {
  struct Tuple out = {.source_port = connection->destination_port,
                      .destination_port = connection->source_port,
                      .protocol = protocol};
  __builtin_memcpy(out.source, connection->destination, sizeof out.source);
  __builtin_memcpy(out.destination, connection->source, sizeof out.destination);
  return out;
}

static __always_inline int SameAddress(const __u32* a, const __u32* b) {
  return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3];
}

static __always_inline void Note(struct Connection* connection, const struct Packet* packet) {
  connection->used = bpf_ktime_get_ns();
  if (packet->tcp_flags & KP_FIN) connection->ends |= kFinished;
  if (packet->tcp_flags & KP_RST) connection->ends |= kReset;
}

// Nanoseconds since the last packet of either way.
static __always_inline __u64 IdleFor(const struct Connection* one, const struct Connection* other) {
  const __u64 last = one->used > other->used ? one->used : other->used;
  return bpf_ktime_get_ns() - last;
}

static __always_inline int HasEnded(const struct Connection* one, const struct Connection* other) {
  return ((one->ends | other->ends) & kReset) || (one->ends & other->ends & kFinished);
}

static __always_inline struct Tuple Turned(const struct Tuple* tuple) {
  struct Tuple out = {.source_port = tuple->destination_port,
                      .destination_port = tuple->source_port,
                      .protocol = tuple->protocol};
  __builtin_memcpy(out.source, tuple->destination, sizeof out.source);
  __builtin_memcpy(out.destination, tuple->source, sizeof out.destination);
  return out;
}

// Of packets that go the other way than `tuple`.
static __always_inline struct Connection* FindAnswered(const struct Tuple* tuple) {
  const struct Tuple key = Turned(tuple);
  return bpf_map_lookup_elem(&connections, &key);
}

// As Services are known: by the address, or as a NodePort.
static __always_inline int IsEndpointOf(const struct Vip* asked, const struct Endpoint* endpoint) {
  if (IsMember(asked, endpoint)) return 1;
  struct Vip vip = *asked;
  __builtin_memset(vip.ip, 0xff, sizeof vip.ip);
  return IsMember(&vip, endpoint);
}

// Of a connection that a client seems to begin again: whether it is a new one. UDP has no ends; it goes on
// while there is that endpoint.
static __always_inline int IsOver(const struct Tuple* asked, const struct Connection* there) {
  if (there->flags & kStraight) {
    if (there->ends) return 1;
  } else {
    const struct Tuple key = OtherWay(there, asked->protocol);
    const struct Connection* back = bpf_map_lookup_elem(&connections, &key);
    if (!back || (asked->protocol == IPPROTO_TCP && HasEnded(there, back))) return 1;
  }
  struct Vip vip = {.port = asked->destination_port, .protocol = asked->protocol};
  __builtin_memcpy(vip.ip, asked->destination, sizeof vip.ip);
  struct Endpoint endpoint = {.port = there->destination_port};
  __builtin_memcpy(endpoint.ip, there->destination, sizeof endpoint.ip);
  return !IsEndpointOf(&vip, &endpoint);
}

// `there`: what packets of `asked` become. 0: another connection of the same client has the same endpoint by
// way of another Service, and their answers could not be told apart.
static __always_inline int Store(const struct Tuple* asked, const struct Connection* there) {
  const struct Tuple key = OtherWay(there, asked->protocol);
  struct Connection back = {
      .source_port = asked->destination_port, .destination_port = asked->source_port, .flags = kBack};
  __builtin_memcpy(back.source, asked->destination, sizeof back.source);
  __builtin_memcpy(back.destination, asked->source, sizeof back.destination);
  const struct Connection* holder = bpf_map_lookup_elem(&connections, &key);
  if (holder && !(SameAddress(holder->source, back.source) && holder->source_port == back.source_port)) {
    const struct Tuple its = OtherWay(holder, asked->protocol);
    const struct Connection* other = bpf_map_lookup_elem(&connections, &its);
    const int idle = asked->protocol == IPPROTO_UDP && other && IdleFor(holder, other) > 180 * KP_SECOND;
    if (other && !idle && !HasEnded(holder, other)) return 0;
  }
  // The way back first: answers are never seen untranslated.
  if (bpf_map_update_elem(&connections, &key, &back, BPF_ANY)) return 0;
  return bpf_map_update_elem(&connections, asked, there, BPF_ANY) == 0;
}

// Somebody connects to what is no Service, and may be an endpoint: its answers are its own from now on,
// unless the same client's connection to it by way of a Service is alive.
static __always_inline void ForgetBefore(const struct Tuple* asked) {
  const struct Connection* back = FindAnswered(asked);
  if (!back || !(back->flags & kBack)) return;
  const struct Tuple key = Turned(asked);
  const struct Tuple its = OtherWay(back, asked->protocol);
  const struct Connection* there = bpf_map_lookup_elem(&connections, &its);
  if (there && IdleFor(there, back) < 300 * KP_SECOND && !HasEnded(there, back)) return;
  bpf_map_delete_elem(&connections, &its);
  bpf_map_delete_elem(&connections, &key);
}

#endif  // KEELSON_PROXY_EBPF_CONNECTIONS_H_

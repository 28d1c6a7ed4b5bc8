// Which endpoint a client gets. For socket_lb.bpf.c.
#ifndef KEELSON_PROXY_EBPF_PICK_H_
#define KEELSON_PROXY_EBPF_PICK_H_

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/maps.h"

#define KP_SECOND 1000000000ull

// What hashes hold is allocated entry by entry: the memory follows the Services. Sizes are set when loading.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1);
  __type(key, struct Vip);
  __type(value, struct Service);
} services SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1);
  __type(key, struct Slot);
  __type(value, struct Endpoint);
} endpoints SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1);
  __type(key, struct Member);
  __type(value, __u8);
} members SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1024);
  __type(key, struct Address);
  __type(value, __u8);
} nodeport_ips SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, struct Client);
  __type(value, struct Sticky);
} affinity SEC(".maps");

// Of sockets that are not connected: all that one sends to a Service goes to one endpoint, while it is there.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, struct Client);
  __type(value, struct Endpoint);
} flows SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct Settings);
} settings SEC(".maps");

// Also leaves in `vip` the key by which the Service was found.
static __always_inline struct Service* FindService(struct Vip* vip) {
  struct Service* found = bpf_map_lookup_elem(&services, vip);
  if (found) return found;
  struct Address address;
  __builtin_memcpy(&address, vip->ip, sizeof address);
  struct Vip other = {};
  if (bpf_map_lookup_elem(&nodeport_ips, &address)) {
    __builtin_memset(other.ip, 0xff, sizeof other.ip);
    other.port = vip->port;
    other.protocol = vip->protocol;
  } else {
    __builtin_memcpy(other.ip, vip->ip, sizeof other.ip);
  }
  found = bpf_map_lookup_elem(&services, &other);
  if (found) *vip = other;
  return found;
}

static __always_inline struct Endpoint* PickRandom(const struct Vip* vip, __u32 count) {
  struct Slot slot = {.vip = *vip, .slot = count ? bpf_get_prandom_u32() % count : 0};
  struct Endpoint* found = bpf_map_lookup_elem(&endpoints, &slot);
  if (found) return found;
  // The list has become shorter just now. The first one is the last to go.
  slot.slot = 0;
  return bpf_map_lookup_elem(&endpoints, &slot);
}

static __always_inline int IsMember(const struct Vip* vip, const struct Endpoint* endpoint) {
  struct Member member = {.vip = *vip, .endpoint = *endpoint};
  return bpf_map_lookup_elem(&members, &member) != 0;
}

// Null: there is none any more.
static __always_inline struct Endpoint* PickForClient(const struct Vip* vip, const struct Service* service,
                                                      __u64 netns) {
  if (!service->affinity) return PickRandom(vip, service->endpoints);
  struct Client client = {.cookie = netns, .vip = *vip};
  struct Sticky* before = bpf_map_lookup_elem(&affinity, &client);
  const __u64 now = bpf_ktime_get_ns();
  if (before && now - before->used < service->affinity * KP_SECOND && IsMember(vip, &before->endpoint)) {
    before->used = now;
    return &before->endpoint;
  }
  struct Endpoint* picked = PickRandom(vip, service->endpoints);
  if (!picked) return 0;
  struct Sticky sticky = {.used = now, .endpoint = *picked};
  bpf_map_update_elem(&affinity, &client, &sticky, BPF_ANY);
  return picked;
}

// For what a socket sends without being connected.
static __always_inline struct Endpoint* PickForSocket(const struct Vip* vip, const struct Service* service,
                                                      __u64 netns, __u64 socket) {
  struct Client flow = {.cookie = socket, .vip = *vip};
  struct Endpoint* before = bpf_map_lookup_elem(&flows, &flow);
  if (before && IsMember(vip, before)) return before;
  struct Endpoint* picked = PickForClient(vip, service, netns);
  if (picked) bpf_map_update_elem(&flows, &flow, picked, BPF_ANY);
  return picked;
}

#endif  // KEELSON_PROXY_EBPF_PICK_H_

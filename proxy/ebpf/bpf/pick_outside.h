// Which endpoint a connection from outside gets: the same one on every node that has the same endpoints, and
// nearly the same one when these change. For outside.h.
#ifndef KEELSON_PROXY_EBPF_PICK_OUTSIDE_H_
#define KEELSON_PROXY_EBPF_PICK_OUTSIDE_H_

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/maps.h"
#include "proxy/ebpf/bpf/pick.h"

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1);
  __type(key, struct Vip);
  __type(value, struct Outside);
} outside SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1);
  __type(key, struct RowKey);
  __type(value, struct Row);
} maglev SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LPM_TRIE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1);
  __type(key, struct SourceRange);
  __type(value, __u8);
} source_ranges SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LPM_TRIE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1024);
  __type(key, struct PodRange);
  __type(value, __u8);
} pods SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, struct OutsideClient);
  __type(value, struct Sticky);
} outside_affinity SEC(".maps");

// Also leaves in `vip` the key by which the Service was found.
static __always_inline struct Outside* FindOutside(struct Vip* vip) {
  struct Outside* found = bpf_map_lookup_elem(&outside, vip);
  if (found) return found;
  struct Address address;
  __builtin_memcpy(&address, vip->ip, sizeof address);
  if (!bpf_map_lookup_elem(&nodeport_ips, &address)) return 0;
  __builtin_memset(vip->ip, 0xff, sizeof vip->ip);
  return bpf_map_lookup_elem(&outside, vip);
}

static __always_inline int IsPod(const __u32* ip) {
  struct PodRange key = {.bits = 8 * sizeof key.ip};
  __builtin_memcpy(key.ip, ip, sizeof key.ip);
  return bpf_map_lookup_elem(&pods, &key) != 0;
}

static __always_inline int IsAdmitted(const struct Vip* vip, const __u32* ip) {
  struct SourceRange key = {.bits = 8 * (sizeof key - sizeof key.bits), .vip = *vip};
  __builtin_memcpy(key.ip, ip, sizeof key.ip);
  return bpf_map_lookup_elem(&source_ranges, &key) != 0;
}

// Multiplication and shifts as in MurmurHash3: every bit of the input reaches every bit of the result.
static __always_inline __u32 Mix(__u32 hash, __u32 word) {
  word *= 0xcc9e2d51;
  word = word << 15 | word >> 17;
  hash ^= word * 0x1b873593;
  hash = hash << 13 | hash >> 19;
  return hash * 5 + 0xe6546b64;
}

// Of what all packets of a connection say, or of a client.
static __always_inline __u32 HashOf(const struct Tuple* tuple, int client_only) {
  __u32 hash = 0;
  for (int i = 0; i < 4; ++i) {
    hash = Mix(hash, tuple->source[i]);
    hash = Mix(hash, tuple->destination[i]);
  }
  hash = Mix(hash, (__u32)tuple->destination_port << 16 | tuple->protocol);
  if (!client_only) hash = Mix(hash, tuple->source_port);
  hash ^= hash >> 16;
  hash *= 0x85ebca6b;
  hash ^= hash >> 13;
  hash *= 0xc2b2ae35;
  return hash ^ hash >> 16;
}

static __always_inline struct Endpoint* PickByHash(const struct Vip* vip, const struct Outside* service,
                                                   __u32 hash) {
  struct Slot slot = {.vip = *vip, .slot = service->first};
  if (service->rows) {
    const struct RowKey key = {.vip = *vip, .row = (hash / KP_ROW_SLOTS) & (service->rows - 1)};
    const struct Row* row = bpf_map_lookup_elem(&maglev, &key);
    if (row) slot.slot += row->slots[hash % KP_ROW_SLOTS];
  }
  struct Endpoint* found = bpf_map_lookup_elem(&endpoints, &slot);
  if (found) return found;
  // The list has become shorter just now. The first one is the last to go.
  slot.slot = service->first;
  return bpf_map_lookup_elem(&endpoints, &slot);
}

// Null: there is none any more.
static __always_inline struct Endpoint* PickForPacket(const struct Vip* vip, const struct Outside* service,
                                                      const struct Tuple* tuple) {
  if (!service->affinity) return PickByHash(vip, service, HashOf(tuple, 0));
  struct OutsideClient client = {.vip = *vip};
  __builtin_memcpy(client.ip, tuple->source, sizeof client.ip);
  struct Sticky* before = bpf_map_lookup_elem(&outside_affinity, &client);
  const __u64 now = bpf_ktime_get_ns();
  if (before && now - before->used < service->affinity * KP_SECOND && IsMember(vip, &before->endpoint)) {
    before->used = now;
    return &before->endpoint;
  }
  struct Endpoint* picked = PickByHash(vip, service, HashOf(tuple, 1));
  if (!picked) return 0;
  struct Sticky sticky = {.used = now, .endpoint = *picked};
  bpf_map_update_elem(&outside_affinity, &client, &sticky, BPF_ANY);
  return picked;
}

#endif  // KEELSON_PROXY_EBPF_PICK_OUTSIDE_H_

// Selects endpoints for external traffic, by Maglev hashing: all nodes that have the same endpoints select
// the same one, and few connections move when endpoints change. For external_traffic.h.
#ifndef KEELSON_PROXY_EBPF_EXTERNAL_SELECTION_H_
#define KEELSON_PROXY_EBPF_EXTERNAL_SELECTION_H_

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/endpoint_selection.h"
#include "proxy/ebpf/bpf/service_maps.h"

// Finds the Service of an address: itself, or as a NodePort. `vip` becomes the key that has matched. Null:
// none.
static __always_inline struct ExternalServiceEntry* FindExternalService(struct ServiceKey* vip) {
  struct ExternalServiceEntry* found = bpf_map_lookup_elem(&outside, vip);
  if (found) return found;
  struct AddressKey address;
  __builtin_memcpy(&address, vip->ip, sizeof address);
  if (!bpf_map_lookup_elem(&nodeport_ips, &address)) return 0;
  __builtin_memset(vip->ip, 0xff, sizeof vip->ip);
  return bpf_map_lookup_elem(&outside, vip);
}

static __always_inline int IsPod(const __u32* ip) {
  struct PodCidrKey key = {.bits = 8 * sizeof key.ip};
  __builtin_memcpy(key.ip, ip, sizeof key.ip);
  return bpf_map_lookup_elem(&pods, &key) != 0;
}

static __always_inline int IsInSourceRanges(const struct ServiceKey* vip, const __u32* ip) {
  struct SourceRangeKey key = {.bits = 8 * (sizeof key - sizeof key.bits), .service = *vip};
  __builtin_memcpy(key.ip, ip, sizeof key.ip);
  return bpf_map_lookup_elem(&source_ranges, &key) != 0;
}

// Multiplication and shifts as in MurmurHash3: every bit of the input affects every bit of the result.
static __always_inline __u32 Mix(__u32 hash, __u32 word) {
  word *= 0xcc9e2d51;
  word = word << 15 | word >> 17;
  hash ^= word * 0x1b873593;
  hash = hash << 13 | hash >> 19;
  return hash * 5 + 0xe6546b64;
}

// Hash of a connection, or with `client_only` of a client and a Service.
static __always_inline __u32 HashOf(const struct ConnectionTuple* tuple, int client_only) {
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

static __always_inline struct Endpoint* SelectByMaglev(const struct ServiceKey* vip,
                                                       const struct ExternalServiceEntry* service,
                                                       __u32 hash) {
  struct EndpointKey slot = {.service = *vip, .slot = service->first_slot};
  if (service->maglev_chunks) {
    const struct MaglevKey key = {.service = *vip,
                                  .chunk = (hash / KP_MAGLEV_CHUNK) & (service->maglev_chunks - 1)};
    const struct MaglevChunk* row = bpf_map_lookup_elem(&maglev, &key);
    if (row) slot.slot += row->slots[hash % KP_MAGLEV_CHUNK];
  }
  struct Endpoint* found = bpf_map_lookup_elem(&endpoints, &slot);
  if (found) return found;
  // The list has just become shorter. The first slot is removed last.
  slot.slot = service->first_slot;
  return bpf_map_lookup_elem(&endpoints, &slot);
}

// The endpoint of a connection that `tuple` begins. Null: there is none any more.
static __always_inline struct Endpoint* SelectForPacket(const struct ServiceKey* vip,
                                                        const struct ExternalServiceEntry* service,
                                                        const struct ConnectionTuple* tuple) {
  if (!service->affinity) return SelectByMaglev(vip, service, HashOf(tuple, 0));
  struct ExternalClientKey client = {.service = *vip};
  __builtin_memcpy(client.ip, tuple->source, sizeof client.ip);
  struct AffinityEntry* before = bpf_map_lookup_elem(&outside_affinity, &client);
  const __u64 now = bpf_ktime_get_ns();
  if (before && now - before->last_used < service->affinity * KP_SECOND && IsMember(vip, &before->endpoint)) {
    before->last_used = now;
    return &before->endpoint;
  }
  struct Endpoint* selected = SelectByMaglev(vip, service, HashOf(tuple, 1));
  if (!selected) return 0;
  struct AffinityEntry entry = {.last_used = now, .endpoint = *selected};
  bpf_map_update_elem(&outside_affinity, &client, &entry, BPF_ANY);
  return selected;
}

#endif  // KEELSON_PROXY_EBPF_EXTERNAL_SELECTION_H_

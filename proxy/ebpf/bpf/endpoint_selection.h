// Selects endpoints for sockets, with session affinity. For socket_lb.h.
#ifndef KEELSON_PROXY_EBPF_ENDPOINT_SELECTION_H_
#define KEELSON_PROXY_EBPF_ENDPOINT_SELECTION_H_

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/service_maps.h"

#define KP_SECOND 1000000000ull

// Finds the Service of an address: itself, as a NodePort, or as another port of a cluster IP. `vip` becomes
// the key that has matched. Null: none.
static __always_inline struct ServiceEntry* FindService(struct ServiceKey* vip) {
  struct ServiceEntry* found = bpf_map_lookup_elem(&services, vip);
  if (found) return found;
  struct AddressKey address;
  __builtin_memcpy(&address, vip->ip, sizeof address);
  struct ServiceKey other = {};
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

static __always_inline struct Endpoint* SelectRandom(const struct ServiceKey* vip, __u32 count) {
  struct EndpointKey slot = {.service = *vip, .slot = count ? bpf_get_prandom_u32() % count : 0};
  struct Endpoint* found = bpf_map_lookup_elem(&endpoints, &slot);
  if (found) return found;
  // The list has just become shorter. Slot 0 is removed last.
  slot.slot = 0;
  return bpf_map_lookup_elem(&endpoints, &slot);
}

static __always_inline int IsMember(const struct ServiceKey* vip, const struct Endpoint* endpoint) {
  struct ServiceEndpointKey member = {.service = *vip, .endpoint = *endpoint};
  return bpf_map_lookup_elem(&members, &member) != 0;
}

// The endpoint of a client in that network namespace. Null: there is none any more.
static __always_inline struct Endpoint* SelectForClient(const struct ServiceKey* vip,
                                                        const struct ServiceEntry* service, __u64 netns) {
  if (!service->affinity) return SelectRandom(vip, service->endpoints);
  struct LocalClientKey client = {.cookie = netns, .service = *vip};
  struct AffinityEntry* before = bpf_map_lookup_elem(&affinity, &client);
  const __u64 now = bpf_ktime_get_ns();
  if (before && now - before->last_used < service->affinity * KP_SECOND && IsMember(vip, &before->endpoint)) {
    before->last_used = now;
    return &before->endpoint;
  }
  struct Endpoint* selected = SelectRandom(vip, service->endpoints);
  if (!selected) return 0;
  struct AffinityEntry entry = {.last_used = now, .endpoint = *selected};
  bpf_map_update_elem(&affinity, &client, &entry, BPF_ANY);
  return selected;
}

// The endpoint of a socket that sends without being connected. Null: there is none any more.
static __always_inline struct Endpoint* SelectForSocket(const struct ServiceKey* vip,
                                                        const struct ServiceEntry* service, __u64 netns,
                                                        __u64 socket) {
  struct LocalClientKey flow = {.cookie = socket, .service = *vip};
  struct Endpoint* before = bpf_map_lookup_elem(&flows, &flow);
  if (before && IsMember(vip, before)) return before;
  struct Endpoint* selected = SelectForClient(vip, service, netns);
  if (selected) bpf_map_update_elem(&flows, &flow, selected, BPF_ANY);
  return selected;
}

#endif  // KEELSON_PROXY_EBPF_ENDPOINT_SELECTION_H_

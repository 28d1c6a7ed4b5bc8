// Forwarding of external traffic to endpoints on other nodes at the device that it comes in by
// (--ebpf-direct): with the node's address and a port of its own as the source (SNAT), and answers to the
// client with the Service's. The kernel's routes and neighbours decide the path; rules, connection tracking
// and IPsec see nothing. For external_traffic.h.
#ifndef KEELSON_PROXY_EBPF_DIRECT_H_
#define KEELSON_PROXY_EBPF_DIRECT_H_

#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/connections.h"
#include "proxy/ebpf/bpf/dsr.h"
#include "proxy/ebpf/bpf/packet.h"
#include "proxy/ebpf/bpf/service_maps.h"

#define KP_AF_INET 2
#define KP_AF_INET6 10

static __always_inline const struct DirectDeviceEntry* FindDirect(__u32 index) {
  return bpf_map_lookup_elem(&direct_devices, &index);
}

// Looks up the route of a packet that has come in by the device `index`. Returns BPF_FIB_LKUP_RET_*. `size`:
// of the largest packet that may take the route; 0: of this one, where the kernel knows it.
static __always_inline long LookUpRoute(void* context, __u32 index, const __u32* source,
                                        const __u32* destination, __u8 protocol, __u32 size,
                                        struct bpf_fib_lookup* route) {
  __builtin_memset(route, 0, sizeof *route);
  route->ifindex = index;
  route->l4_protocol = protocol;
  route->tot_len = (__u16)size;
  if (serves_v4) {
    route->family = KP_AF_INET;
    route->ipv4_src = source[3];
    route->ipv4_dst = destination[3];
  } else {
    route->family = KP_AF_INET6;
    __builtin_memcpy(route->ipv6_src, source, sizeof route->ipv6_src);
    __builtin_memcpy(route->ipv6_dst, destination, sizeof route->ipv6_dst);
  }
  return bpf_fib_lookup(context, route, sizeof *route, 0);
}

// 0: there is no route.
static __always_inline int FindRoute(struct __sk_buff* skb, const __u32* source, const __u32* destination,
                                     __u8 protocol, __u32 size, struct bpf_fib_lookup* route) {
  const long found = LookUpRoute(skb, skb->ifindex, source, destination, protocol, size, route);
  return found == BPF_FIB_LKUP_RET_SUCCESS || found == BPF_FIB_LKUP_RET_NO_NEIGH;
}

// 0: the hop limit is used up.
static __always_inline int DecrementTtl(struct __sk_buff* skb, const struct Packet* packet) {
  if (!serves_v4) {
    const __u32 at = packet->ip + offsetof(struct ipv6hdr, hop_limit);
    __u8 limit = 0;
    if (bpf_skb_load_bytes(skb, at, &limit, 1) || limit <= 1) return 0;
    --limit;
    return bpf_skb_store_bytes(skb, at, &limit, 1, BPF_F_RECOMPUTE_CSUM) == 0;
  }
  const __u32 at = packet->ip + offsetof(struct iphdr, ttl);
  __u8 old[2], now[2];  // and the protocol: checksums are of pairs
  if (bpf_skb_load_bytes(skb, at, old, 2) || old[0] <= 1) return 0;
  now[0] = old[0] - 1;
  now[1] = old[1];
  __u16 before, after;
  __builtin_memcpy(&before, old, 2);
  __builtin_memcpy(&after, now, 2);
  if (bpf_l3_csum_replace(skb, packet->ip + offsetof(struct iphdr, check), before, after, 2)) return 0;
  return bpf_skb_store_bytes(skb, at, now, 1, 0) == 0;
}

static __always_inline int ForwardDirect(struct __sk_buff* skb, const struct Packet* packet,
                                         const struct NatEntry* connection) {
  if (!FindDirect(skb->ifindex)) {
    return TC_ACT_SHOT;  // no longer direct: the node's rules do not know the connection
  }
  __u32 source[4], destination[4];
  __builtin_memcpy(source, connection->source, sizeof source);
  __builtin_memcpy(destination, connection->destination, sizeof destination);
  struct bpf_fib_lookup route;
  if (!FindRoute(skb, packet->tuple.source, destination, packet->tuple.protocol, 0, &route)) {
    return TC_ACT_SHOT;
  }
  if (!DecrementTtl(skb, packet) || !SetDestination(skb, packet, connection) ||
      !SetSource(skb, packet, connection)) {
    return TC_ACT_SHOT;
  }
  if ((connection->flags & kNatDsr) && (packet->tcp_flags & KP_SYN) && !AddDsrOption(skb, packet)) {
    return TC_ACT_SHOT;
  }
  struct bpf_redir_neigh next = {.nh_family = route.family};
  __builtin_memcpy(next.ipv6_nh, route.ipv6_dst, sizeof next.ipv6_nh);  // of IPv4 its first word
  return bpf_redirect_neigh(route.ifindex, &next, sizeof next, 0);
}

// Whether `answer` would reach a socket of the node: a process may have bound such a port.
static __always_inline int IsForSocket(struct __sk_buff* skb, const struct ConnectionTuple* answer) {
  struct bpf_sock_tuple tuple = {};
  __u32 size = sizeof tuple.ipv4;
  if (serves_v4) {
    tuple.ipv4.saddr = answer->source[3];
    tuple.ipv4.daddr = answer->destination[3];
    tuple.ipv4.sport = answer->source_port;
    tuple.ipv4.dport = answer->destination_port;
  } else {
    size = sizeof tuple.ipv6;
    __builtin_memcpy(tuple.ipv6.saddr, answer->source, sizeof tuple.ipv6.saddr);
    __builtin_memcpy(tuple.ipv6.daddr, answer->destination, sizeof tuple.ipv6.daddr);
    tuple.ipv6.sport = answer->source_port;
    tuple.ipv6.dport = answer->destination_port;
  }
  struct bpf_sock* socket = answer->protocol == IPPROTO_TCP
                                ? bpf_sk_lookup_tcp(skb, &tuple, size, BPF_F_CURRENT_NETNS, 0)
                                : bpf_sk_lookup_udp(skb, &tuple, size, BPF_F_CURRENT_NETNS, 0);
  if (!socket) return 0;
  bpf_sk_release(socket);
  return 1;
}

// Chooses a free source port of the node (KP_FIRST_SNAT_PORT and above) for packets to forward->destination,
// and stores the reply entry. 0: none of those tried was free.
static __always_inline int AllocateSnatPort(struct __sk_buff* skb, const struct ConnectionTuple* original,
                                            struct NatEntry* forward) {
  struct NatEntry reply = {.source_port = original->destination_port,
                           .destination_port = original->source_port,
                           .flags = kNatReply | kNatDirect};
  __builtin_memcpy(reply.source, original->destination, sizeof reply.source);
  __builtin_memcpy(reply.destination, original->source, sizeof reply.destination);
  reply.last_used = forward->last_used;
  const __u32 first = bpf_get_prandom_u32();
  for (int i = 0; i < 8; ++i) {
    const __u32 port = KP_FIRST_SNAT_PORT + (first + i * 577) % (0x10000 - KP_FIRST_SNAT_PORT);
    forward->source_port = bpf_htons((__u16)port);
    const struct ConnectionTuple key = ReplyTuple(forward, original->protocol);
    if (IsForSocket(skb, &key)) continue;
    const struct NatEntry* holder = bpf_map_lookup_elem(&connections, &key);
    if (holder) {
      const struct ConnectionTuple holder_key = ReplyTuple(holder, original->protocol);
      const struct NatEntry* other = bpf_map_lookup_elem(&connections, &holder_key);
      const int idle = original->protocol == IPPROTO_UDP && other && IdleFor(holder, other) > 180 * KP_SECOND;
      if (other && !idle && !HasEnded(holder, other)) continue;
      bpf_map_delete_elem(&connections, &key);
    }
    if (bpf_map_update_elem(&connections, &key, &reply, BPF_NOEXIST) == 0) return 1;
  }
  return 0;
}

// Makes `forward`, which has its endpoint, a direct connection, and stores both entries. 0: not possible. The
// endpoint is on this node, or packets of this device may be too large for the route, and only the node's own
// stack tells the client so.
static __always_inline int StartDirect(struct __sk_buff* skb, const struct Packet* packet,
                                       struct NatEntry* forward) {
  const struct DirectDeviceEntry* in = FindDirect(skb->ifindex);
  if (!in) return 0;
  struct bpf_fib_lookup route;
  if (!FindRoute(skb, packet->tuple.source, forward->destination, packet->tuple.protocol, in->mtu, &route)) {
    return 0;
  }
  const struct DirectDeviceEntry* out = FindDirect(route.ifindex);
  if (!out || !out->address[3]) return 0;
  struct NatEntry direct = *forward;
  direct.flags = kNatDirect;
  if (CanUseDsr(skb, packet, in->mtu)) {
    direct.flags |= kNatDsr;
  } else {
    __builtin_memcpy(direct.source, out->address, sizeof direct.source);
    if (!AllocateSnatPort(skb, &packet->tuple, &direct)) return 0;
  }
  if (bpf_map_update_elem(&connections, &packet->tuple, &direct, BPF_ANY)) return 0;
  *forward = direct;
  return 1;
}

#endif  // KEELSON_PROXY_EBPF_DIRECT_H_

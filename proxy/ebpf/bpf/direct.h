// Connections from outside to endpoints on other nodes, sent on at the device that they came in by: to the
// endpoint as the node's own, and answers to the client as the Service's. The node's routes and neighbours
// decide about the way; its rules, connection tracking and IPsec are not asked. For outside.h.
#ifndef KEELSON_PROXY_EBPF_DIRECT_H_
#define KEELSON_PROXY_EBPF_DIRECT_H_

#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/connections.h"
#include "proxy/ebpf/bpf/dsr.h"
#include "proxy/ebpf/bpf/maps.h"
#include "proxy/ebpf/bpf/packet.h"

#define KP_AF_INET 2
#define KP_AF_INET6 10

// What the devices' packets may be sent on by; empty: nothing is.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1024);
  __type(key, __u32);
  __type(value, struct DirectDevice);
} direct_devices SEC(".maps");

static __always_inline const struct DirectDevice* FindDirect(__u32 index) {
  return bpf_map_lookup_elem(&direct_devices, &index);
}

// The way of a packet that has come in by the device `index`, as BPF_FIB_LKUP_RET_... says; `size`: of the
// largest that may have to take it, 0: of this one, where it is known to the kernel.
static __always_inline long LookUpWay(void* context, __u32 index, const __u32* source,
                                      const __u32* destination, __u8 protocol, __u32 size,
                                      struct bpf_fib_lookup* way) {
  __builtin_memset(way, 0, sizeof *way);
  way->ifindex = index;
  way->l4_protocol = protocol;
  way->tot_len = (__u16)size;
  if (serves_v4) {
    way->family = KP_AF_INET;
    way->ipv4_src = source[3];
    way->ipv4_dst = destination[3];
  } else {
    way->family = KP_AF_INET6;
    __builtin_memcpy(way->ipv6_src, source, sizeof way->ipv6_src);
    __builtin_memcpy(way->ipv6_dst, destination, sizeof way->ipv6_dst);
  }
  return bpf_fib_lookup(context, way, sizeof *way, 0);
}

// 0: there is none.
static __always_inline int FindWay(struct __sk_buff* skb, const __u32* source, const __u32* destination,
                                   __u8 protocol, __u32 size, struct bpf_fib_lookup* way) {
  const long found = LookUpWay(skb, skb->ifindex, source, destination, protocol, size, way);
  return found == BPF_FIB_LKUP_RET_SUCCESS || found == BPF_FIB_LKUP_RET_NO_NEIGH;
}

// As a router does. 0: it has come too far.
static __always_inline int CountHop(struct __sk_buff* skb, const struct Packet* packet) {
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

static __always_inline int SendOn(struct __sk_buff* skb, const struct Packet* packet,
                                  const struct Connection* connection) {
  if (!FindDirect(skb->ifindex)) return TC_ACT_SHOT;  // not any more: the node's rules do not know it
  __u32 source[4], destination[4];
  __builtin_memcpy(source, connection->source, sizeof source);
  __builtin_memcpy(destination, connection->destination, sizeof destination);
  struct bpf_fib_lookup way;
  if (!FindWay(skb, packet->tuple.source, destination, packet->tuple.protocol, 0, &way)) return TC_ACT_SHOT;
  if (!CountHop(skb, packet) || !SetDestination(skb, packet, connection) ||
      !SetSource(skb, packet, connection)) {
    return TC_ACT_SHOT;
  }
  if ((connection->flags & kStraight) && (packet->tcp_flags & KP_SYN) && !AddOption(skb, packet)) {
    return TC_ACT_SHOT;
  }
  struct bpf_redir_neigh next = {.nh_family = way.family};
  __builtin_memcpy(next.ipv6_nh, way.ipv6_dst, sizeof next.ipv6_nh);  // of IPv4 its first word
  return bpf_redirect_neigh(way.ifindex, &next, sizeof next, 0);
}

// Whether a socket of the node's own would get `answer`: one that was given such a port on purpose.
static __always_inline int IsForSocket(struct __sk_buff* skb, const struct Tuple* answer) {
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

// A port of the node's for packets to there->destination, above those that its own sockets are given. Stores
// the way back. 0: none was free.
static __always_inline int TakePort(struct __sk_buff* skb, const struct Tuple* asked,
                                    struct Connection* there) {
  struct Connection back = {.source_port = asked->destination_port,
                            .destination_port = asked->source_port,
                            .flags = kBack | kDirect};
  __builtin_memcpy(back.source, asked->destination, sizeof back.source);
  __builtin_memcpy(back.destination, asked->source, sizeof back.destination);
  back.used = there->used;
  const __u32 first = bpf_get_prandom_u32();
  for (int i = 0; i < 8; ++i) {
    const __u32 port = KP_FIRST_PORT + (first + i * 577) % (0x10000 - KP_FIRST_PORT);
    there->source_port = bpf_htons((__u16)port);
    const struct Tuple key = OtherWay(there, asked->protocol);
    if (IsForSocket(skb, &key)) continue;
    const struct Connection* holder = bpf_map_lookup_elem(&connections, &key);
    if (holder) {
      const struct Tuple its = OtherWay(holder, asked->protocol);
      const struct Connection* other = bpf_map_lookup_elem(&connections, &its);
      const int idle = asked->protocol == IPPROTO_UDP && other && IdleFor(holder, other) > 180 * KP_SECOND;
      if (other && !idle && !HasEnded(holder, other)) continue;
      bpf_map_delete_elem(&connections, &key);
    }
    if (bpf_map_update_elem(&connections, &key, &back, BPF_NOEXIST) == 0) return 1;
  }
  return 0;
}

// Makes of `there`, whose endpoint is chosen, one that is sent on, and stores both ways. 0: the endpoint is
// on this node, or on a way that this device's packets may be too large for: the node has to tell the client.
static __always_inline int BeginDirect(struct __sk_buff* skb, const struct Packet* packet,
                                       struct Connection* there) {
  const struct DirectDevice* in = FindDirect(skb->ifindex);
  if (!in) return 0;
  struct bpf_fib_lookup way;
  if (!FindWay(skb, packet->tuple.source, there->destination, packet->tuple.protocol, in->mtu, &way))
    return 0;
  const struct DirectDevice* out = FindDirect(way.ifindex);
  if (!out || !out->address[3]) return 0;
  struct Connection direct = *there;
  direct.flags = kDirect;
  if (CanBeStraight(skb, packet, in->mtu)) {
    direct.flags |= kStraight;
  } else {
    __builtin_memcpy(direct.source, out->address, sizeof direct.source);
    if (!TakePort(skb, &packet->tuple, &direct)) return 0;
  }
  if (bpf_map_update_elem(&connections, &packet->tuple, &direct, BPF_ANY)) return 0;
  *there = direct;
  return 1;
}

#endif  // KEELSON_PROXY_EBPF_DIRECT_H_

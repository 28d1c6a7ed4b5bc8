// Translation of ICMP errors about TCP and UDP packets, which quote the beginning of such a packet. Path MTU
// discovery and "port unreachable" depend on them. For external_traffic.h.
#ifndef KEELSON_PROXY_EBPF_ICMP_ERROR_H_
#define KEELSON_PROXY_EBPF_ICMP_ERROR_H_

#include <linux/bpf.h>
#include <linux/icmpv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/connections.h"
#include "proxy/ebpf/bpf/packet.h"
#include "proxy/ebpf/bpf/service_maps.h"

#define KP_ICMP_HEADER 8

// As in linux/icmp.h, which needs a libc.
#define ICMP_DEST_UNREACH 3
#define ICMP_TIME_EXCEEDED 11
#define ICMP_PARAMETERPROB 12

static __always_inline int IsErrorType(__u8 type) {
  if (!serves_v4) return type >= ICMPV6_DEST_UNREACH && type <= ICMPV6_PARAMPROB;
  return type == ICMP_DEST_UNREACH || type == ICMP_TIME_EXCEEDED || type == ICMP_PARAMETERPROB;
}

// 0: the packet is no such error. `quoted` has addresses and ports; the rest of its transport header may be
// missing.
static __always_inline int ReadError(struct __sk_buff* skb, __u32 header, struct Packet* outer,
                                     struct Packet* quoted) {
  __builtin_memset(outer, 0, sizeof *outer);
  __builtin_memset(quoted, 0, sizeof *quoted);
  outer->ip = header;
  if (!ReadAddresses(skb, outer)) return 0;
  if (outer->tuple.protocol != (serves_v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6)) return 0;
  __u8 type = 0;
  if (bpf_skb_load_bytes(skb, outer->transport, &type, sizeof type) || !IsErrorType(type)) return 0;
  quoted->ip = outer->transport + KP_ICMP_HEADER;
  if (!ReadAddresses(skb, quoted)) return 0;
  if (quoted->tuple.protocol != IPPROTO_TCP && quoted->tuple.protocol != IPPROTO_UDP) return 0;
  __u16 ports[2];
  if (bpf_skb_load_bytes(skb, quoted->transport, ports, sizeof ports)) return 0;
  quoted->tuple.source_port = ports[0];
  quoted->tuple.destination_port = ports[1];
  return 1;
}

// Updates the error's checksum, which covers the quoted bytes, and with IPv6 the error's own addresses.
static __always_inline int SumUp(struct __sk_buff* skb, const struct Packet* outer, const __u32* old,
                                 const __u32* ip, __u64 flags) {
  const __u32 at = outer->transport + 2;
  const __s64 difference = bpf_csum_diff((__be32*)old, 16, (__be32*)ip, 16, 0);
  if (difference < 0) return 0;
  if (!flags) return bpf_l4_csum_replace(skb, at, 0, difference, 0) == 0;
  return bpf_l4_csum_replace(skb, at, 0, difference, flags | KP_F_IPV6) == 0 ||
         bpf_l4_csum_replace(skb, at, 0, difference, flags) == 0;
}

static __always_inline int SetOuter(struct __sk_buff* skb, const struct Packet* outer, const __u32* to,
                                    int source) {
  __u32 old[4], ip[4];
  __builtin_memcpy(old, source ? outer->tuple.source : outer->tuple.destination, sizeof old);
  __builtin_memcpy(ip, to, sizeof ip);
  if (serves_v4) return StoreAddress4(skb, outer->ip, old[3], ip[3], source);
  return SumUp(skb, outer, old, ip, BPF_F_PSEUDO_HDR) && StoreAddress6(skb, outer->ip, ip, source);
}

static __always_inline int SetQuoted(struct __sk_buff* skb, const struct Packet* outer,
                                     const struct Packet* quoted, const __u32* to, __u16 port, int source) {
  __u32 old[4], ip[4];
  __builtin_memcpy(old, source ? quoted->tuple.source : quoted->tuple.destination, sizeof old);
  __builtin_memcpy(ip, to, sizeof ip);
  if (!SameAddress(old, ip)) {
    // With IPv4 the quoted header's own checksum compensates for the new address.
    if (serves_v4 && !StoreAddress4(skb, quoted->ip, old[3], ip[3], source)) return 0;
    if (!serves_v4 && !(SumUp(skb, outer, old, ip, 0) && StoreAddress6(skb, quoted->ip, ip, source))) {
      return 0;
    }
  }
  const __u16 old_port = source ? quoted->tuple.source_port : quoted->tuple.destination_port;
  if (old_port == port) return 1;
  if (bpf_l4_csum_replace(skb, outer->transport + 2, old_port, port, 2)) return 0;
  return bpf_skb_store_bytes(skb, quoted->transport + (source ? 0 : 2), &port, 2, 0) == 0;
}

// Makes the quoted packet what the error's receiver has sent. `connection`: the entry of the opposite
// direction of the quoted packet.
static __always_inline int TranslateQuoted(struct __sk_buff* skb, const struct Packet* outer,
                                           const struct Packet* quoted, const struct NatEntry* connection) {
  return SetQuoted(skb, outer, quoted, connection->destination, connection->destination_port, 1) &&
         SetQuoted(skb, outer, quoted, connection->source, connection->source_port, 0);
}

#endif  // KEELSON_PROXY_EBPF_ICMP_ERROR_H_

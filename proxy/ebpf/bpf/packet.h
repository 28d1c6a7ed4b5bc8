// Reads TCP and UDP packets, and changes their addresses and ports. For external_traffic.h.
//
// Packets with IP options or extension headers, fragments and truncated packets are not read: the rules get
// them.
#ifndef KEELSON_PROXY_EBPF_PACKET_H_
#define KEELSON_PROXY_EBPF_PACKET_H_

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/service_maps.h"

// The address family that this object serves. Set before loading.
const volatile __u8 serves_v4 = 1;

#define KP_FIN 0x01
#define KP_SYN 0x02
#define KP_RST 0x04
#define KP_ACK 0x10

// Since Linux 6.16. Without it IPv6 checksums are wrong where the device has summed up the whole packet
// (CHECKSUM_COMPLETE).
#define KP_F_IPV6 (1ull << 7)

struct Packet {
  struct ConnectionTuple tuple;
  __u32 ip, transport;  // offsets of headers
  __u8 tcp_flags;
};

static __always_inline void Map4(__u32 ip, __u32 (*out)[4]) {
  (*out)[0] = (*out)[1] = 0;
  (*out)[2] = bpf_htonl(0xffff);
  (*out)[3] = ip;
}

// Takes addresses and protocol from the header at out->ip. 0: it is not read, see above.
static __always_inline int TakeHeader4(const struct iphdr* header, struct Packet* out) {
  if (header->version != 4 || header->ihl != 5) return 0;
  if (header->frag_off & bpf_htons(0x3fff)) return 0;  // more fragments follow, or this is a later one
  Map4(header->saddr, &out->tuple.source);
  Map4(header->daddr, &out->tuple.destination);
  out->tuple.protocol = header->protocol;
  out->transport = out->ip + sizeof *header;
  return 1;
}

static __always_inline int TakeHeader6(const struct ipv6hdr* header, struct Packet* out) {
  if (header->version != 6) return 0;
  __builtin_memcpy(out->tuple.source, &header->saddr, 16);
  __builtin_memcpy(out->tuple.destination, &header->daddr, 16);
  out->tuple.protocol = header->nexthdr;
  out->transport = out->ip + sizeof *header;
  return 1;
}

// Reads the header at out->ip, of this object's family. 0: it is not read.
static __always_inline int ReadAddresses(struct __sk_buff* skb, struct Packet* out) {
  if (serves_v4) {
    struct iphdr header;
    return !bpf_skb_load_bytes(skb, out->ip, &header, sizeof header) && TakeHeader4(&header, out);
  }
  struct ipv6hdr header;
  return !bpf_skb_load_bytes(skb, out->ip, &header, sizeof header) && TakeHeader6(&header, out);
}

static __always_inline int IsOfFamily(const struct __sk_buff* skb) {
  return skb->protocol == (serves_v4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6));
}

// Reads a packet whose IP header begins at `header`. 0: it is not read, see above.
static __always_inline int ReadPacket(struct __sk_buff* skb, __u32 header, struct Packet* out) {
  __builtin_memset(out, 0, sizeof *out);
  out->ip = header;
  if (!IsOfFamily(skb) || !ReadAddresses(skb, out)) return 0;
  // Ports, and with TCP the flags; with UDP the whole header.
  __u8 start[14];
  if (out->tuple.protocol == IPPROTO_TCP) {
    if (bpf_skb_load_bytes(skb, out->transport, start, 14)) return 0;
    out->tcp_flags = start[13];
  } else if (out->tuple.protocol == IPPROTO_UDP) {
    if (bpf_skb_load_bytes(skb, out->transport, start, 8)) return 0;
  } else {
    return 0;
  }
  __builtin_memcpy(&out->tuple.source_port, start, 2);
  __builtin_memcpy(&out->tuple.destination_port, start + 2, 2);
  return 1;
}

static __always_inline __u32 ChecksumAt(const struct Packet* packet) {
  return packet->transport + (packet->tuple.protocol == IPPROTO_TCP ? 16 : 6);
}

// A UDP checksum may be absent.
static __always_inline __u64 ChecksumFlags(const struct Packet* packet) {
  return packet->tuple.protocol == IPPROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0;
}

// RFC 1071.
static __always_inline __u16 Fold(__u64 sum) {
  for (int i = 0; i < 3; ++i) sum = (sum & 0xffff) + (sum >> 16);
  return (__u16)~sum;
}

// Updates the header's checksum as well.
static __always_inline int StoreAddress4(struct __sk_buff* skb, __u32 header, __u32 old, __u32 ip,
                                         int source) {
  const __u32 at = header + (source ? offsetof(struct iphdr, saddr) : offsetof(struct iphdr, daddr));
  if (bpf_l3_csum_replace(skb, header + offsetof(struct iphdr, check), old, ip, 4)) return 0;
  return bpf_skb_store_bytes(skb, at, &ip, 4, 0) == 0;
}

static __always_inline int StoreAddress6(struct __sk_buff* skb, __u32 header, const __u32* ip, int source) {
  const __u32 at = header + (source ? offsetof(struct ipv6hdr, saddr) : offsetof(struct ipv6hdr, daddr));
  return bpf_skb_store_bytes(skb, at, ip, 16, 0) == 0;
}

static __always_inline int SetAddress(struct __sk_buff* skb, const struct Packet* packet, const __u32* old,
                                      const __u32* ip, int source) {
  const __u32 sum = ChecksumAt(packet);
  const __u64 flags = ChecksumFlags(packet) | BPF_F_PSEUDO_HDR;
  if (serves_v4) {
    if (bpf_l4_csum_replace(skb, sum, old[3], ip[3], flags | 4)) return 0;
    return StoreAddress4(skb, packet->ip, old[3], ip[3], source);
  }
  const __s64 difference = bpf_csum_diff((__be32*)old, 16, (__be32*)ip, 16, 0);
  if (difference < 0) return 0;
  if (bpf_l4_csum_replace(skb, sum, 0, difference, flags | KP_F_IPV6) &&
      bpf_l4_csum_replace(skb, sum, 0, difference, flags)) {
    return 0;
  }
  return StoreAddress6(skb, packet->ip, ip, source);
}

static __always_inline int SetPort(struct __sk_buff* skb, const struct Packet* packet, __u16 old, __u16 port,
                                   int source) {
  if (old == port) return 1;
  if (bpf_l4_csum_replace(skb, ChecksumAt(packet), old, port, ChecksumFlags(packet) | 2)) return 0;
  return bpf_skb_store_bytes(skb, packet->transport + (source ? 0 : 2), &port, 2, 0) == 0;
}

// 0: the kernel has no memory, and the packet is spoilt.
static __always_inline int SetSource(struct __sk_buff* skb, const struct Packet* packet,
                                     const struct NatEntry* to) {
  __u32 ip[4];
  __builtin_memcpy(ip, to->source, sizeof ip);
  return SetAddress(skb, packet, packet->tuple.source, ip, 1) &&
         SetPort(skb, packet, packet->tuple.source_port, to->source_port, 1);
}

static __always_inline int SetDestination(struct __sk_buff* skb, const struct Packet* packet,
                                          const struct NatEntry* to) {
  __u32 ip[4];
  __builtin_memcpy(ip, to->destination, sizeof ip);
  return SetAddress(skb, packet, packet->tuple.destination, ip, 0) &&
         SetPort(skb, packet, packet->tuple.destination_port, to->destination_port, 0);
}

#endif  // KEELSON_PROXY_EBPF_PACKET_H_

// Forwards direct connections (direct.h) in the driver (XDP), before the kernel has a packet of its own. The
// tc filter behind (external_traffic.h) decides: what it has forwarded within the last second this program
// repeats. So the filter sees how connections begin and end, when an endpoint has gone, and one packet a
// second, by which the kernel keeps its neighbour entries fresh. This program writes no map.
#ifndef KEELSON_PROXY_EBPF_XDP_H_
#define KEELSON_PROXY_EBPF_XDP_H_

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/connections.h"
#include "proxy/ebpf/bpf/direct.h"
#include "proxy/ebpf/bpf/packet.h"
#include "proxy/ebpf/bpf/service_maps.h"

// The parts of a frame that are written to. All of them are inside the frame.
struct Frame {
  struct ethhdr* ethernet;
  struct iphdr* v4;
  struct ipv6hdr* v6;
  __u16* ports;
  __u16* sum;
  __u16 size;  // from the IP header on
};

static __always_inline int ReadFrame(struct xdp_md* ctx, const __u8* mac, struct Frame* frame,
                                     struct Packet* out) {
  void* at = (void*)(long)ctx->data;
  void* end = (void*)(long)ctx->data_end;
  __builtin_memset(out, 0, sizeof *out);
  frame->ethernet = at;
  if ((void*)(frame->ethernet + 1) > end) return 0;
  if (frame->ethernet->h_proto != (serves_v4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6))) return 0;
  for (int i = 0; i < ETH_ALEN; ++i) {
    if (frame->ethernet->h_dest[i] != mac[i]) return 0;
  }
  at = frame->ethernet + 1;
  frame->v4 = at;
  frame->v6 = at;
  if (serves_v4) {
    if ((void*)(frame->v4 + 1) > end || !TakeHeader4(frame->v4, out)) return 0;
    frame->size = bpf_ntohs(frame->v4->tot_len);
    at = frame->v4 + 1;
  } else {
    if ((void*)(frame->v6 + 1) > end || !TakeHeader6(frame->v6, out)) return 0;
    frame->size = bpf_ntohs(frame->v6->payload_len) + sizeof *frame->v6;
    at = frame->v6 + 1;
  }
  frame->ports = at;
  if (out->tuple.protocol == IPPROTO_TCP) {
    struct tcphdr* header = at;
    if ((void*)(header + 1) > end) return 0;
    out->tcp_flags = ((__u8*)at)[13];
    frame->sum = &header->check;
  } else if (out->tuple.protocol == IPPROTO_UDP) {
    struct udphdr* header = at;
    if ((void*)(header + 1) > end) return 0;
    frame->sum = &header->check;
  } else {
    return 0;
  }
  out->tuple.source_port = frame->ports[0];
  out->tuple.destination_port = frame->ports[1];
  return 1;
}

static __always_inline void RewriteHeader4(struct iphdr* header, const struct NatEntry* to) {
  __u16 hop;
  __builtin_memcpy(&hop, &header->ttl, sizeof hop);  // and the protocol: checksums are of pairs
  __u32 old[3] = {header->saddr, header->daddr, hop};
  --header->ttl;
  __builtin_memcpy(&hop, &header->ttl, sizeof hop);
  __u32 now[3] = {to->source[3], to->destination[3], hop};
  header->saddr = to->source[3];
  header->daddr = to->destination[3];
  const __u32 before = (__u16)~header->check;
  header->check = Fold((__u32)bpf_csum_diff(old, sizeof old, now, sizeof now, before));
}

static __always_inline void RewriteHeader6(struct ipv6hdr* header, const struct NatEntry* to) {
  --header->hop_limit;
  __builtin_memcpy(&header->saddr, to->source, sizeof header->saddr);
  __builtin_memcpy(&header->daddr, to->destination, sizeof header->daddr);
}

// A ConnectionTuple and a NatEntry begin with the same fields, which are what checksums cover.
static __always_inline void SetTransport(const struct Frame* frame, const struct Packet* packet,
                                         const struct NatEntry* to) {
  frame->ports[0] = to->source_port;
  frame->ports[1] = to->destination_port;
  const int is_udp = packet->tuple.protocol == IPPROTO_UDP;
  if (is_udp && *frame->sum == 0) return;  // there is none
  struct ConnectionTuple now = {.source_port = to->source_port, .destination_port = to->destination_port};
  __builtin_memcpy(now.source, to->source, sizeof now.source);
  __builtin_memcpy(now.destination, to->destination, sizeof now.destination);
  const __u32 before = (__u16) ~*frame->sum;
  const __u32 size = offsetof(struct ConnectionTuple, protocol);
  const __u16 sum = Fold((__u32)bpf_csum_diff((__be32*)&packet->tuple, size, (__be32*)&now, size, before));
  *frame->sum = is_udp && sum == 0 ? 0xffff : sum;
}

SEC("xdp") int fast_outside(struct xdp_md* ctx) {
  const __u32 index = ctx->ingress_ifindex;
  const struct XdpDeviceEntry* device = bpf_map_lookup_elem(&fast_devices, &index);
  if (!device || !FindDirect(index)) return XDP_PASS;
  struct Frame frame;
  struct Packet packet;
  if (!ReadFrame(ctx, device->mac, &frame, &packet)) return XDP_PASS;
  if (packet.tcp_flags & (KP_SYN | KP_FIN | KP_RST)) return XDP_PASS;
  const struct NatEntry* known = bpf_map_lookup_elem(&connections, &packet.tuple);
  if (!known || !(known->flags & kNatDirect) || bpf_ktime_get_ns() - known->last_used > KP_SECOND) {
    return XDP_PASS;
  }
  if ((serves_v4 ? frame.v4->ttl : frame.v6->hop_limit) <= 1) return XDP_PASS;
  __u32 destination[4];
  __builtin_memcpy(destination, known->destination, sizeof destination);
  struct bpf_fib_lookup route;
  if (LookUpRoute(ctx, index, packet.tuple.source, destination, packet.tuple.protocol, frame.size, &route) !=
      BPF_FIB_LKUP_RET_SUCCESS) {
    return XDP_PASS;
  }
  if (route.ifindex != index) {
    const __u32 next = route.ifindex;
    const struct XdpDeviceEntry* out = bpf_map_lookup_elem(&fast_devices, &next);
    if (!out || !out->receives) return XDP_PASS;
  }
  SetTransport(&frame, &packet, known);
  if (serves_v4) {
    RewriteHeader4(frame.v4, known);
  } else {
    RewriteHeader6(frame.v6, known);
  }
  __builtin_memcpy(frame.ethernet->h_dest, route.dmac, ETH_ALEN);
  __builtin_memcpy(frame.ethernet->h_source, route.smac, ETH_ALEN);
  return route.ifindex == index ? XDP_TX : (int)bpf_redirect(route.ifindex, 0);
}

#endif  // KEELSON_PROXY_EBPF_XDP_H_

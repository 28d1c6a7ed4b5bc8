// Direct server return (--ebpf-dsr): a direct connection (direct.h) keeps its client's address, and an option
// in its SYN holds the Service's address and port. The endpoint's node removes the option, and translates
// answers where they leave (external_traffic.h). TCP only, for a SYN begins every connection. For
// external_traffic.h.
//
//   IPv4  an IP option, 8 bytes: type, length, port, address
//   IPv6  an option in a destination options header, 24 bytes with the header
#ifndef KEELSON_PROXY_EBPF_DSR_H_
#define KEELSON_PROXY_EBPF_DSR_H_

#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/connections.h"
#include "proxy/ebpf/bpf/endpoint_selection.h"
#include "proxy/ebpf/bpf/packet.h"
#include "proxy/ebpf/bpf/service_maps.h"

// Set before loading.
const volatile __u8 serves_dsr = 0;

// Option types. Routers copy both into fragments and skip what they do not know. The numbers are those of
// Cilium's DSR, which nothing else uses.
#define KP_OPTION4 154
#define KP_OPTION6 0x1b
#define KP_DESTINATION_OPTIONS 60

struct DsrOption4 {
  __u8 type, length;
  __u16 port;
  __u32 ip;
};
struct DsrOption6 {
  __u8 next, blocks, type, length;
  __u32 ip[4];
  __u16 port, zero;
};

static __always_inline __u32 DsrOptionSize(void) {
  return serves_v4 ? sizeof(struct DsrOption4) : sizeof(struct DsrOption6);
}

// Whether a packet that begins a connection may carry the option on routes of that MTU.
static __always_inline int CanUseDsr(const struct __sk_buff* skb, const struct Packet* packet, __u32 mtu) {
  return serves_dsr && packet->tuple.protocol == IPPROTO_TCP &&
         skb->len - packet->ip + DsrOptionSize() <= mtu;
}

// Sets the header's length in words, the packet's length (`longer` bytes more) and the checksum.
static __always_inline int SetHeader4(struct __sk_buff* skb, __u32 at, __u8 words, __s32 longer) {
  __u32 header[7] = {};
  struct iphdr* ip = (struct iphdr*)header;
  const __u32 size = words == 7 ? 28 : 20;
  if (bpf_skb_load_bytes(skb, at, header, sizeof header)) return 0;
  if (words == 5) header[5] = header[6] = 0;
  ip->ihl = words;
  ip->tot_len = bpf_htons((__u16)(bpf_ntohs(ip->tot_len) + longer));
  ip->check = 0;
  ip->check = Fold((__u32)bpf_csum_diff(0, 0, header, sizeof header, 0));
  return bpf_skb_store_bytes(skb, at, header, size, 0) == 0;
}

// After a change of size: `next` is the next header, `longer` the bytes that were added.
static __always_inline int SetHeader6(struct __sk_buff* skb, __u32 at, __u8 next, __s32 longer) {
  struct ipv6hdr header;
  if (bpf_skb_load_bytes(skb, at, &header, sizeof header)) return 0;
  header.nexthdr = next;
  header.payload_len = bpf_htons((__u16)(bpf_ntohs(header.payload_len) + longer));
  return bpf_skb_store_bytes(skb, at, &header, sizeof header, 0) == 0;
}

// Adds the destination that `packet` had: the Service's address and port.
static __always_inline int AddDsrOption(struct __sk_buff* skb, const struct Packet* packet) {
  const __s32 size = (__s32)DsrOptionSize();
  if (bpf_skb_adjust_room(skb, size, BPF_ADJ_ROOM_NET, 0)) return 0;
  if (serves_v4) {
    const struct DsrOption4 original = {.type = KP_OPTION4,
                                        .length = sizeof original,
                                        .port = packet->tuple.destination_port,
                                        .ip = packet->tuple.destination[3]};
    return bpf_skb_store_bytes(skb, packet->transport, &original, sizeof original, 0) == 0 &&
           SetHeader4(skb, packet->ip, 7, size);
  }
  struct DsrOption6 original = {.next = packet->tuple.protocol,
                                .blocks = sizeof original / 8 - 1,
                                .type = KP_OPTION6,
                                .length = sizeof original - 4,
                                .port = packet->tuple.destination_port};
  __builtin_memcpy(original.ip, packet->tuple.destination, sizeof original.ip);
  return bpf_skb_store_bytes(skb, packet->transport, &original, sizeof original, 0) == 0 &&
         SetHeader6(skb, packet->ip, KP_DESTINATION_OPTIONS, size);
}

// Reads a SYN with the option: `out` as if there were none, `original` from it. 0: the packet is another one.
static __always_inline int ReadDsrOption(struct __sk_buff* skb, __u32 at, struct Packet* out,
                                         struct ServiceKey* original) {
  __builtin_memset(out, 0, sizeof *out);
  __builtin_memset(original, 0, sizeof *original);
  if (!IsOfFamily(skb)) return 0;
  out->ip = at;
  if (serves_v4) {
    struct {
      struct iphdr ip;
      struct DsrOption4 option;
    } header;
    if (bpf_skb_load_bytes(skb, at, &header, sizeof header) || header.ip.ihl != 7) return 0;
    header.ip.ihl = 5;
    if (!TakeHeader4(&header.ip, out)) return 0;
    if (header.option.type != KP_OPTION4 || header.option.length != sizeof header.option) return 0;
    Map4(header.option.ip, &original->ip);
    original->port = header.option.port;
  } else {
    struct {
      struct ipv6hdr ip;
      struct DsrOption6 option;
    } header;
    if (bpf_skb_load_bytes(skb, at, &header, sizeof header) || !TakeHeader6(&header.ip, out)) return 0;
    if (header.ip.nexthdr != KP_DESTINATION_OPTIONS || header.option.blocks != sizeof header.option / 8 - 1 ||
        header.option.type != KP_OPTION6 || header.option.length != sizeof header.option - 4) {
      return 0;
    }
    out->tuple.protocol = header.option.next;
    __builtin_memcpy(original->ip, header.option.ip, sizeof original->ip);
    original->port = header.option.port;
  }
  if (out->tuple.protocol != IPPROTO_TCP) return 0;
  original->protocol = IPPROTO_TCP;
  __u8 start[14];
  if (bpf_skb_load_bytes(skb, out->transport + DsrOptionSize(), start, sizeof start)) return 0;
  out->tcp_flags = start[13];
  __builtin_memcpy(&out->tuple.source_port, start, 2);
  __builtin_memcpy(&out->tuple.destination_port, start + 2, 2);
  return (out->tcp_flags & (KP_SYN | KP_ACK)) == KP_SYN;
}

static __always_inline int RemoveDsrOption(struct __sk_buff* skb, const struct Packet* packet) {
  const __s32 size = (__s32)DsrOptionSize();
  if (bpf_skb_adjust_room(skb, -size, BPF_ADJ_ROOM_NET, 0)) return 0;
  return serves_v4 ? SetHeader4(skb, packet->ip, 5, -size)
                   : SetHeader6(skb, packet->ip, packet->tuple.protocol, -size);
}

// On the endpoint's node: stores a connection whose answers get the Service's address. 0: not stored. The
// destination is no endpoint of that Service. A NodePort's address may be another node's.
static __always_inline int StoreDsrConnection(const struct Packet* packet,
                                              const struct ServiceKey* original) {
  struct Endpoint endpoint = {.port = packet->tuple.destination_port};
  __builtin_memcpy(endpoint.ip, packet->tuple.destination, sizeof endpoint.ip);
  if (!IsEndpointOf(original, &endpoint)) return 0;
  struct ConnectionTuple before = packet->tuple;
  __builtin_memcpy(before.destination, original->ip, sizeof before.destination);
  before.destination_port = original->port;
  struct NatEntry forward = {.source_port = packet->tuple.source_port,
                             .destination_port = packet->tuple.destination_port};
  __builtin_memcpy(forward.source, packet->tuple.source, sizeof forward.source);
  __builtin_memcpy(forward.destination, packet->tuple.destination, sizeof forward.destination);
  NotePacket(&forward, packet);
  return StoreConnection(&before, &forward);
}

// On the endpoint's node, where the client's packets come in untranslated: notes the client's FIN or RST.
static __always_inline void NoteClosing(const struct Packet* packet) {
  if (!(packet->tcp_flags & (KP_FIN | KP_RST))) return;
  const struct NatEntry* reply = FindReverse(&packet->tuple);
  if (!reply || (reply->flags & (kNatReply | kNatDirect)) != kNatReply) return;
  const struct ConnectionTuple key = ReplyTuple(reply, packet->tuple.protocol);
  struct NatEntry* forward = bpf_map_lookup_elem(&connections, &key);
  if (forward) NotePacket(forward, packet);
}

#endif  // KEELSON_PROXY_EBPF_DSR_H_

// Answers that go straight to the client (direct server return): a connection that is sent on (direct.h)
// keeps its client's address, and its SYN says which Service was asked. The endpoint's node takes that off,
// and gives answers the Service's address where they leave (outside.h). Of TCP only: there is a packet that
// begins. For outside.h.
//
//   IPv4  an option, 8 bytes: type, length, port, address
//   IPv6  an option of an extension header for the destination, 24 bytes with that
#ifndef KEELSON_PROXY_EBPF_DSR_H_
#define KEELSON_PROXY_EBPF_DSR_H_

#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/connections.h"
#include "proxy/ebpf/bpf/maps.h"
#include "proxy/ebpf/bpf/packet.h"
#include "proxy/ebpf/bpf/pick.h"

// Set before loading.
const volatile __u8 serves_dsr = 0;

// Both stay when packets are cut to pieces, and who does not know them goes on to the next one. Cilium's
// numbers, which nothing else has.
#define KP_OPTION4 154
#define KP_OPTION6 0x1b
#define KP_DESTINATION_OPTIONS 60

struct Asked4 {
  __u8 type, length;
  __u16 port;
  __u32 ip;
};
struct Asked6 {
  __u8 next, blocks, type, length;
  __u32 ip[4];
  __u16 port, zero;
};

static __always_inline __u32 OptionSize(void) {
  return serves_v4 ? sizeof(struct Asked4) : sizeof(struct Asked6);
}

// Of a packet that begins a connection, on ways that take `mtu`.
static __always_inline int CanBeStraight(const struct __sk_buff* skb, const struct Packet* packet,
                                         __u32 mtu) {
  return serves_dsr && packet->tuple.protocol == IPPROTO_TCP && skb->len - packet->ip + OptionSize() <= mtu;
}

// With its length and checksum; options are not covered otherwise than by that.
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

// After a change of size: `next` is the first header's, whatever it was.
static __always_inline int SetHeader6(struct __sk_buff* skb, __u32 at, __u8 next, __s32 longer) {
  struct ipv6hdr header;
  if (bpf_skb_load_bytes(skb, at, &header, sizeof header)) return 0;
  header.nexthdr = next;
  header.payload_len = bpf_htons((__u16)(bpf_ntohs(header.payload_len) + longer));
  return bpf_skb_store_bytes(skb, at, &header, sizeof header, 0) == 0;
}

// What the client asked for, as it stood in `packet`.
static __always_inline int AddOption(struct __sk_buff* skb, const struct Packet* packet) {
  const __s32 size = (__s32)OptionSize();
  if (bpf_skb_adjust_room(skb, size, BPF_ADJ_ROOM_NET, 0)) return 0;
  if (serves_v4) {
    const struct Asked4 asked = {.type = KP_OPTION4,
                                 .length = sizeof asked,
                                 .port = packet->tuple.destination_port,
                                 .ip = packet->tuple.destination[3]};
    return bpf_skb_store_bytes(skb, packet->transport, &asked, sizeof asked, 0) == 0 &&
           SetHeader4(skb, packet->ip, 7, size);
  }
  struct Asked6 asked = {.next = packet->tuple.protocol,
                         .blocks = sizeof asked / 8 - 1,
                         .type = KP_OPTION6,
                         .length = sizeof asked - 4,
                         .port = packet->tuple.destination_port};
  __builtin_memcpy(asked.ip, packet->tuple.destination, sizeof asked.ip);
  return bpf_skb_store_bytes(skb, packet->transport, &asked, sizeof asked, 0) == 0 &&
         SetHeader6(skb, packet->ip, KP_DESTINATION_OPTIONS, size);
}

// Reads a SYN with the option. `out` is without; 0: it is something else.
static __always_inline int ReadOption(struct __sk_buff* skb, __u32 at, struct Packet* out,
                                      struct Vip* asked) {
  __builtin_memset(out, 0, sizeof *out);
  __builtin_memset(asked, 0, sizeof *asked);
  if (!IsOfFamily(skb)) return 0;
  out->ip = at;
  if (serves_v4) {
    struct {
      struct iphdr ip;
      struct Asked4 option;
    } header;
    if (bpf_skb_load_bytes(skb, at, &header, sizeof header) || header.ip.ihl != 7) return 0;
    header.ip.ihl = 5;
    if (!TakeHeader4(&header.ip, out)) return 0;
    if (header.option.type != KP_OPTION4 || header.option.length != sizeof header.option) return 0;
    Map4(header.option.ip, &asked->ip);
    asked->port = header.option.port;
  } else {
    struct {
      struct ipv6hdr ip;
      struct Asked6 option;
    } header;
    if (bpf_skb_load_bytes(skb, at, &header, sizeof header) || !TakeHeader6(&header.ip, out)) return 0;
    if (header.ip.nexthdr != KP_DESTINATION_OPTIONS || header.option.blocks != sizeof header.option / 8 - 1 ||
        header.option.type != KP_OPTION6 || header.option.length != sizeof header.option - 4) {
      return 0;
    }
    out->tuple.protocol = header.option.next;
    __builtin_memcpy(asked->ip, header.option.ip, sizeof asked->ip);
    asked->port = header.option.port;
  }
  if (out->tuple.protocol != IPPROTO_TCP) return 0;
  asked->protocol = IPPROTO_TCP;
  __u8 start[14];
  if (bpf_skb_load_bytes(skb, out->transport + OptionSize(), start, sizeof start)) return 0;
  out->tcp_flags = start[13];
  __builtin_memcpy(&out->tuple.source_port, start, 2);
  __builtin_memcpy(&out->tuple.destination_port, start + 2, 2);
  return (out->tcp_flags & (KP_SYN | KP_ACK)) == KP_SYN;
}

static __always_inline int TakeOptionOff(struct __sk_buff* skb, const struct Packet* packet) {
  const __s32 size = (__s32)OptionSize();
  if (bpf_skb_adjust_room(skb, -size, BPF_ADJ_ROOM_NET, 0)) return 0;
  return serves_v4 ? SetHeader4(skb, packet->ip, 5, -size)
                   : SetHeader6(skb, packet->ip, packet->tuple.protocol, -size);
}

// On the endpoint's node. Only what is an endpoint of that Service: nobody else's address is answered with,
// but that of a NodePort, which another node has. 1: answers will be the Service's.
static __always_inline int RememberAsked(const struct Packet* packet, const struct Vip* asked) {
  struct Endpoint endpoint = {.port = packet->tuple.destination_port};
  __builtin_memcpy(endpoint.ip, packet->tuple.destination, sizeof endpoint.ip);
  if (!IsEndpointOf(asked, &endpoint)) return 0;
  struct Tuple before = packet->tuple;
  __builtin_memcpy(before.destination, asked->ip, sizeof before.destination);
  before.destination_port = asked->port;
  struct Connection there = {.source_port = packet->tuple.source_port,
                             .destination_port = packet->tuple.destination_port};
  __builtin_memcpy(there.source, packet->tuple.source, sizeof there.source);
  __builtin_memcpy(there.destination, packet->tuple.destination, sizeof there.destination);
  Note(&there, packet);
  return Store(&before, &there);
}

// On the endpoint's node, where packets to it come in as they are: the client's end of a connection.
static __always_inline void NoteEnd(const struct Packet* packet) {
  if (!(packet->tcp_flags & (KP_FIN | KP_RST))) return;
  const struct Connection* back = FindAnswered(&packet->tuple);
  if (!back || (back->flags & (kBack | kDirect)) != kBack) return;
  const struct Tuple key = OtherWay(back, packet->tuple.protocol);
  struct Connection* there = bpf_map_lookup_elem(&connections, &key);
  if (there) Note(there, packet);
}

#endif  // KEELSON_PROXY_EBPF_DSR_H_

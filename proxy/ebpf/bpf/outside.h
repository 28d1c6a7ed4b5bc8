// Services for who comes from outside, at the devices that such packets come in by and go out by:
//
//   in    client -> Service becomes client -> endpoint, and goes on to the node's routing and rules;
//         what is to be masqueraded is marked, and the rules do it; or, where that is wanted, it is sent on
//         to another node's endpoint at once (direct.h)
//   out   endpoint -> client becomes Service -> client
//
// ICMP errors about these packets are translated as well.
//
// A connection begins with a SYN, or with a datagram that belongs to none. What else belongs to none is left
// as it is: connection tracking carries it since before. The rules also get whatever is not decided here
// (packet.h; pods; refused and dropped connections; Services that are not in `outside`).
#ifndef KEELSON_PROXY_EBPF_OUTSIDE_H_
#define KEELSON_PROXY_EBPF_OUTSIDE_H_

#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/connections.h"
#include "proxy/ebpf/bpf/direct.h"
#include "proxy/ebpf/bpf/dsr.h"
#include "proxy/ebpf/bpf/icmp_error.h"
#include "proxy/ebpf/bpf/maps.h"
#include "proxy/ebpf/bpf/packet.h"
#include "proxy/ebpf/bpf/pick_outside.h"

// What is to be masqueraded, as the rules know it. Set before loading.
const volatile __u32 masquerade_mark = 0x4000;

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1024);
  __type(key, __u32);
  __type(value, struct Device);
} devices SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct OutsideState);
} outside_state SEC(".maps");

// Other filters of the device come next.
#define KP_NEXT TC_ACT_UNSPEC

static __always_inline int IsDraining(void) {
  __u32 zero = 0;
  const struct OutsideState* state = bpf_map_lookup_elem(&outside_state, &zero);
  return !state || state->draining;
}

static __always_inline int ToEndpoint(struct __sk_buff* skb, const struct Packet* packet,
                                      const struct Connection* connection) {
  if (connection->flags & kMasquerade) skb->mark |= masquerade_mark;
  return SetDestination(skb, packet, connection) ? KP_NEXT : TC_ACT_SHOT;
}

static __always_inline int Begin(struct __sk_buff* skb, const struct Packet* packet) {
  struct Vip vip = {.port = packet->tuple.destination_port, .protocol = packet->tuple.protocol};
  __builtin_memcpy(vip.ip, packet->tuple.destination, sizeof vip.ip);
  const struct Outside* service = FindOutside(&vip);
  if (!service) {
    ForgetBefore(&packet->tuple);
    return KP_NEXT;
  }
  if (IsDraining() || IsPod(packet->tuple.source)) return KP_NEXT;
  if (service->limited && !IsAdmitted(&vip, packet->tuple.source)) return KP_NEXT;
  const struct Endpoint* endpoint = PickForPacket(&vip, service, &packet->tuple);
  if (!endpoint) return KP_NEXT;
  struct Connection there = {.source_port = packet->tuple.source_port, .destination_port = endpoint->port};
  __builtin_memcpy(there.source, packet->tuple.source, sizeof there.source);
  __builtin_memcpy(there.destination, endpoint->ip, sizeof there.destination);
  Note(&there, packet);
  if (service->masquerade) {
    if (BeginDirect(skb, packet, &there)) return SendOn(skb, packet, &there);
    there.flags = kMasquerade;
  }
  if (!Store(&packet->tuple, &there)) return KP_NEXT;
  return ToEndpoint(skb, packet, &there);
}

// About an answer, for the endpoint.
static __always_inline int ErrorToEndpoint(struct __sk_buff* skb, __u32 header) {
  struct Packet outer, quoted;
  if (!IsOfFamily(skb) || !ReadError(skb, header, &outer, &quoted)) return KP_NEXT;
  const struct Connection* there = FindAnswered(&quoted.tuple);
  if (!there || ((there->flags & kBack) && !(there->flags & kDirect))) return KP_NEXT;
  return TranslateQuoted(skb, &outer, &quoted, there) && SetOuter(skb, &outer, there->destination, 0)
             ? KP_NEXT
             : TC_ACT_SHOT;
}

// About what a client has sent. It may come from the endpoint, or from who is on the way there.
static __always_inline int ErrorToClient(struct __sk_buff* skb, __u32 header) {
  struct Packet outer, quoted;
  if (!IsOfFamily(skb) || !ReadError(skb, header, &outer, &quoted)) return KP_NEXT;
  const struct Connection* back = FindAnswered(&quoted.tuple);
  if (!back || (back->flags & (kBack | kDirect)) != kBack) return KP_NEXT;
  const int from_endpoint = SameAddress(outer.tuple.source, quoted.tuple.destination);
  if (!TranslateQuoted(skb, &outer, &quoted, back)) return TC_ACT_SHOT;
  return !from_endpoint || SetOuter(skb, &outer, back->source, 1) ? KP_NEXT : TC_ACT_SHOT;
}

// What another node has sent on, for answers that go straight from here; or for a third node.
static __always_inline int BeginStraight(struct __sk_buff* skb, const struct Packet* packet,
                                         const struct Vip* asked) {
  struct bpf_fib_lookup way;
  if (FindWay(skb, packet->tuple.source, packet->tuple.destination, IPPROTO_TCP, 0, &way)) {
    const __u32 next = way.ifindex;
    if (bpf_map_lookup_elem(&devices, &next)) return KP_NEXT;
  }
  if (!RememberAsked(packet, asked)) return TC_ACT_SHOT;  // it is sent again
  return TakeOptionOff(skb, packet) ? KP_NEXT : TC_ACT_SHOT;
}

SEC("tc") int from_outside(struct __sk_buff* skb) {
  const __u32 index = skb->ifindex;
  const struct Device* device = bpf_map_lookup_elem(&devices, &index);
  if (!device || skb->pkt_type != PACKET_HOST || skb->vlan_present) return KP_NEXT;
  struct Packet packet;
  struct Vip asked;
  if (serves_dsr && ReadOption(skb, device->header, &packet, &asked))
    return BeginStraight(skb, &packet, &asked);
  if (!ReadPacket(skb, device->header, &packet)) return ErrorToEndpoint(skb, device->header);
  const int begins = packet.tuple.protocol == IPPROTO_UDP || (packet.tcp_flags & (KP_SYN | KP_ACK)) == KP_SYN;
  struct Connection* known = bpf_map_lookup_elem(&connections, &packet.tuple);
  const int answers = known && (known->flags & kBack);
  if (known && (answers ? known->flags & kDirect : !begins || !IsOver(&packet.tuple, known))) {
    Note(known, &packet);
    return known->flags & kDirect ? SendOn(skb, &packet, known) : ToEndpoint(skb, &packet, known);
  }
  if (begins) return Begin(skb, &packet);
  if (serves_dsr) NoteEnd(&packet);
  return KP_NEXT;
}

SEC("tc") int to_outside(struct __sk_buff* skb) {
  const __u32 index = skb->ifindex;
  const struct Device* device = bpf_map_lookup_elem(&devices, &index);
  if (!device) return KP_NEXT;
  struct Packet packet;
  if (!ReadPacket(skb, device->header, &packet)) return ErrorToClient(skb, device->header);
  struct Connection* known = bpf_map_lookup_elem(&connections, &packet.tuple);
  if (!known || (known->flags & (kBack | kDirect)) != kBack) return KP_NEXT;
  Note(known, &packet);
  return SetSource(skb, &packet, known) ? KP_NEXT : TC_ACT_SHOT;
}

#endif  // KEELSON_PROXY_EBPF_OUTSIDE_H_

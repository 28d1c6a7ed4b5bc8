// Load balancing of external (north-south) traffic to NodePorts, external and load balancer addresses, by tc
// filters at the devices that such packets come in by and go out by:
//
//   from_outside   client -> Service becomes client -> endpoint, and goes on to the node's routing and rules,
//                  marked where these have to masquerade it; or it is forwarded at once (direct.h)
//   to_outside     endpoint -> client becomes Service -> client
//
// ICMP errors about these packets are translated as well.
//
// A SYN begins a connection, or a datagram that belongs to none. All other packets without an entry pass: the
// node's connection tracking may know them. The rules also decide what is not decided here: packets that
// packet.h does not read, traffic of pods, refused and dropped connections, Services that are not in
// `outside`.
#ifndef KEELSON_PROXY_EBPF_EXTERNAL_TRAFFIC_H_
#define KEELSON_PROXY_EBPF_EXTERNAL_TRAFFIC_H_

#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/connections.h"
#include "proxy/ebpf/bpf/direct.h"
#include "proxy/ebpf/bpf/dsr.h"
#include "proxy/ebpf/bpf/external_selection.h"
#include "proxy/ebpf/bpf/icmp_error.h"
#include "proxy/ebpf/bpf/packet.h"
#include "proxy/ebpf/bpf/service_maps.h"

// The packet mark by which the rules masquerade. Set before loading.
const volatile __u32 masquerade_mark = 0x4000;

// The packet goes on to the device's other filters.
#define KP_NEXT TC_ACT_UNSPEC

static __always_inline int IsDraining(void) {
  __u32 zero = 0;
  const struct ExternalState* state = bpf_map_lookup_elem(&outside_state, &zero);
  return !state || state->draining;
}

static __always_inline int ToEndpoint(struct __sk_buff* skb, const struct Packet* packet,
                                      const struct NatEntry* connection) {
  if (connection->flags & kNatMasquerade) skb->mark |= masquerade_mark;
  return SetDestination(skb, packet, connection) ? KP_NEXT : TC_ACT_SHOT;
}

static __always_inline int StartConnection(struct __sk_buff* skb, const struct Packet* packet) {
  struct ServiceKey vip = {.port = packet->tuple.destination_port, .protocol = packet->tuple.protocol};
  __builtin_memcpy(vip.ip, packet->tuple.destination, sizeof vip.ip);
  const struct ExternalServiceEntry* service = FindExternalService(&vip);
  if (!service) {
    ForgetStaleReply(&packet->tuple);
    return KP_NEXT;
  }
  if (IsDraining() || IsPod(packet->tuple.source)) return KP_NEXT;
  if (service->limited && !IsInSourceRanges(&vip, packet->tuple.source)) return KP_NEXT;
  const struct Endpoint* endpoint = SelectForPacket(&vip, service, &packet->tuple);
  if (!endpoint) return KP_NEXT;
  struct NatEntry forward = {.source_port = packet->tuple.source_port, .destination_port = endpoint->port};
  __builtin_memcpy(forward.source, packet->tuple.source, sizeof forward.source);
  __builtin_memcpy(forward.destination, endpoint->ip, sizeof forward.destination);
  NotePacket(&forward, packet);
  if (service->masquerade) {
    if (StartDirect(skb, packet, &forward)) return ForwardDirect(skb, packet, &forward);
    forward.flags = kNatMasquerade;
  }
  if (!StoreConnection(&packet->tuple, &forward)) return KP_NEXT;
  return ToEndpoint(skb, packet, &forward);
}

// Translates an ICMP error about an answer, which is for the endpoint.
static __always_inline int ErrorToEndpoint(struct __sk_buff* skb, __u32 header) {
  struct Packet outer, quoted;
  if (!IsOfFamily(skb) || !ReadError(skb, header, &outer, &quoted)) return KP_NEXT;
  const struct NatEntry* forward = FindReverse(&quoted.tuple);
  if (!forward || ((forward->flags & kNatReply) && !(forward->flags & kNatDirect))) return KP_NEXT;
  return TranslateQuoted(skb, &outer, &quoted, forward) && SetOuter(skb, &outer, forward->destination, 0)
             ? KP_NEXT
             : TC_ACT_SHOT;
}

// Translates an ICMP error about a client's packet. The endpoint has sent it, or a router on the path.
static __always_inline int ErrorToClient(struct __sk_buff* skb, __u32 header) {
  struct Packet outer, quoted;
  if (!IsOfFamily(skb) || !ReadError(skb, header, &outer, &quoted)) return KP_NEXT;
  const struct NatEntry* reply = FindReverse(&quoted.tuple);
  if (!reply || (reply->flags & (kNatReply | kNatDirect)) != kNatReply) return KP_NEXT;
  const int from_endpoint = SameAddress(outer.tuple.source, quoted.tuple.destination);
  if (!TranslateQuoted(skb, &outer, &quoted, reply)) return TC_ACT_SHOT;
  return !from_endpoint || SetOuter(skb, &outer, reply->source, 1) ? KP_NEXT : TC_ACT_SHOT;
}

// A SYN with the DSR option: for an endpoint on this node, or on its way to another node.
static __always_inline int AcceptDsr(struct __sk_buff* skb, const struct Packet* packet,
                                     const struct ServiceKey* original) {
  struct bpf_fib_lookup route;
  if (FindRoute(skb, packet->tuple.source, packet->tuple.destination, IPPROTO_TCP, 0, &route)) {
    const __u32 next = route.ifindex;
    if (bpf_map_lookup_elem(&devices, &next)) return KP_NEXT;
  }
  if (!StoreDsrConnection(packet, original)) return TC_ACT_SHOT;  // the client repeats its SYN
  return RemoveDsrOption(skb, packet) ? KP_NEXT : TC_ACT_SHOT;
}

SEC("tc") int from_outside(struct __sk_buff* skb) {
  const __u32 index = skb->ifindex;
  const struct DeviceEntry* device = bpf_map_lookup_elem(&devices, &index);
  if (!device || skb->pkt_type != PACKET_HOST || skb->vlan_present) return KP_NEXT;
  struct Packet packet;
  struct ServiceKey original;
  if (serves_dsr && ReadDsrOption(skb, device->link_header, &packet, &original)) {
    return AcceptDsr(skb, &packet, &original);
  }
  if (!ReadPacket(skb, device->link_header, &packet)) return ErrorToEndpoint(skb, device->link_header);
  const int begins = packet.tuple.protocol == IPPROTO_UDP || (packet.tcp_flags & (KP_SYN | KP_ACK)) == KP_SYN;
  struct NatEntry* known = bpf_map_lookup_elem(&connections, &packet.tuple);
  const int answers = known && (known->flags & kNatReply);
  if (known && (answers ? known->flags & kNatDirect : !begins || !IsNewConnection(&packet.tuple, known))) {
    NotePacket(known, &packet);
    return known->flags & kNatDirect ? ForwardDirect(skb, &packet, known) : ToEndpoint(skb, &packet, known);
  }
  if (begins) return StartConnection(skb, &packet);
  if (serves_dsr) NoteClosing(&packet);
  return KP_NEXT;
}

SEC("tc") int to_outside(struct __sk_buff* skb) {
  const __u32 index = skb->ifindex;
  const struct DeviceEntry* device = bpf_map_lookup_elem(&devices, &index);
  if (!device) return KP_NEXT;
  struct Packet packet;
  if (!ReadPacket(skb, device->link_header, &packet)) return ErrorToClient(skb, device->link_header);
  struct NatEntry* known = bpf_map_lookup_elem(&connections, &packet.tuple);
  if (!known || (known->flags & (kNatReply | kNatDirect)) != kNatReply) return KP_NEXT;
  NotePacket(known, &packet);
  return SetSource(skb, &packet, known) ? KP_NEXT : TC_ACT_SHOT;
}

#endif  // KEELSON_PROXY_EBPF_EXTERNAL_TRAFFIC_H_

// What the maps hold: one description for the programs in the kernel (C, clang -target bpf) and for
// kube-proxy (C++). Addresses have 16 bytes, IPv4 ones as ::ffff:a.b.c.d, so that both families share maps,
// and a socket of both families that connects to an IPv4 address meets the same Service. Addresses and ports
// are in network order. There are no holes: keys are compared as bytes. Whoever changes a layout raises
// KP_LAYOUT.
#ifndef KEELSON_PROXY_EBPF_MAPS_H_
#define KEELSON_PROXY_EBPF_MAPS_H_

#include <linux/types.h>

#ifdef __cplusplus
namespace keelson::proxy::ebpf {
#define KP_SIZE(type, size) static_assert(sizeof(struct type) == size)
#else
#define KP_SIZE(type, size) _Static_assert(sizeof(struct type) == size, #type)
#endif

#define KP_LAYOUT 1

// Where clients connect to. A NodePort: all bits of the address set. All other ports of a cluster IP: port
// and protocol 0.
struct Vip {
  __u32 ip[4];
  __u16 port;
  __u8 protocol;
  __u8 zero;
};
KP_SIZE(Vip, 20);

// What becomes of a connect() or sendmsg().
enum Answer {
  kPass = 0,  // it stays as it is, and the packets meet the node's rules
  kServe = 1,
  kRefuse = 2,  // ECONNREFUSED
  kDrop = 3,    // EPERM
};

struct Service {
  __u32 endpoints;  // slots 0 to endpoints - 1
  __u32 affinity;   // seconds; 0: none
  __u8 pods;        // Answer to those in other network namespaces than the node's,
  __u8 node;        // and to the node's own processes
  __u8 zero[2];
};
KP_SIZE(Service, 12);

struct Slot {
  struct Vip vip;
  __u32 slot;
};
KP_SIZE(Slot, 24);

struct Endpoint {
  __u32 ip[4];
  __u16 port;
  __u16 zero;
};
KP_SIZE(Endpoint, 20);

// That an endpoint is one of a Service whose clients stay with theirs (affinity, UDP); the value says
// nothing.
struct Member {
  struct Vip vip;
  struct Endpoint endpoint;
};
KP_SIZE(Member, 40);

// Who stays with an endpoint: by affinity a network namespace, which is a pod or the node; over UDP a socket.
struct Client {
  __u64 cookie;
  struct Vip vip;
  __u32 zero;
};
KP_SIZE(Client, 32);

struct Sticky {
  __u64 used;  // nanoseconds of CLOCK_MONOTONIC
  struct Endpoint endpoint;
  __u32 zero;
};
KP_SIZE(Sticky, 32);

// A connected socket's, for as long as it lives.
struct Translation {
  struct Vip vip;
  struct Endpoint endpoint;
};
KP_SIZE(Translation, 40);

// Where an unconnected socket has sent to, by what the answer comes from. The value is the Vip.
struct Sent {
  __u64 socket;  // cookie
  struct Endpoint endpoint;
  __u32 zero;
};
KP_SIZE(Sent, 32);

struct Address {
  __u32 ip[4];
};

struct Settings {
  __u64 node_netns;  // cookie of the node's network namespace
};

// How a Service serves who comes from outside, by packets (outside.h). What has none is left to the rules.
struct Outside {
  __u32 endpoints;  // how many
  __u32 first;      // slot: those of policy Local begin at KP_LOCAL_SLOTS
  __u32 rows;       // of the table below, a power of two; 0: one endpoint, which needs none
  __u32 affinity;   // seconds; 0: none
  __u8 masquerade;
  __u8 limited;  // to who is in `source_ranges`
  __u8 zero[2];
};
KP_SIZE(Outside, 20);

#define KP_LOCAL_SLOTS 0x10000

// Which endpoint a connection from outside gets: the same one on every node (maglev.h).
#define KP_ROW_SLOTS 512
struct RowKey {
  struct Vip vip;
  __u32 row;
};
KP_SIZE(RowKey, 24);

struct Row {
  __u16 slots[KP_ROW_SLOTS];  // without `first`
};
KP_SIZE(Row, 1024);

// Keys of tries: `bits` of what follows count.
struct SourceRange {
  __u32 bits;
  struct Vip vip;
  __u32 ip[4];
};
KP_SIZE(SourceRange, 40);

struct PodRange {
  __u32 bits;
  __u32 ip[4];
};
KP_SIZE(PodRange, 20);

struct OutsideClient {
  struct Vip vip;
  __u32 ip[4];
};
KP_SIZE(OutsideClient, 36);

// What a packet says it is part of.
struct Tuple {
  __u32 source[4], destination[4];
  __u16 source_port, destination_port;
  __u8 protocol;
  __u8 zero[3];
};
KP_SIZE(Tuple, 40);

enum ConnectionFlags {
  kBack = 1,        // of what comes from the endpoint
  kMasquerade = 2,  // the rules do that, for packets so marked
  kDirect = 4,      // sent on at once (direct.h)
  kStraight = 8,    // and answered past this node (dsr.h): there is no way back
};
enum ConnectionEnds {
  kFinished = 1,  // this side has said all that it had to say
  kReset = 2,
};

// What packets of a Tuple become. There are two for a connection, one for each way.
struct Connection {
  __u32 source[4], destination[4];
  __u16 source_port, destination_port;
  __u8 flags, ends;
  __u8 zero[2];
  __u64 used;  // nanoseconds of CLOCK_MONOTONIC; 0: not yet
};
KP_SIZE(Connection, 48);

// By index of an interface that packets from outside come in by.
struct Device {
  __u32 header;  // bytes before the IP header: 14 or 0
};

// One that packets may be sent on by, past the node's rules.
struct DirectDevice {
  __u32 address[4];  // that they are sent from; 0: none
  __u32 mtu;
};
KP_SIZE(DirectDevice, 20);

// One whose driver runs a program before there is a packet of the kernel's (fast.h).
struct FastDevice {
  __u8 mac[6];
  __u8 receives;  // from other devices' drivers
  __u8 zero;
};
KP_SIZE(FastDevice, 8);

// Of `fast_programs` (entry.bpf.c).
enum FastSlot { kFastV4 = 0, kFastV6 = 1 };

// Ports of connections that are sent on are these and above. The node's own sockets have lower ones.
#define KP_FIRST_PORT 61000

struct OutsideState {
  __u32 draining;  // serves no new connections
};

#ifdef __cplusplus
}  // namespace keelson::proxy::ebpf
#endif

#endif  // KEELSON_PROXY_EBPF_MAPS_H_

// All eBPF maps of kube-proxy's mode ebpf: their keys, values, kinds and sizes. The programs in the kernel
// (C, clang -target bpf), kube-proxy and nodectl (C++) include this one description.
//
// - An address has 16 bytes; IPv4 is ::ffff:a.b.c.d. So an IPv6 socket that connects to an IPv4 address finds
//   the same Service.
// - Addresses and ports are in network order, all else in host order.
// - Structs have no padding: the kernel compares keys as bytes.
// - A map's name is the name of its pin. Maps and the programs that read them survive kube-proxy: a change of
//   any layout raises KP_LAYOUT, which is part of the pins' path (ebpf_layout.h).
#ifndef KEELSON_LIB_DATAPLANE_EBPF_MAPS_H_
#define KEELSON_LIB_DATAPLANE_EBPF_MAPS_H_

#include <linux/types.h>

#ifdef __cplusplus
namespace keelson::dataplane {
#define KP_SIZE(type, size) static_assert(sizeof(struct type) == size)
#else
#define KP_SIZE(type, size) _Static_assert(sizeof(struct type) == size, #type)
#endif

#define KP_LAYOUT 1

// Slots of endpoints on this node, for externalTrafficPolicy Local, begin here; those of all endpoints at 0.
#define KP_FIRST_LOCAL_SLOT 0x10000

// Slots in one value of `maglev`.
#define KP_MAGLEV_CHUNK 512

// Source ports of connections that are forwarded with the node's address (SNAT) are these and above. The
// node's own sockets have lower ones.
#define KP_FIRST_SNAT_PORT 61000

// A Service's address and port (VIP). A NodePort: all bits of the address are set. All other ports of a
// cluster IP: port and protocol are 0.
struct ServiceKey {
  __u32 ip[4];
  __u16 port;
  __u8 protocol;
  __u8 zero;
};
KP_SIZE(ServiceKey, 20);

// What becomes of a connect() or sendmsg() to a Service.
enum SocketVerdict {
  kSocketPass = 0,    // nothing: packets to the Service's address meet the node's rules
  kSocketServe = 1,   // the socket gets an endpoint's address
  kSocketRefuse = 2,  // ECONNREFUSED; EPERM before Linux 6.1
  kSocketDrop = 3,    // EPERM
};

// Of `services`: how a Service is served at sockets.
struct ServiceEntry {
  __u32 endpoints;  // slots 0 to endpoints - 1
  __u32 affinity;   // ClientIP affinity in seconds; 0: none
  __u8 pods;        // SocketVerdict for processes in other network namespaces than the node's,
  __u8 node;        // and for the node's own
  __u8 zero[2];
};
KP_SIZE(ServiceEntry, 12);

// Of `outside`: how a Service serves external (north-south) traffic, by packets. What has no entry is left to
// the rules.
struct ExternalServiceEntry {
  __u32 endpoints;
  __u32 first_slot;     // 0 or KP_FIRST_LOCAL_SLOT
  __u32 maglev_chunks;  // a power of two; 0: one endpoint, which needs no lookup table
  __u32 affinity;       // ClientIP affinity in seconds; 0: none
  __u8 masquerade;
  __u8 limited;  // to clients in `source_ranges`
  __u8 zero[2];
};
KP_SIZE(ExternalServiceEntry, 20);

struct EndpointKey {
  struct ServiceKey service;
  __u32 slot;
};
KP_SIZE(EndpointKey, 24);

struct Endpoint {
  __u32 ip[4];
  __u16 port;
  __u16 zero;
};
KP_SIZE(Endpoint, 20);

// Of `members`: that an endpoint belongs to a Service. Only where somebody has to ask: with session affinity,
// for UDP, and for external traffic.
struct ServiceEndpointKey {
  struct ServiceKey service;
  struct Endpoint endpoint;
};
KP_SIZE(ServiceEndpointKey, 40);

// A piece of a Service's Maglev lookup table.
struct MaglevKey {
  struct ServiceKey service;
  __u32 chunk;
};
KP_SIZE(MaglevKey, 24);

struct MaglevChunk {
  __u16 slots[KP_MAGLEV_CHUNK];  // counted from first_slot
};
KP_SIZE(MaglevChunk, 1024);

// Keys of tries (BPF_MAP_TYPE_LPM_TRIE): the first `bits` of what follows count.
struct SourceRangeKey {
  __u32 bits;
  struct ServiceKey service;
  __u32 ip[4];
};
KP_SIZE(SourceRangeKey, 40);

struct PodCidrKey {
  __u32 bits;
  __u32 ip[4];
};
KP_SIZE(PodCidrKey, 20);

struct AddressKey {
  __u32 ip[4];
};
KP_SIZE(AddressKey, 16);

// A client on this node. Of `affinity`: a network namespace, which is a pod or the node. Of `flows`: a UDP
// socket that is not connected.
struct LocalClientKey {
  __u64 cookie;
  struct ServiceKey service;
  __u32 zero;
};
KP_SIZE(LocalClientKey, 32);

// A client outside the node.
struct ExternalClientKey {
  struct ServiceKey service;
  __u32 ip[4];
};
KP_SIZE(ExternalClientKey, 36);

// Session affinity: the endpoint that a client stays with.
struct AffinityEntry {
  __u64 last_used;  // nanoseconds of CLOCK_MONOTONIC
  struct Endpoint endpoint;
  __u32 zero;
};
KP_SIZE(AffinityEntry, 32);

// The NAT entry of a connected socket, for getpeername(). It lives as long as the socket.
struct SocketNatEntry {
  struct ServiceKey service;
  struct Endpoint endpoint;
};
KP_SIZE(SocketNatEntry, 40);

// Reverse NAT of a socket that is not connected, for recvmsg(): whom an answer comes from. The value is the
// Service that the socket sent to.
struct SocketReverseNatKey {
  __u64 socket;  // cookie
  struct Endpoint endpoint;
  __u32 zero;
};
KP_SIZE(SocketReverseNatKey, 32);

struct NodeSettings {
  __u64 node_netns;  // cookie of the node's network namespace
};
KP_SIZE(NodeSettings, 8);

// A packet's addresses, ports and protocol (5-tuple).
struct ConnectionTuple {
  __u32 source[4], destination[4];
  __u16 source_port, destination_port;
  __u8 protocol;
  __u8 zero[3];
};
KP_SIZE(ConnectionTuple, 40);

enum NatFlags {
  kNatReply = 1,       // packets from the endpoint to the client
  kNatMasquerade = 2,  // packets get the masquerade mark, and the rules do the rest
  kNatDirect = 4,      // forwarded at the device, past the node's rules (--ebpf-direct)
  kNatDsr = 8,         // and answered by the endpoint's node (direct server return): there is no reply entry
};
enum NatClosing {
  kNatFinished = 1,  // a FIN was seen
  kNatReset = 2,     // an RST was seen
};

// Of `connections`: what packets of a ConnectionTuple become. A connection has two entries, one for each
// direction.
struct NatEntry {
  __u32 source[4], destination[4];
  __u16 source_port, destination_port;
  __u8 flags;    // NatFlags
  __u8 closing;  // NatClosing
  __u8 zero[2];
  __u64 last_used;  // nanoseconds of CLOCK_MONOTONIC; 0: not yet
};
KP_SIZE(NatEntry, 48);

// An interface that external traffic comes in by. This and the next two have its index as key.
struct DeviceEntry {
  __u32 link_header;  // bytes before the IP header: 14 or 0
};
KP_SIZE(DeviceEntry, 4);

// An interface that packets may be forwarded by, past the node's rules.
struct DirectDeviceEntry {
  __u32 address[4];  // the source address for SNAT; 0: none
  __u32 mtu;
};
KP_SIZE(DirectDeviceEntry, 20);

// An interface whose driver runs the XDP program.
struct XdpDeviceEntry {
  __u8 mac[6];
  __u8 receives;  // takes frames that other devices' drivers redirect
  __u8 zero;
};
KP_SIZE(XdpDeviceEntry, 8);

// Indexes of `fast_programs`.
enum XdpProgramIndex { kXdpV4 = 0, kXdpV6 = 1 };

struct ExternalState {
  __u32 draining;  // no new connections are served
};
KP_SIZE(ExternalState, 4);

// The maps of one address family: MAP(name, type, key, value, max_entries, flags).
//
// Entries of what hashes and tries hold are allocated one by one (BPF_F_NO_PREALLOC), so that memory follows
// the Services. 1 as max_entries: kube-proxy sets the size when it loads the programs.
#define KP_SERVICE_MAPS(MAP)                                                                \
  MAP(services, HASH, struct ServiceKey, struct ServiceEntry, 1, BPF_F_NO_PREALLOC)         \
  MAP(endpoints, HASH, struct EndpointKey, struct Endpoint, 1, BPF_F_NO_PREALLOC)           \
  MAP(members, HASH, struct ServiceEndpointKey, __u8, 1, BPF_F_NO_PREALLOC)                 \
  MAP(nodeport_ips, HASH, struct AddressKey, __u8, 1024, BPF_F_NO_PREALLOC)                 \
  MAP(affinity, LRU_HASH, struct LocalClientKey, struct AffinityEntry, 16384, 0)            \
  MAP(flows, LRU_HASH, struct LocalClientKey, struct Endpoint, 8192, 0)                     \
  MAP(settings, ARRAY, __u32, struct NodeSettings, 1, 0)                                    \
  MAP(translations, SK_STORAGE, int, struct SocketNatEntry, 0, BPF_F_NO_PREALLOC)           \
  MAP(sent, LRU_HASH, struct SocketReverseNatKey, struct ServiceKey, 8192, 0)               \
  MAP(outside, HASH, struct ServiceKey, struct ExternalServiceEntry, 1, BPF_F_NO_PREALLOC)  \
  MAP(maglev, HASH, struct MaglevKey, struct MaglevChunk, 1, BPF_F_NO_PREALLOC)             \
  MAP(source_ranges, LPM_TRIE, struct SourceRangeKey, __u8, 1, BPF_F_NO_PREALLOC)           \
  MAP(pods, LPM_TRIE, struct PodCidrKey, __u8, 1024, BPF_F_NO_PREALLOC)                     \
  MAP(outside_affinity, LRU_HASH, struct ExternalClientKey, struct AffinityEntry, 16384, 0) \
  MAP(connections, LRU_HASH, struct ConnectionTuple, struct NatEntry, 1, 0)                 \
  MAP(devices, HASH, __u32, struct DeviceEntry, 1024, BPF_F_NO_PREALLOC)                    \
  MAP(direct_devices, HASH, __u32, struct DirectDeviceEntry, 1024, BPF_F_NO_PREALLOC)       \
  MAP(fast_devices, HASH, __u32, struct XdpDeviceEntry, 1024, BPF_F_NO_PREALLOC)            \
  MAP(outside_state, ARRAY, __u32, struct ExternalState, 1, 0)

// The map of both families: the XDP program of each, by XdpProgramIndex.
#define KP_XDP_MAPS(MAP) MAP(fast_programs, PROG_ARRAY, __u32, __u32, 2, 0)

#ifdef __cplusplus
}  // namespace keelson::dataplane
#endif

#endif  // KEELSON_LIB_DATAPLANE_EBPF_MAPS_H_

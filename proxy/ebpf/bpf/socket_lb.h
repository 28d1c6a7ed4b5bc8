// Load balancing at the socket (socket LB), for every process below the cgroup that the programs are attached
// to: connect() and sendmsg() to a Service get an endpoint's address, getpeername() and recvmsg() show the
// Service's again. Packets need no translation. The node's rules serve what cannot be decided here: clients
// that have to be masqueraded, source ranges, and connected UDP sockets, for no program runs when these send,
// and their endpoint may have gone.
//
// The programs use the kernel's stable interface (linux/bpf.h) only, no structures of the kernel's own:
// building and loading need no kernel types, and nothing is relocated.
#ifndef KEELSON_PROXY_EBPF_SOCKET_LB_H_
#define KEELSON_PROXY_EBPF_SOCKET_LB_H_

#include <linux/bpf.h>
#include <linux/in.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/endpoint_selection.h"
#include "proxy/ebpf/bpf/service_maps.h"

#define ECONNREFUSED 111

// 0 before Linux 6.1: clients get EPERM instead of ECONNREFUSED. Set before loading.
const volatile __u8 has_set_retval = 1;

enum Call { kConnect, kSend };

// Compares 20 bytes: programs cannot call memcmp().
static __always_inline int Same(const void* a, const void* b) {
  const __u32 *x = a, *y = b;
  return x[0] == y[0] && x[1] == y[1] && x[2] == y[2] && x[3] == y[3] && x[4] == y[4];
}

static __always_inline int Refuse(void) {
  if (has_set_retval) bpf_set_retval(-ECONNREFUSED);
  return 0;
}

static __always_inline void StoreSocketNat(struct bpf_sock_addr* ctx, enum Call call,
                                           const struct ServiceKey* original,
                                           const struct Endpoint* endpoint) {
  if (call == kSend) {
    struct SocketReverseNatKey key = {.socket = bpf_get_socket_cookie(ctx), .endpoint = *endpoint};
    struct ServiceKey* known = bpf_map_lookup_elem(&sent, &key);
    if (!known || !Same(known, original)) {
      bpf_map_update_elem(&sent, &key, original, BPF_ANY);
    }
    return;
  }
  struct SocketNatEntry fresh = {.service = *original, .endpoint = *endpoint};
  struct bpf_sock* socket = ctx->sk;
  if (!socket) return;
  struct SocketNatEntry* stored =
      bpf_sk_storage_get(&translations, socket, &fresh, BPF_SK_STORAGE_GET_F_CREATE);
  if (stored) *stored = fresh;
}

// For a socket that connects to another address than last time.
static __always_inline void DeleteSocketNat(struct bpf_sock_addr* ctx, enum Call call) {
  struct bpf_sock* socket = ctx->sk;
  if (call == kConnect && socket) bpf_sk_storage_delete(&translations, socket);
}

// Load balances a call to `address`, which becomes an endpoint's if the Service is served here. 1: the call
// goes on. 0: it fails.
static __always_inline int Translate(struct bpf_sock_addr* ctx, enum Call call, struct ServiceKey* address) {
  if (address->protocol != IPPROTO_TCP && address->protocol != IPPROTO_UDP) return 1;
  const struct ServiceKey original = *address;
  struct ServiceKey vip = original;
  const struct ServiceEntry* service = FindService(&vip);
  if (!service) {
    DeleteSocketNat(ctx, call);
    return 1;
  }
  __u32 zero = 0;
  const struct NodeSettings* node = bpf_map_lookup_elem(&settings, &zero);
  if (!node) return 1;
  const __u64 netns = bpf_get_netns_cookie(ctx);
  switch (netns == node->node_netns ? service->node : service->pods) {
    case kSocketServe: {
      if (call == kConnect && original.protocol == IPPROTO_UDP) break;
      const struct Endpoint* selected =
          call == kConnect ? SelectForClient(&vip, service, netns)
                           : SelectForSocket(&vip, service, netns, bpf_get_socket_cookie(ctx));
      if (!selected) return Refuse();
      struct Endpoint endpoint = *selected;
      StoreSocketNat(ctx, call, &original, &endpoint);
      __builtin_memcpy(address->ip, endpoint.ip, sizeof address->ip);
      address->port = endpoint.port;
      return 1;
    }
    case kSocketRefuse:
      return Refuse();
    case kSocketDrop:
      return 0;
  }
  DeleteSocketNat(ctx, call);
  return 1;
}

// Makes an endpoint's `address` the Service's that the process has asked for. 0: it has asked for none.
static __always_inline int ReverseTranslate(struct bpf_sock_addr* ctx, struct ServiceKey* address) {
  struct Endpoint endpoint = {.port = address->port};
  __builtin_memcpy(endpoint.ip, address->ip, sizeof endpoint.ip);
  struct bpf_sock* socket = ctx->sk;
  if (socket) {
    struct SocketNatEntry* stored = bpf_sk_storage_get(&translations, socket, 0, 0);
    if (stored && Same(&stored->endpoint, &endpoint)) {
      *address = stored->service;
      return 1;
    }
  }
  if (address->protocol != IPPROTO_UDP) return 0;
  struct SocketReverseNatKey key = {.socket = bpf_get_socket_cookie(ctx), .endpoint = endpoint};
  struct ServiceKey* vip = bpf_map_lookup_elem(&sent, &key);
  if (!vip) return 0;
  *address = *vip;
  return 1;
}

static __always_inline struct ServiceKey Read4(struct bpf_sock_addr* ctx) {
  struct ServiceKey out = {.ip = {0, 0, bpf_htonl(0xffff), ctx->user_ip4}, .port = (__u16)ctx->user_port};
  out.protocol = ctx->protocol;
  return out;
}

static __always_inline void Write4(struct bpf_sock_addr* ctx, const struct ServiceKey* address) {
  ctx->user_ip4 = address->ip[3];
  ctx->user_port = address->port;
}

static __always_inline struct ServiceKey Read6(struct bpf_sock_addr* ctx) {
  struct ServiceKey out = {.port = (__u16)ctx->user_port};
  out.ip[0] = ctx->user_ip6[0];
  out.ip[1] = ctx->user_ip6[1];
  out.ip[2] = ctx->user_ip6[2];
  out.ip[3] = ctx->user_ip6[3];
  out.protocol = ctx->protocol;
  return out;
}

static __always_inline void Write6(struct bpf_sock_addr* ctx, const struct ServiceKey* address) {
  ctx->user_ip6[0] = address->ip[0];
  ctx->user_ip6[1] = address->ip[1];
  ctx->user_ip6[2] = address->ip[2];
  ctx->user_ip6[3] = address->ip[3];
  ctx->user_port = address->port;
}

#define FORWARD(name, section, family, call)         \
  SEC(section) int name(struct bpf_sock_addr* ctx) { \
    struct ServiceKey address = Read##family(ctx);   \
    if (!Translate(ctx, call, &address)) return 0;   \
    Write##family(ctx, &address);                    \
    return 1;                                        \
  }
#define BACKWARD(name, section, family)                                \
  SEC(section) int name(struct bpf_sock_addr* ctx) {                   \
    struct ServiceKey address = Read##family(ctx);                     \
    if (ReverseTranslate(ctx, &address)) Write##family(ctx, &address); \
    return 1;                                                          \
  }

// In the order in which they are attached: reverse translation is there before translation.
BACKWARD(recvmsg4, "cgroup/recvmsg4", 4)
BACKWARD(recvmsg6, "cgroup/recvmsg6", 6)
BACKWARD(getpeername4, "cgroup/getpeername4", 4)
BACKWARD(getpeername6, "cgroup/getpeername6", 6)
FORWARD(connect4, "cgroup/connect4", 4, kConnect)
FORWARD(connect6, "cgroup/connect6", 6, kConnect)
FORWARD(sendmsg4, "cgroup/sendmsg4", 4, kSend)
FORWARD(sendmsg6, "cgroup/sendmsg6", 6, kSend)

#endif  // KEELSON_PROXY_EBPF_SOCKET_LB_H_

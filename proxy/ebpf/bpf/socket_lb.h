// Service load balancing at the socket, for every process below the cgroup that this is attached to:
// connect() and sendmsg() to a Service are given an endpoint's address, and getpeername() and recvmsg() show
// the Service's again. So packets never meet any translation. What cannot be decided here (who has to be
// masqueraded, source ranges) is left to the rules that packets meet. So are connected sockets of UDP:
// nothing is called when they send, and what they were connected to may have gone.
//
// Only the kernel's stable interface (linux/bpf.h) is used, no structure of the kernel's own: neither
// building nor loading needs to know the kernel's types, and there is nothing to relocate.
#ifndef KEELSON_PROXY_EBPF_SOCKET_LB_H_
#define KEELSON_PROXY_EBPF_SOCKET_LB_H_

#include <linux/bpf.h>
#include <linux/in.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/maps.h"
#include "proxy/ebpf/bpf/pick.h"

#define ECONNREFUSED 111

// Kernels before 6.1 cannot: their clients get EPERM. Set before loading.
const volatile __u8 has_set_retval = 1;

struct {
  __uint(type, BPF_MAP_TYPE_SK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct Translation);
} translations SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, struct Sent);
  __type(value, struct Vip);
} sent SEC(".maps");

enum Call { kConnect, kSend };

// Of 20 bytes. A call of memcmp() is what there is not.
static __always_inline int Same(const void* a, const void* b) {
  const __u32 *x = a, *y = b;
  return x[0] == y[0] && x[1] == y[1] && x[2] == y[2] && x[3] == y[3] && x[4] == y[4];
}

static __always_inline int Refuse(void) {
  if (has_set_retval) bpf_set_retval(-ECONNREFUSED);
  return 0;
}

static __always_inline void Remember(struct bpf_sock_addr* ctx, enum Call call, const struct Vip* asked,
                                     const struct Endpoint* endpoint) {
  if (call == kSend) {
    struct Sent key = {.socket = bpf_get_socket_cookie(ctx), .endpoint = *endpoint};
    struct Vip* known = bpf_map_lookup_elem(&sent, &key);
    if (!known || !Same(known, asked)) {
      bpf_map_update_elem(&sent, &key, asked, BPF_ANY);
    }
    return;
  }
  struct Translation fresh = {.vip = *asked, .endpoint = *endpoint};
  struct bpf_sock* socket = ctx->sk;
  if (!socket) return;
  struct Translation* stored = bpf_sk_storage_get(&translations, socket, &fresh, BPF_SK_STORAGE_GET_F_CREATE);
  if (stored) *stored = fresh;
}

// Of a socket that goes on to something else than what it was connected to.
static __always_inline void Forget(struct bpf_sock_addr* ctx, enum Call call) {
  struct bpf_sock* socket = ctx->sk;
  if (call == kConnect && socket) bpf_sk_storage_delete(&translations, socket);
}

// 1: go on, to `address`, which is changed if the Service is served here. 0: fail.
static __always_inline int Translate(struct bpf_sock_addr* ctx, enum Call call, struct Vip* address) {
  if (address->protocol != IPPROTO_TCP && address->protocol != IPPROTO_UDP) return 1;
  const struct Vip asked = *address;
  struct Vip vip = asked;
  const struct Service* service = FindService(&vip);
  if (!service) {
    Forget(ctx, call);
    return 1;
  }
  __u32 zero = 0;
  const struct Settings* node = bpf_map_lookup_elem(&settings, &zero);
  if (!node) return 1;
  const __u64 netns = bpf_get_netns_cookie(ctx);
  switch (netns == node->node_netns ? service->node : service->pods) {
    case kServe: {
      if (call == kConnect && asked.protocol == IPPROTO_UDP) break;
      const struct Endpoint* picked = call == kConnect
                                          ? PickForClient(&vip, service, netns)
                                          : PickForSocket(&vip, service, netns, bpf_get_socket_cookie(ctx));
      if (!picked) return Refuse();
      struct Endpoint endpoint = *picked;
      Remember(ctx, call, &asked, &endpoint);
      __builtin_memcpy(address->ip, endpoint.ip, sizeof address->ip);
      address->port = endpoint.port;
      return 1;
    }
    case kRefuse:
      return Refuse();
    case kDrop:
      return 0;
  }
  Forget(ctx, call);
  return 1;
}

// Leaves in `address` what the program asked for, if it comes from what that became. 1: it does.
static __always_inline int Restore(struct bpf_sock_addr* ctx, struct Vip* address) {
  struct Endpoint endpoint = {.port = address->port};
  __builtin_memcpy(endpoint.ip, address->ip, sizeof endpoint.ip);
  struct bpf_sock* socket = ctx->sk;
  if (socket) {
    struct Translation* stored = bpf_sk_storage_get(&translations, socket, 0, 0);
    if (stored && Same(&stored->endpoint, &endpoint)) {
      *address = stored->vip;
      return 1;
    }
  }
  if (address->protocol != IPPROTO_UDP) return 0;
  struct Sent key = {.socket = bpf_get_socket_cookie(ctx), .endpoint = endpoint};
  struct Vip* vip = bpf_map_lookup_elem(&sent, &key);
  if (!vip) return 0;
  *address = *vip;
  return 1;
}

static __always_inline struct Vip Read4(struct bpf_sock_addr* ctx) {
  struct Vip out = {.ip = {0, 0, bpf_htonl(0xffff), ctx->user_ip4}, .port = (__u16)ctx->user_port};
  out.protocol = ctx->protocol;
  return out;
}

static __always_inline void Write4(struct bpf_sock_addr* ctx, const struct Vip* address) {
  ctx->user_ip4 = address->ip[3];
  ctx->user_port = address->port;
}

static __always_inline struct Vip Read6(struct bpf_sock_addr* ctx) {
  struct Vip out = {.port = (__u16)ctx->user_port};
  out.ip[0] = ctx->user_ip6[0];
  out.ip[1] = ctx->user_ip6[1];
  out.ip[2] = ctx->user_ip6[2];
  out.ip[3] = ctx->user_ip6[3];
  out.protocol = ctx->protocol;
  return out;
}

static __always_inline void Write6(struct bpf_sock_addr* ctx, const struct Vip* address) {
  ctx->user_ip6[0] = address->ip[0];
  ctx->user_ip6[1] = address->ip[1];
  ctx->user_ip6[2] = address->ip[2];
  ctx->user_ip6[3] = address->ip[3];
  ctx->user_port = address->port;
}

#define FORWARD(name, section, family, call)         \
  SEC(section) int name(struct bpf_sock_addr* ctx) { \
    struct Vip address = Read##family(ctx);          \
    if (!Translate(ctx, call, &address)) return 0;   \
    Write##family(ctx, &address);                    \
    return 1;                                        \
  }
#define BACKWARD(name, section, family)                       \
  SEC(section) int name(struct bpf_sock_addr* ctx) {          \
    struct Vip address = Read##family(ctx);                   \
    if (Restore(ctx, &address)) Write##family(ctx, &address); \
    return 1;                                                 \
  }

// In the order in which they are attached: what is translated can be translated back.
BACKWARD(recvmsg4, "cgroup/recvmsg4", 4)
BACKWARD(recvmsg6, "cgroup/recvmsg6", 6)
BACKWARD(getpeername4, "cgroup/getpeername4", 4)
BACKWARD(getpeername6, "cgroup/getpeername6", 6)
FORWARD(connect4, "cgroup/connect4", 4, kConnect)
FORWARD(connect6, "cgroup/connect6", 6, kConnect)
FORWARD(sendmsg4, "cgroup/sendmsg4", 4, kSend)
FORWARD(sendmsg6, "cgroup/sendmsg6", 6, kSend)

#endif  // KEELSON_PROXY_EBPF_SOCKET_LB_H_

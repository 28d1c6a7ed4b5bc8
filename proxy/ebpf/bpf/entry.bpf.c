// The XDP program at interfaces. An interface runs one program, so this one calls the address family's
// (xdp.h).
#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/maps.h"

KP_XDP_MAPS(KP_DEFINE_MAP)

SEC("xdp") int fast_entry(struct xdp_md* ctx) {
  const struct ethhdr* ethernet = (void*)(long)ctx->data;
  if ((void*)(ethernet + 1) > (void*)(long)ctx->data_end) return XDP_PASS;
  // Returns only when the family has no program.
  if (ethernet->h_proto == bpf_htons(ETH_P_IP)) bpf_tail_call(ctx, &fast_programs, kXdpV4);
  if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) bpf_tail_call(ctx, &fast_programs, kXdpV6);
  return XDP_PASS;
}

char kLicense[] SEC("license") = "Dual BSD/GPL";

// What drivers run: interfaces have room for one program, and families have one each (fast.h).
#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "proxy/ebpf/bpf/maps.h"

struct {
  __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
  __uint(max_entries, 2);
  __type(key, __u32);
  __type(value, __u32);
} fast_programs SEC(".maps");

SEC("xdp") int fast_entry(struct xdp_md* ctx) {
  const struct ethhdr* ethernet = (void*)(long)ctx->data;
  if ((void*)(ethernet + 1) > (void*)(long)ctx->data_end) return XDP_PASS;
  // Without a program of the family the next line is reached.
  if (ethernet->h_proto == bpf_htons(ETH_P_IP)) bpf_tail_call(ctx, &fast_programs, kFastV4);
  if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) bpf_tail_call(ctx, &fast_programs, kFastV6);
  return XDP_PASS;
}

char kLicense[] SEC("license") = "Dual BSD/GPL";

// For bpf_test: finds packets whose first word is in a map, and replaces the word by its value.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

const volatile __u32 answer = 1;

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} words SEC(".maps");

SEC("tc") int find(struct __sk_buff* skb) {
  __u32 word = 0;
  if (bpf_skb_load_bytes(skb, 0, &word, sizeof word)) return 0;
  __u32* found = bpf_map_lookup_elem(&words, &word);
  if (!found) return 0;
  __u32 changed = *found;
  bpf_skb_store_bytes(skb, 0, &changed, sizeof changed, 0);
  return answer;
}

SEC("cgroup/connect4") int connect4(struct bpf_sock_addr* ctx) { return ctx->user_ip4 != 0; }

char kLicense[] SEC("license") = "Dual BSD/GPL";

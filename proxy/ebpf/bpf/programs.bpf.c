// All programs of mode ebpf, over one set of maps.
#include "proxy/ebpf/bpf/fast.h"
#include "proxy/ebpf/bpf/outside.h"
#include "proxy/ebpf/bpf/socket_lb.h"

char kLicense[] SEC("license") = "Dual BSD/GPL";

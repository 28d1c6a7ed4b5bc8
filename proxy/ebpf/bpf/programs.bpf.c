// All programs of mode ebpf, over one set of maps.
#include "proxy/ebpf/bpf/external_traffic.h"
#include "proxy/ebpf/bpf/socket_lb.h"
#include "proxy/ebpf/bpf/xdp.h"

char kLicense[] SEC("license") = "Dual BSD/GPL";

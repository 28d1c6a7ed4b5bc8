// Defines the maps of lib/dataplane/ebpf_maps.h for libbpf. Only for programs in the kernel.
#ifndef KEELSON_PROXY_EBPF_MAPS_H_
#define KEELSON_PROXY_EBPF_MAPS_H_

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "lib/dataplane/ebpf_maps.h"

#define KP_DEFINE_MAP(name_, type_, key_, value_, max_entries_, flags_) \
  struct {                                                              \
    __uint(type, BPF_MAP_TYPE_##type_);                                 \
    __uint(map_flags, flags_);                                          \
    __uint(max_entries, max_entries_);                                  \
    __type(key, key_);                                                  \
    __type(value, value_);                                              \
  } name_ SEC(".maps");

#endif  // KEELSON_PROXY_EBPF_MAPS_H_

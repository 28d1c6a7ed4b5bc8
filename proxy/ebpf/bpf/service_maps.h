// The maps of one address family, which all programs but the XDP entry share.
#ifndef KEELSON_PROXY_EBPF_SERVICE_MAPS_H_
#define KEELSON_PROXY_EBPF_SERVICE_MAPS_H_

#include "proxy/ebpf/bpf/maps.h"

KP_SERVICE_MAPS(KP_DEFINE_MAP)

#endif  // KEELSON_PROXY_EBPF_SERVICE_MAPS_H_

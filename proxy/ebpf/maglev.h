// Consistent hashing for connections from outside, after "Maglev: A Fast and Reliable Software Network Load
// Balancer" (Eisenbud et al., NSDI 2016): which endpoint a hash belongs to. Nodes with the same endpoints
// agree, so that a client that suddenly comes by another node meets the same one, and when one endpoint comes
// or goes few of the others' hashes move. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "proxy/model/service_port.h"

namespace keelson::proxy::ebpf {

// How large a table for so many endpoints is: a power of two, at least 512, and 32 for each of them.
size_t MaglevSize(size_t endpoints);

// By hash, indexes into `endpoints`, whose order does not matter. No two endpoints have shares that differ by
// more than one. At most 65 536 endpoints; later ones have none.
std::vector<uint16_t> MaglevTable(const std::vector<Backend>& endpoints);

}  // namespace keelson::proxy::ebpf

// Connections of external traffic, in the map that the programs on devices write (bpf/connections.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "lib/base/error.h"
#include "lib/bpf/map.h"

namespace keelson::proxy::ebpf {

// The map's size for that many connections; 0: by the machine's memory. The kernel allocates all entries at
// once.
uint32_t ConnectionMapSize(uint32_t connections);

// Whether any of the map's entries is of an open connection (dataplane::IsOpen). `now` is of CLOCK_MONOTONIC.
// Pure.
bool AnyOpen(const std::vector<bpf::Map::Entry>& entries, std::chrono::nanoseconds now);

// Stops serving new connections. Returns whether any is open; maps that are not pinned have none.
Result<bool> DrainExternal(const std::string& map_directory);

}  // namespace keelson::proxy::ebpf

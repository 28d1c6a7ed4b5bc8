// Connections from outside, as the programs on devices remember them (bpf/connections.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "lib/base/error.h"
#include "lib/bpf/map.h"

namespace keelson::proxy::ebpf {

// Room for so many connections; 0: as befits the machine's memory. They are allocated at once.
uint32_t ConnectionEntries(uint32_t connections);

// Of entries at a time of CLOCK_MONOTONIC: whether any connection needs its translation. One that has ended,
// or said nothing for as long as connection tracking would remember it, does not. Pure.
bool AnyAlive(const std::vector<bpf::Map::Entry>& entries, std::chrono::nanoseconds now);

// From here on no new connections are served; whether any is alive. Maps that are not pinned: none.
Result<bool> DrainOutside(const std::string& map_directory);

}  // namespace keelson::proxy::ebpf

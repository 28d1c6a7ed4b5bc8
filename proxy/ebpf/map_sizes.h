// Sizes of LRU maps, which forget the entry that is unused for longest when they are full.
#pragma once

#include <cstdint>

namespace keelson::proxy::ebpf {

// `setting`; when that is 0 one entry for each `memory` bytes that the machine has, rounded down to a power
// of two, at least `least` and at most `most`. The kernel allocates all entries at once.
uint32_t MapSizeFor(uint32_t setting, uint64_t memory, uint64_t least, uint64_t most);

}  // namespace keelson::proxy::ebpf

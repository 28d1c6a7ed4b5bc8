// How much maps have room for that forget the longest unused entry when they are full.
#pragma once

#include <cstdint>

namespace keelson::proxy::ebpf {

// `setting`, or when that is 0 an entry for each `memory` bytes of the machine's (a power of two of them), at
// least `least` and at most `most`. The kernel allocates all of them at once.
uint32_t EntriesFor(uint32_t setting, uint64_t memory, uint64_t least, uint64_t most);

}  // namespace keelson::proxy::ebpf

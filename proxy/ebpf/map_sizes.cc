#include "proxy/ebpf/map_sizes.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <bit>

namespace keelson::proxy::ebpf {

uint32_t MapSizeFor(uint32_t setting, uint64_t memory, uint64_t least, uint64_t most) {
  if (setting != 0) return setting;
  struct sysinfo info {};
  ::sysinfo(&info);
  const uint64_t all = static_cast<uint64_t>(info.totalram) * info.mem_unit;
  return static_cast<uint32_t>(std::clamp(std::bit_floor(all / memory), least, most));
}

}  // namespace keelson::proxy::ebpf

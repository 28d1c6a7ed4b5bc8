// Pressure stall information (Linux 4.20; Documentation/accounting/psi.rst): how long tasks have waited for a
// resource.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace keelson::linux {

struct Stall {
  uint64_t total_us = 0;
  double avg10 = 0, avg60 = 0, avg300 = 0;  // percent of the last seconds
};

struct Pressure {
  Stall some, full;  // at least one task waited; all tasks with work to do waited
};

// Reads "/proc/pressure/memory" or a cgroup's "memory.pressure". nullopt where the kernel does not measure
// it.
std::optional<Pressure> ReadPressure(const std::string& path);
std::optional<Pressure> ParsePressure(const std::string& text);

}  // namespace keelson::linux

// Whether a volume is in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "csi/local/model/records.h"

namespace keelson::csi::local {

struct Health {
  std::optional<int64_t> size, taken;  // bytes of the image; absent: it cannot be read
  std::optional<int64_t> free;         // bytes of the data directory's file system
};

// A thin volume is not in order when less than this is free and less than it may still write.
inline constexpr int64_t kScarce = int64_t{256} << 20;

// What is wrong, for people; empty: nothing.
std::string Complaint(const VolumeRecord& record, const Health& health);

}  // namespace keelson::csi::local

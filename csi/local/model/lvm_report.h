// What LVM's reports say (lvmreport(7), --reportformat json): objects of texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::csi::local {

struct LogicalVolume {
  std::string name;
  int64_t size = 0;  // bytes
  std::vector<std::string> tags;
  std::string pool;    // empty: in no thin pool
  std::string device;  // /dev/mapper/GROUP-NAME; there while the volume is active
  bool active = false;
  std::optional<double> taken;  // percent of its blocks that have been written; absent: not active

  bool HasTag(std::string_view tag) const;
  int64_t Taken() const;  // bytes
};

struct ThinPool {
  int64_t size = 0, free = 0;  // bytes
  int64_t extent = 0;          // bytes: sizes of volumes are multiples
  double metadata = 0;         // percent in use
  bool zeroes = false;         // a block is zeroed before its first use
};

// The fields that the functions below read, as --options takes them.
inline constexpr char kVolumeFields[] = "lv_name,lv_size,lv_tags,pool_lv,lv_dm_path,lv_active,data_percent";
inline constexpr char kPoolFields[] =
    "lv_name,segtype,lv_size,data_percent,metadata_percent,zero,vg_extent_size";

// Of `lvs --units b --nosuffix --binary`. kInternal: not such a report.
Result<std::vector<LogicalVolume>> ParseVolumes(std::string_view report);
// kConflict: the volume is no thin pool, or is not active.
Result<ThinPool> ParsePool(std::string_view report);

}  // namespace keelson::csi::local

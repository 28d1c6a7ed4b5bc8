#include "csi/local/model/condition.h"

namespace keelson::csi::local {

std::string Complaint(const VolumeRecord& record, const Health& health) {
  if (!health.size) {
    return std::string("the volume's ") + (record.directory ? "directory" : "file") +
           " is missing or cannot be read";
  }
  if (*health.size < record.capacity) {
    return "the volume's file has " + std::to_string(*health.size) + " bytes of " +
           std::to_string(record.capacity);
  }
  if (!health.free) return "the file system of the data directory cannot be read";
  if (!record.thick && *health.free < kScarce && *health.free < record.capacity - health.taken.value_or(0)) {
    return "the data directory has only " + std::to_string(*health.free) +
           " bytes left: writes to this thin volume may fail";
  }
  return "";
}

}  // namespace keelson::csi::local

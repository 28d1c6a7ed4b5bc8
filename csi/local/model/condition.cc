#include "csi/local/model/condition.h"

namespace keelson::csi::local {

std::string Complaint(const VolumeRecord& record, const Health& health) {
  if (!health.size) {
    return std::string("the volume's ") + (record.logical ? "logical volume" : TypeOf(record)) +
           " is missing or cannot be read";
  }
  if (*health.size < record.capacity) {
    return std::string("the volume's ") + (record.logical ? "logical volume" : "file") + " has " +
           std::to_string(*health.size) + " bytes of " + std::to_string(record.capacity);
  }
  if (!health.free) {
    return record.logical ? "the thin pool cannot be read"
                          : "the file system of the data directory cannot be read";
  }
  if (!record.thick && *health.free < kScarce && *health.free < record.capacity - health.taken.value_or(0)) {
    const std::string where = record.logical ? "thin pool" : "data directory";
    return "the " + where + " has only " + std::to_string(*health.free) +
           " bytes left: writes to this thin volume may fail";
  }
  return "";
}

}  // namespace keelson::csi::local

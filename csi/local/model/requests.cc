#include "csi/local/model/requests.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace keelson::csi::local {

namespace {

using Mode = v1::VolumeCapability::AccessMode;

constexpr std::string_view kSidecarPrefix = "csi.storage.k8s.io/",
                           kProvisionerPrefix = "storage.kubernetes.io/";

bool IsOfSidecar(const std::string& key) {
  return key.compare(0, kSidecarPrefix.size(), kSidecarPrefix) == 0;
}

Error Unknown(const std::string& key) {
  return Error(Code::kInvalid, "parameter \"" + key + "\" is unknown");
}

Error Choice(const std::string& key, const std::string& value, const std::string& choices) {
  return Error(Code::kInvalid, "parameter " + key + ": \"" + value + "\" is none of: " + choices);
}

}  // namespace

Result<> CheckName(const std::string& name) {
  if (name.empty()) return Error(Code::kInvalid, "name is required");
  if (name.size() > kMostName) {
    return Error(Code::kInvalid, "name has more than " + std::to_string(kMostName) + " bytes");
  }
  return {};
}

Result<> CheckId(const std::string& id, const std::string& field) {
  if (id.empty()) return Error(Code::kInvalid, field + " is required");
  return {};
}

Result<Parameters> ParseParameters(const Strings& parameters) {
  Parameters out;
  for (const auto& [key, value] : parameters) {
    if (IsOfSidecar(key)) continue;
    if (key == "type") {
      if (value != "file" && value != "directory" && value != "lvm") {
        return Choice(key, value, "file, directory, lvm");
      }
      out.directory = value == "directory";
      out.logical = value == "lvm";
    } else if (key == "provisioning") {
      if (value != "thin" && value != "thick") return Choice(key, value, "thin, thick");
      out.thick = value == "thick";
    } else {
      return Unknown(key);
    }
  }
  if (out.directory && out.thick) {
    return Error(Code::kInvalid,
                 "parameter provisioning: a volume of type directory has no space of its own to reserve");
  }
  if (out.logical && out.thick) {
    return Error(Code::kInvalid, "parameter provisioning: a volume of type lvm is in a thin pool");
  }
  return out;
}

Result<> CheckSnapshotParameters(const Strings& parameters) {
  for (const auto& [key, value] : parameters) {
    if (!IsOfSidecar(key)) return Unknown(key);
  }
  return {};
}

Result<> CheckVolumeContext(const Strings& context) {
  for (const auto& [key, value] : context) {
    if (key.compare(0, kProvisionerPrefix.size(), kProvisionerPrefix) != 0 && !IsOfSidecar(key)) {
      return Error(Code::kInvalid, "volume_context: \"" + key + "\" is unknown");
    }
  }
  return {};
}

Result<> CheckCapability(const v1::VolumeCapability& capability) {
  switch (capability.access_mode().mode()) {
    case Mode::SINGLE_NODE_WRITER:
    case Mode::SINGLE_NODE_READER_ONLY:
    case Mode::SINGLE_NODE_SINGLE_WRITER:
    case Mode::SINGLE_NODE_MULTI_WRITER:
      break;
    case Mode::UNKNOWN:
      return Error(Code::kInvalid, "access mode is required");
    default:
      return Error(Code::kInvalid, "access mode " + Mode::Mode_Name(capability.access_mode().mode()) +
                                       " is not supported: the volume is on one node");
  }
  if (capability.has_block()) return {};
  if (!capability.has_mount()) return Error(Code::kInvalid, "access type is required: block or mount");
  const std::string type = FileSystemOf(capability);
  if (type != "ext4" && type != "xfs") {
    return Error(Code::kInvalid, "file system \"" + type + "\" is none of: ext4, xfs");
  }
  if (!capability.mount().volume_mount_group().empty()) {
    return Error(Code::kInvalid, "volume_mount_group is not supported");
  }
  return {};
}

Result<> CheckCapabilities(const google::protobuf::RepeatedPtrField<v1::VolumeCapability>& capabilities) {
  if (capabilities.empty()) return Error(Code::kInvalid, "volume_capabilities is required");
  for (const v1::VolumeCapability& capability : capabilities) {
    KEELSON_RETURN_IF_ERROR(CheckCapability(capability));
  }
  return {};
}

Result<> CheckDirectoryCapabilities(
    const google::protobuf::RepeatedPtrField<v1::VolumeCapability>& capabilities) {
  for (const v1::VolumeCapability& capability : capabilities) {
    if (capability.has_block()) return Error(Code::kInvalid, "a volume of type directory is no block device");
  }
  return {};
}

std::string FileSystemOf(const v1::VolumeCapability& capability) {
  return capability.mount().fs_type().empty() ? "ext4" : capability.mount().fs_type();
}

bool IsReader(const v1::VolumeCapability& capability) {
  return capability.access_mode().mode() == Mode::SINGLE_NODE_READER_ONLY;
}

int64_t LeastCapacity(const google::protobuf::RepeatedPtrField<v1::VolumeCapability>& capabilities) {
  const bool xfs = std::any_of(capabilities.begin(), capabilities.end(), [](const auto& capability) {
    return capability.has_mount() && FileSystemOf(capability) == "xfs";
  });
  return int64_t{xfs ? 300 : 4} << 20;
}

Result<int64_t> DecideCapacity(const v1::CapacityRange& range, int64_t least, int64_t block) {
  const int64_t required = range.required_bytes(), limit = range.limit_bytes();
  if (required < 0 || limit < 0) return Error(Code::kInvalid, "capacity_range is negative");
  if (limit > 0 && required > limit) {
    return Error(Code::kInvalid, "capacity_range requires more than its limit");
  }
  int64_t capacity = required;
  if (required == 0) {
    capacity = limit > 0 ? std::min(kDefaultCapacity, limit - limit % block) : kDefaultCapacity;
  }
  capacity = std::max(capacity, least);
  if (capacity > std::numeric_limits<int64_t>::max() - block) {
    return Error(Code::kGone, "no volume has " + std::to_string(capacity) + " bytes");
  }
  capacity = (capacity + block - 1) / block * block;
  if (limit > 0 && capacity > limit) {
    return Error(Code::kGone, "the least capacity is " + std::to_string(capacity) +
                                  " bytes, above the limit of " + std::to_string(limit));
  }
  return capacity;
}

bool Fits(const v1::CapacityRange& range, int64_t capacity) {
  return capacity >= range.required_bytes() && (range.limit_bytes() == 0 || capacity <= range.limit_bytes());
}

bool Reaches(const v1::TopologyRequirement& requirement, const std::string& key, const std::string& node) {
  if (requirement.requisite().empty()) return true;
  return std::any_of(requirement.requisite().begin(), requirement.requisite().end(),
                     [&](const auto& topology) {
                       auto it = topology.segments().find(key);
                       return it != topology.segments().end() && it->second == node;
                     });
}

int64_t ThinCapacity(int64_t free, double ratio, int64_t promised, int64_t taken) {
  const double open =
      static_cast<double>(free) * ratio - static_cast<double>(std::max<int64_t>(0, promised - taken));
  // Far from the type's limit, where doubles are coarse.
  return static_cast<int64_t>(std::clamp(std::floor(open), 0.0, 0x1p62));
}

Result<Page> MakePage(const std::vector<std::string>& ids, int32_t max_entries,
                      const std::string& starting_token, bool (*is_token)(const std::string&)) {
  if (max_entries < 0) return Error(Code::kInvalid, "max_entries is negative");
  Page page;
  if (!starting_token.empty()) {
    if (!is_token(starting_token)) {
      return Error(Code::kUnavailable, "starting_token is none that was given out");
    }
    page.begin = static_cast<size_t>(std::upper_bound(ids.begin(), ids.end(), starting_token) - ids.begin());
  }
  page.end = ids.size();
  if (max_entries > 0 && page.end - page.begin > static_cast<size_t>(max_entries)) {
    page.end = page.begin + static_cast<size_t>(max_entries);
    page.next_token = ids[page.end - 1];
  }
  return page;
}

}  // namespace keelson::csi::local

// What requests may say, and what it means: names, parameters, capabilities, capacities, topologies and pages. All of it
// is pure. kInvalid becomes INVALID_ARGUMENT, kGone OUT_OF_RANGE (serving/status.h has all of them).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "csi/local/model/wire.h"
#include "lib/base/error.h"

namespace keelson::csi::local {

inline constexpr size_t kMostName = 128;  // bytes; the specification's limit

// Not empty, at most kMostName. Any characters: names are hashed.
Result<> CheckName(const std::string& name);
// Not empty. What form it has does not matter: an unknown one is not found.
Result<> CheckId(const std::string& id, const std::string& field);

struct Parameters {
  bool thick = false, directory = false, logical = false;
};
// Of a StorageClass: `type` (file, directory, lvm) and `provisioning` (thin, thick). Keys of csi.storage.k8s.io/, which the provisioner
// adds, mean nothing here. kInvalid for every other key: a parameter without effect would be a promise not kept.
Result<Parameters> ParseParameters(const Strings& parameters);
// Of a VolumeSnapshotClass or VolumeGroupSnapshotClass: none but those of csi.storage.k8s.io/.
Result<> CheckSnapshotParameters(const Strings& parameters);

// The driver gives volumes no context; the provisioner adds keys of storage.kubernetes.io/, which mean nothing here.
Result<> CheckVolumeContext(const Strings& context);

// One node, a known file system, no mount group. kInvalid otherwise.
Result<> CheckCapability(const v1::VolumeCapability& capability);
// At least one, each as above.
Result<> CheckCapabilities(const google::protobuf::RepeatedPtrField<v1::VolumeCapability>& capabilities);
// kInvalid: a directory is no device.
Result<> CheckDirectoryCapabilities(
    const google::protobuf::RepeatedPtrField<v1::VolumeCapability>& capabilities);
std::string FileSystemOf(const v1::VolumeCapability& capability);  // "ext4" unless the capability names one
bool IsReader(const v1::VolumeCapability& capability);             // SINGLE_NODE_READER_ONLY

inline constexpr int64_t kBlock = 4096;  // capacities are multiples of it
inline constexpr int64_t kDefaultCapacity = int64_t{1} << 30;
// The least that a file system of these capabilities needs: XFS 300 MiB, ext4 and devices 4 MiB.
int64_t LeastCapacity(const google::protobuf::RepeatedPtrField<v1::VolumeCapability>& capabilities);
// A capacity within the range, not below `least`, and a multiple of `block`: the required bytes rounded up, or a default of
// 1 GiB. kInvalid: the range contradicts itself. kGone: no capacity fits.
Result<int64_t> DecideCapacity(const v1::CapacityRange& range, int64_t least, int64_t block = kBlock);
bool Fits(const v1::CapacityRange& range, int64_t capacity);

// Whether the requirement allows a volume on the node whose topology is {key: node}.
bool Reaches(const v1::TopologyRequirement& requirement, const std::string& key, const std::string& node);

// What thin volumes may still promise: the free space times `ratio`, less what is promised and not yet taken.
int64_t ThinCapacity(int64_t free, double ratio, int64_t promised, int64_t taken);

// One page of sorted identities: the half-open range of positions, and the token of the next page, which is the page's
// last identity, so that entries may come and go between pages. kInvalid: max_entries is negative. kUnavailable: the token
// is none of these (ABORTED: the caller starts again).
struct Page {
  size_t begin = 0, end = 0;
  std::string next_token;
};
Result<Page> MakePage(const std::vector<std::string>& ids, int32_t max_entries,
                      const std::string& starting_token, bool (*is_token)(const std::string&));

}  // namespace keelson::csi::local

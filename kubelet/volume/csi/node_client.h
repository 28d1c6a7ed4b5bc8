// The Node service of a CSI driver (CSI specification, version 1), as the kubelet calls it.
//
// Errors have the text that Go's gRPC prints, since users look for it in events. Their code says what is known of the
// operation:
//
//   kTimeout, kUnavailable, kTooManyRequests, kConflict   the driver may still be at work, or may have done it
//   kCancelled                                            the same; the caller's stop token ended the call
//   any other                                             final: the operation has failed, nothing is under way
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::kubelet::csi {

using Values = std::map<std::string, std::string>;

struct NodeInfo {
  std::string node_id;
  int64_t max_volumes = 0;  // 0: no limit
  Values topology;          // from where volumes can be reached: labels of the node
};

struct NodeCapabilities {
  bool stage = false;         // STAGE_UNSTAGE_VOLUME
  bool stats = false;         // GET_VOLUME_STATS
  bool expand = false;        // EXPAND_VOLUME
  bool condition = false;     // VOLUME_CONDITION
  bool multi_writer = false;  // SINGLE_NODE_MULTI_WRITER
  bool mount_group = false;   // VOLUME_MOUNT_GROUP
};

enum class AccessMode {  // the values are CSI's
  kUnknown = 0,
  kSingleNodeWriter = 1,
  kSingleNodeReaderOnly = 2,
  kMultiNodeReaderOnly = 3,
  kMultiNodeSingleWriter = 4,
  kMultiNodeMultiWriter = 5,
  kSingleNodeSingleWriter = 6,
  kSingleNodeMultiWriter = 7,
};

struct VolumeCapability {
  AccessMode access_mode = AccessMode::kUnknown;
  bool block = false;  // a device: the rest does not count
  std::string fs_type;
  std::vector<std::string> mount_flags;
  std::optional<int64_t> group;  // for drivers that apply fsGroup themselves
};

struct StageRequest {
  std::string volume_id, staging_path;
  Values publish_context, volume_context, secrets;
  VolumeCapability capability;
};

struct PublishRequest {
  std::string volume_id, target_path;
  std::string staging_path;  // empty: the driver does not stage
  Values publish_context, volume_context, secrets;
  VolumeCapability capability;
  bool read_only = false;
};

struct ExpandRequest {
  std::string volume_id, volume_path;
  std::string staging_path;  // empty: the driver does not stage
  int64_t bytes = 0;
  Values secrets;
  VolumeCapability capability;
};

struct Usage {
  uint64_t total = 0, available = 0, used = 0;
};
struct VolumeStats {
  std::optional<Usage> bytes, inodes;
  struct Condition {
    bool abnormal = false;
    std::string message;
  };
  std::optional<Condition> condition;  // of drivers with VOLUME_CONDITION
};

class NodeClient {  // thread safe
 public:
  virtual ~NodeClient() = default;
  // All calls: kTimeout after two minutes.
  virtual Result<NodeInfo> GetInfo(std::stop_token stop) = 0;
  virtual Result<NodeCapabilities> GetCapabilities(std::stop_token stop) = 0;
  virtual Result<> Stage(const StageRequest& request, std::stop_token stop) = 0;
  virtual Result<> Unstage(const std::string& volume_id, const std::string& staging_path,
                           std::stop_token stop) = 0;
  virtual Result<> Publish(const PublishRequest& request, std::stop_token stop) = 0;
  virtual Result<> Unpublish(const std::string& volume_id, const std::string& target_path,
                             std::stop_token stop) = 0;
  virtual Result<> Expand(const ExpandRequest& request, std::stop_token stop) = 0;
  virtual Result<VolumeStats> GetStats(const std::string& volume_id, const std::string& volume_path,
                                       std::stop_token stop) = 0;
};

// Whether nothing of the failed operation is under way or done.
bool IsFinal(const Error& error);

// Never waits: a driver that is away makes calls fail. Counts csi_operations_seconds under the driver's name.
std::shared_ptr<NodeClient> NewNodeClient(const std::string& driver, const std::string& socket);

}  // namespace keelson::kubelet::csi

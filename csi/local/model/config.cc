#include "csi/local/model/config.h"

#include <algorithm>

#include "csi/local/model/path.h"
#include "lib/base/text.h"

namespace keelson::csi::local {

namespace {

// Limits of the specification, and of Kubernetes on a label's value.
constexpr size_t kMostDriverName = 63, kMostNodeId = 63;

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Begins and ends alphanumeric; between that, `more` is allowed too.
bool IsName(const std::string& text, size_t most, std::string_view more) {
  if (text.empty() || text.size() > most) return false;
  if (!IsAlphanumeric(text.front()) || !IsAlphanumeric(text.back())) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return IsAlphanumeric(c) || more.find(c) != std::string_view::npos; });
}

// lvm(8), VALID NAMES.
bool IsLvmName(const std::string& text) {
  constexpr size_t kMost = 127;
  constexpr std::string_view kMore = "+_.-";
  if (text.empty() || text.size() > kMost || text == "." || text == ".." || text.front() == '-') return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return IsAlphanumeric(c) || kMore.find(c) != std::string_view::npos; });
}

Result<> ValidateLvm(const Config& config) {
  const std::string &group = config.lvm_volume_group, &pool = config.lvm_thin_pool;
  if (group.empty() && pool.empty()) return {};
  if (group.empty() || pool.empty()) {
    return Error(Code::kInvalid, "--lvm-volume-group and --lvm-thin-pool go together");
  }
  if (!IsLvmName(group)) {
    return Error(Code::kInvalid, "--lvm-volume-group: \"" + group + "\" is not the name of a volume group");
  }
  if (!IsLvmName(pool)) {
    return Error(Code::kInvalid, "--lvm-thin-pool: \"" + pool + "\" is not the name of a logical volume");
  }
  return {};
}

}  // namespace

Result<std::string> SocketPath(const std::string& endpoint) {
  std::string path = endpoint;
  if (path.compare(0, 7, "unix://") == 0) {
    path = path.substr(7);
  } else if (path.compare(0, 5, "unix:") == 0) {
    path = path.substr(5);
  }
  if (!IsCleanAbsolutePath(path)) {
    return Error(Code::kInvalid, "--csi-endpoint: \"" + endpoint + "\" is not unix:// and an absolute path");
  }
  return path;
}

Result<> Validate(const Config& config) {
  if (config.endpoint.empty()) {
    return Error(Code::kInvalid, "--csi-endpoint or CSI_ENDPOINT is required");
  }
  KEELSON_RETURN_IF_ERROR(SocketPath(config.endpoint));
  if (config.node_id.empty()) return Error(Code::kInvalid, "--node-id is required");
  // The node's identity is the value of a label.
  if (!IsName(config.node_id, kMostNodeId, "-_.")) {
    return Error(Code::kInvalid, "--node-id: \"" + config.node_id + "\" cannot be the value of a label");
  }
  if (!IsName(config.driver_name, kMostDriverName, "-.")) {
    return Error(Code::kInvalid, "--driver-name: \"" + config.driver_name + "\" is not a driver's name");
  }
  if (!IsCleanAbsolutePath(config.data_dir) || config.data_dir == "/") {
    return Error(Code::kInvalid, "--data-dir: \"" + config.data_dir + "\" is not an absolute path");
  }
  if (!config.registration_dir.empty() && !IsCleanAbsolutePath(config.registration_dir)) {
    return Error(Code::kInvalid,
                 "--kubelet-registration-dir: \"" + config.registration_dir + "\" is not an absolute path");
  }
  KEELSON_RETURN_IF_ERROR(ValidateLvm(config));
  if (config.max_volumes_per_node < 0) return Error(Code::kInvalid, "--max-volumes-per-node is negative");
  if (!(config.overprovision_ratio >= 1 && config.overprovision_ratio <= 1000)) {
    return Error(Code::kInvalid, "--overprovision-ratio is not between 1 and 1000");
  }
  return {};
}

}  // namespace keelson::csi::local

// What the driver's flags say.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/error.h"

namespace keelson::csi::local {

inline constexpr const char* kDefaultDriverName = "local.csi.keelson.dev";

struct Config {
  std::string endpoint;  // unix:///run/csi.sock, or an absolute path
  std::string node_id;
  std::string data_dir = "/var/lib/keelson-csi-local";
  std::string driver_name = kDefaultDriverName;
  // The kubelet's plugins_registry, where the driver makes itself known; empty: another program does that.
  std::string registration_dir;
  // Whether ControllerExpandVolume is announced. Not where the one resizer of a cluster runs on another node: it then
  // leaves all of the expansion to NodeExpandVolume.
  bool controller_expansion = true;
  int64_t max_volumes_per_node = 0;  // 0: no limit
  // Thin volumes may promise this many times the free space of the data directory's file system.
  double overprovision_ratio = 10;

  // The thin pool of volumes of type lvm; empty: there are none on this node.
  std::string lvm_volume_group, lvm_thin_pool;

  // Whether volumes of type directory are refused where no project quota can hold their capacity.
  bool directory_quotas = true;

  // The label of a node that says which volumes it reaches: topology.<driver name>/node.
  std::string TopologyKey() const { return "topology." + driver_name + "/node"; }
};

// kInvalid: a value is missing, or is not of the form that CSI demands.
Result<> Validate(const Config& config);
// The socket's path. kInvalid: not a Unix socket.
Result<std::string> SocketPath(const std::string& endpoint);

}  // namespace keelson::csi::local

// Generates the status of the Node object.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kubelet/cri/runtime.h"
#include "kubelet/node/machine.h"
#include "lib/base/clock.h"
#include "lib/base/version.h"

namespace keelson::kubelet {

struct NodeOptions {
  std::string name;
  std::vector<std::string> ips;
  bool ips_given = false;       // by --node-ip
  bool external_cloud = false;  // the cloud controller manager sets the addresses
  bool controller_attach = true;
  bool reset_extended = false;  // no devices are known from an earlier run
  std::string hostname;         // of the label and the Hostname address
  std::map<std::string, std::string> labels;
  std::vector<corev1::Taint> taints;
  std::string provider_id;
  std::string root_dir, kubelet_version = kGitVersion, runtime_version;
  uint16_t port = 10250;
  Reservations reservations;
  bool register_node = true;
  std::chrono::milliseconds update_frequency{std::chrono::seconds(10)};
  std::chrono::milliseconds report_frequency{std::chrono::minutes(5)};
  int lease_seconds = 40;
  int max_images = 50;                         // in the status; negative: all
  std::vector<std::string> declared_features;  // sorted
};

// Inputs of the node's conditions and images, read again for each update.
struct NodeFacts {
  bool memory_pressure = false, disk_pressure = false, pid_pressure = false;
  Result<cri::RuntimeStatus> runtime = cri::RuntimeStatus();
  std::string runtime_version;
  std::optional<std::vector<cri::Image>> images;  // nullopt: not known now
  std::optional<std::string> unhealthy;           // why the PLEG is unhealthy
  std::optional<std::string> csi_node_problem;    // why there is no CSINode yet
  bool shutting_down = false;
  std::vector<std::string> volumes_in_use;     // that a controller attaches, sorted
  std::optional<std::string> address_problem;  // why the addresses that were given cannot be the node's
  struct Extended {
    int64_t capacity = 0, allocatable = 0;
  };
  std::map<std::string, Extended> extended;  // of device plugins; other extended resources stay
};

// Sets the kubelet's part of `status` and leaves the rest. Pure.
void FillNodeStatus(const NodeOptions& options, const Machine& machine, const NodeFacts& facts, WallTime now,
                    corev1::NodeStatus& status);
// Why the node is not ready; empty: it is ready.
std::string NotReady(const NodeFacts& facts);
// The strategic merge patch from `base` to `desired`; nullopt: nothing but heartbeat times differs, and not
// `heartbeats_too`.
std::optional<std::string> NodeStatusPatch(const corev1::NodeStatus& base, const corev1::NodeStatus& desired,
                                           bool heartbeats_too);

}  // namespace keelson::kubelet

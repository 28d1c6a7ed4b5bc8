// The command line of keelson-csi-controller.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::csi::controller {

struct Config {
  std::string kubeconfig;  // empty: the pod's ServiceAccount
  std::vector<std::string> addresses{"/run/csi/socket"};
  std::vector<std::string> controllers{"*"};
  std::chrono::milliseconds timeout{std::chrono::seconds(15)};
  std::chrono::milliseconds retry_start{std::chrono::seconds(1)}, retry_max{std::chrono::minutes(5)};
  int worker_threads = 10;
  std::vector<std::string> feature_gates;  // GATE=true or GATE=false, of the stock sidecars
  std::string http_endpoint;               // IP:PORT or :PORT; empty: none
  std::string metrics_path = "/metrics";

  bool leader_election = false;
  std::string leader_election_namespace;  // empty: the pod's, else default
  std::chrono::milliseconds lease_duration{std::chrono::seconds(15)},
      renew_deadline{std::chrono::seconds(10)}, retry_period{std::chrono::seconds(5)};

  bool node_deployment = false;
  bool node_deployment_immediate_binding = false;
  std::string node_name;

  std::string volume_name_prefix = "pvc";
  int volume_name_uuid_length = -1;
  std::string default_fs_type;
  bool extra_create_metadata = false, publish_read_only = false;
  bool strict_topology = false, immediate_topology = true;
  bool enable_capacity = false, capacity_immediate = false;
  std::chrono::milliseconds capacity_poll{std::chrono::minutes(1)};
  int capacity_ownerref_level = -1;
  std::string capacity_namespace;  // empty: the pod's, else default

  std::string snapshot_name_prefix = "snapshot";
  int snapshot_name_uuid_length = -1;
  bool distributed_snapshotting = false;

  std::chrono::milliseconds monitor_interval{std::chrono::minutes(1)};
  std::chrono::milliseconds list_volumes_interval{std::chrono::minutes(5)};
  bool enable_node_watcher = false;
};

inline constexpr char kProvisioner[] = "provisioner", kAttacher[] = "attacher", kResizer[] = "resizer",
                      kModifier[] = "modifier", kSnapshotter[] = "snapshotter",
                      kSnapshotController[] = "snapshot-controller", kHealthMonitor[] = "health-monitor";

// The names of the controllers to run: `*` is all, `-NAME` all but that one. kInvalid: an unknown name.
Result<std::set<std::string>> ChosenControllers(const Config& config);

// The sockets of the drivers that are served: none for the snapshot-controller alone.
std::vector<std::string> AddressesOf(const Config& config, const std::set<std::string>& chosen);

struct HostPort {
  std::string host;  // empty: none
  uint16_t port = 0;
};
// "127.0.0.1:8080", "[::1]:8080", ":8080" (all IPv4 addresses).
Result<HostPort> ParseEndpoint(const std::string& text);

// kInvalid: what does not go together, and what is not there.
Result<> Validate(const Config& config);

// The Lease under which the stock sidecar of this controller elects: both may be candidates of one election. The
// snapshot-controller has no driver.
std::string LeaseName(const std::string& controller, const std::string& driver);

}  // namespace keelson::csi::controller

#include "csi/controller/config.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "lib/client/leader_election.h"

namespace keelson::csi::controller {
namespace {

Error Wrong(std::string message) { return Error(Code::kInvalid, std::move(message)); }

const std::set<std::string> kAll{kAttacher, kHealthMonitor,      kModifier,   kProvisioner,
                                 kResizer,  kSnapshotController, kSnapshotter};

// What each gate does is always there, or never.
const std::map<std::string, bool> kFeatureGates{
    {"AnnotateFsResize", true},
    {"CSIVolumeGroupSnapshot", false},
    {"CrossNamespaceVolumeDataSource", false},
    {"HonorPVReclaimPolicy", true},
    {"RecoverVolumeExpansionFailure", true},
    {"ReleaseLeaderElectionOnExit", true},
    {"Topology", true},
    {"VolumeAttributesClass", true},
    {"VolumeSnapshotTopology", false},
};

Result<> ValidateFeatureGate(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (value != "true" && value != "false") {
    return Wrong("--feature-gates: " + text + " is neither GATE=true nor GATE=false");
  }
  const auto gate = kFeatureGates.find(text.substr(0, equals));
  if (gate == kFeatureGates.end()) return Wrong("--feature-gates: " + text + ": the gate is unknown");
  if (gate->second == (value == "true")) return {};
  return Wrong("--feature-gates: " + text + " is not supported");
}

Result<> ValidateNode(const Config& config) {
  if (config.node_deployment_immediate_binding) {
    return Wrong("--node-deployment-immediate-binding is not supported: a claim has to have a selected node");
  }
  if (!config.node_deployment) return {};
  if (config.node_name.empty()) return Wrong("--node-deployment needs --node-name or the variable NODE_NAME");
  if (config.enable_node_watcher) {
    return Wrong("--enable-node-watcher and --node-deployment exclude each other");
  }
  if (config.leader_election) {
    return Wrong(
        "--leader-election and --node-deployment exclude each other: every node has work of its own");
  }
  return {};
}

}  // namespace

Result<std::set<std::string>> ChosenControllers(const Config& config) {
  std::set<std::string> out;
  for (const std::string& word : config.controllers) {
    const bool off = word[0] == '-';
    const std::string name = off ? word.substr(1) : word;
    if (name == "*" && !off) {
      out = kAll;
    } else if (kAll.count(name) == 0) {
      return Wrong("--controllers: " + name + " is unknown");
    } else if (off) {
      out.erase(name);
    } else {
      out.insert(name);
    }
  }
  if (out.empty()) return Wrong("--controllers: none is left");
  return out;
}

std::vector<std::string> AddressesOf(const Config& config, const std::set<std::string>& chosen) {
  const bool any = chosen.size() > chosen.count(kSnapshotController);
  return any ? config.addresses : std::vector<std::string>();
}

Result<HostPort> ParseEndpoint(const std::string& text) {
  HostPort out;
  if (text.empty()) return out;
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return Wrong("--http-endpoint: " + text + " has no port");
  out.host = text.substr(0, colon);
  if (out.host.empty()) out.host = "0.0.0.0";
  if (out.host.size() > 2 && out.host.front() == '[' && out.host.back() == ']') {
    out.host = out.host.substr(1, out.host.size() - 2);
  }
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, out.port);
  if (error != std::errc() || rest != end) return Wrong("--http-endpoint: " + text + " has no port");
  return out;
}

Result<> Validate(const Config& config) {
  if (config.addresses.empty()) return Wrong("--csi-address is required");
  for (const std::string& address : config.addresses) {
    const size_t colon = address.find(':');
    if (address[0] != '/' && (colon == std::string::npos || address.substr(0, colon) != "unix")) {
      return Wrong("--csi-address: " + address + " is neither an absolute path nor unix:///PATH");
    }
  }
  if (std::set(config.addresses.begin(), config.addresses.end()).size() != config.addresses.size()) {
    return Wrong("--csi-address: one is given twice");
  }
  KEELSON_ASSIGN_OR_RETURN(const std::set<std::string> chosen, ChosenControllers(config));
  if (config.enable_capacity && chosen.count(kProvisioner) == 0) {
    return Wrong("--enable-capacity needs the provisioner among --controllers");
  }
  KEELSON_RETURN_IF_ERROR(ParseEndpoint(config.http_endpoint));
  for (const std::string& gate : config.feature_gates) KEELSON_RETURN_IF_ERROR(ValidateFeatureGate(gate));
  KEELSON_RETURN_IF_ERROR(ValidateNode(config));
  if (config.capacity_ownerref_level != -1) {
    return Wrong("--capacity-ownerref-level: only -1 (no owner) is supported");
  }
  if (config.capacity_poll.count() <= 0) return Wrong("--capacity-poll-interval has to be positive");
  if (config.timeout.count() <= 0) return Wrong("--timeout has to be positive");
  if (config.worker_threads < 1) return Wrong("--worker-threads has to be positive");
  if (config.retry_start.count() <= 0 || config.retry_max < config.retry_start) {
    return Wrong("--retry-interval-start has to be positive, and --retry-interval-max not less");
  }
  if (config.volume_name_prefix.empty()) return Wrong("--volume-name-prefix is empty");
  if (config.volume_name_uuid_length < -1 || config.volume_name_uuid_length == 0 ||
      config.volume_name_uuid_length > 32) {
    return Wrong("--volume-name-uuid-length has to be -1 or 1 to 32");
  }
  if (config.snapshot_name_prefix.empty()) return Wrong("--snapshot-name-prefix is empty");
  if (config.snapshot_name_uuid_length < -1 || config.snapshot_name_uuid_length == 0 ||
      config.snapshot_name_uuid_length > 32) {
    return Wrong("--snapshot-name-uuid-length has to be -1 or 1 to 32");
  }
  if (config.monitor_interval.count() <= 0) return Wrong("--monitor-interval has to be positive");
  if (config.list_volumes_interval.count() <= 0) return Wrong("--list-volumes-interval has to be positive");
  if (config.enable_node_watcher && chosen.count(kHealthMonitor) == 0) {
    return Wrong("--enable-node-watcher needs the health-monitor among --controllers");
  }
  if (config.distributed_snapshotting && chosen.count(kSnapshotController) == 0) {
    return Wrong("--enable-distributed-snapshotting needs the snapshot-controller among --controllers");
  }
  client::LeaderElectionOptions election;
  election.name = election.identity = "x";
  election.lease_duration = config.lease_duration;
  election.renew_deadline = config.renew_deadline;
  election.retry_period = config.retry_period;
  const bool elects =
      config.leader_election || (config.node_deployment && chosen.count(kSnapshotController) > 0);
  return elects ? client::ValidateLeaderElection(election) : Result<>();
}

std::string LeaseName(const std::string& controller, const std::string& driver) {
  if (controller == kSnapshotController) return "snapshot-controller-leader";
  std::string name = driver;
  if (controller == kAttacher) name = "external-attacher-leader-" + driver;
  if (controller == kResizer) name = "external-resizer-" + driver;
  if (controller == kSnapshotter) name = "external-snapshotter-leader-" + driver;
  if (controller == kHealthMonitor) name = "external-health-monitor-leader-" + driver;
  // csi-lib-utils does this to all names.
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '-'; }, '-');
  if (!name.empty() && name.back() == '-') name += 'X';
  return name;
}

}  // namespace keelson::csi::controller

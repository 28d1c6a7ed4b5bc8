#include "csi/controller/config.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "lib/client/leader_election.h"

namespace keelson::csi::controller {
namespace {

Error Wrong(std::string message) { return Error(Code::kInvalid, std::move(message)); }

const std::set<std::string> kAll{kAttacher, kModifier, kProvisioner, kResizer};
// Sidecars of upstream's that have no counterpart here yet.
const std::set<std::string> kMissing{"health-monitor", "snapshotter", "snapshot-controller"};

std::string Replaced(std::string text, const auto& keep) {
  std::replace_if(
      text.begin(), text.end(), [&](char c) { return !keep(c); }, '-');
  return text;
}

Result<> ValidateNode(const Config& config) {
  if (config.node_deployment_immediate_binding) {
    return Wrong("--node-deployment-immediate-binding is not supported: a claim has to have a selected node");
  }
  if (!config.node_deployment) return {};
  if (config.node_name.empty()) return Wrong("--node-deployment needs --node-name or the variable NODE_NAME");
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
    } else if (kMissing.count(name) > 0 && !off) {
      return Wrong("--controllers: " + name + " is not supported; the stock sidecar does it");
    } else if (kAll.count(name) == 0 && kMissing.count(name) == 0) {
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
  client::LeaderElectionOptions election;
  election.name = election.identity = "x";
  election.lease_duration = config.lease_duration;
  election.renew_deadline = config.renew_deadline;
  election.retry_period = config.retry_period;
  return config.leader_election ? client::ValidateLeaderElection(election) : Result<>();
}

std::string LeaseName(const std::string& controller, const std::string& driver) {
  std::string plain = Replaced(driver, [](char c) { return c != '/'; });
  if (controller == kAttacher) return "external-attacher-leader-" + plain;
  if (controller == kProvisioner) return plain;
  std::string strict =
      Replaced(driver, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-'; });
  if (strict.back() == '-') strict += 'X';
  return "external-resizer-" + strict;
}

}  // namespace keelson::csi::controller

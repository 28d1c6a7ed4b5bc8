#include "ctl/config/complete.h"

#include <algorithm>

#include "ctl/config/validate.h"
#include "lib/base/ip.h"
#include "lib/base/text.h"
#include "lib/base/version.h"

namespace keelson::ctl {
namespace {

constexpr char kContainerd[] = "unix:///var/run/containerd/containerd.sock";

Result<> CompleteNode(NodeRegistration& node, const MachineFacts& machine,
                      std::vector<std::string>& warnings) {
  if (node.name.empty()) node.name = machine.host_name;
  node.name = Lower(Trim(node.name));
  if (node.cri_socket.starts_with('/')) {
    warnings.push_back(
        "Usage of CRI endpoints without URL scheme is deprecated and can cause kubelet errors in the "
        "future. Automatically prepending scheme \"unix\" to the \"criSocket\" with value \"" +
        node.cri_socket + "\"");
    node.cri_socket = "unix://" + node.cri_socket;
  }
  if (!node.cri_socket.empty()) return {};
  if (machine.cri_sockets.size() > 1) {
    return Error(
        Code::kInvalid,
        "found multiple CRI endpoints on the host. Please define which one do you wish to use by setting the "
        "'criSocket' field in the kubeadm configuration file: " +
            Join(machine.cri_sockets, ", "));
  }
  node.cri_socket = machine.cri_sockets.empty() ? kContainerd : "unix://" + machine.cri_sockets[0];
  return {};
}

// Flags of the process that serves the API belong to all of its roles.
void DropSharedFlags(std::vector<Argument>& arguments, const std::string& field,
                     std::vector<std::string>& warnings) {
  constexpr std::string_view kShared[] = {"authentication-kubeconfig",
                                          "authorization-kubeconfig",
                                          "bind-address",
                                          "kubeconfig",
                                          "leader-elect",
                                          "master",
                                          "secure-port",
                                          "tls-cert-file",
                                          "tls-private-key-file"};
  std::erase_if(arguments, [&](const Argument& argument) {
    const bool shared = std::find(std::begin(kShared), std::end(kShared), argument.name) != std::end(kShared);
    if (shared) {
      warnings.push_back(
          field + " " + argument.name +
          " has no effect: scheduler and controllers are parts of the process that serves the API");
    }
    return shared;
  });
}

void CompleteVersion(ClusterConfiguration& cluster, std::vector<std::string>& warnings) {
  const std::string& given = cluster.kubernetes_version;
  const bool asks_for_another = !given.empty() && !given.starts_with("stable") &&
                                !given.starts_with("latest") && given != kGitVersion &&
                                "v" + given != kGitVersion;
  if (asks_for_another) {
    warnings.push_back("kubernetesVersion " + given + " has no effect: the installed control plane is " +
                       kGitVersion);
  }
  cluster.kubernetes_version = kGitVersion;
}

void CompleteEach(std::vector<BootstrapToken>& tokens, ConfigProblems& problems) {
  for (BootstrapToken& token : tokens) {
    const std::string field = "bootstrapTokens[" + std::to_string(&token - tokens.data()) + "]";
    if (token.usages.empty()) token.usages = {"signing", "authentication"};
    if (token.groups.empty()) token.groups = {kDefaultTokenGroup};
    if (!token.ttl && token.expires.empty()) token.ttl = std::chrono::hours(24);
    if (!token.token.empty()) CheckToken(token.token, field + ".token", problems);
    if (token.ttl && !token.expires.empty()) {
      problems.push_back(InvalidField(field, "", ".expires and .ttl are mutually exclusive"));
    }
    for (const std::string& usage : token.usages) {
      if (usage == "signing" || usage == "authentication") continue;
      problems.push_back(InvalidField(field + ".usages", usage,
                                      "invalid bootstrap token usage string. Valid usage "
                                      "options: [signing authentication]"));
    }
    for (const std::string& group : token.groups) {
      if (group.starts_with("system:bootstrappers:") && group.size() <= 21 + 255) continue;
      problems.push_back(InvalidField(field + ".groups", group,
                                      "bootstrap group \"" + group +
                                          "\" is invalid (must match "
                                          "\\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\\z)"));
    }
  }
}

Result<> All(const ConfigProblems& problems) {
  return problems.empty() ? Result<>() : Error(Code::kInvalid, Join(problems, "\n"));
}

Result<> CompleteAddress(std::string& address, const MachineFacts& machine) {
  if (address.empty() || address == "0.0.0.0" || address == "::") address = machine.default_address;
  if (!address.empty()) return {};
  return Error(
      Code::kInvalid,
      "this machine has no default route to tell its address by: give --apiserver-advertise-address");
}

void CheckAddress(const std::string& text, ConfigProblems& problems) {
  const auto address = IpAddress::Parse(text);
  if (!address) {
    problems.push_back(InvalidField("localAPIEndpoint.advertiseAddress", text, "IP address is not valid"));
  } else if (address->IsLoopback() || address->IsUnspecified() || address->IsMulticast() ||
             address->IsLinkLocal()) {
    problems.push_back("cannot use \"" + text + "\" as the bind address for the API Server");
  }
}

// The key itself is in no message.
void CheckCertificateKey(const std::string& key, const std::string& field, ConfigProblems& problems) {
  constexpr size_t kDigits = 64;
  const bool hex = key.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (key.empty() || (hex && key.size() == kDigits)) return;
  problems.push_back(InvalidField(field, "",
                                  "the certificate key must be 64 hexadecimal digits: see 'nodectl "
                                  "certs certificate-key'"));
}

void CheckAdvertised(const InitConfiguration& config, ConfigProblems& problems) {
  CheckAddress(config.advertise_address, problems);
  const Result<std::string> endpoint = ApiEndpoint(config);
  if (!endpoint) {
    problems.push_back(InvalidField("controlPlaneEndpoint", config.cluster.control_plane_endpoint,
                                    endpoint.error().message()));
  }
}

}  // namespace

Result<> Complete(InitConfiguration& config, const MachineFacts& machine,
                  std::vector<std::string>& warnings) {
  KEELSON_RETURN_IF_ERROR(CompleteNode(config.node, machine, warnings));
  KEELSON_RETURN_IF_ERROR(CompleteAddress(config.advertise_address, machine));
  ClusterConfiguration& cluster = config.cluster;
  CompleteVersion(cluster, warnings);
  DropSharedFlags(cluster.controller_manager_args, "controllerManager.extraArgs", warnings);
  DropSharedFlags(cluster.scheduler_args, "scheduler.extraArgs", warnings);
  if (config.bootstrap_tokens.empty()) {
    config.bootstrap_tokens.emplace_back().description =
        "The default bootstrap token generated by 'nodectl init'.";
  }
  if (!config.node.taints) config.node.taints = {{kControlPlaneRole, "", "NoSchedule"}};
  ConfigProblems problems;
  CompleteEach(config.bootstrap_tokens, problems);
  CheckNode(config.node, problems);
  CheckAdvertised(config, problems);
  CheckCertificateKey(config.certificate_key, "certificateKey", problems);
  CheckCluster(cluster, problems);
  return All(problems);
}

Result<> CompleteTokens(std::vector<BootstrapToken>& tokens) {
  ConfigProblems problems;
  CompleteEach(tokens, problems);
  return All(problems);
}

Result<> Complete(JoinConfiguration& config, const MachineFacts& machine,
                  std::vector<std::string>& warnings) {
  KEELSON_RETURN_IF_ERROR(CompleteNode(config.node, machine, warnings));
  ConfigProblems problems;
  if (config.control_plane) {
    KEELSON_RETURN_IF_ERROR(CompleteAddress(config.control_plane->advertise_address, machine));
    if (!config.node.taints) config.node.taints = {{kControlPlaneRole, "", "NoSchedule"}};
    CheckAddress(config.control_plane->advertise_address, problems);
    CheckCertificateKey(config.control_plane->certificate_key, "controlPlane.certificateKey", problems);
  }
  CheckNode(config.node, problems);
  const bool by_token = !config.token.empty() || !config.api_server_endpoint.empty();
  if (by_token == !config.discovery_file.empty()) {
    problems.push_back(InvalidField(
        "discovery", "",
        by_token ? "bootstrapToken and file cannot both be set" : "bootstrapToken or file must be set"));
  }
  if (by_token) {
    CheckToken(config.token, "discovery.bootstrapToken.token", problems);
    if (config.api_server_endpoint.empty()) {
      problems.push_back(InvalidField("discovery.bootstrapToken", "", "API server endpoint is required"));
    }
    if (config.ca_hashes.empty() && !config.unsafe_skip_ca_verification) {
      problems.push_back(InvalidField(
          "discovery.bootstrapToken.caCertHashes", "",
          "using token-based discovery without caCertHashes can be unsafe. Set unsafeSkipCAVerification as "
          "true in "
          "your kubeadm config file or pass --discovery-token-unsafe-skip-ca-verification flag to continue"));
    }
  }
  if (config.tls_bootstrap_token.empty()) config.tls_bootstrap_token = config.token;
  if (!config.tls_bootstrap_token.empty() && config.tls_bootstrap_token != config.token) {
    CheckToken(config.tls_bootstrap_token, "discovery.tlsBootstrapToken", problems);
  }
  if (!config.ca_file.starts_with('/')) {
    problems.push_back(InvalidField("caCertPath", config.ca_file, "path is not absolute"));
  }
  return All(problems);
}

}  // namespace keelson::ctl

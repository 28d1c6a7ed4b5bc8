#include "ctl/upgrade/look.h"

#include <boost/json.hpp>
#include <charconv>

#include "ctl/config/complete.h"
#include "ctl/config/read.h"
#include "ctl/host/paths.h"
#include "ctl/host/versions.h"
#include "lib/base/text.h"
#include "lib/client/request.h"
#include "lib/component/document.h"
#include "lib/crypto/certificates.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

constexpr std::chrono::seconds kOneTry{10};
constexpr std::string_view kNodeUser = "system:node:";

bool IsReady(const corev1::Node& node) {
  for (const corev1::NodeCondition& condition : node.status().conditions()) {
    if (condition.type() == "Ready") return condition.status() == "True";
  }
  return false;
}

// The value of a flag in an environment file that nodectl has written.
Result<std::string> FlagOf(const std::string& text, const std::string& flag) {
  const size_t at = text.find(flag + "=");
  if (at == text.npos) {
    return Error(Code::kInvalid, std::string(paths::kControlPlaneEnv) + " has no " + flag +
                                     ": 'nodectl init phase control-plane' writes it");
  }
  const size_t begin = at + flag.size() + 1;
  return text.substr(begin, text.find_first_of(" \"\n", begin) - begin);
}

Result<> ReadControlPlane(const Host& host, MachineSetup& out) {
  KEELSON_ASSIGN_OR_RETURN(const std::string text, host.Read(paths::kControlPlaneEnv));
  KEELSON_ASSIGN_OR_RETURN(out.advertise_address, FlagOf(text, "--advertise-address"));
  KEELSON_ASSIGN_OR_RETURN(const std::string port, FlagOf(text, "--secure-port"));
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.bind_port);
  if (error != std::errc() || end != port.data() + port.size()) {
    return Error(Code::kInvalid, std::string(paths::kControlPlaneEnv) + ": no port: " + port);
  }
  return {};
}

}  // namespace

Result<std::string> ServerVersion(const client::RestClient& api) {
  client::ApiRequest request;
  request.target = "/version";
  request.accept = "application/json";
  const auto answer = client::Answered(api.transport(), request, kOneTry, {});
  if (!answer) return answer.error().Wrap("cannot get the version of the API server");
  boost::system::error_code failed;
  const json::value document = json::parse(answer->body, failed);
  const json::value* version =
      !failed && document.is_object() ? document.get_object().if_contains("gitVersion") : nullptr;
  if (version && version->is_string()) return std::string(version->get_string());
  return Error(Code::kInvalid, "the API server does not tell its version at /version");
}

Result<ClusterVersions> LookAtVersions(const client::RestClient& api) {
  ClusterVersions out;
  KEELSON_ASSIGN_OR_RETURN(out.server, ServerVersion(api));
  KEELSON_ASSIGN_OR_RETURN(const ClusterMaps maps, ReadClusterMaps(api));
  out.configured = maps.cluster.kubernetes_version;
  const auto nodes = api.List<corev1::Node>();
  if (!nodes) return nodes.error().Wrap("cannot list Nodes");
  for (const corev1::Node& node : *nodes) {
    out.nodes.push_back({node.metadata().name(), node.status().node_info().kubelet_version(),
                         node.metadata().labels().contains(kControlPlaneRole), IsReady(node)});
  }
  return out;
}

InstalledPrograms LookAtPrograms(const Host& host) {
  InstalledPrograms out;
  for (const char* program : {"kube-controlplane", "kubelet", "kube-proxy", "kube-cni", "keelson-csi-local",
                              "keelson-csi-controller"}) {
    if (!host.HasProgram(program)) continue;
    if (auto version = InstalledVersion(host, program)) out.versions[program] = *version;
  }
  if (auto version = host.Ask({"dpkg-query", "-W", "-f", "${Version}", "keelson-nodectl"})) {
    out.package_version = Trim(*version);
  }
  return out;
}

Result<Kubeconfig> ReadAccess(const Host& host, const std::string& path) {
  KEELSON_ASSIGN_OR_RETURN(const std::string text, host.Read(path));
  Result<Kubeconfig> out = ParseKubeconfig(text);
  if (!out) return out.error().Wrap(path);
  if (!out->certificate_file.empty()) {
    KEELSON_ASSIGN_OR_RETURN(out->certificate_pem, host.Read(out->certificate_file));
    out->key_pem = out->certificate_pem;
  }
  return out;
}

Result<InitConfiguration> RunningConfiguration(const ClusterMaps& maps, const MachineSetup& machine) {
  if (!machine.control_plane) {
    return Error(Code::kInvalid, std::string(paths::kControlPlaneEnv) +
                                     " does not exist: this machine has no control plane; "
                                     "'nodectl upgrade node' upgrades it");
  }
  InitConfiguration config;
  config.cluster = maps.cluster;
  config.cluster.kubernetes_version = "";  // nodectl's own
  config.node.name = machine.node_name;
  config.node.cri_socket = machine.cri_socket;
  config.node.taints.emplace();
  config.advertise_address = machine.advertise_address;
  config.bind_port = machine.bind_port;
  // An administrator's document is kept; one that was generated is generated anew, with what this release has in it.
  if (!maps.kubelet_generated) config.kubelet = maps.kubelet;
  config.proxy = maps.proxy;
  std::vector<std::string> warnings;
  KEELSON_RETURN_IF_ERROR(Complete(config, {machine.node_name, machine.advertise_address, {}}, warnings));
  config.bootstrap_tokens.clear();
  return config;
}

Result<MachineSetup> LookAtSetup(const Host& host) {
  MachineSetup out;
  if (!host.Exists(paths::kKubeletConf)) {
    return Error(Code::kNotFound, std::string(paths::kKubeletConf) +
                                      " does not exist: this machine is no node of a cluster; "
                                      "'nodectl init' or 'nodectl join' makes it one");
  }
  KEELSON_ASSIGN_OR_RETURN(const Kubeconfig access, ReadAccess(host, paths::kKubeletConf));
  KEELSON_ASSIGN_OR_RETURN(const crypto::CertificateInfo certificate,
                           crypto::InspectCertificate(access.certificate_pem));
  const std::string& user = certificate.subject.common_name;
  if (!user.starts_with(kNodeUser)) {
    return Error(Code::kInvalid, std::string(paths::kKubeletConf) + " is not of a node, but of " + user);
  }
  out.node_name = user.substr(kNodeUser.size());
  KEELSON_ASSIGN_OR_RETURN(const std::string text, host.Read(paths::kKubeletInstanceConfig));
  component::DocumentProblems problems;
  KEELSON_ASSIGN_OR_RETURN(out.instance, component::ParseDocument(text, problems));
  const json::value* socket = out.instance.if_contains("containerRuntimeEndpoint");
  if (socket && socket->is_string()) out.cri_socket = socket->get_string();
  out.control_plane = host.Exists(paths::kControlPlaneEnv);
  if (out.control_plane) KEELSON_RETURN_IF_ERROR(ReadControlPlane(host, out));
  return out;
}

}  // namespace keelson::ctl

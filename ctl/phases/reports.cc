#include "ctl/phases/reports.h"

#include <boost/json.hpp>

#include "ctl/config/complete.h"
#include "ctl/host/paths.h"
#include "ctl/phases/join_command.h"
#include "ctl/token/discovery.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

// Of those that exist.
json::object FilesOn(const Host& host, const std::vector<std::pair<const char*, std::string>>& files) {
  json::object out;
  for (const auto& [name, path] : files) {
    if (host.Exists(path)) out[name] = path;
  }
  return out;
}

const char* ModeOf(bool static_pod) { return static_pod ? "static-pods" : "systemd"; }

void AddJoining(InitRun& run, const std::string& endpoint, json::object& out) {
  const auto ca = run.Ca();
  const auto pin = ca ? PinOf(ca->certificate_pem) : Result<std::string>(ca.error());
  if (!pin) return;
  out["caCertHashes"] = json::array{*pin};
  const InitConfiguration& config = run.config();
  if (run.options().skip_token_print || config.bootstrap_tokens.empty()) return;
  const std::string& token = config.bootstrap_tokens[0].token;
  out["token"] = token;
  out["joinCommand"] = JoinCommand(endpoint, token, *pin, true);
  if (!run.options().upload_certs || run.options().skip_certificate_key_print) return;
  out["certificateKey"] = config.certificate_key;
  out["controlPlaneJoinCommand"] = JoinCommand(endpoint, token, *pin, true, config.certificate_key);
}

}  // namespace

json::object InitReport(InitRun& run) {
  const InitConfiguration& config = run.config();
  json::object out;
  out["nodeName"] = config.node.name;
  out["kubernetesVersion"] = config.cluster.kubernetes_version;
  out["controlPlaneMode"] = ModeOf(run.static_pod());
  out["dryRun"] = config.dry_run;
  const auto endpoint = ApiEndpoint(config);
  if (endpoint) {
    out["server"] = "https://" + *endpoint;
    AddJoining(run, *endpoint, out);
  }
  out["files"] = FilesOn(run.host(), {{"adminKubeconfig", paths::kAdminConf},
                                      {"kubeletKubeconfig", paths::kKubeletConf},
                                      {"kubeletConfig", paths::kKubeletConfig},
                                      {"certificatesDir", config.cluster.certificates_dir},
                                      {"controlPlaneFlags", paths::kControlPlaneEnv},
                                      {"controlPlaneManifest", paths::kControlPlaneManifest}});
  return out;
}

json::object JoinReport(const JoinRun& run) {
  const JoinConfiguration& config = run.config();
  json::object out;
  out["nodeName"] = config.node.name;
  out["dryRun"] = config.dry_run;
  out["controlPlane"] = config.control_plane.has_value();
  if (config.control_plane) {
    out["controlPlaneMode"] = ModeOf(run.host().Exists(paths::kControlPlaneManifest));
  }
  if (const JoinedCluster* cluster = run.known_cluster()) {
    out["server"] = cluster->access.server;
    out["clusterName"] = cluster->cluster.cluster_name;
    out["kubernetesVersion"] = cluster->cluster.kubernetes_version;
    json::array& units = out["units"].emplace_array();
    for (const std::string& unit : cluster->units) units.emplace_back(unit);
  }
  out["files"] = FilesOn(run.host(), {{"adminKubeconfig", paths::kAdminConf},
                                      {"kubeletKubeconfig", paths::kKubeletConf},
                                      {"kubeletConfig", paths::kKubeletConfig},
                                      {"caCertificate", config.ca_file},
                                      {"controlPlaneFlags", paths::kControlPlaneEnv},
                                      {"controlPlaneManifest", paths::kControlPlaneManifest}});
  return out;
}

}  // namespace keelson::ctl

#include "kubelet/config/config.h"

#include <yaml-cpp/yaml.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "lib/base/file.h"

namespace keelson::kubelet {

using std::chrono::milliseconds;

namespace {

class Reader {
 public:
  explicit Reader(const YAML::Node& root) : root_(root) {}

  template <typename T>
  void Get(const char* name, T& out) {
    Get(root_, name, name, out);
  }
  template <typename T>
  void Get(const YAML::Node& from, const char* name, const std::string& path, T& out) {
    if (!failed_ || !from || !from.IsMap() || !from[name] || from[name].IsNull()) return;
    try {
      out = from[name].as<T>();
    } catch (const YAML::Exception& e) {
      failed_ = Error(Code::kBadRequest, path + ": " + e.msg);
    }
  }
  void Get(const char* name, milliseconds& out) {
    std::string text;
    Get(name, text);
    if (!failed_ || text.empty()) return;
    auto duration = ParseDuration(text);
    if (!duration) failed_ = duration.error().Wrap(name);
    // An explicit zero means "the default", as upstream has it.
    else if (duration->count() > 0)
      out = *duration;
  }
  void Get(const char* name, std::map<std::string, std::string>& out) {
    const YAML::Node node = root_[name];
    if (!failed_ || !node || !node.IsMap()) return;
    out.clear();
    for (const auto& item : node) out[item.first.as<std::string>()] = item.second.as<std::string>("");
  }
  Result<> Outcome() const { return failed_; }

 private:
  const YAML::Node& root_;
  Result<> failed_;
};

Result<> Fill(const YAML::Node& root, KubeletConfig& out) {
  Reader reader(root);
  reader.Get("address", out.address);
  reader.Get("port", out.port);
  reader.Get("healthzBindAddress", out.healthz_address);
  reader.Get("healthzPort", out.healthz_port);
  reader.Get("tlsCertFile", out.tls_cert_file);
  reader.Get("tlsPrivateKeyFile", out.tls_private_key_file);
  const YAML::Node authentication = root["authentication"];
  if (authentication && authentication.IsMap()) {
    reader.Get(authentication["x509"], "clientCAFile", "authentication.x509.clientCAFile",
               out.client_ca_file);
    reader.Get(authentication["anonymous"], "enabled", "authentication.anonymous.enabled", out.anonymous);
    reader.Get(authentication["webhook"], "enabled", "authentication.webhook.enabled",
               out.webhook_authentication);
  }
  std::string mode = "Webhook";
  reader.Get(root["authorization"], "mode", "authorization.mode", mode);
  out.webhook_authorization = mode != "AlwaysAllow";
  reader.Get("clusterDNS", out.cluster_dns);
  reader.Get("clusterDomain", out.cluster_domain);
  reader.Get("cgroupRoot", out.cgroup_root);
  reader.Get("cgroupDriver", out.cgroup_driver);
  reader.Get("cgroupsPerQOS", out.cgroups_per_qos);
  reader.Get("podLogsDir", out.pod_logs_dir);
  reader.Get("resolvConf", out.resolv_conf);
  reader.Get("podCIDR", out.pod_cidr);
  reader.Get("staticPodPath", out.static_pod_path);
  reader.Get("containerRuntimeEndpoint", out.container_runtime_endpoint);
  reader.Get("imageServiceEndpoint", out.image_service_endpoint);
  reader.Get("maxPods", out.max_pods);
  reader.Get("podPidsLimit", out.pod_pids_limit);
  reader.Get("serializeImagePulls", out.serialize_image_pulls);
  reader.Get("maxParallelImagePulls", out.max_parallel_image_pulls);
  reader.Get("cpuCFSQuota", out.cpu_cfs_quota);
  reader.Get("cpuCFSQuotaPeriod", out.cpu_cfs_quota_period);
  reader.Get("seccompDefault", out.seccomp_default);
  reader.Get("registerNode", out.register_node);
  reader.Get("syncFrequency", out.sync_frequency);
  reader.Get("nodeStatusUpdateFrequency", out.node_status_update_frequency);
  reader.Get("nodeStatusReportFrequency", out.node_status_report_frequency);
  reader.Get("nodeLeaseDurationSeconds", out.node_lease_duration_seconds);
  reader.Get("runtimeRequestTimeout", out.runtime_request_timeout);
  reader.Get("evictionHard", out.eviction_hard);
  reader.Get("systemReserved", out.system_reserved);
  reader.Get("kubeReserved", out.kube_reserved);
  const YAML::Node crash = root["crashLoopBackOff"];
  std::string period;
  if (crash && crash.IsMap()) reader.Get(crash, "maxContainerRestartPeriod", "crashLoopBackOff", period);
  RETURN_IF_ERROR(reader.Outcome());
  if (!period.empty()) {
    ASSIGN_OR_RETURN(out.max_container_restart_period, ParseDuration(period));
  }
  return {};
}

}  // namespace

Result<milliseconds> ParseDuration(const std::string& text) {
  static const std::pair<const char*, double> kUnits[] = {{"ms", 1},    {"us", 1e-3}, {"ns", 1e-6},
                                                          {"h", 3.6e6}, {"m", 6e4},   {"s", 1e3}};
  double total = 0;
  size_t at = 0;
  if (text == "0") return milliseconds(0);
  while (at < text.size()) {
    size_t used = 0;
    double number = 0;
    try {
      number = std::stod(text.substr(at), &used);
    } catch (const std::exception&) {
      used = 0;
    }
    at += used;
    const std::pair<const char*, double>* unit = nullptr;
    for (const auto& candidate : kUnits)
      if (!unit && text.compare(at, std::string_view(candidate.first).size(), candidate.first) == 0)
        unit = &candidate;
    if (used == 0 || !unit) return Error(Code::kBadRequest, "invalid duration \"" + text + "\"");
    total += number * unit->second;
    at += std::string_view(unit->first).size();
  }
  if (text.empty()) return Error(Code::kBadRequest, "invalid duration \"\"");
  return milliseconds(static_cast<int64_t>(total));
}

Result<KubeletConfig> ParseKubeletConfig(const std::string& yaml) {
  KubeletConfig out;
  YAML::Node root;
  try {
    root = YAML::Load(yaml);
  } catch (const YAML::Exception& e) {
    return Error(Code::kBadRequest, std::string("KubeletConfiguration: ") + e.what());
  }
  if (!root.IsMap()) return Error(Code::kBadRequest, "KubeletConfiguration: not a mapping");
  std::string kind = root["kind"] ? root["kind"].as<std::string>("") : "";
  std::string version = root["apiVersion"] ? root["apiVersion"].as<std::string>("") : "";
  if (kind != "KubeletConfiguration" || version != "kubelet.config.k8s.io/v1beta1")
    return Error(Code::kBadRequest,
                 "want kubelet.config.k8s.io/v1beta1 KubeletConfiguration, got " + version + " " + kind);
  if (auto filled = Fill(root, out); !filled) return filled.error().Wrap("KubeletConfiguration");
  return out;
}

namespace {

// Static pods are not run yet. An empty directory, as workers of common installers have it, asks for none.
Result<> RefuseStaticPods(const std::string& directory) {
  if (directory.empty()) return {};
  auto names = ListDir(directory);
  if (!names || names->empty()) return {};
  return Error(Code::kUnimplemented,
               "static pods are not supported: " + directory + " holds " + names->front());
}

}  // namespace

Result<Settings> LoadSettings(int argc, char** argv, std::optional<int>& exit_code) {
  Settings out;
  KubeletFlags& flags = out.flags;
  std::string version;
  CLI::App app("Node agent: runs the Pods that the API server has bound to this node.", "kubelet");
  app.add_option("--kubeconfig", flags.kubeconfig,
                 "Kubeconfig file: where the API server is, and who we are");
  app.add_option("--config", flags.config, "KubeletConfiguration file");
  app.add_option("--hostname-override", flags.hostname_override,
                 "Name of the node instead of the host's name");
  app.add_option("--node-ip", flags.node_ip,
                 "Address of the node, or one of each family separated by a comma");
  app.add_option("--container-runtime-endpoint", flags.container_runtime_endpoint,
                 "unix:///path of the CRI socket");
  app.add_option("--root-dir", flags.root_dir, "Directory for volumes and other files of pods")
      ->capture_default_str();
  app.add_option("--cert-dir", flags.cert_dir,
                 "Directory with kubelet.crt and kubelet.key, if no files are configured");
  app.add_option("--pod-manifest-path", flags.pod_manifest_path, "Directory of static pods");
  app.add_option("--node-labels", flags.node_labels, "Labels to register the node with: a=b,c=d");
  app.add_option("--register-with-taints", flags.register_with_taints,
                 "Taints to register with: key=value:effect,...");
  app.add_option("--v", flags.verbosity, "Log level: 0 to 2 info, above debug");
  app.set_version_flag("--version", std::string("Kubernetes v1.36.2"));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    exit_code = app.exit(e);
    return Error(Code::kBadRequest, e.what());
  }
  if (!flags.config.empty()) {
    ASSIGN_OR_RETURN(std::string text, ReadFile(flags.config));
    ASSIGN_OR_RETURN(out.config, ParseKubeletConfig(text));
  }
  if (flags.container_runtime_endpoint.empty())
    flags.container_runtime_endpoint = out.config.container_runtime_endpoint;
  if (flags.container_runtime_endpoint.empty())
    flags.container_runtime_endpoint = "unix:///run/containerd/containerd.sock";
  if (flags.pod_manifest_path.empty()) flags.pod_manifest_path = out.config.static_pod_path;
  RETURN_IF_ERROR(RefuseStaticPods(flags.pod_manifest_path));
  if (flags.cert_dir.empty()) flags.cert_dir = flags.root_dir + "/pki";
  return out;
}

}  // namespace keelson::kubelet

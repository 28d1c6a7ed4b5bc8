#include "ctl/config/write.h"

#include "ctl/output.h"
#include "lib/api/duration.h"
#include "lib/base/version.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

std::string DurationText(std::chrono::seconds time) {
  return api::FormatGoDuration(std::chrono::nanoseconds(time).count());
}

json::array Texts(const std::vector<std::string>& values) {
  json::array out;
  for (const std::string& value : values) out.emplace_back(value);
  return out;
}

json::object Component(const std::vector<Argument>& arguments) {
  json::object out;
  if (arguments.empty()) return out;
  json::array list;
  for (const Argument& argument : arguments) {
    json::object item;
    item["name"] = argument.name;
    item["value"] = argument.value;
    list.push_back(std::move(item));
  }
  out["extraArgs"] = std::move(list);
  return out;
}

json::object Switch(bool disabled) {
  json::object out;
  if (disabled) out["disabled"] = true;
  return out;
}

json::object Etcd(const ClusterConfiguration& cluster) {
  json::object out, inner;
  if (!cluster.external_etcd) {
    // kubeadm wants one of the two. The directory is that of the control plane's own etcd.
    inner["dataDir"] = "/var/lib/keelson/controlplane/etcd";
    out["local"] = std::move(inner);
    return out;
  }
  inner["caFile"] = cluster.external_etcd->ca_file;
  inner["certFile"] = cluster.external_etcd->certificate_file;
  inner["endpoints"] = Texts(cluster.external_etcd->endpoints);
  inner["keyFile"] = cluster.external_etcd->key_file;
  out["external"] = std::move(inner);
  return out;
}

json::object Node() {
  json::object out;
  out["criSocket"] = "unix:///var/run/containerd/containerd.sock";
  out["name"] = "node";
  out["taints"] = nullptr;
  return out;
}

json::object TimeoutsDocument() {
  const Timeouts defaults;
  json::object out;
  out["controlPlaneComponentHealthCheck"] = DurationText(defaults.control_plane);
  out["discovery"] = DurationText(defaults.discovery);
  out["etcdAPICall"] = DurationText(defaults.etcd_api_call);
  out["kubeletHealthCheck"] = DurationText(defaults.kubelet);
  out["kubernetesAPICall"] = DurationText(defaults.api_call);
  out["tlsBootstrap"] = DurationText(defaults.tls_bootstrap);
  return out;
}

std::string TextOf(const std::vector<json::object>& documents, OutputFormat format) {
  std::string out;
  for (const json::object& document : documents) {
    if (format == OutputFormat::kJson) {
      out += ToJson(document);
    } else {
      out += (out.empty() ? "" : "---\n") + ToYaml(document);
    }
  }
  return out;
}

json::object Titled(const char* kind) {
  json::object out;
  out["apiVersion"] = kKubeadmVersion;
  out["kind"] = kind;
  return out;
}

}  // namespace

json::object ClusterDocument(const ClusterConfiguration& cluster) {
  json::object api_server = Component(cluster.api_server_args);
  if (!cluster.certificate_names.empty()) api_server["certSANs"] = Texts(cluster.certificate_names);
  json::object networking;
  networking["dnsDomain"] = cluster.dns_domain;
  networking["podSubnet"] = cluster.pod_subnet;
  networking["serviceSubnet"] = cluster.service_subnet;
  json::object out;
  out["apiServer"] = std::move(api_server);
  out["apiVersion"] = kKubeadmVersion;
  out["caCertificateValidityPeriod"] = DurationText(cluster.ca_validity);
  out["certificateValidityPeriod"] = DurationText(cluster.certificate_validity);
  out["certificatesDir"] = cluster.certificates_dir;
  out["clusterName"] = cluster.cluster_name;
  if (!cluster.control_plane_endpoint.empty()) out["controlPlaneEndpoint"] = cluster.control_plane_endpoint;
  out["controllerManager"] = Component(cluster.controller_manager_args);
  out["dns"] = Switch(cluster.dns_disabled);
  out["encryptionAlgorithm"] = cluster.encryption_algorithm;
  out["etcd"] = Etcd(cluster);
  out["imageRepository"] = "registry.k8s.io";
  out["kind"] = "ClusterConfiguration";
  out["kubernetesVersion"] = cluster.kubernetes_version.empty() ? kGitVersion : cluster.kubernetes_version;
  out["networking"] = std::move(networking);
  out["proxy"] = Switch(cluster.proxy_disabled);
  out["scheduler"] = Component(cluster.scheduler_args);
  return out;
}

std::string InitDefaults(OutputFormat format) {
  json::object token;
  token["groups"] = Texts({kDefaultTokenGroup});
  token["token"] = "abcdef.0123456789abcdef";
  token["ttl"] = "24h0m0s";
  token["usages"] = Texts({"signing", "authentication"});
  json::object endpoint;
  endpoint["advertiseAddress"] = "1.2.3.4";
  endpoint["bindPort"] = kDefaultApiPort;
  json::object out = Titled("InitConfiguration");
  json::array tokens;
  tokens.push_back(std::move(token));
  out["bootstrapTokens"] = std::move(tokens);
  out["localAPIEndpoint"] = std::move(endpoint);
  out["nodeRegistration"] = Node();
  out["timeouts"] = TimeoutsDocument();
  return TextOf({out, ClusterDocument({})}, format);
}

std::string JoinDefaults(OutputFormat format) {
  json::object token;
  token["apiServerEndpoint"] = "kube-apiserver:6443";
  token["token"] = "abcdef.0123456789abcdef";
  token["unsafeSkipCAVerification"] = true;
  json::object discovery;
  discovery["bootstrapToken"] = std::move(token);
  discovery["tlsBootstrapToken"] = "abcdef.0123456789abcdef";
  json::object out = Titled("JoinConfiguration");
  out["caCertPath"] = "/etc/kubernetes/pki/ca.crt";
  out["discovery"] = std::move(discovery);
  out["nodeRegistration"] = Node();
  out["timeouts"] = TimeoutsDocument();
  return TextOf({out}, format);
}

std::string ResetDefaults(OutputFormat format) {
  json::object out = Titled("ResetConfiguration");
  out["certificatesDir"] = "/etc/kubernetes/pki";
  out["criSocket"] = "unix:///var/run/containerd/containerd.sock";
  return TextOf({out}, format);
}

std::string UpgradeDefaults(OutputFormat format) {
  json::object verb;
  verb["certificateRenewal"] = true;
  json::object out = Titled("UpgradeConfiguration");
  out["apply"] = verb;
  out["node"] = std::move(verb);
  out["plan"].emplace_object();
  out["timeouts"] = TimeoutsDocument();
  return TextOf({out}, format);
}

}  // namespace keelson::ctl

#include <boost/json.hpp>

#include "ctl/cluster/node_files.h"
#include "ctl/config/complete.h"
#include "ctl/host/paths.h"
#include "lib/base/text.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

constexpr char kResolvedFile[] = "/run/systemd/resolve/resolv.conf";

// Sets what is not set, along a path of sections.
void Default(json::object& document, std::string_view path, json::value value) {
  const size_t dot = path.find('.');
  if (dot == path.npos) {
    json::value& place = document[path];
    if (place.is_null()) place = std::move(value);
    return;
  }
  json::value& section = document[path.substr(0, dot)];
  if (section.is_null()) section.emplace_object();
  if (section.is_object()) Default(section.get_object(), path.substr(dot + 1), std::move(value));
}

}  // namespace

Result<json::object> KubeletDocument(const InitConfiguration& config, bool resolved) {
  json::object out = config.kubelet;
  KEELSON_ASSIGN_OR_RETURN(const std::string dns, DnsAddresses(config.cluster));
  json::array addresses;
  for (const std::string& address : SplitList(dns)) addresses.emplace_back(address);
  Default(out, "apiVersion", "kubelet.config.k8s.io/v1beta1");
  Default(out, "authentication.anonymous.enabled", false);
  Default(out, "authentication.webhook.enabled", true);
  // The same on every node, whatever directory the control plane has its certificates in.
  Default(out, "authentication.x509.clientCAFile", json::value(std::string(paths::kPki) + "/ca.crt"));
  Default(out, "authorization.mode", "Webhook");
  Default(out, "cgroupDriver", "systemd");
  if (!config.cluster.dns_disabled) Default(out, "clusterDNS", std::move(addresses));
  Default(out, "clusterDomain", json::value(config.cluster.dns_domain));
  Default(out, "healthzBindAddress", "127.0.0.1");
  Default(out, "healthzPort", 10248);
  Default(out, "kind", "KubeletConfiguration");
  if (resolved) Default(out, "resolvConf", kResolvedFile);
  Default(out, "rotateCertificates", true);
  Default(out, "staticPodPath", paths::kManifests);
  return out;
}

json::object FitToMachine(json::object cluster, bool resolved) {
  if (resolved) {
    Default(cluster, "resolvConf", kResolvedFile);
  } else if (const json::value* file = cluster.if_contains("resolvConf");
             file && file->is_string() && file->get_string() == kResolvedFile) {
    cluster.erase("resolvConf");
  }
  return cluster;
}

json::object InstanceDocument(const NodeRegistration& node) {
  json::object out;
  out["apiVersion"] = "kubelet.config.k8s.io/v1beta1";
  out["containerRuntimeEndpoint"] = node.cri_socket;
  out["kind"] = "KubeletConfiguration";
  return out;
}

json::object WithInstance(json::object cluster, const json::object& instance) {
  for (const auto& [key, value] : instance) cluster[key] = value;
  return cluster;
}

json::object ProxyDocument(const ClusterConfiguration& cluster, const json::object& given) {
  json::object out = given;
  Default(out, "apiVersion", "kubeproxy.config.k8s.io/v1alpha1");
  Default(out, "clientConnection.kubeconfig", paths::kProxyConf);
  Default(out, "clusterCIDR", json::value(cluster.pod_subnet));
  Default(out, "kind", "KubeProxyConfiguration");
  return out;
}

}  // namespace keelson::ctl

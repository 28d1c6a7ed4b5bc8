#include <algorithm>

#include "ctl/cluster/node_files.h"
#include "ctl/config/complete.h"
#include "ctl/host/paths.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

constexpr char kHead[] = "# Written by nodectl; flags of the administrator are in /etc/default.\n";
constexpr std::string_view kInitialCluster = "--etcd-initial-cluster=";

using Flags = std::vector<std::string>;

std::string Variable(const char* name, const Flags& flags) {
  return std::string(name) + "=\"" + Join(flags, " ") + "\"\n";
}

Flags PkiFlags(const std::string& pki, bool can_sign) {
  Flags out = {"--tls-cert-file=" + pki + "/apiserver.crt",
               "--tls-private-key-file=" + pki + "/apiserver.key",
               "--client-ca-file=" + pki + "/ca.crt",
               "--root-ca-file=" + pki + "/ca.crt",
               "--service-account-key-file=" + pki + "/sa.pub",
               "--service-account-signing-key-file=" + pki + "/sa.key",
               "--service-account-private-key-file=" + pki + "/sa.key",
               "--kubelet-client-certificate=" + pki + "/apiserver-kubelet-client.crt",
               "--kubelet-client-key=" + pki + "/apiserver-kubelet-client.key",
               "--proxy-client-cert-file=" + pki + "/front-proxy-client.crt",
               "--proxy-client-key-file=" + pki + "/front-proxy-client.key",
               "--peer-ca-file=" + pki + "/ca.crt",
               "--requestheader-client-ca-file=" + pki + "/front-proxy-ca.crt",
               "--requestheader-allowed-names=front-proxy-client",
               "--requestheader-extra-headers-prefix=X-Remote-Extra-",
               "--requestheader-group-headers=X-Remote-Group",
               "--requestheader-username-headers=X-Remote-User"};
  if (can_sign) {
    out.push_back("--cluster-signing-cert-file=" + pki + "/ca.crt");
    out.push_back("--cluster-signing-key-file=" + pki + "/ca.key");
  }
  return out;
}

// What makes the etcd of kube-controlplane a member that others can join.
void AddOwnEtcd(Flags& out, const InitConfiguration& config, const std::string& etcd_cluster) {
  const std::string& pki = config.cluster.certificates_dir;
  out.push_back("--etcd-address=" + config.advertise_address);
  out.push_back("--etcd-name=" + config.node.name);
  out.push_back("--etcd-pki-dir=" + pki + "/etcd");
  out.push_back("--etcd-cafile=" + pki + "/etcd/ca.crt");
  out.push_back("--etcd-certfile=" + pki + "/apiserver-etcd-client.crt");
  out.push_back("--etcd-keyfile=" + pki + "/apiserver-etcd-client.key");
  if (!etcd_cluster.empty()) out.push_back(std::string(kInitialCluster) + etcd_cluster);
}

void AddArguments(Flags& out, const std::vector<Argument>& arguments) {
  for (const Argument& argument : arguments) out.push_back("--" + argument.name + "=" + argument.value);
}

}  // namespace

Result<std::string> ControlPlaneEnvironment(const InitConfiguration& config, bool can_sign,
                                            const std::string& etcd_cluster) {
  const ClusterConfiguration& cluster = config.cluster;
  Flags flags = {"--advertise-address=" + config.advertise_address,
                 "--secure-port=" + std::to_string(config.bind_port),
                 "--allow-privileged=true",
                 "--authorization-mode=Node,RBAC",
                 "--enable-admission-plugins=NodeRestriction",
                 "--enable-bootstrap-token-auth=true",
                 "--controllers=*,bootstrapsigner,tokencleaner",
                 "--service-account-issuer=https://kubernetes.default.svc." + cluster.dns_domain,
                 "--service-cluster-ip-range=" + cluster.service_subnet,
                 "--allocate-node-cidrs=true",
                 "--cluster-cidr=" + cluster.pod_subnet};
  if (const auto& etcd = cluster.external_etcd) {
    flags.push_back("--etcd-servers=" + Join(etcd->endpoints, ","));
    if (!etcd->ca_file.empty()) flags.push_back("--etcd-cafile=" + etcd->ca_file);
    if (!etcd->certificate_file.empty()) flags.push_back("--etcd-certfile=" + etcd->certificate_file);
    if (!etcd->key_file.empty()) flags.push_back("--etcd-keyfile=" + etcd->key_file);
  }
  if (cluster.stacks_etcd()) AddOwnEtcd(flags, config, etcd_cluster);
  AddArguments(flags, cluster.api_server_args);
  AddArguments(flags, cluster.controller_manager_args);
  AddArguments(flags, cluster.scheduler_args);
  return kHead + Variable("KUBE_CONTROLPLANE_PKI_ARGS", PkiFlags(cluster.certificates_dir, can_sign)) +
         Variable("KUBE_CONTROLPLANE_CLUSTER_ARGS", flags);
}

std::string EtcdClusterIn(const std::string& environment) {
  const size_t flag = environment.find(kInitialCluster);
  if (flag == std::string::npos) return "";
  const size_t begin = flag + kInitialCluster.size();
  return environment.substr(begin, environment.find_first_of(" \"'\n", begin) - begin);
}

Result<std::string> ProxyEnvironment(const ClusterConfiguration& cluster, const NodeRegistration& node) {
  Flags flags = {std::string("--config=") + paths::kProxyConfig, "--hostname-override=" + node.name,
                 "--cluster-domain=" + cluster.dns_domain};
  if (!cluster.dns_disabled) {
    KEELSON_ASSIGN_OR_RETURN(const std::string dns, DnsAddresses(cluster));
    flags.push_back("--cluster-dns-address=" + dns);
  }
  return kHead + Variable("KUBE_PROXY_CLUSTER_ARGS", flags);
}

std::string CniEnvironment(const ClusterConfiguration& cluster, const NodeRegistration& node) {
  return kHead + Variable("KUBE_CNI_CLUSTER_ARGS", {"--cluster-cidr=" + cluster.pod_subnet}) +
         "NODE_NAME=" + node.name + "\n";
}

std::string CsiEnvironment(const NodeRegistration& node) {
  return kHead + ("NODE_NAME=" + node.name + "\nKUBE_NODE_NAME=" + node.name + "\n");
}

std::string KubeletFlags(const NodeRegistration& node, const std::string& host_name, bool register_taints) {
  Flags flags;
  if (node.name != host_name) flags.push_back("--hostname-override=" + node.name);
  if (register_taints && node.taints && !node.taints->empty()) {
    std::vector<std::string> taints;
    for (const Taint& taint : *node.taints) {
      taints.push_back(taint.key + "=" + taint.value + ":" + taint.effect);
    }
    flags.push_back("--register-with-taints=" + Join(taints, ","));
  }
  AddArguments(flags, node.kubelet_extra_args);
  return Variable("KUBELET_KUBEADM_ARGS", flags);
}

}  // namespace keelson::ctl

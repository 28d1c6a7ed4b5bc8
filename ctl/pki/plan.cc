#include "ctl/pki/plan.h"

#include <algorithm>

#include "ctl/config/complete.h"
#include "ctl/host/paths.h"
#include "lib/base/ip.h"

namespace keelson::ctl {
namespace {

const std::vector<std::string> kServer = {"digital signature", "key encipherment", "server auth"};
const std::vector<std::string> kClient = {"digital signature", "key encipherment", "client auth"};
const std::vector<std::string> kBoth = {"digital signature", "key encipherment", "server auth",
                                        "client auth"};

void AddName(crypto::CertificateSubject& subject, const std::string& name) {
  std::string text = name;
  const auto address = IpAddress::Parse(name);
  if (address) text = address->ToString();
  std::vector<std::string>& list = address ? subject.ip_addresses : subject.dns_names;
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

Result<crypto::CertificateSubject> ServerSubject(const InitConfiguration& config) {
  crypto::CertificateSubject out{"kube-apiserver", {}, {}, {}};
  AddName(out, config.node.name);
  for (const char* name : {"kubernetes", "kubernetes.default", "kubernetes.default.svc"}) AddName(out, name);
  AddName(out, "kubernetes.default.svc." + config.cluster.dns_domain);
  KEELSON_ASSIGN_OR_RETURN(const std::string service, ServiceAddress(config.cluster, 1));
  AddName(out, service);
  AddName(out, config.advertise_address);
  KEELSON_ASSIGN_OR_RETURN(const std::string endpoint, ApiEndpoint(config));
  AddName(out, HostOf(endpoint));
  for (const std::string& name : config.cluster.certificate_names) AddName(out, name);
  return out;
}

// etcd's, for clients and for peers.
crypto::CertificateSubject EtcdSubject(const InitConfiguration& config) {
  crypto::CertificateSubject out{config.node.name, {}, {}, {}};
  for (const std::string& name : {config.node.name, std::string("localhost"), config.advertise_address,
                                  std::string("127.0.0.1"), std::string("::1")}) {
    AddName(out, name);
  }
  return out;
}

}  // namespace

Result<std::vector<CertificatePlan>> PlanCertificates(const InitConfiguration& config) {
  const std::chrono::seconds life = config.cluster.certificate_validity;
  const std::chrono::seconds ca_life = config.cluster.ca_validity;
  KEELSON_ASSIGN_OR_RETURN(const crypto::CertificateSubject server, ServerSubject(config));
  const auto user = [](const char* name) { return crypto::CertificateSubject{name, {}, {}, {}}; };
  std::vector<CertificatePlan> out = {
      {"ca", "", user("kubernetes"), {}, ca_life},
      {"apiserver", "ca", server, kServer, life},
      {"apiserver-kubelet-client", "ca", user("kube-apiserver-kubelet-client"), kClient, life},
      {"front-proxy-ca", "", user("front-proxy-ca"), {}, ca_life},
      {"front-proxy-client", "front-proxy-ca", user("front-proxy-client"), kClient, life},
  };
  if (!config.cluster.stacks_etcd()) return out;
  const crypto::CertificateSubject member = EtcdSubject(config);
  out.push_back({"etcd/ca", "", user("etcd-ca"), {}, ca_life});
  out.push_back({"etcd/server", "etcd/ca", member, kBoth, life});
  out.push_back({"etcd/peer", "etcd/ca", member, kBoth, life});
  out.push_back({"etcd/healthcheck-client", "etcd/ca", user("kube-etcd-healthcheck-client"), kClient, life});
  out.push_back({"apiserver-etcd-client", "etcd/ca", user("kube-apiserver-etcd-client"), kClient, life});
  return out;
}

Result<std::vector<KubeconfigPlan>> PlanKubeconfigs(const InitConfiguration& config) {
  KEELSON_ASSIGN_OR_RETURN(const std::string endpoint, ApiEndpoint(config));
  const std::string shared = "https://" + endpoint;
  const std::string own = "https://" + HostAndPort(config.advertise_address, config.bind_port);
  const std::string node = "system:node:" + config.node.name;
  return std::vector<KubeconfigPlan>{
      {"admin", paths::kAdminConf, shared, {"kubernetes-admin", {"kubeadm:cluster-admins"}, {}, {}}},
      {"super-admin", paths::kSuperAdminConf, shared, {"kubernetes-super-admin", {"system:masters"}, {}, {}}},
      {"kubelet", paths::kKubeletConf, shared, {node, {"system:nodes"}, {}, {}}},
      {"controller-manager",
       paths::kControllerManagerConf,
       own,
       {"system:kube-controller-manager", {}, {}, {}}},
      {"scheduler", paths::kSchedulerConf, own, {"system:kube-scheduler", {}, {}, {}}},
  };
}

std::string KeyKind(std::string_view encryption_algorithm) {
  std::string out(encryption_algorithm);
  std::erase(out, '-');
  return out;
}

}  // namespace keelson::ctl

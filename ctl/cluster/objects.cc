#include "ctl/cluster/objects.h"

#include "ctl/cluster/builders.h"
#include "ctl/config/complete.h"
#include "ctl/config/write.h"
#include "ctl/output.h"
#include "lib/base/text.h"
#include "lib/crypto/digest.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

constexpr char kSystem[] = "kube-system", kPublic[] = "kube-public";
const Subject kTokens{"Group", kDefaultTokenGroup}, kNodes{"Group", "system:nodes"};

// A Role that permits reading one ConfigMap, and its RoleBinding.
void AddReaders(WantedObjects& out, const char* ns, const char* role, const char* map,
                const std::vector<Subject>& subjects) {
  out.push_back({RoleFor(ns, role, {.verbs = {"get"}, .resources = {"configmaps"}, .names = {map}})});
  out.push_back({RoleBindingOf(ns, role, role, subjects)});
}

}  // namespace

std::string ComponentConfigHash(const std::string& document) {
  return "sha256:" + crypto::Sha256Hex(document);
}

WantedObjects AdminObjects() {
  return {
      {ClusterRoleBindingOf("kubeadm:cluster-admins", "cluster-admin",
                            {{"Group", "kubeadm:cluster-admins"}})},
      {ClusterRoleBindingOf("kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin",
                            {{"User", "kube-apiserver-kubelet-client"}})},
  };
}

WantedObjects KubeadmConfigObjects(const ClusterConfiguration& cluster) {
  WantedObjects out;
  out.push_back(
      {ConfigMapOf(kSystem, "kubeadm-config", {{"ClusterConfiguration", ToYaml(ClusterDocument(cluster))}})});
  AddReaders(out, kSystem, "kubeadm:nodes-kubeadm-config", "kubeadm-config", {kTokens, kNodes});
  return out;
}

WantedObjects KubeletConfigObjects(const json::object& kubelet, bool generated) {
  WantedObjects out;
  const std::string text = ToYaml(kubelet);
  json::object map = ConfigMapOf(kSystem, "kubelet-config", {{"kubelet", text}});
  if (generated) {
    json::object& annotations = map["metadata"].as_object()["annotations"].emplace_object();
    annotations[kComponentConfigHash] = ComponentConfigHash(text);
  }
  out.push_back({std::move(map)});
  AddReaders(out, kSystem, "kubeadm:kubelet-config", "kubelet-config", {kNodes, kTokens});
  return out;
}

WantedObjects BootstrapObjects() {
  const std::string signer = "system:certificates.k8s.io:certificatesigningrequests:";
  return {
      {ClusterRoleBindingOf("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", {kTokens})},
      {ClusterRoleFor("kubeadm:get-nodes", {{.verbs = {"get"}, .resources = {"nodes"}}})},
      {ClusterRoleBindingOf("kubeadm:get-nodes", "kubeadm:get-nodes", {kTokens})},
      {ClusterRoleBindingOf("kubeadm:node-autoapprove-bootstrap", signer + "nodeclient", {kTokens})},
      {ClusterRoleBindingOf("kubeadm:node-autoapprove-certificate-rotation", signer + "selfnodeclient",
                            {kNodes})},
  };
}

WantedObjects ClusterInfoObjects(const std::string& kubeconfig) {
  WantedObjects out;
  // The controller bootstrapsigner adds signatures to it.
  out.push_back({ConfigMapOf(kPublic, "cluster-info", {{"kubeconfig", kubeconfig}})});
  AddReaders(out, kPublic, "kubeadm:bootstrap-signer-clusterinfo", "cluster-info",
             {{"User", "system:anonymous"}});
  return out;
}

WantedObjects ProxyObjects(const json::object& proxy) {
  WantedObjects out;
  out.push_back({ServiceAccountOf(kSystem, "kube-proxy"), WantedObject::Existing::kKept});
  out.push_back({ClusterRoleBindingOf("kubeadm:node-proxier", "system:node-proxier",
                                      {{"ServiceAccount", "kube-proxy", kSystem}})});
  // The unit kube-proxy uses its node's certificate.
  out.push_back({ClusterRoleBindingOf("keelson:node-proxier", "system:node-proxier", {kNodes})});
  out.push_back({ConfigMapOf(kSystem, "kube-proxy", {{"config.conf", ToYaml(proxy)}})});
  AddReaders(out, kSystem, "kube-proxy", "kube-proxy", {kTokens, kNodes});
  return out;
}

WantedObjects CniObjects() {
  return {
      {ClusterRoleFor(
          "keelson:kube-cni",
          {{.verbs = {"get", "list", "watch", "patch"}, .resources = {"nodes"}},
           {.verbs = {"list", "watch"}, .resources = {"namespaces", "pods"}},
           {.verbs = {"list", "watch"}, .resources = {"networkpolicies"}, .group = "networking.k8s.io"},
           {.verbs = {"list", "watch"},
            .resources = {"clusternetworkpolicies"},
            .group = "policy.networking.k8s.io"},
           {.verbs = {"patch"},
            .resources = {"clusternetworkpolicies/status"},
            .group = "policy.networking.k8s.io"},
           {.verbs = {"create", "patch"}, .resources = {"events"}}})},
      {ClusterRoleBindingOf("keelson:kube-cni", "keelson:kube-cni", {{"Group", "keelson:kube-cni"}, kNodes})},
  };
}

Result<WantedObjects> DnsObjects(const ClusterConfiguration& cluster) {
  KEELSON_ASSIGN_OR_RETURN(const std::string address, ServiceAddress(cluster, 10));
  WantedObjects out;
  out.push_back({DnsServiceAt(address), WantedObject::Existing::kKept});
  return out;
}

WantedObjects NodeUnitsObjects(const std::vector<std::string>& units) {
  WantedObjects out;
  out.push_back({ConfigMapOf(kSystem, kNodeUnitsMap, {{kNodeUnitsKey, Join(units, ",")}})});
  AddReaders(out, kSystem, "keelson:nodes-keelson-config", kNodeUnitsMap, {kTokens, kNodes});
  return out;
}

}  // namespace keelson::ctl

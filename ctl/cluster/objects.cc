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
  out.push_back({RoleFor(ns, role, {{.verbs = {"get"}, .resources = {"configmaps"}, .names = {map}}})});
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
            .resources = {"clusternetworkpolicies", "adminnetworkpolicies", "baselineadminnetworkpolicies"},
            .group = "policy.networking.k8s.io"},
           {.verbs = {"patch"},
            .resources = {"clusternetworkpolicies/status", "adminnetworkpolicies/status",
                          "baselineadminnetworkpolicies/status"},
            .group = "policy.networking.k8s.io"},
           {.verbs = {"create", "patch"}, .resources = {"events"}}})},
      {ClusterRoleBindingOf("keelson:kube-cni", "keelson:kube-cni", {{"Group", "keelson:kube-cni"}, kNodes})},
  };
}

WantedObjects CsiObjects() {
  const std::string storage = "storage.k8s.io";
  const std::string snapshots = "snapshot.storage.k8s.io";
  const std::vector<std::string> all = {"get", "list", "watch", "create", "update", "patch", "delete"};
  WantedObjects out;
  out.push_back({LocalDriver(), WantedObject::Existing::kKept});
  out.push_back({LocalClass(), WantedObject::Existing::kKept});
  // csi/controller/deploy/rbac.yaml without Secrets, which keelson-csi-local needs none of.
  out.push_back({ClusterRoleFor(
      "keelson:csi-controller-of-node",
      {{.verbs = all, .resources = {"persistentvolumes"}},
       {.verbs = {"get", "list", "watch", "update", "patch"}, .resources = {"persistentvolumeclaims"}},
       {.verbs = {"update", "patch"}, .resources = {"persistentvolumeclaims/status"}},
       {.verbs = {"get", "list", "watch"}, .resources = {"nodes"}},
       {.verbs = {"list"}, .resources = {"pods"}},
       {.verbs = {"list", "create", "patch", "update"}, .resources = {"events"}},
       {.verbs = {"get", "list", "watch"}, .resources = {"storageclasses", "csinodes"}, .group = storage},
       {.verbs = {"get"}, .resources = {"volumeattributesclasses"}, .group = storage},
       {.verbs = {"get", "list", "watch", "update", "patch"},
        .resources = {"volumeattachments"},
        .group = storage},
       {.verbs = {"update", "patch"}, .resources = {"volumeattachments/status"}, .group = storage},
       {.verbs = all, .resources = {"csistoragecapacities"}, .group = storage},
       {.verbs = {"get", "list", "watch"}, .resources = {"volumesnapshotclasses"}, .group = snapshots},
       {.verbs = {"get", "list", "watch", "update", "patch"},
        .resources = {"volumesnapshots"},
        .group = snapshots},
       {.verbs = all, .resources = {"volumesnapshotcontents"}, .group = snapshots},
       {.verbs = {"update", "patch"},
        .resources = {"volumesnapshots/status", "volumesnapshotcontents/status"},
        .group = snapshots}})});
  out.push_back(
      {ClusterRoleBindingOf("keelson:csi-controller-of-node", "keelson:csi-controller-of-node", {kNodes})});
  // The nodes elect one snapshot-controller. Who may create Leases here cannot take one that exists.
  const std::string lease = "keelson:snapshot-controller-lease";
  out.push_back({RoleFor(kSystem, lease,
                         {{.verbs = {"create"}, .resources = {"leases"}, .group = "coordination.k8s.io"},
                          {.verbs = {"get", "update", "patch"},
                           .resources = {"leases"},
                           .names = {"snapshot-controller-leader"},
                           .group = "coordination.k8s.io"}})});
  out.push_back({RoleBindingOf(kSystem, lease, lease, {kNodes})});
  return out;
}

Result<WantedObjects> DnsObjects(const ClusterConfiguration& cluster) {
  KEELSON_ASSIGN_OR_RETURN(const std::string address, ServiceAddress(cluster, 10));
  WantedObjects out;
  out.push_back({DnsServiceAt(address), WantedObject::Existing::kKept});
  return out;
}

WantedObjects NodeUnitsObjects(const UnitsOfNodes& units) {
  WantedObjects out;
  std::vector<std::pair<std::string, std::string>> data = {{kNodeUnitsKey, Join(units.required, ",")}};
  if (!units.optional.empty()) data.emplace_back(kOptionalUnitsKey, Join(units.optional, ","));
  out.push_back({ConfigMapOf(kSystem, kNodeUnitsMap, data)});
  AddReaders(out, kSystem, "keelson:nodes-keelson-config", kNodeUnitsMap, {kTokens, kNodes});
  return out;
}

}  // namespace keelson::ctl

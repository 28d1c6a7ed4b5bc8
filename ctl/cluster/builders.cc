#include "ctl/cluster/builders.h"

#include <boost/json.hpp>

namespace keelson::ctl {

namespace json = boost::json;

namespace {

constexpr char kLocalDriver[] = "local.csi.keelson.dev";
constexpr char kRbac[] = "rbac.authorization.k8s.io/v1";

json::object Object(const char* version, const char* kind, const std::string& ns, const std::string& name) {
  json::object metadata;
  metadata["name"] = name;
  if (!ns.empty()) metadata["namespace"] = ns;
  json::object out;
  out["apiVersion"] = version;
  out["kind"] = kind;
  out["metadata"] = std::move(metadata);
  return out;
}

json::array Texts(const std::vector<std::string>& values) {
  json::array out;
  for (const std::string& value : values) out.emplace_back(value);
  return out;
}

json::array Rules(const std::vector<Rule>& rules) {
  json::array out;
  for (const Rule& rule : rules) {
    json::object item;
    item["apiGroups"] = Texts({rule.group});
    item["resources"] = Texts(rule.resources);
    item["verbs"] = Texts(rule.verbs);
    if (!rule.names.empty()) item["resourceNames"] = Texts(rule.names);
    out.push_back(std::move(item));
  }
  return out;
}

json::object Binding(json::object out, const char* role_kind, const std::string& role,
                     const std::vector<Subject>& subjects) {
  json::object reference;
  reference["apiGroup"] = "rbac.authorization.k8s.io";
  reference["kind"] = role_kind;
  reference["name"] = role;
  out["roleRef"] = std::move(reference);
  json::array list;
  for (const Subject& subject : subjects) {
    json::object item;
    item["kind"] = subject.kind;
    item["name"] = subject.name;
    if (subject.ns.empty()) {
      item["apiGroup"] = "rbac.authorization.k8s.io";
    } else {
      item["namespace"] = subject.ns;
    }
    list.push_back(std::move(item));
  }
  out["subjects"] = std::move(list);
  return out;
}

}  // namespace

json::object ConfigMapOf(const std::string& ns, const std::string& name,
                         const std::vector<std::pair<std::string, std::string>>& data) {
  json::object out = Object("v1", "ConfigMap", ns, name);
  json::object& entries = out["data"].emplace_object();
  for (const auto& [key, text] : data) entries[key] = text;
  return out;
}

json::object ServiceAccountOf(const std::string& ns, const std::string& name) {
  return Object("v1", "ServiceAccount", ns, name);
}

json::object RoleFor(const std::string& ns, const std::string& name, const std::vector<Rule>& rules) {
  json::object out = Object(kRbac, "Role", ns, name);
  out["rules"] = Rules(rules);
  return out;
}

json::object ClusterRoleFor(const std::string& name, const std::vector<Rule>& rules) {
  json::object out = Object(kRbac, "ClusterRole", "", name);
  out["rules"] = Rules(rules);
  return out;
}

json::object RoleBindingOf(const std::string& ns, const std::string& name, const std::string& role,
                           const std::vector<Subject>& subjects) {
  return Binding(Object(kRbac, "RoleBinding", ns, name), "Role", role, subjects);
}

json::object ClusterRoleBindingOf(const std::string& name, const std::string& role,
                                  const std::vector<Subject>& subjects) {
  return Binding(Object(kRbac, "ClusterRoleBinding", "", name), "ClusterRole", role, subjects);
}

json::object LocalDriver() {
  json::object out = Object("storage.k8s.io/v1", "CSIDriver", "", kLocalDriver);
  json::object& spec = out["spec"].emplace_object();
  spec["attachRequired"] = false;
  spec["fsGroupPolicy"] = "File";
  spec["podInfoOnMount"] = true;
  spec["storageCapacity"] = true;
  spec["volumeLifecycleModes"] = Texts({"Persistent", "Ephemeral"});
  return out;
}

json::object LocalClass() {
  json::object out = Object("storage.k8s.io/v1", "StorageClass", "", "local");
  out["allowVolumeExpansion"] = true;
  out["provisioner"] = kLocalDriver;
  out["reclaimPolicy"] = "Delete";
  out["volumeBindingMode"] = "WaitForFirstConsumer";
  return out;
}

json::object DnsServiceAt(const std::string& address) {
  json::object out = Object("v1", "Service", "kube-system", "kube-dns");
  json::object labels;
  labels["k8s-app"] = "kube-dns";
  labels["kubernetes.io/cluster-service"] = "true";
  labels["kubernetes.io/name"] = "CoreDNS";
  out["metadata"].as_object()["labels"] = std::move(labels);
  json::array ports;
  for (const auto& [name, protocol] : {std::pair("dns", "UDP"), std::pair("dns-tcp", "TCP")}) {
    json::object port;
    port["name"] = name;
    port["port"] = 53;
    port["protocol"] = protocol;
    port["targetPort"] = 53;
    ports.push_back(std::move(port));
  }
  json::object spec;
  spec["clusterIP"] = address;
  spec["ports"] = std::move(ports);
  out["spec"] = std::move(spec);
  return out;
}

}  // namespace keelson::ctl

#include "kubelet/node/registration.h"

#include <algorithm>
#include <boost/json.hpp>

#include "lib/k8s/pods/pod_resources.h"

namespace keelson::kubelet {

namespace json = boost::json;

namespace {

constexpr char kManagedAttach[] = "volumes.kubernetes.io/controller-managed-attach-detach",
               kProvidedIp[] = "alpha.kubernetes.io/provided-node-ip";

// Labels that a kubelet keeps true for as long as it runs.
bool TellsOfMachine(const std::string& label) {
  static constexpr std::string_view kLabels[] = {"kubernetes.io/hostname",
                                                 "kubernetes.io/os",
                                                 "kubernetes.io/arch",
                                                 "beta.kubernetes.io/os",
                                                 "beta.kubernetes.io/arch",
                                                 "beta.kubernetes.io/instance-type",
                                                 "node.kubernetes.io/instance-type",
                                                 "failure-domain.beta.kubernetes.io/region",
                                                 "failure-domain.beta.kubernetes.io/zone",
                                                 "topology.kubernetes.io/region",
                                                 "topology.kubernetes.io/zone"};
  return std::find(std::begin(kLabels), std::end(kLabels), label) != std::end(kLabels);
}

using Annotations = std::map<std::string, std::optional<std::string>>;

// nullopt: is not to be there.
Annotations AnnotationsOf(const NodeOptions& options) {
  Annotations out;
  out[kManagedAttach] = options.controller_attach ? std::optional<std::string>("true") : std::nullopt;
  out[kProvidedIp] = std::nullopt;
  if (options.external_cloud && options.ips_given) {
    std::string ips;
    for (const std::string& ip : options.ips) ips += (ips.empty() ? "" : ",") + ip;
    out[kProvidedIp] = ips;
  }
  return out;
}

}  // namespace

corev1::Node NewNode(const NodeOptions& options) {
  corev1::Node node;
  auto& meta = *node.mutable_metadata();
  meta.set_name(options.name);
  for (const auto& [name, value] : options.labels) (*meta.mutable_labels())[name] = value;
  for (const auto& [name, value] : AnnotationsOf(options)) {
    if (value) (*meta.mutable_annotations())[name] = *value;
  }
  if (!options.provider_id.empty()) node.mutable_spec()->set_provider_id(options.provider_id);
  for (const auto& taint : options.taints) *node.mutable_spec()->add_taints() = taint;
  return node;
}

std::optional<std::string> RegistrationPatch(const NodeOptions& options, const corev1::Node& there) {
  json::object labels, annotations;
  const auto& own_labels = there.metadata().labels();
  for (const auto& [name, value] : options.labels) {
    if (!TellsOfMachine(name)) continue;
    auto it = own_labels.find(name);
    if (it == own_labels.end() || it->second != value) labels[name] = value;
  }
  const auto& own_annotations = there.metadata().annotations();
  for (const auto& [name, value] : AnnotationsOf(options)) {
    auto it = own_annotations.find(name);
    if (it == own_annotations.end() ? !value : value == it->second) continue;
    annotations[name] = value ? json::value(*value) : json::value();
  }
  if (labels.empty() && annotations.empty()) return std::nullopt;
  return json::serialize(json::object{{"metadata", {{"labels", labels}, {"annotations", annotations}}}});
}

std::optional<std::string> ResetPatch(const NodeOptions& options, const corev1::Node& there) {
  if (!options.reset_extended) return std::nullopt;
  json::object none;
  for (const auto& [name, amount] : there.status().capacity()) {
    if (k8s::IsExtendedResource(name)) none[name] = "0";
  }
  if (none.empty()) return std::nullopt;
  return json::serialize(json::object{{"status", {{"capacity", none}, {"allocatable", none}}}});
}

}  // namespace keelson::kubelet

// Nodes.
#include <set>

#include <fmt/format.h>

#include "lib/api/quantity.h"
#include "lib/base/text.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace {

constexpr size_t kFeatureNameBytes = 253;

using Taints = google::protobuf::RepeatedPtrField<corev1::Taint>;

void CheckTaints(const Taints& taints, FieldErrors& errors) {
  // Upstream reports them at this path in metadata.
  const Path metadata("metadata");
  const Path list = metadata.Child("taints");
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (int i = 0; i < taints.size(); ++i) {
    const corev1::Taint& taint = taints[i];
    const Path item = list.Index(i);
    CheckLabelKey(taint.key(), item.Child("key"), errors);
    if (const Problems problems = CheckLabelValue(taint.value()); !problems.empty()) {
      errors.push_back(Invalid(item.Child("value"), taint.value(), Join(problems, ";")));
    }
    CheckEnum(taint.effect(), {"NoSchedule", "PreferNoSchedule", "NoExecute"}, item.Child("effect"), errors);
    if (!seen.emplace(taint.effect(), taint.key()).second) {
      errors.push_back(DuplicateInternal(item, taint, "taints must be unique by key and effect pair"));
    }
  }
}

void CheckPodCidrs(const Strings& cidrs, const Strings& old, FieldErrors& errors) {
  const Path spec("spec");
  const Path list = spec.Child("podCIDRs");
  int families = 0;
  for (int i = 0; i < cidrs.size(); ++i) {
    CheckStrictCidr(cidrs[i], old, list.Index(i), errors);
    families |= cidrs[i].find(':') == std::string::npos ? 1 : 2;
  }
  if (cidrs.size() > 2 || (cidrs.size() == 2 && families != 3)) {
    errors.push_back(
        InvalidRaw(list, PrintStrings(cidrs), "may specify no more than one CIDR for each IP family"));
  }
}

void CheckResources(const corev1::NodeStatus& status, FieldErrors& errors) {
  const Path path("status");
  const std::pair<const char*, const QuantityMap*> amounts[] = {{"capacity", &status.capacity()},
                                                                {"allocatable", &status.allocatable()}};
  for (const auto& [field, quantities] : amounts) {
    const Path list = path.Child(field);
    for (const std::string& name : SortedKeys(*quantities)) {
      CheckResourceAmount(name, quantities->at(name), list.Child(name), errors);
    }
  }
}

// "MyFeature", "MyFeature/itsPart".
bool IsFeatureName(std::string_view name) {
  const auto alpha = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  if (name.empty() || name.front() < 'A' || name.front() > 'Z') return false;
  for (std::string_view segment : Split(name, '/')) {
    if (segment.empty() || !alpha(segment.front())) return false;
    for (char c : segment) {
      if (!alpha(c) && (c < '0' || c > '9')) return false;
    }
  }
  return true;
}

void CheckDeclaredFeatures(const Strings& features, FieldErrors& errors) {
  const Path status("status");
  const Path list = status.Child("declaredFeatures");
  for (int i = 0; i < features.size(); ++i) {
    const std::string& name = features[i];
    if (name.size() > kFeatureNameBytes) {
      errors.push_back(Invalid(list.Index(i), name,
                               fmt::format("invalid feature name {}: must be no more than {} characters",
                                           Quote(name), kFeatureNameBytes)));
    } else if (!IsFeatureName(name)) {
      errors.push_back(Invalid(
          list.Index(i), name,
          fmt::format("invalid feature name {}: must start with an UpperCamelCase segment, with subsequent "
                      "segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain "
                      "only alphanumeric characters and slashes",
                      Quote(name))));
    }
    if (i + 1 == features.size()) continue;
    const std::string& next = features[i + 1];
    if (name == next) {
      errors.push_back(Duplicate(list.Index(i + 1), next));
    } else if (name > next) {
      errors.push_back(Invalid(list.Index(i + 1), next, "list must be sorted alphabetically"));
    }
  }
}

// For new nodes only; upstream reports this at a path in metadata.
void CheckSwap(const corev1::NodeSystemInfo& info, FieldErrors& errors) {
  if (!info.swap().has_capacity() || info.swap().capacity() > 0) return;
  const Path metadata("metadata");
  errors.push_back(Invalid(metadata.Child("nodeSwapStatus").Child("capacity"), info.swap().capacity(),
                           "must be greater than 0"));
}

void CheckNode(const corev1::Node& node, FieldErrors& errors) {
  CheckTaints(node.spec().taints(), errors);
  CheckResources(node.status(), errors);
  CheckSwap(node.status().node_info(), errors);
  CheckDeclaredFeatures(node.status().declared_features(), errors);
  CheckPodCidrs(node.spec().pod_cidrs(), {}, errors);
}

// A spec may refer to any version of a config map; a status names the one in use.
void CheckConfigSource(const corev1::NodeConfigSource& source, bool in_status, const Path& path,
                       FieldErrors& errors) {
  if (!source.has_config_map()) {
    errors.push_back(InvalidInternal(path, source, "exactly one reference subfield must be non-nil"));
    return;
  }
  const Path place = path.Child("configMap");
  const corev1::ConfigMapNodeConfigSource& map = source.config_map();
  const std::pair<const char*, const std::string&> versions[] = {{"uid", map.uid()},
                                                                 {"resourceVersion", map.resource_version()}};
  for (const auto& [field, value] : versions) {
    if (in_status && value.empty()) errors.push_back(Required(place.Child(field)));
    if (!in_status && !value.empty()) {
      errors.push_back(Forbidden(place.Child(field), fmt::format("{} must not be set in spec", field)));
    }
  }
  CheckName(map.namespace_(), CheckDns1123Label, place.Child("namespace"), errors);
  CheckName(map.name(), CheckDns1123Subdomain, place.Child("name"), errors);
  if (map.kubelet_config_key().empty()) {
    errors.push_back(Required(place.Child("kubeletConfigKey")));
  } else {
    AddProblems(CheckConfigKey(map.kubelet_config_key()), map.kubelet_config_key(),
                place.Child("kubeletConfigKey"), errors);
  }
}

// For updates of the node and of its status: kubelets may change parts of the spec through the status.
void CheckChange(const corev1::Node& node, const corev1::Node& old, FieldErrors& errors) {
  const Path spec("spec"), status("status");
  const Path addresses = status.Child("addresses");
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (int i = 0; i < node.status().addresses_size(); ++i) {
    const corev1::NodeAddress& address = node.status().addresses(i);
    if (seen.emplace(address.type(), address.address()).second) continue;
    errors.push_back(DuplicateInternal(addresses.Index(i), address));
  }
  if (!old.spec().pod_cidrs().empty() && !SameStrings(node.spec().pod_cidrs(), old.spec().pod_cidrs())) {
    errors.push_back(
        Forbidden(spec.Child("podCIDRs"), "node updates may not change podCIDR except from \"\" to valid"));
  }
  if (!old.spec().provider_id().empty() && node.spec().provider_id() != old.spec().provider_id()) {
    errors.push_back(Forbidden(spec.Child("providerID"),
                               "node updates may not change providerID except from \"\" to valid"));
  }
  if (node.spec().has_config_source()) {
    CheckConfigSource(node.spec().config_source(), false, spec.Child("configSource"), errors);
  }
  const corev1::NodeConfigStatus& in_use = node.status().config();
  const Path config = status.Child("config");
  if (in_use.has_assigned()) CheckConfigSource(in_use.assigned(), true, config.Child("assigned"), errors);
  if (in_use.has_active()) CheckConfigSource(in_use.active(), true, config.Child("active"), errors);
  if (in_use.has_last_known_good()) {
    CheckConfigSource(in_use.last_known_good(), true, config.Child("lastKnownGood"), errors);
  }
  if (node.spec().external_id() != old.spec().external_id()) {
    errors.push_back(Forbidden(spec.Child("externalID"), "may not be updated"));
  }
}

void CheckNodeUpdate(const corev1::Node& node, const corev1::Node& old, FieldErrors& errors) {
  CheckTaints(node.spec().taints(), errors);
  CheckResources(node.status(), errors);
  CheckDeclaredFeatures(node.status().declared_features(), errors);
  CheckPodCidrs(node.spec().pod_cidrs(), old.spec().pod_cidrs(), errors);
  CheckChange(node, old, errors);
}

void CheckNodeStatus(const corev1::Node& node, const corev1::Node& old, FieldErrors& errors) {
  CheckResources(node.status(), errors);
  CheckDeclaredFeatures(node.status().declared_features(), errors);
  CheckChange(node, old, errors);
  CheckTaints(node.spec().taints(), errors);
}

}  // namespace

void RegisterNodeRules(RuleTable& table) {
  table.Add<corev1::Node, CheckNode>();
  table.AddUpdate<corev1::Node, CheckNodeUpdate>(true);
  table.AddStatus<corev1::Node, CheckNodeStatus>();
}

}  // namespace keelson::k8s

// Nodes.
#include <set>

#include "lib/k8s/rule_table.h"

namespace keelson::k8s {

namespace {

void CheckTaints(const corev1::Node& node, FieldErrors& errors) {
  const Path spec("spec");
  const Path list = spec.Child("taints");
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (int i = 0; i < node.spec().taints_size(); ++i) {
    const corev1::Taint& taint = node.spec().taints(i);
    const Path item = list.Index(i);
    CheckLabelKey(taint.key(), item.Child("key"), errors);
    AddProblems(CheckLabelValue(taint.value()), taint.value(), item.Child("value"), errors);
    CheckEnum(taint.effect(), {"NoSchedule", "PreferNoSchedule", "NoExecute"}, item.Child("effect"), errors);
    if (!seen.emplace(taint.effect(), taint.key()).second) {
      FieldError error = InvalidObject(item, taint, "taints must be unique by key and effect pair");
      error.type = FieldError::Type::kDuplicate;
      errors.push_back(std::move(error));
    }
  }
}

void CheckNode(const corev1::Node& node, FieldErrors& errors) {
  CheckTaints(node, errors);
  const Path spec("spec"), status("status");
  const Path cidrs = spec.Child("podCIDRs");
  for (int i = 0; i < node.spec().pod_cidrs_size(); ++i) {
    if (IsCidr(node.spec().pod_cidrs(i))) continue;
    errors.push_back(Invalid(cidrs.Index(i), node.spec().pod_cidrs(i),
                             "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"));
  }
  const std::pair<std::string_view, const QuantityMap*> amounts[] = {
      {"capacity", &node.status().capacity()}, {"allocatable", &node.status().allocatable()}};
  for (const auto& [field, quantities] : amounts) {
    const Path list = status.Child(field);
    for (const auto& [name, quantity] : *quantities) {
      AddProblems(CheckQualifiedName(name), name, list.Key(name), errors);
      CheckQuantity(name, quantity, list.Key(name), errors);
    }
  }
}

void CheckNodeUpdate(const corev1::Node& node, const corev1::Node& old, FieldErrors& errors) {
  const Path spec("spec");
  if (!old.spec().pod_cidrs().empty() && !SameStrings(node.spec().pod_cidrs(), old.spec().pod_cidrs())) {
    errors.push_back(
        Forbidden(spec.Child("podCIDRs"), "node updates may not change podCIDR except from \"\" to valid"));
  }
  if (!old.spec().provider_id().empty() && node.spec().provider_id() != old.spec().provider_id()) {
    errors.push_back(Forbidden(spec.Child("providerID"),
                               "node updates may not change providerID except from \"\" to valid"));
  }
}

void CheckNodeStatus(const corev1::Node& node, const corev1::Node&, FieldErrors& errors) {
  const Path status("status");
  const Path addresses = status.Child("addresses");
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (int i = 0; i < node.status().addresses_size(); ++i) {
    const corev1::NodeAddress& address = node.status().addresses(i);
    if (!seen.emplace(address.type(), address.address()).second) {
      errors.push_back(Duplicate(addresses.Index(i), address.address()));
    }
  }
}

}  // namespace

void RegisterNodeRules(RuleTable& table) {
  table.Add<corev1::Node, CheckNode>();
  table.AddUpdate<corev1::Node, CheckNodeUpdate>();
  table.AddStatus<corev1::Node, CheckNodeStatus>();
}

}  // namespace keelson::k8s

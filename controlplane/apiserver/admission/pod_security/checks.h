// Internal to the Pod Security Standards: the checks, and the parts of a pod that they read.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/admission/pod_security/policy.h"

namespace keelson::apiserver::pod_security {

// An init, regular or ephemeral container.
struct ContainerView {
  std::string_view name;
  const corev1::SecurityContext* security;  // null: none
  const google::protobuf::RepeatedPtrField<corev1::ContainerPort>* ports;
  std::vector<const corev1::Probe*> probes;
  const corev1::Lifecycle* lifecycle;  // null: none
};

struct PodView {
  PodView(const metav1::ObjectMeta& meta, const corev1::PodSpec& spec);
  bool IsWindows() const { return spec.os().name() == "windows"; }
  // In a user namespace root has no privileges on the node.
  bool HasUserNamespace() const { return spec.has_host_users() && !spec.host_users(); }

  const metav1::ObjectMeta& meta;
  const corev1::PodSpec& spec;
  const corev1::PodSecurityContext* security;  // null: none
  std::vector<ContainerView> containers;
};

using Names = std::vector<std::string>;
using Set = std::set<std::string, std::less<>>;

struct Check {
  int from, until;  // minor versions: from <= v < until
  void (*run)(const PodView& pod, Violations& out);
  int stricter_from = LevelVersion::kLatest + 1;  // from this version the restricted level replaces the check
};
// Sorted by check name, which is the order of messages.
const std::vector<Check>& BaselineChecks();
const std::vector<Check>& RestrictedChecks();

// Formats "a", "b".
std::string JoinQuoted(const Set& values);
std::string JoinQuoted(const Names& values);
inline std::string_view Plural(std::string_view one, std::string_view many, size_t count) {
  return count == 1 ? one : many;
}
// Formats the places that set a field: pod and container "a".
std::string Setters(bool pod, const Names& containers);
// Formats containers "a", "b".
std::string Containers(const Names& names);

// Checks shared by both levels.
void CheckProcMount(const PodView& pod, Violations& out);
bool IsGoodSeccomp(std::string_view type);

}  // namespace keelson::apiserver::pod_security

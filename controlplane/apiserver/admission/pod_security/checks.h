// Internal to the Pod Security Standards: a pod as its checks see it.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/admission/pod_security/policy.h"

namespace keelson::apiserver::pod_security {

// Init, regular and ephemeral containers alike.
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
  // Root of a user namespace of its own is nobody on the node.
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
  int stricter_from = LevelVersion::kLatest + 1;  // where the restricted level has a check in its place
};
// By name of the check, which is the order of messages.
const std::vector<Check>& BaselineChecks();
const std::vector<Check>& RestrictedChecks();

// "a", "b"
std::string JoinQuoted(const Set& values);
std::string JoinQuoted(const Names& values);
inline std::string_view Plural(std::string_view one, std::string_view many, size_t count) {
  return count == 1 ? one : many;
}
// pod and container "a", of those who have set something.
std::string Setters(bool pod, const Names& containers);
// containers "a", "b"
std::string Containers(const Names& names);

// Shared by levels.
void CheckProcMount(const PodView& pod, Violations& out);
bool IsGoodSeccomp(std::string_view type);

}  // namespace keelson::apiserver::pod_security

// The Pod Security Standards: the levels, and their checks in each version of the policy
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controlplane/apiserver/admission/config.h"
#include "lib/api/types.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiserver::pod_security {

enum class Level { kPrivileged, kBaseline, kRestricted };  // ordered by strictness

struct LevelVersion {
  static constexpr int kLatest = 1 << 20;
  Level level = Level::kPrivileged;
  int minor = kLatest;  // in v1.<minor>

  std::string ToString() const;  // restricted:v1.30
  std::string VersionName() const;
  auto operator<=>(const LevelVersion&) const = default;
};
std::string_view Name(Level level);

struct Policy {
  LevelVersion enforce, audit, warn;
  bool operator==(const Policy&) const = default;
};

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;
// The policy from a namespace's labels, with `defaults` for missing labels. Reports invalid values in
// `errors`; they count as restricted for enforce, and as privileged for audit and warn.
Policy PolicyOf(const Labels& labels, const Policy& defaults, k8s::FieldErrors* errors = nullptr);
Policy DefaultsOf(const PodSecurityConfig& config);
// True when a label sets `mode` (enforce, audit, warn).
bool Speaks(const Labels& labels, std::string_view mode);

struct Violation {
  std::string reason, detail;  // hostPort; container "a" uses hostPort 80
};
using Violations = std::vector<Violation>;

// All violations of a pod, in upstream's order and wording.
Violations Evaluate(const LevelVersion& at, const metav1::ObjectMeta& meta, const corev1::PodSpec& spec);
std::string Reasons(const Violations& violations);  // hostPort, privileged
std::string Details(const Violations& violations);  // hostPort (container "a" uses hostPort 80), ...

}  // namespace keelson::apiserver::pod_security

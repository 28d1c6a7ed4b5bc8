// The Pod Security Standards: what a pod may ask of its node at each level, in each version of the policy
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

enum class Level { kPrivileged, kBaseline, kRestricted };  // the stricter, the larger

struct LevelVersion {
  static constexpr int kLatest = 1 << 20;
  Level level = Level::kPrivileged;
  int minor = kLatest;  // of v1.<minor>

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
// What a namespace's labels say, `defaults` for what they leave out. Nonsense is told of in `errors`, and
// taken for restricted where pods are refused by it and privileged where they are only talked of.
Policy PolicyOf(const Labels& labels, const Policy& defaults, k8s::FieldErrors* errors = nullptr);
Policy DefaultsOf(const PodSecurityConfig& config);
// Does the label say something of `mode` (enforce, audit, warn)?
bool Speaks(const Labels& labels, std::string_view mode);

struct Violation {
  std::string reason, detail;  // hostPort; container "a" uses hostPort 80
};
using Violations = std::vector<Violation>;

// Everything that is wrong with a pod, in upstream's order and words.
Violations Evaluate(const LevelVersion& at, const metav1::ObjectMeta& meta, const corev1::PodSpec& spec);
std::string Reasons(const Violations& violations);  // hostPort, privileged
std::string Details(const Violations& violations);  // hostPort (container "a" uses hostPort 80), ...

}  // namespace keelson::apiserver::pod_security

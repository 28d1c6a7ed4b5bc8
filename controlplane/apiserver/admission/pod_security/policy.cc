#include "controlplane/apiserver/admission/pod_security/policy.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/pod_security/checks.h"

namespace keelson::apiserver::pod_security {
namespace {

constexpr std::string_view kPrefix = "pod-security.kubernetes.io/";
constexpr int kNewest = 36;  // the meaning of "latest" and later versions

std::optional<Level> ParseLevel(std::string_view text) {
  for (Level level : {Level::kPrivileged, Level::kBaseline, Level::kRestricted}) {
    if (text == Name(level)) return level;
  }
  return std::nullopt;
}

std::optional<int> ParseVersion(std::string_view text) {
  if (text == "latest") return LevelVersion::kLatest;
  if (text.substr(0, 3) != "v1.") return std::nullopt;
  text.remove_prefix(3);
  if (text.empty() || text.size() > 5 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  int minor = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    minor = minor * 10 + (c - '0');
  }
  return minor;
}

const std::string_view* Find(const Labels& labels, std::string_view key) {
  for (const auto& [name, value] : labels) {
    if (name == key) return &value;
  }
  return nullptr;
}

struct LabelReader {
  const Labels& labels;
  k8s::FieldErrors* errors;

  void Complain(const std::string& label, std::string_view value, std::string_view why) const {
    if (!errors) return;
    const k8s::Path metadata("metadata");
    const k8s::Path all = metadata.Child("labels");
    errors->push_back(k8s::Invalid(all.Key(label), value, why));
  }
  // True when there is a valid label for the level.
  bool Read(std::string_view mode, Level otherwise, LevelVersion& to) const {
    const std::string label = std::string(kPrefix) + std::string(mode);
    bool understood = false;
    if (const std::string_view* value = Find(labels, label)) {
      std::optional<Level> level = ParseLevel(*value);
      understood = level.has_value();
      to.level = level.value_or(otherwise);
      if (!level) Complain(label, *value, "must be one of privileged, baseline, restricted");
    }
    if (const std::string_view* value = Find(labels, label + "-version")) {
      std::optional<int> minor = ParseVersion(*value);
      to.minor = minor.value_or(LevelVersion::kLatest);
      if (!minor) Complain(label + "-version", *value, "must be \"latest\" or \"v1.x\"");
    }
    return understood;
  }
};

}  // namespace

std::string_view Name(Level level) {
  switch (level) {
    case Level::kPrivileged:
      return "privileged";
    case Level::kBaseline:
      return "baseline";
    case Level::kRestricted:
      break;
  }
  return "restricted";
}

std::string LevelVersion::VersionName() const {
  return minor == kLatest ? "latest" : fmt::format("v1.{}", minor);
}
std::string LevelVersion::ToString() const { return fmt::format("{}:{}", Name(level), VersionName()); }

Policy PolicyOf(const Labels& labels, const Policy& defaults, k8s::FieldErrors* errors) {
  Policy policy = defaults;
  const LabelReader reader{labels, errors};
  const bool enforced = reader.Read("enforce", Level::kRestricted, policy.enforce);
  reader.Read("audit", Level::kPrivileged, policy.audit);
  reader.Read("warn", Level::kPrivileged, policy.warn);
  // With enforce, warn about workloads by default.
  if (enforced && !Find(labels, std::string(kPrefix) + "warn")) {
    policy.warn.level = policy.enforce.level;
    if (!Find(labels, std::string(kPrefix) + "warn-version")) policy.warn.minor = policy.enforce.minor;
  }
  return policy;
}

Policy DefaultsOf(const PodSecurityConfig& config) {
  auto of = [](const PodSecurityConfig::Mode& mode) {
    return LevelVersion{ParseLevel(mode.level).value_or(Level::kRestricted),
                        ParseVersion(mode.version).value_or(LevelVersion::kLatest)};
  };
  return {of(config.enforce), of(config.audit), of(config.warn)};
}

bool Speaks(const Labels& labels, std::string_view mode) {
  const std::string label = std::string(kPrefix) + std::string(mode);
  return Find(labels, label) || Find(labels, label + "-version");
}

Violations Evaluate(const LevelVersion& at, const metav1::ObjectMeta& meta, const corev1::PodSpec& spec) {
  Violations out;
  if (at.level == Level::kPrivileged) return out;
  const PodView pod(meta, spec);
  const int minor = std::min(at.minor, kNewest);
  for (const Check& check : BaselineChecks()) {
    const bool replaced = at.level == Level::kRestricted && minor >= check.stricter_from;
    if (minor >= check.from && minor < check.until && !replaced) check.run(pod, out);
  }
  if (at.level == Level::kBaseline) return out;
  for (const Check& check : RestrictedChecks()) {
    if (minor >= check.from && minor < check.until) check.run(pod, out);
  }
  return out;
}

std::string Reasons(const Violations& violations) {
  std::string text;
  for (const Violation& violation : violations) text += (text.empty() ? "" : ", ") + violation.reason;
  return text;
}

std::string Details(const Violations& violations) {
  std::string text;
  for (const Violation& violation : violations) {
    text += (text.empty() ? "" : ", ") + violation.reason;
    if (!violation.detail.empty()) text += " (" + violation.detail + ")";
  }
  return text;
}

PodView::PodView(const metav1::ObjectMeta& the_meta, const corev1::PodSpec& the_spec)
    : meta(the_meta),
      spec(the_spec),
      security(spec.has_security_context() ? &spec.security_context() : nullptr) {
  auto add = [this](const auto& container) {
    ContainerView view{container.name(),
                       container.has_security_context() ? &container.security_context() : nullptr,
                       &container.ports(),
                       {},
                       container.has_lifecycle() ? &container.lifecycle() : nullptr};
    if (container.has_liveness_probe()) view.probes.push_back(&container.liveness_probe());
    if (container.has_readiness_probe()) view.probes.push_back(&container.readiness_probe());
    if (container.has_startup_probe()) view.probes.push_back(&container.startup_probe());
    containers.push_back(std::move(view));
  };
  for (const auto& container : spec.init_containers()) add(container);
  for (const auto& container : spec.containers()) add(container);
  for (const auto& container : spec.ephemeral_containers()) add(container.ephemeral_container_common());
}

namespace {
template <typename Values>
std::string Quoted(const Values& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + k8s::Quote(value);
  return text;
}
}  // namespace

std::string JoinQuoted(const Set& values) { return Quoted(values); }
std::string JoinQuoted(const Names& values) { return Quoted(values); }

std::string Containers(const Names& names) {
  return fmt::format("{} {}", Plural("container", "containers", names.size()), JoinQuoted(names));
}

std::string Setters(bool pod, const Names& containers) {
  std::string text = pod ? "pod" : "";
  if (!containers.empty()) text += (pod ? " and " : "") + Containers(containers);
  return text;
}

}  // namespace keelson::apiserver::pod_security

// PodSecurity: enforces, audits or warns about the Pod Security Standard of a namespace (labels
// pod-security.kubernetes.io/*). Workload objects are never rejected, only audited and warned about.
#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/admission/pod_security/policy.h"
#include "lib/api/meta.h"
#include "lib/api/proto/batch_v1.pb.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

using namespace pod_security;  // used by this plugin only
namespace batchv1 = api::batch::v1;

constexpr size_t kMaxPods = 3000;
constexpr std::chrono::seconds kPatience{1};
constexpr char kAnnotations[] = "pod-security.kubernetes.io/";

bool IsIgnored(std::string_view subresource) {
  return !subresource.empty() && subresource != "ephemeralcontainers" && subresource != "resize";
}

const corev1::PodTemplateSpec* TemplateOf(const AdmissionRequest& request) {
  const api::ResourceInfo& info = request.info;
  const std::string_view resource = info.resource;
  if (info.group.empty()) {
    if (resource == "podtemplates") return &request.Object<corev1::PodTemplate>().template_();
    if (resource != "replicationcontrollers") return nullptr;
    const auto& controller = request.Object<corev1::ReplicationController>();
    return controller.spec().has_template_() ? &controller.spec().template_() : nullptr;
  }
  if (info.group == "apps") {
    if (resource == "deployments") return &request.Object<appsv1::Deployment>().spec().template_();
    if (resource == "replicasets") return &request.Object<appsv1::ReplicaSet>().spec().template_();
    if (resource == "statefulsets") return &request.Object<appsv1::StatefulSet>().spec().template_();
    if (resource == "daemonsets") return &request.Object<appsv1::DaemonSet>().spec().template_();
  }
  if (info.group == "batch" && info.version == "v1") {
    if (resource == "jobs") return &request.Object<batchv1::Job>().spec().template_();
    if (resource == "cronjobs") {
      return &request.Object<batchv1::CronJob>().spec().job_template().spec().template_();
    }
  }
  return nullptr;
}

template <typename T>
std::string AnnotationOf(const T& object, const std::string& key) {
  auto found = object.metadata().annotations().find(key);
  return found == object.metadata().annotations().end() ? "" : found->second;
}

// Of the mutable fields only images, ephemeral containers and seccomp annotations matter.
bool IsSignificant(const corev1::Pod& pod, const corev1::Pod& old) {
  const std::string pod_key = "seccomp.security.alpha.kubernetes.io/pod";
  const std::string prefix = "container.seccomp.security.alpha.kubernetes.io/";
  if (AnnotationOf(pod, pod_key) != AnnotationOf(old, pod_key)) return true;
  auto differs = [&](const auto& now, const auto& before) {
    return now.image() != before.image() ||
           AnnotationOf(pod, prefix + now.name()) != AnnotationOf(old, prefix + now.name());
  };
  auto any = [&](const auto& now, const auto& before) {
    if (now.size() != before.size()) return true;
    for (int i = 0; i < now.size(); ++i) {
      if (differs(now[i], before[i])) return true;
    }
    return false;
  };
  if (any(pod.spec().containers(), old.spec().containers())) return true;
  if (any(pod.spec().init_containers(), old.spec().init_containers())) return true;
  for (const corev1::EphemeralContainer& container : pod.spec().ephemeral_containers()) {
    const auto& now = container.ephemeral_container_common();
    const auto& before = old.spec().ephemeral_containers();
    auto found = std::find_if(before.begin(), before.end(), [&](const corev1::EphemeralContainer& one) {
      return one.ephemeral_container_common().name() == now.name();
    });
    if (found == before.end() || differs(now, found->ephemeral_container_common())) return true;
  }
  return false;
}

metrics::Family& evaluations_total = metrics::Counter(
    "pod_security_evaluations_total",
    "Number of policy evaluations that occurred, not counting ignored or exempt requests.",
    {"decision", "policy_level", "policy_version", "mode", "request_operation", "resource", "subresource"});
metrics::Family& exemptions_total =
    metrics::Counter("pod_security_exemptions_total",
                     "Number of exempt requests, not counting ignored or out of scope requests.",
                     {"request_operation", "resource", "subresource"});

void CountEvaluation(const AdmissionRequest& request, const char* decision, const LevelVersion& policy,
                     const char* mode) {
  const bool pod = request.MainResource() == "pods";
  evaluations_total
      .With({decision, std::string(Name(policy.level)), policy.VersionName(), mode,
             request.Creates() ? "create" : "update", pod ? "pod" : "controller",
             std::string(request.Subresource())})
      .Increment();
}

void CountExemption(const AdmissionRequest& request) {
  const bool pod = request.MainResource() == "pods";
  exemptions_total
      .With({request.Creates() ? "create" : "update", pod ? "pod" : "controller",
             std::string(request.Subresource())})
      .Increment();
}

Labels LabelsOf(const metav1::ObjectMeta& meta) {
  Labels labels;
  for (const auto& label : meta.labels()) labels.emplace_back(label.first, label.second);
  return labels;
}

// Evaluates a pod once per distinct policy: modes often share one.
class Judged {
 public:
  Judged(const metav1::ObjectMeta& meta, const corev1::PodSpec& spec) : meta_(meta), spec_(spec) {}
  const Violations& By(const LevelVersion& policy) {
    auto found = results_.find(policy);
    if (found == results_.end()) found = results_.emplace(policy, Evaluate(policy, meta_, spec_)).first;
    return found->second;
  }

 private:
  const metav1::ObjectMeta& meta_;
  const corev1::PodSpec& spec_;
  std::map<LevelVersion, Violations> results_;
};

class PodSecurity : public AdmissionPlugin {
 public:
  PodSecurity(storage::Store& store, const PodSecurityConfig& config)
      : store_(store), config_(config), defaults_(DefaultsOf(config)) {}
  std::string_view name() const override { return "PodSecurity"; }

  Result<> Validate(const AdmissionRequest& request) override {
    if (!request.Creates() && !request.Updates()) return {};
    if (request.Is("", "namespaces")) return CheckNamespace(request);
    if (request.info.group.empty() && request.MainResource() == "pods") return CheckPod(request);
    if (request.info.IsSubresource()) return {};
    const corev1::PodTemplateSpec* made = TemplateOf(request);
    return made ? CheckTemplate(request, *made) : Result<>();
  }

 private:
  Result<> CheckPod(const AdmissionRequest& request) {
    if (IsIgnored(request.Subresource()) || IsExempt(request)) return {};
    std::optional<Policy> policy = PolicyOfNamespace(request);
    if (!policy) return Error(Code::kInternal, fmt::format("failed to lookup namespace \"{}\"", request.ns));
    if (IsPrivileged(*policy)) return {};
    const auto& pod = request.Object<corev1::Pod>();
    if (request.Updates() && !IsSignificant(pod, request.OldObject<corev1::Pod>())) return {};
    if (IsExemptRuntimeClass(request, pod.spec())) return {};
    Judged judged(pod.metadata(), pod.spec());
    const Violations& violations = judged.By(policy->enforce);
    Note(request, "enforce-policy", policy->enforce.ToString());
    CountEvaluation(request, violations.empty() ? "allow" : "deny", policy->enforce, "enforce");
    Audit(request, *policy, judged);
    if (violations.empty()) {
      Warn(request, *policy, judged);
      return {};
    }
    return NotAdmitted(request, fmt::format("violates PodSecurity \"{}\": {}", policy->enforce.ToString(),
                                            Details(violations)));
  }

  Result<> CheckTemplate(const AdmissionRequest& request, const corev1::PodTemplateSpec& made) {
    if (IsExempt(request)) return {};
    std::optional<Policy> policy = PolicyOfNamespace(request);
    if (!policy) return Error(Code::kInternal, fmt::format("failed to lookup namespace \"{}\"", request.ns));
    if (policy->warn.level == Level::kPrivileged && policy->audit.level == Level::kPrivileged) return {};
    if (IsExemptRuntimeClass(request, made.spec())) return {};
    Judged judged(made.metadata(), made.spec());
    Audit(request, *policy, judged);
    Warn(request, *policy, judged);
    return {};
  }

  static void Audit(const AdmissionRequest& request, const Policy& policy, Judged& judged) {
    const Violations& violations = judged.By(policy.audit);
    if (violations.empty()) return;
    Note(request, "audit-violations", WouldViolate(policy.audit, violations));
    CountEvaluation(request, "deny", policy.audit, "audit");
  }
  static void Warn(const AdmissionRequest& request, const Policy& policy, Judged& judged) {
    const Violations& violations = judged.By(policy.warn);
    if (violations.empty()) return;
    if (request.notes) request.notes->warnings.push_back(WouldViolate(policy.warn, violations));
    CountEvaluation(request, "deny", policy.warn, "warn");
  }
  static std::string WouldViolate(const LevelVersion& policy, const Violations& violations) {
    return fmt::format("would violate PodSecurity \"{}\": {}", policy.ToString(), Details(violations));
  }
  static void Note(const AdmissionRequest& request, std::string_view key, std::string value) {
    if (request.notes) request.notes->annotations[kAnnotations + std::string(key)] = std::move(value);
  }

  // Validates changed labels; warns about existing pods when the enforced policy becomes stricter.
  Result<> CheckNamespace(const AdmissionRequest& request) {
    const metav1::ObjectMeta& meta = api::Meta(*request.object);
    const Labels labels = LabelsOf(meta);
    k8s::FieldErrors errors, old_errors;
    const Policy policy = PolicyOf(labels, defaults_, &errors);
    Policy old_policy;
    if (request.old_object) {
      old_policy = PolicyOf(LabelsOf(api::Meta(*request.old_object)), defaults_, &old_errors);
    }
    const bool same_errors = request.old_object && errors.size() == old_errors.size() &&
                             std::equal(errors.begin(), errors.end(), old_errors.begin(),
                                        [](const k8s::FieldError& a, const k8s::FieldError& b) {
                                          return a.ToString() == b.ToString();
                                        });
    if (!errors.empty() && !same_errors) return k8s::ToInvalid(request.info.Gvk(), meta.name(), errors);
    const bool exempt = config_.exempt_namespaces.count(meta.name()) > 0;
    if (request.Creates()) {
      if (exempt) WarnOfExemption(request, meta.name(), policy, labels);
      return {};
    }
    if (policy.enforce == old_policy.enforce || policy.enforce.level == Level::kPrivileged) return {};
    if (policy.enforce.minor == old_policy.enforce.minor &&
        policy.enforce.level <= old_policy.enforce.level) {
      return {};
    }
    if (exempt) {
      WarnOfExemption(request, meta.name(), policy, labels);
    } else {
      WarnOfPods(request, meta.name(), policy.enforce);
    }
    return {};
  }

  static void WarnOfExemption(const AdmissionRequest& request, const std::string& ns, const Policy& policy,
                              const Labels& labels) {
    std::string what;
    auto add = [&](const char* mode, const LevelVersion& at) {
      if (at.level == Level::kPrivileged || !Speaks(labels, mode)) return;
      what += fmt::format("{}{}={}", what.empty() ? "" : ", ", mode, at.ToString());
    };
    add("enforce", policy.enforce);
    add("audit", policy.audit);
    add("warn", policy.warn);
    if (what.empty() || !request.notes) return;
    request.notes->warnings.push_back(
        fmt::format("namespace {} is exempt from Pod Security, and the policy ({}) will be ignored",
                    k8s::Quote(ns), what));
  }

  void WarnOfPods(const AdmissionRequest& request, const std::string& ns, const LevelVersion& enforce) {
    std::vector<storage::ObjectPtr> pods;
    store_.ForEachIn(api::ResourceOf<corev1::Pod>(), ns,
                     [&](const storage::ObjectPtr& object) { pods.push_back(object); });
    struct Found {
      std::string pod;  // the first pod
      size_t count = 0;
    };
    std::map<std::string, Found> found;
    const SteadyTime deadline = SteadyTime::clock::now() + kPatience;
    size_t checked = 0;
    for (; checked < std::min(pods.size(), kMaxPods); ++checked) {
      if (SteadyTime::clock::now() > deadline) break;
      auto pod = std::static_pointer_cast<const corev1::Pod>(pods[checked]->Decode());
      if (config_.exempt_runtime_classes.count(pod->spec().runtime_class_name())) continue;
      const Violations violations = Evaluate(enforce, pod->metadata(), pod->spec());
      if (violations.empty()) continue;
      Found& one = found[Reasons(violations)];
      if (one.count++ == 0) one.pod = pod->metadata().name();
    }
    if (!request.notes) return;
    std::vector<std::string>& warnings = request.notes->warnings;
    if (checked < pods.size()) {
      warnings.push_back(
          fmt::format("new PodSecurity enforce level only checked against the first {} of {} existing pods",
                      checked, pods.size()));
    }
    if (found.empty()) return;
    warnings.push_back(
        fmt::format("existing pods in namespace {} violate the new PodSecurity enforce level \"{}\"",
                    k8s::Quote(ns), enforce.ToString()));
    std::vector<std::string> lines;
    for (const auto& [reasons, one] : found) {
      std::string others = one.count == 1   ? ""
                           : one.count == 2 ? " (and 1 other pod)"
                                            : fmt::format(" (and {} other pods)", one.count - 1);
      lines.push_back(one.pod + others + ": " + reasons);
    }
    std::sort(lines.begin(), lines.end());
    warnings.insert(warnings.end(), lines.begin(), lines.end());
  }

  bool IsExempt(const AdmissionRequest& request) const {
    const bool ns = config_.exempt_namespaces.count(request.ns) > 0;
    if (!ns && !config_.exempt_usernames.count(request.user.name)) return false;
    Note(request, "exempt", ns ? "namespace" : "user");
    CountExemption(request);
    return true;
  }
  bool IsExemptRuntimeClass(const AdmissionRequest& request, const corev1::PodSpec& spec) const {
    if (spec.runtime_class_name().empty() ||
        !config_.exempt_runtime_classes.count(spec.runtime_class_name())) {
      return false;
    }
    Note(request, "exempt", "runtimeClass");
    CountExemption(request);
    return true;
  }

  static bool IsPrivileged(const Policy& policy) {
    return policy.enforce.level == Level::kPrivileged && policy.audit.level == Level::kPrivileged &&
           policy.warn.level == Level::kPrivileged;
  }

  // Null: the namespace does not exist.
  std::optional<Policy> PolicyOfNamespace(const AdmissionRequest& request) const {
    static const api::ResourceInfo& namespaces = api::ResourceOf<corev1::Namespace>();
    storage::ObjectPtr found = store_.Peek(namespaces, request.ns);
    if (!found) {
      auto read =
          store_.Get(namespaces, request.ns, "", {SteadyTime::clock::now() + std::chrono::seconds(10), {}});
      if (!read || !*read) return std::nullopt;
      found = *read;
    }
    k8s::FieldErrors errors;
    Policy policy = PolicyOf(found->labels(), defaults_, &errors);
    if (!errors.empty()) Note(request, "error", "Failed to parse policy: " + errors.front().ToString());
    return policy;
  }

  storage::Store& store_;
  const PodSecurityConfig config_;
  const Policy defaults_;
};

}  // namespace

PluginPtr NewPodSecurity(storage::Store& store, const PodSecurityConfig& config) {
  return std::make_unique<PodSecurity>(store, config);
}

}  // namespace keelson::apiserver

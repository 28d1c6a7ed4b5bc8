// Jobs.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "lib/api/selector.h"
#include "lib/k8s/text/index_ranges.h"
#include "lib/k8s/validation/rule_table.h"
#include "lib/k8s/validation/workload/internal.h"
#include "lib/k8s/validation/workload/job_internal.h"

namespace keelson::k8s {

namespace {

constexpr int64_t kMaxIndexedParallelism = 100'000;
constexpr int64_t kMaxFailedIndexes = 100'000;
// With a backoff limit per index, more completions than this lower both of the following limits.
constexpr int64_t kManyCompletions = 100'000;
constexpr int64_t kParallelismOfMany = 10'000;
constexpr int64_t kFailedIndexesOfMany = 10'000;
constexpr int kMaxRules = 20;
constexpr int kMaxExitCodes = 255;
constexpr int kMaxPatterns = 20;
constexpr size_t kManagedByBytes = 63;
constexpr int64_t kIndexesBytes = 64 * 1024;

bool IsIndexed(const batchv1::JobSpec& spec) { return spec.completion_mode() == "Indexed"; }

// "acme.io/foo"
void CheckDomainPrefixed(const std::string& value, const Path& path, FieldErrors& errors) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-._~%!$&'()*+,;=:";
  if (value.empty()) {
    errors.push_back(Required(path));
    return;
  }
  const size_t slash = value.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == value.size()) {
    errors.push_back(Invalid(path, value, "must be a domain-prefixed path (such as \"acme.io/foo\")"));
    return;
  }
  const std::string_view text = value, domain = text.substr(0, slash), rest = text.substr(slash + 1);
  AddProblems(CheckDns1123Subdomain(domain), domain, path, errors);
  if (rest.find_first_not_of(kAllowed) == std::string_view::npos) return;
  errors.push_back(Invalid(
      path, rest, R"(Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+'))"));
}

void CheckIndexed(const batchv1::JobSpec& spec, const Path& path, FieldErrors& errors) {
  const Path parallelism = path.Child("parallelism"), failed = path.Child("maxFailedIndexes");
  const auto too_many = [&](const Path& at, int64_t value, int64_t limit, std::string_view when) {
    errors.push_back(Invalid(at, value, fmt::format("must be less than or equal to {}{}", limit, when)));
  };
  if (!spec.has_completions()) {
    errors.push_back(Required(path.Child("completions"), "when completion mode is Indexed"));
  }
  if (spec.parallelism() > kMaxIndexedParallelism) {
    too_many(parallelism, spec.parallelism(), kMaxIndexedParallelism, " when completion mode is Indexed");
  }
  if (spec.has_completions() && spec.max_failed_indexes() > spec.completions()) {
    errors.push_back(
        Invalid(failed, int64_t{spec.max_failed_indexes()}, "must be less than or equal to completions"));
  }
  if (spec.max_failed_indexes() > kMaxFailedIndexes) {
    too_many(failed, spec.max_failed_indexes(), kMaxFailedIndexes, "");
  }
  if (spec.completions() <= kManyCompletions || !spec.has_backoff_limit_per_index()) return;
  if (!spec.has_max_failed_indexes()) {
    errors.push_back(
        Required(failed, fmt::format("must be specified when completions is above {}", kManyCompletions)));
  }
  const std::string when =
      fmt::format(" when completions are above {} and used with backoff limit per index", kManyCompletions);
  if (spec.parallelism() > kParallelismOfMany) {
    too_many(parallelism, spec.parallelism(), kParallelismOfMany, when);
  }
  if (spec.max_failed_indexes() > kFailedIndexesOfMany) {
    too_many(failed, spec.max_failed_indexes(), kFailedIndexesOfMany, when);
  }
}

void CheckCompletionMode(const batchv1::JobSpec& spec, const Path& path, FieldErrors& errors) {
  const std::string& mode = spec.completion_mode();
  if (spec.has_completion_mode() && mode != "NonIndexed" && mode != "Indexed") {
    errors.push_back(NotSupported(path.Child("completionMode"), mode, {"NonIndexed", "Indexed"}));
  }
  if (IsIndexed(spec)) CheckIndexed(spec, path, errors);
  if (spec.has_completion_mode() && mode != "NonIndexed") return;
  constexpr std::string_view kWhy = "requires indexed completion mode";
  if (spec.has_backoff_limit_per_index()) {
    errors.push_back(
        Invalid(path.Child("backoffLimitPerIndex"), int64_t{spec.backoff_limit_per_index()}, kWhy));
  }
  if (spec.has_max_failed_indexes()) {
    errors.push_back(Invalid(path.Child("maxFailedIndexes"), int64_t{spec.max_failed_indexes()}, kWhy));
  }
}

void CheckExitCodes(const batchv1::PodFailurePolicyOnExitCodesRequirement& codes, const corev1::PodSpec& pod,
                    const Path& path, FieldErrors& errors) {
  const std::string& op = codes.operator_();
  if (op.empty()) {
    errors.push_back(Required(path.Child("operator"), R"(valid values: ["In" "NotIn"])"));
  } else if (op != "In" && op != "NotIn") {
    errors.push_back(NotSupported(path.Child("operator"), op, {"In", "NotIn"}));
  }
  const auto named = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(),
                       [&](const corev1::Container& one) { return one.name() == codes.container_name(); });
  };
  if (codes.has_container_name() && !named(pod.containers()) && !named(pod.init_containers())) {
    errors.push_back(Invalid(path.Child("containerName"), codes.container_name(),
                             "must be one of the container or initContainer names in the pod template"));
  }
  const Path list = path.Child("values");
  const auto& values = codes.values();
  if (values.empty()) errors.push_back(InvalidRaw(list, "[]", "at least one value is required"));
  if (values.size() > kMaxExitCodes) errors.push_back(TooMany(list, values.size(), kMaxExitCodes));
  std::set<int32_t> seen;
  for (int i = 0; i < values.size(); ++i) {
    if (op == "In" && values[i] == 0) {
      errors.push_back(Invalid(list.Index(i), int64_t{0}, "must not be 0 for the In operator"));
    }
    if (!seen.insert(values[i]).second) {
      errors.push_back(DuplicateRaw(list.Index(i), std::to_string(values[i])));
    }
  }
  if (!std::is_sorted(values.begin(), values.end())) {
    errors.push_back(InvalidRaw(list, fmt::format("[{}]", fmt::join(values, ",")), "must be ordered"));
  }
}

void CheckConditions(const batchv1::PodFailurePolicyRule& rule, const Path& path, FieldErrors& errors) {
  const auto& patterns = rule.on_pod_conditions();
  if (patterns.size() > kMaxPatterns) errors.push_back(TooMany(path, patterns.size(), kMaxPatterns));
  for (int i = 0; i < patterns.size(); ++i) {
    const Path item = path.Index(i);
    const std::string& status = patterns[i].status();
    AddProblems(CheckQualifiedName(patterns[i].type()), patterns[i].type(), item.Child("type"), errors);
    if (status.empty()) {
      errors.push_back(Required(item.Child("status"), R"(valid values: ["False" "True" "Unknown"])"));
    } else if (status != "False" && status != "True" && status != "Unknown") {
      errors.push_back(NotSupported(item.Child("status"), status, {"False", "True", "Unknown"}));
    }
  }
}

void CheckFailureRule(const batchv1::JobSpec& spec, const batchv1::PodFailurePolicyRule& rule,
                      const Path& path, FieldErrors& errors) {
  const std::string& action = rule.action();
  const Path field = path.Child("action");
  if (action.empty()) {
    errors.push_back(Required(field, R"(valid values: ["Count" "FailIndex" "FailJob" "Ignore"])"));
  } else if (action == "FailIndex") {
    if (!spec.has_backoff_limit_per_index()) {
      errors.push_back(Invalid(field, action, "requires the backoffLimitPerIndex to be set"));
    }
  } else if (action != "Count" && action != "FailJob" && action != "Ignore") {
    errors.push_back(NotSupported(field, action, {"Count", "FailIndex", "FailJob", "Ignore"}));
  }
  if (rule.has_on_exit_codes()) {
    CheckExitCodes(rule.on_exit_codes(), spec.template_().spec(), path.Child("onExitCodes"), errors);
  }
  CheckConditions(rule, path.Child("onPodConditions"), errors);
  const bool conditions = !rule.on_pod_conditions().empty();
  if (rule.has_on_exit_codes() && conditions) {
    errors.push_back(
        InvalidRaw(path, "", "specifying both OnExitCodes and OnPodConditions is not supported"));
  }
  if (!rule.has_on_exit_codes() && !conditions) {
    errors.push_back(InvalidRaw(path, "", "specifying one of OnExitCodes and OnPodConditions is required"));
  }
}

void CheckSuccessRule(const batchv1::JobSpec& spec, const batchv1::SuccessPolicyRule& rule, const Path& path,
                      FieldErrors& errors) {
  if (!rule.has_succeeded_count() && !rule.has_succeeded_indexes()) {
    errors.push_back(Required(path, "at least one of succeededCount or succeededIndexes must be specified"));
  }
  int64_t indexes = 0;
  if (rule.has_succeeded_indexes()) {
    const Path field = path.Child("succeededIndexes");
    const std::string& text = rule.succeeded_indexes();
    if (static_cast<int64_t>(text.size()) > kIndexesBytes) errors.push_back(TooLong(field, kIndexesBytes));
    const Result<IndexRanges> ranges = ParseIndexRanges(text, spec.completions());
    if (ranges) {
      indexes = CountIndexes(*ranges);
    } else {
      errors.push_back(
          Invalid(field, text, fmt::format("error parsing succeededIndexes: {}", ranges.error().message())));
    }
  }
  if (!rule.has_succeeded_count()) return;
  const Path field = path.Child("succeededCount");
  const int64_t count = rule.succeeded_count();
  CheckNonNegative(count, field, errors);
  if (count > spec.completions()) {
    errors.push_back(Invalid(field, count,
                             fmt::format("must be less than or equal to {} (the number of specified "
                                         "completions)",
                                         spec.completions())));
  }
  if (rule.has_succeeded_indexes() && count > indexes) {
    errors.push_back(Invalid(field, count,
                             fmt::format("must be less than or equal to {} (the number of indexes in the "
                                         "specified succeededIndexes field)",
                                         indexes)));
  }
}

void CheckSuccessPolicy(const batchv1::JobSpec& spec, const Path& path, FieldErrors& errors) {
  if (!IsIndexed(spec)) {
    errors.push_back(InvalidObject(path, spec.success_policy(), "requires indexed completion mode"));
    return;
  }
  const Path list = path.Child("rules");
  const auto& rules = spec.success_policy().rules();
  if (rules.empty()) {
    errors.push_back(
        Required(list, "at least one rules must be specified when the successPolicy is specified"));
  }
  if (rules.size() > kMaxRules) errors.push_back(TooMany(list, rules.size(), kMaxRules));
  for (int i = 0; i < rules.size(); ++i) CheckSuccessRule(spec, rules[i], list.Index(i), errors);
}

void CheckFailurePolicy(const batchv1::JobSpec& spec, const Path& path, FieldErrors& errors) {
  const Path list = path.Child("rules");
  const auto& rules = spec.pod_failure_policy().rules();
  if (rules.size() > kMaxRules) errors.push_back(TooMany(list, rules.size(), kMaxRules));
  for (int i = 0; i < rules.size(); ++i) CheckFailureRule(spec, rules[i], list.Index(i), errors);
}

void CheckReplacement(const batchv1::JobSpec& spec, const Path& path, FieldErrors& errors) {
  if (!spec.has_pod_replacement_policy()) return;
  const std::string& policy = spec.pod_replacement_policy();
  if (spec.has_pod_failure_policy()) {
    if (policy != "Failed") errors.push_back(NotSupported(path, policy, {"Failed"}));
  } else if (policy != "Failed" && policy != "TerminatingOrFailed") {
    errors.push_back(NotSupported(path, policy, {"Failed", "TerminatingOrFailed"}));
  }
}

void CheckRestartPolicy(const batchv1::JobSpec& spec, const Path& path, FieldErrors& errors) {
  const std::string& policy = spec.template_().spec().restart_policy();
  if (policy.empty() || policy == "Always") {
    errors.push_back(Required(path, R"(valid values: "OnFailure", "Never")"));
  } else if (policy != "OnFailure" && policy != "Never") {
    errors.push_back(NotSupported(path, policy, {"OnFailure", "Never"}));
  } else if (spec.has_pod_failure_policy() && policy != "Never") {
    errors.push_back(Invalid(path, policy, "only \"Never\" is supported when podFailurePolicy is specified"));
  }
}

// A label of the template must have the value that the Job set.
void CheckOwnLabel(const corev1::PodTemplateSpec& object, const std::string& key, const std::string& expected,
                   const Path& path, FieldErrors& errors) {
  const auto& labels = object.metadata().labels();
  const auto found = labels.find(key);
  const std::string detail = fmt::format("must be '{}'", expected);
  if (found == labels.end()) {
    errors.push_back(Required(path.Key(key), detail));
  } else if (found->second != expected) {
    errors.push_back(InvalidRaw(path.Key(key), PrintMap(labels), detail));
  }
}

void CheckGeneratedSelector(const batchv1::Job& object, FieldErrors& errors) {
  const batchv1::JobSpec& spec = object.spec();
  if (spec.manual_selector() || !spec.has_selector()) return;
  const std::string &uid = object.metadata().uid(), &name = object.metadata().name();
  const Path metadata("metadata"), path("spec");
  if (uid.empty()) errors.push_back(Required(metadata.Child("uid")));
  const Path at = path.Child("template"), own = at.Child("metadata"), labels = own.Child("labels");
  CheckOwnLabel(spec.template_(), "controller-uid", uid, labels, errors);
  CheckOwnLabel(spec.template_(), "job-name", name, labels, errors);
  CheckOwnLabel(spec.template_(), "batch.kubernetes.io/controller-uid", uid, labels, errors);
  CheckOwnLabel(spec.template_(), "batch.kubernetes.io/job-name", name, labels, errors);
  corev1::PodTemplateSpec expected;
  auto& map = *expected.mutable_metadata()->mutable_labels();
  map["controller-uid"] = map["batch.kubernetes.io/controller-uid"] = uid;
  map["job-name"] = map["batch.kubernetes.io/job-name"] = name;
  const Result<api::LabelSelector> selector = api::LabelSelector::From(spec.selector());
  if (selector && !selector->Matches(map)) {
    errors.push_back(InvalidObject(path.Child("selector"), spec.selector(), "`selector` not auto-generated"));
  }
}

void CheckJob(const batchv1::Job& object, FieldErrors& errors) {
  const Path path("spec"), metadata("metadata");
  const batchv1::JobSpec& spec = object.spec();
  CheckGeneratedSelector(object, errors);
  CheckJobSpec(spec, path, errors);
  if (!spec.has_selector()) {
    errors.push_back(Required(path.Child("selector")));
  } else {
    CheckLabelSelector(spec.selector(), path.Child("selector"), errors);
  }
  CheckSelects(spec.has_selector(), spec.selector(), spec.template_(), path.Child("template"), errors);
  if (!IsIndexed(spec) || spec.completions() <= 0) return;
  // The longest hostname that a pod will get.
  const std::string hostname = fmt::format("{}-{}", object.metadata().name(), spec.completions() - 1);
  if (CheckDns1123Label(hostname).empty()) return;
  errors.push_back(Invalid(metadata.Child("name"), object.metadata().name(),
                           fmt::format("will not able to create pod with invalid DNS label: {}", hostname)));
}

// ---- updates ----

bool HasSuspendedCondition(const batchv1::Job& object) {
  const auto& conditions = object.status().conditions();
  return std::any_of(conditions.begin(), conditions.end(),
                     [](const auto& one) { return one.type() == "Suspended" && one.status() == "True"; });
}

// A suspended Job without pods may still change where and with which resources its pods run.
bool MayMutateTemplate(const batchv1::Job& old) {
  if (!old.spec().suspend()) return false;
  if (!old.status().has_start_time()) return true;
  return HasSuspendedCondition(old) && old.status().active() == 0;
}

void AllowAffinity(const corev1::PodSpec& spec, corev1::PodSpec& old) {
  if (!spec.has_affinity() && !old.has_affinity()) return;
  if (spec.affinity().has_node_affinity()) {
    *old.mutable_affinity()->mutable_node_affinity() = spec.affinity().node_affinity();
  } else if (old.has_affinity()) {
    old.mutable_affinity()->clear_node_affinity();
  }
  const bool rest = old.affinity().has_node_affinity() || old.affinity().has_pod_affinity() ||
                    old.affinity().has_pod_anti_affinity();
  if (spec.has_affinity()) {
    old.mutable_affinity();
  } else if (!rest) {
    old.clear_affinity();
  }
}

void AllowResources(const corev1::PodSpec& spec, corev1::PodSpec& old) {
  const auto copy = [](const auto& from, auto& to) {
    if (from.size() != to.size()) return;
    for (int i = 0; i < from.size(); ++i) {
      if (from[i].has_resources()) {
        *to[i].mutable_resources() = from[i].resources();
      } else {
        to[i].clear_resources();
      }
    }
  };
  copy(spec.containers(), *old.mutable_containers());
  copy(spec.init_containers(), *old.mutable_init_containers());
}

// The old template with all fields that may change taken from the new one.
corev1::PodTemplateSpec Allowed(const corev1::PodTemplateSpec& now, const corev1::PodTemplateSpec& old) {
  corev1::PodTemplateSpec out = old;
  corev1::PodSpec& spec = *out.mutable_spec();
  AllowAffinity(now.spec(), spec);
  AllowResources(now.spec(), spec);
  *spec.mutable_node_selector() = now.spec().node_selector();
  *spec.mutable_tolerations() = now.spec().tolerations();
  *spec.mutable_scheduling_gates() = now.spec().scheduling_gates();
  *out.mutable_metadata()->mutable_annotations() = now.metadata().annotations();
  *out.mutable_metadata()->mutable_labels() = now.metadata().labels();
  return out;
}

void CheckCompletions(const batchv1::JobSpec& spec, const batchv1::JobSpec& old, const Path& path,
                      FieldErrors& errors) {
  if (spec.has_completions() == old.has_completions() && spec.completions() == old.completions()) return;
  const std::string printed = spec.has_completions() ? std::to_string(spec.completions()) : "null";
  if (!IsIndexed(spec)) {
    errors.push_back(InvalidRaw(path, printed, kImmutable));
  } else if (spec.has_completions() && spec.completions() != spec.parallelism()) {
    errors.push_back(InvalidRaw(path, printed, "can only be modified in tandem with spec.parallelism"));
  }
}

template <typename Message>
void CheckSame(bool has, const Message& value, bool had, const Message& old, const Path& path,
               FieldErrors& errors) {
  if (has == had && SameMessage(value, old)) return;
  errors.push_back(has ? InvalidObject(path, value, kImmutable) : InvalidRaw(path, "null", kImmutable));
}

void CheckJobUpdate(const batchv1::Job& object, const batchv1::Job& old, FieldErrors& errors) {
  const Path path("spec");
  const batchv1::JobSpec &spec = object.spec(), &before = old.spec();
  CheckCompletions(spec, before, path.Child("completions"), errors);
  CheckSame(spec.has_selector(), spec.selector(), before.has_selector(), before.selector(),
            path.Child("selector"), errors);
  CheckImmutable(spec.template_(),
                 MayMutateTemplate(old) ? Allowed(spec.template_(), before.template_()) : before.template_(),
                 path.Child("template"), errors);
  CheckImmutable(spec.completion_mode(), before.completion_mode(), path.Child("completionMode"), errors);
  CheckSame(spec.has_pod_failure_policy(), spec.pod_failure_policy(), before.has_pod_failure_policy(),
            before.pod_failure_policy(), path.Child("podFailurePolicy"), errors);
  if (spec.has_backoff_limit_per_index() != before.has_backoff_limit_per_index() ||
      spec.backoff_limit_per_index() != before.backoff_limit_per_index()) {
    errors.push_back(InvalidRaw(
        path.Child("backoffLimitPerIndex"),
        spec.has_backoff_limit_per_index() ? std::to_string(spec.backoff_limit_per_index()) : "null",
        kImmutable));
  }
  if (spec.has_managed_by() != before.has_managed_by() || spec.managed_by() != before.managed_by()) {
    errors.push_back(InvalidRaw(path.Child("managedBy"),
                                spec.has_managed_by() ? Quote(spec.managed_by()) : "null", kImmutable));
  }
  CheckSame(spec.has_success_policy(), spec.success_policy(), before.has_success_policy(),
            before.success_policy(), path.Child("successPolicy"), errors);
}

}  // namespace

void CheckJobSpec(const batchv1::JobSpec& spec, const Path& path, FieldErrors& errors) {
  CheckCounters({{"parallelism", spec.parallelism()},
                 {"completions", spec.completions()},
                 {"activeDeadlineSeconds", spec.active_deadline_seconds()},
                 {"backoffLimit", spec.backoff_limit()},
                 {"ttlSecondsAfterFinished", spec.ttl_seconds_after_finished()},
                 {"backoffLimitPerIndex", spec.backoff_limit_per_index()},
                 {"maxFailedIndexes", spec.max_failed_indexes()}},
                path, errors);
  if (spec.has_max_failed_indexes() && !spec.has_backoff_limit_per_index()) {
    errors.push_back(Required(path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"));
  }
  if (spec.has_managed_by()) {
    const Path field = path.Child("managedBy");
    CheckDomainPrefixed(spec.managed_by(), field, errors);
    if (spec.managed_by().size() > kManagedByBytes) errors.push_back(TooLong(field, kManagedByBytes));
  }
  CheckCompletionMode(spec, path, errors);
  if (spec.has_pod_failure_policy()) CheckFailurePolicy(spec, path.Child("podFailurePolicy"), errors);
  if (spec.has_success_policy()) CheckSuccessPolicy(spec, path.Child("successPolicy"), errors);
  CheckReplacement(spec, path.Child("podReplacementPolicy"), errors);
  const Path at = path.Child("template");
  CheckPodTemplate(spec.template_(), at, errors);
  CheckRestartPolicy(spec, at.Child("spec").Child("restartPolicy"), errors);
}

void RegisterJobRules(RuleTable& table) {
  table.Add<batchv1::Job, CheckJob>();
  table.AddUpdate<batchv1::Job, CheckJobUpdate>();
  table.AddStatus<batchv1::Job, CheckJobStatus>();
  table.Add<batchv1::CronJob, CheckCronJob>();
  table.AddUpdate<batchv1::CronJob, CheckCronJobUpdate>(true);
}

}  // namespace keelson::k8s

// PodDisruptionBudgets.
#include "lib/api/proto/policy_v1.pb.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace policyv1 = api::policy::v1;

namespace {

void CheckShare(const intstr::IntOrString& value, const Path& path, FieldErrors& errors) {
  CheckIntOrPercent(value, path, errors);
  if (!IsString(value)) return;
  const Result<int64_t> percent = ScaledValue(value, 100, true);
  if (percent && *percent > 100) {
    errors.push_back(Invalid(path, value.str_val(), "must not be greater than 100%"));
  }
}

void CheckBudget(const policyv1::PodDisruptionBudget& object, FieldErrors& errors) {
  const Path path("spec");
  const policyv1::PodDisruptionBudgetSpec& spec = object.spec();
  if (spec.has_min_available() && spec.has_max_unavailable()) {
    errors.push_back(InvalidInternal(path, spec, "minAvailable and maxUnavailable cannot be both set"));
  }
  if (spec.has_min_available()) CheckShare(spec.min_available(), path.Child("minAvailable"), errors);
  if (spec.has_max_unavailable()) CheckShare(spec.max_unavailable(), path.Child("maxUnavailable"), errors);
  if (spec.has_selector()) CheckLabelSelector(spec.selector(), path.Child("selector"), errors);
  if (spec.has_unhealthy_pod_eviction_policy()) {
    CheckOneOf(spec.unhealthy_pod_eviction_policy(), {"AlwaysAllow", "IfHealthyBudget"},
               path.Child("unhealthyPodEvictionPolicy"), errors);
  }
}

void CheckBudgetStatus(const policyv1::PodDisruptionBudget& object, const policyv1::PodDisruptionBudget&,
                       FieldErrors& errors) {
  const Path path("status");
  const policyv1::PodDisruptionBudgetStatus& status = object.status();
  CheckConditions(status.conditions(), path.Child("conditions"), errors);
  CheckNonNegative(status.disruptions_allowed(), path.Child("disruptionsAllowed"), errors);
  CheckNonNegative(status.current_healthy(), path.Child("currentHealthy"), errors);
  CheckNonNegative(status.desired_healthy(), path.Child("desiredHealthy"), errors);
  CheckNonNegative(status.expected_pods(), path.Child("expectedPods"), errors);
}

}  // namespace

void RegisterDisruptionRules(RuleTable& table) {
  table.Add<policyv1::PodDisruptionBudget, CheckBudget>();
  table.AddStatus<policyv1::PodDisruptionBudget, CheckBudgetStatus>();
}

}  // namespace keelson::k8s

// PriorityClasses, RuntimeClasses and the revisions that workloads keep.
#include <algorithm>

#include <fmt/format.h>

#include "lib/api/proto/node_v1.pb.h"
#include "lib/api/proto/scheduling_v1.pb.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace nodev1 = api::node::v1;
namespace schedulingv1 = api::scheduling::v1;

namespace {

constexpr int32_t kHighestUserPriority = 1'000'000'000;
constexpr std::pair<std::string_view, int32_t> kSystemClasses[] = {
    {"system-node-critical", 2 * kHighestUserPriority + 1000},
    {"system-cluster-critical", 2 * kHighestUserPriority}};

// Why this is not one of the system's own classes; empty when it is one.
std::string SystemClassProblem(const schedulingv1::PriorityClass& object) {
  const std::string& name = object.metadata().name();
  for (const auto& [known, value] : kSystemClasses) {
    if (known != name) continue;
    if (object.value() != value) return fmt::format("value of {} PriorityClass must be {}", name, value);
    if (object.global_default()) return fmt::format("globalDefault of {} PriorityClass must be false", name);
    return {};
  }
  return fmt::format("{} is not a known system priority class", name);
}

void CheckPriorityClass(const schedulingv1::PriorityClass& object, FieldErrors& errors) {
  if (object.metadata().name().starts_with("system-")) {
    if (const std::string problem = SystemClassProblem(object); !problem.empty()) {
      errors.push_back(Forbidden(
          Path("metadata").Child("name"),
          "priority class names with 'system-' prefix are reserved for system use only. error: " + problem));
    }
  } else if (object.value() > kHighestUserPriority) {
    errors.push_back(Forbidden(
        Path("value"),
        fmt::format("maximum allowed value of a user defined priority is {}", kHighestUserPriority)));
  }
  if (object.has_preemption_policy()) {
    CheckEnum(object.preemption_policy(), {"PreemptLowerPriority", "Never"}, Path("preemptionPolicy"),
              errors);
  }
}

void CheckPriorityClassUpdate(const schedulingv1::PriorityClass& object,
                              const schedulingv1::PriorityClass& old, FieldErrors& errors) {
  if (object.value() != old.value()) {
    errors.push_back(Forbidden(Path("value"), "may not be changed in an update."));
  }
  CheckImmutable(object.preemption_policy(), old.preemption_policy(), Path("preemptionPolicy"), errors);
}

void CheckOverhead(const nodev1::Overhead& overhead, FieldErrors& errors) {
  const Path path("overhead");
  // Checked like a container's limits, with the same path.
  const Path fixed = path.Child("limits");
  for (const std::string& name : SortedKeys(overhead.pod_fixed())) {
    const Problems problems = CheckQualifiedName(name);
    AddProblems(problems, name, fixed.Key(name), errors);
    const bool standard =
        name == "cpu" || name == "memory" || name == "ephemeral-storage" || IsHugePages(name);
    if (problems.empty() && name.find('/') == std::string::npos && !standard) {
      errors.push_back(Invalid(fixed.Key(name), name, "must be a standard resource for containers"));
    }
    CheckResourceAmount(name, overhead.pod_fixed().at(name), fixed.Key(name), errors);
  }
}

void CheckScheduling(const nodev1::Scheduling& scheduling, FieldErrors& errors) {
  const Path path("scheduling");
  CheckLabels(scheduling.node_selector(), path.Child("nodeSelector"), errors);
  const Path list = path.Child("tolerations");
  CheckTolerations(scheduling.tolerations(), list, errors);
  for (int i = 1; i < scheduling.tolerations_size(); ++i) {
    const auto begin = scheduling.tolerations().begin();
    const corev1::Toleration& one = scheduling.tolerations(i);
    const bool twice =
        std::any_of(begin, begin + i, [&](const auto& other) { return SameMessage(one, other); });
    if (!twice) continue;
    errors.push_back(DuplicateInternal(list.Index(i), one));
  }
}

void CheckRuntimeClass(const nodev1::RuntimeClass& object, FieldErrors& errors) {
  AddProblems(CheckDns1123Label(object.handler()), object.handler(), Path("handler"), errors);
  if (object.has_overhead()) CheckOverhead(object.overhead(), errors);
  if (object.has_scheduling()) CheckScheduling(object.scheduling(), errors);
}

void CheckRuntimeClassUpdate(const nodev1::RuntimeClass& object, const nodev1::RuntimeClass& old,
                             FieldErrors& errors) {
  CheckImmutable(object.handler(), old.handler(), Path("handler"), errors);
}

void CheckRevision(const appsv1::ControllerRevision& object, FieldErrors& errors) {
  if (!object.has_data() || object.data().raw().empty()) {
    errors.push_back(Required(Path("data"), "data is mandatory"));
  }
  CheckNonNegative(object.revision(), Path("revision"), errors);
}

void CheckRevisionUpdate(const appsv1::ControllerRevision& object, const appsv1::ControllerRevision& old,
                         FieldErrors& errors) {
  CheckRevision(object, errors);
  CheckImmutable(object.data(), old.data(), Path("data"), errors);
}

}  // namespace

void RegisterSchedulingRules(RuleTable& table) {
  table.Add<schedulingv1::PriorityClass, CheckPriorityClass>();
  table.AddUpdate<schedulingv1::PriorityClass, CheckPriorityClassUpdate>(true);
  table.Add<nodev1::RuntimeClass, CheckRuntimeClass>();
  table.AddUpdate<nodev1::RuntimeClass, CheckRuntimeClassUpdate>();
  table.Add<appsv1::ControllerRevision, CheckRevision>();
  table.AddUpdate<appsv1::ControllerRevision, CheckRevisionUpdate>(true);
}

}  // namespace keelson::k8s

// pods/eviction: a deletion that a PodDisruptionBudget may refuse.
//
//   finished, pending, terminating --------------------------------------.
//   unready, and the budget does not guard those -------------------------+--> DisruptionTarget, delete
//   else: take one of the budget's disruptionsAllowed, compare-and-swap --'
#include <fmt/format.h>

#include "controlplane/registry/impl.h"
#include "lib/api/meta.h"
#include "lib/api/proto/policy_v1.pb.h"
#include "lib/api/selector.h"
#include "lib/k8s/pods/conditions.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::registry {
namespace {

namespace policyv1 = api::policy::v1;
using metav1::DeleteOptions;
using policyv1::PodDisruptionBudget;

constexpr int kAttempts = 20;
constexpr int kMaxDisruptedPods = 2000;
constexpr int kRetrySeconds = 10;
constexpr char kRefused[] = "Cannot evict pod as it would violate the pod's disruption budget.";

const ResourceInfo& Pods() { return api::ResourceOf<corev1::Pod>(); }
const ResourceInfo& Budgets() {
  static const ResourceInfo& info = api::ResourceOf<PodDisruptionBudget>();
  return info;
}

Error Refused(std::string why, int retry_seconds) {
  ErrorDetails details;
  details.retry_after_seconds = retry_seconds;
  details.causes.push_back({"DisruptionBudget", std::move(why), ""});
  return Error(Code::kTooManyRequests, kRefused).WithDetails(std::move(details));
}

Error StillProcessed(std::string_view budget) {
  return Refused(fmt::format("The disruption budget {} is still being processed by the server.", budget),
                 kRetrySeconds);
}

std::string WhyNone(const PodDisruptionBudget& budget) {
  const std::string& name = budget.metadata().name();
  const auto& status = budget.status();
  const metav1::Condition* condition = k8s::FindCondition(status.conditions(), k8s::kDisruptionAllowed);
  const bool said = condition && condition->status() == "False" && !condition->message().empty();
  // The counts of a failed sync mean nothing.
  if (said && condition->reason() == k8s::kSyncFailed) {
    return fmt::format(
        "The disruption budget {} does not allow evicting pods currently because it failed sync: {}", name,
        condition->message());
  }
  if (status.current_healthy() <= status.desired_healthy()) {
    return fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", name,
                       status.desired_healthy(), status.current_healthy());
  }
  if (said) {
    return fmt::format("The disruption budget {} does not allow evicting pods currently ({}): {}", name,
                       condition->reason(), condition->message());
  }
  return fmt::format("The disruption budget {} does not allow evicting pods currently", name);
}

Error ForbiddenBudget(const std::string& name, std::string_view why) {
  ErrorDetails details;
  details.name = name;
  details.group = "policy";
  details.kind = "poddisruptionbudget";
  return Error(Code::kForbidden, fmt::format("poddisruptionbudget.policy \"{}\" is forbidden: {}", name, why))
      .WithDetails(std::move(details));
}

// Takes one disruption. The budget remembers the pod, so that the controller does not count it until it is
// gone.
Result<> Take(PodDisruptionBudget& budget, std::string_view pod, WallTime now) {
  auto& status = *budget.mutable_status();
  if (status.observed_generation() < budget.metadata().generation()) {
    return StillProcessed(budget.metadata().name());
  }
  if (status.disruptions_allowed() < 0) {
    return ForbiddenBudget(budget.metadata().name(), "pdb disruptions allowed is negative");
  }
  if (status.disrupted_pods_size() > kMaxDisruptedPods) {
    return ForbiddenBudget(budget.metadata().name(),
                           "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
  }
  if (status.disruptions_allowed() == 0) return Refused(WhyNone(budget), 0);
  status.set_disruptions_allowed(status.disruptions_allowed() - 1);
  if (status.disruptions_allowed() == 0) k8s::SyncDisruptionAllowed(budget, now);
  (*status.mutable_disrupted_pods())[std::string(pod)] = api::ToTime(now);
  return {};
}

bool NeedsNoBudget(const corev1::Pod& pod) {
  return k8s::IsTerminal(pod) || pod.status().phase() == "Pending" || k8s::IsTerminating(pod);
}

// An unready pod may go when there are enough others, or when the budget says so.
bool IsUnguarded(const corev1::Pod& pod, const PodDisruptionBudget& budget) {
  if (k8s::IsReady(pod)) return false;
  if (budget.spec().unhealthy_pod_eviction_policy() == "AlwaysAllow") return true;
  const auto& status = budget.status();
  return status.current_healthy() >= status.desired_healthy() && status.desired_healthy() > 0;
}

std::vector<ObjectPtr> BudgetsOf(storage::Store& store, const corev1::Pod& pod) {
  std::vector<ObjectPtr> found;
  store.ForEach(Budgets(), [&](const ObjectPtr& object) {
    if (object->ns() != pod.metadata().namespace_()) return;
    auto message = object->Decode();
    const auto& spec = static_cast<const PodDisruptionBudget&>(*message).spec();
    if (!spec.has_selector()) return;
    Result<api::LabelSelector> selector = api::LabelSelector::From(spec.selector());
    if (selector && selector->Matches(pod.metadata().labels())) found.push_back(object);
  });
  return found;
}

Error PodConflict(std::string_view name, std::string why) {
  ErrorDetails details;
  details.name = std::string(name);
  details.kind = "Pod";
  return Error(Code::kConflict, fmt::format("Operation cannot be fulfilled on Pod \"{}\": {}", name, why))
      .WithDetails(std::move(details));
}

Result<> CheckPreconditions(const metav1::ObjectMeta& meta, const DeleteOptions& options) {
  const auto& wanted = options.preconditions();
  if (wanted.has_uid() && wanted.uid() != meta.uid()) {
    return PodConflict(
        meta.name(),
        fmt::format("the UID in the precondition ({}) does not match the UID in record ({}). The "
                    "object might have been deleted and then recreated",
                    wanted.uid(), meta.uid()));
  }
  if (wanted.has_resource_version() && wanted.resource_version() != meta.resource_version()) {
    return PodConflict(meta.name(),
                       fmt::format("the ResourceVersion in the precondition ({}) does not match the "
                                   "ResourceVersion in record ({}). The object might have been modified",
                                   wanted.resource_version(), meta.resource_version()));
  }
  return {};
}

}  // namespace

// Sets the pod's DisruptionTarget condition before the deletion, so that everybody sees the reason.
Result<> Registry::Impl::MarkAndDelete(std::string_view ns, std::string_view name,
                                       DeleteOptions delete_options, const WriteOptions& options) {
  if (!options.dry_run) {
    static const ResourceInfo& status_row = *api::FindResource("", "v1", "pods/status");
    UpdateRequest request{Pods(), ns, name, Part::kStatus, &status_row, {}, {}, false};
    request.change = [&](const Message& current) -> Result<std::unique_ptr<Message>> {
      KEELSON_RETURN_IF_ERROR(CheckPreconditions(api::Meta(current), delete_options));
      std::unique_ptr<Message> changed = Clone(current);
      corev1::PodCondition condition;
      condition.set_type(std::string(k8s::kDisruptionTarget));
      condition.set_status("True");
      condition.set_reason("EvictionByEvictionAPI");
      condition.set_message("Eviction API: evicting");
      if (api::Meta(current).generation() > 0) {
        condition.set_observed_generation(api::Meta(current).generation());
      }
      k8s::SetCondition(*static_cast<corev1::Pod&>(*changed).mutable_status(), std::move(condition),
                        clock.Now());
      return changed;
    };
    KEELSON_ASSIGN_OR_RETURN(Written marked, Update(request, options));
    if (delete_options.preconditions().has_resource_version()) {
      delete_options.mutable_preconditions()->set_resource_version(std::to_string(marked.object->revision()));
    }
  }
  KEELSON_ASSIGN_OR_RETURN([[maybe_unused]] Deleted deleted,
                           Delete(Pods(), ns, name, delete_options, options));
  return {};
}

// Takes a disruption from the pod's budget. True: the pod may be deleted only in its current version.
Result<bool> Registry::Impl::AskBudget(const corev1::Pod& pod, std::string& budget_name,
                                       const WriteOptions& options) {
  std::vector<ObjectPtr> budgets = BudgetsOf(store, pod);
  if (budgets.empty()) return false;
  if (budgets.size() > 1) {
    return Error(
        Code::kInternal,
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
  }
  auto message = budgets[0]->Decode();
  const auto& budget = static_cast<const PodDisruptionBudget&>(*message);
  budget_name = budget.metadata().name();
  if (IsUnguarded(pod, budget)) return true;
  static const ResourceInfo& status_row = *api::FindResource("policy", "v1", "poddisruptionbudgets/status");
  const std::string ns = pod.metadata().namespace_();
  UpdateRequest request{Budgets(), ns, budget_name, Part::kStatus, &status_row, {}, {}, false};
  request.change = [&](const Message& current) -> Result<std::unique_ptr<Message>> {
    std::unique_ptr<Message> changed = Clone(current);
    KEELSON_RETURN_IF_ERROR(
        Take(static_cast<PodDisruptionBudget&>(*changed), pod.metadata().name(), clock.Now()));
    return changed;
  };
  Result<Written> taken = Update(request, options);
  if (taken) return false;
  if (!taken.error().Is(Code::kConflict)) return taken.error();
  ErrorDetails details;
  details.retry_after_seconds = kRetrySeconds;
  return Error(
             Code::kTimeout,
             fmt::format("Timeout: couldn't update PodDisruptionBudget \"{}\" due to conflicts", budget_name))
      .WithDetails(std::move(details));
}

Result<Written> Registry::Impl::Evict(const ResourceInfo& info, std::string_view ns, std::string_view name,
                                      const Message& body, const WriteOptions& options) {
  const auto& eviction = static_cast<const policyv1::Eviction&>(body);
  if (eviction.metadata().name() != name) {
    return Error(Code::kBadRequest, "name in URL does not match name in Eviction object");
  }
  std::unique_ptr<Message> copy = Clone(body);
  KEELSON_RETURN_IF_ERROR(Admit(options, Operation::kCreate, info, copy.get(), nullptr));
  WriteOptions own = options;
  own.admission = nullptr;  // permission to evict covers what an eviction does
  own.dry_run = options.dry_run || eviction.delete_options().dry_run_size() > 0;
  const DeleteOptions& wanted = eviction.delete_options();
  const bool pinned = wanted.preconditions().has_resource_version();
  for (int attempt = 1;; ++attempt) {
    KEELSON_ASSIGN_OR_RETURN(ObjectPtr object,
                             store.Get(Pods(), api::KeyOf(ns, name), "", LimitsOf(options)));
    if (!object) return NotFoundError(Pods(), name);
    auto message = object->Decode();
    const auto& pod = static_cast<const corev1::Pod&>(*message);
    DeleteOptions delete_options = wanted;
    if (NeedsNoBudget(pod)) {
      // A pending pod may become one that counts.
      const bool may_change = !k8s::IsTerminal(pod) && !k8s::IsTerminating(pod);
      if (may_change && !pinned) {
        delete_options.mutable_preconditions()->set_resource_version(std::to_string(object->revision()));
      }
      Result<> deleted = MarkAndDelete(ns, name, delete_options, own);
      if (deleted) return Written{nullptr, true, {}};
      if (!deleted.error().Is(Code::kConflict) || pinned || attempt >= kAttempts) return deleted.error();
      continue;
    }
    std::string budget;
    KEELSON_ASSIGN_OR_RETURN(bool only_as_is, AskBudget(pod, budget, own));
    if (only_as_is) {
      delete_options.mutable_preconditions()->set_resource_version(std::to_string(object->revision()));
    }
    Result<> deleted = MarkAndDelete(ns, name, delete_options, own);
    if (deleted) return Written{nullptr, true, {}};
    // It may have become ready: the client should try again.
    if (deleted.error().Is(Code::kConflict) && only_as_is && !pinned) return StillProcessed(budget);
    return deleted.error();
  }
}

}  // namespace keelson::registry

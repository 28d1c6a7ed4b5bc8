#include "controlplane/controllers/disruption/controller.h"

#include <google/protobuf/util/message_differencer.h>

#include "controlplane/controllers/common/deletable_resources.h"
#include "controlplane/controllers/common/kind_resources.h"
#include "controlplane/controllers/common/scale_client.h"
#include "lib/api/meta.h"
#include "lib/api/selector.h"
#include "lib/base/log.h"

namespace keelson::controllers {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr char kByNamespace[] = "namespace";

Result<api::LabelSelector> SelectorOf(const api::policy::v1::PodDisruptionBudget& budget) {
  if (!budget.spec().has_selector()) return api::LabelSelector::Nothing();
  return api::LabelSelector::From(budget.spec().selector());
}

template <typename T>
int64_t ReplicasOf(const T& object) {
  return object.spec().has_replicas() ? object.spec().replicas() : 1;
}

Error NoScale(const std::string& resource) {
  return Error(Code::kInvalid, resource + " does not implement the scale subresource");
}

// The scale of an owner that is no built-in kind, from the API: no informer has it.
Result<std::pair<std::string, int64_t>> CustomScaleOf(const client::RestClient& api, const std::string& ns,
                                                      const metav1::OwnerReference& owner,
                                                      const std::string& pod) {
  const Error none(Code::kNotFound, "found no controllers for pod \"" + pod + "\"");
  KEELSON_ASSIGN_OR_RETURN(const ResourceName resource,
                           ResourceInVersion(api, owner.api_version(), owner.kind()));
  Result<FoundScale> found = ScaleClient(api).GetOf(resource, ns, owner.name());
  if (!found && found.error().Is(Code::kNotFound)) {
    KEELSON_ASSIGN_OR_RETURN(const bool scales, HasSubresource(api, resource, "scale"));
    return scales ? none : NoScale(resource.GroupResource());
  }
  if (!found) return found.error();
  if (found->scale.metadata().uid() != owner.uid()) return none;
  return std::pair(owner.uid(), static_cast<int64_t>(found->scale.spec().replicas()));
}

}  // namespace

DisruptionController::DisruptionController(client::RestClient api, client::InformerFactory& informers,
                                           client::EventRecorder& events, Clock& clock)
    : Controller("disruption", clock),
      api_(std::move(api)),
      events_(events),
      budgets_(informers.Get<Budget>()),
      pods_(informers.Get<corev1::Pod>()),
      deployments_(informers.Get<appsv1::Deployment>()),
      sets_(informers.Get<appsv1::ReplicaSet>()),
      stateful_sets_(informers.Get<appsv1::StatefulSet>()),
      controllers_(informers.Get<corev1::ReplicationController>()) {
  pods_.AddIndex(kByNamespace,
                 [](const corev1::Pod& pod) { return std::vector{pod.metadata().namespace_()}; });
  budgets_.AddIndex(kByNamespace,
                    [](const Budget& budget) { return std::vector{budget.metadata().namespace_()}; });
  budgets_.AddHandler([this](const client::Change<Budget>& change) { queue().Add(change.key); });
  pods_.AddHandler([this](const client::Change<corev1::Pod>& change) {
    if (change.old_object) EnqueueBudgetsOf(*change.old_object);
    if (change.new_object) EnqueueBudgetsOf(*change.new_object);
  });
  // A change of a controller's scale changes the number of expected pods. A controller may also appear after
  // its pods.
  auto follow = [this](auto& informer) {
    using T = std::remove_cv_t<std::remove_reference_t<decltype(*informer.Get(""))>>;
    informer.AddHandler([this](const client::Change<T>& change) {
      if (!change.new_object) return;
      if (change.old_object && ReplicasOf(*change.old_object) == ReplicasOf(*change.new_object)) return;
      for (const auto& budget : budgets_.ByIndex(kByNamespace, change.new_object->metadata().namespace_())) {
        queue().Add(api::KeyOf(*budget));
      }
    });
  };
  follow(deployments_);
  follow(sets_);
  follow(stateful_sets_);
  follow(controllers_);
}

void DisruptionController::EnqueueBudgetsOf(const corev1::Pod& pod) {
  for (const auto& budget : budgets_.ByIndex(kByNamespace, pod.metadata().namespace_())) {
    Result<api::LabelSelector> selector = SelectorOf(*budget);
    if (selector && selector->Matches(pod.metadata().labels())) queue().Add(api::KeyOf(*budget));
  }
}

Result<disruption::Pods> DisruptionController::PodsOf(const Budget& budget) const {
  KEELSON_ASSIGN_OR_RETURN(api::LabelSelector selector, SelectorOf(budget));
  disruption::Pods found;
  for (const auto& pod : pods_.ByIndex(kByNamespace, budget.metadata().namespace_())) {
    if (selector.Matches(pod->metadata().labels())) found.push_back(pod);
  }
  return found;
}

// Returns the UID of the scaled object, and its scale. For a Deployment's ReplicaSet that is the Deployment.
Result<std::pair<std::string, int64_t>> DisruptionController::ScaleOf(const client::RestClient& api,
                                                                      const std::string& ns,
                                                                      const metav1::OwnerReference& owner,
                                                                      const std::string& pod) const {
  const std::string key = api::KeyOf(ns, owner.name());
  const api::ResourceInfo* info = RestMapping(owner.api_version(), owner.kind());
  auto missing = [&] { return std::pair(owner.uid(), int64_t{0}); };
  if (info && info->group == "apps" && info->resource == "replicasets") {
    auto set = sets_.Get(key);
    if (!set || set->metadata().uid() != owner.uid()) return missing();
    const metav1::OwnerReference* above = api::ControllerOf(set->metadata());
    if (!above || above->kind() != "Deployment") return std::pair(owner.uid(), ReplicasOf(*set));
    auto deployment = deployments_.Get(api::KeyOf(ns, above->name()));
    if (!deployment || deployment->metadata().uid() != above->uid()) {
      return std::pair(above->uid(), int64_t{0});
    }
    return std::pair(above->uid(), ReplicasOf(*deployment));
  }
  if (info && info->group == "apps" && info->resource == "statefulsets") {
    auto set = stateful_sets_.Get(key);
    if (!set || set->metadata().uid() != owner.uid()) return missing();
    return std::pair(owner.uid(), ReplicasOf(*set));
  }
  if (info && info->group.empty() && info->resource == "replicationcontrollers") {
    auto controller = controllers_.Get(key);
    if (!controller || controller->metadata().uid() != owner.uid()) return missing();
    return std::pair(owner.uid(), ReplicasOf(*controller));
  }
  if (!info) return CustomScaleOf(api, ns, owner, pod);
  return NoScale(info->GroupResource());
}

Result<int64_t> DisruptionController::ExpectedScale(const client::RestClient& api, const std::string& ns,
                                                    const disruption::Pods& pods, int& unmanaged) const {
  std::map<std::string, int64_t> scales;
  std::set<std::string> asked;
  for (const auto& pod : pods) {
    const metav1::OwnerReference* owner = api::ControllerOf(pod->metadata());
    if (!owner) {
      ++unmanaged;
      continue;
    }
    if (!asked.insert(owner->uid()).second) continue;
    Result<std::pair<std::string, int64_t>> scale = ScaleOf(api, ns, *owner, pod->metadata().name());
    if (!scale) return scale.error();
    scales.insert(*scale);
  }
  int64_t sum = 0;
  for (const auto& [uid, scale] : scales) sum += scale;
  return sum;
}

Result<> DisruptionController::Store(const client::RestClient& api, const Budget& budget,
                                     const api::policy::v1::PodDisruptionBudgetStatus& status) {
  if (MessageDifferencer::Equals(status, budget.status())) return {};
  Budget next = budget;
  *next.mutable_status() = status;
  Result<Budget> stored = api.UpdateStatus(next);
  if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error();
  return {};
}

Result<Requeue> DisruptionController::Sync(const client::RestClient& api, const Budget& budget) {
  KEELSON_ASSIGN_OR_RETURN(disruption::Pods pods, PodsOf(budget));
  if (pods.empty()) events_.Record(budget, "Normal", "NoPods", "No matching pods found");
  int64_t expected = static_cast<int64_t>(pods.size());
  int unmanaged = 0;
  if (disruption::NeedsScale(budget)) {
    Result<int64_t> scale = ExpectedScale(api, budget.metadata().namespace_(), pods, unmanaged);
    if (!scale) {
      events_.Record(budget, "Warning", "CalculateExpectedPodCountFailed",
                     "Failed to calculate the number of expected pods: " + scale.error().message());
      return scale.error();
    }
    expected = *scale;
  }
  if (unmanaged > 0) {
    KEELSON_ASSIGN_OR_RETURN(api::LabelSelector selector, SelectorOf(budget));
    events_.Record(
        budget, "Warning", "UnmanagedPods",
        "Pods selected by this PodDisruptionBudget (selector: " + selector.ToString() +
            ") were found to be unmanaged. As a result, the status of the PDB cannot be calculated "
            "correctly, which may result in undefined behavior. To account for these pods please set "
            "\".spec.minAvailable\" field of the PDB to an integer value.");
  }
  KEELSON_ASSIGN_OR_RETURN(disruption::Plan plan,
                           disruption::MakePlan(budget, pods, expected, clock().Now()));
  for (const auto& pod : plan.not_deleted) {
    events_.Record(*pod, "Warning", "NotDeleted",
                   "Pod was expected by PDB " + api::KeyOf(budget) + " to be deleted but it wasn't");
  }
  KEELSON_RETURN_IF_ERROR(Store(api, budget, plan.status));
  if (!plan.look_again) return Requeue{};
  return Requeue{*plan.look_again};
}

Result<Requeue> DisruptionController::Reconcile(const std::string& key, std::stop_token stop) {
  const client::RestClient api = api_.With(stop);
  auto budget = budgets_.Get(key);
  if (!budget) return Requeue{};
  Result<Requeue> synced = Sync(api, *budget);
  if (synced || synced.error().Is(Code::kConflict) || stop.stop_requested()) return synced;
  Result<> safe = Store(api, *budget, disruption::FailSafe(*budget, synced.error().message(), clock().Now()));
  if (!safe && !safe.error().Is(Code::kConflict)) {
    log::Warn("Cannot put a disruption budget on the safe side", {{"pdb", key}, {"err", safe.error()}});
  }
  return synced.error();
}

}  // namespace keelson::controllers

#include "controlplane/controllers/podautoscaler/controller.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/quantity.h"
#include "lib/base/log.h"

namespace keelson::controllers {
namespace {

using podautoscaler::Action;
using podautoscaler::Decision;
using podautoscaler::Evaluation;
using podautoscaler::EvaluationFailure;
using podautoscaler::Look;
using podautoscaler::Pods;
using podautoscaler::Tolerances;
using podautoscaler::Wish;

constexpr char kByNamespace[] = "namespace";
constexpr std::string_view kAbleToScale = "AbleToScale", kScalingActive = "ScalingActive",
                           kScalingLimited = "ScalingLimited";

bool SameSpec(const PodAutoscalerController::Autoscaler& a, const PodAutoscalerController::Autoscaler& b) {
  return api::EncodeRaw(a.spec()) == api::EncodeRaw(b.spec());
}

Tolerances TolerancesOf(const PodAutoscalerController::Autoscaler& autoscaler, double otherwise) {
  Tolerances out{otherwise, otherwise};
  const auto& behavior = autoscaler.spec().behavior();
  if (behavior.scale_up().has_tolerance()) {
    out.up = api::Amount::Of(behavior.scale_up().tolerance()).ToDouble();
  }
  if (behavior.scale_down().has_tolerance()) {
    out.down = api::Amount::Of(behavior.scale_down().tolerance()).ToDouble();
  }
  return out;
}

std::variant<Evaluation, EvaluationFailure> EvaluateCounted(const api::autoscaling::v2::MetricSpec& metric,
                                                            const podautoscaler::Subject& subject,
                                                            podautoscaler::MetricsClient& metrics) {
  const SteadyTime begin = SteadyTime::clock::now();
  auto outcome = podautoscaler::Evaluate(metric, subject, metrics);
  std::optional<int32_t> replicas;
  std::optional<Error> failure;
  if (const auto* found = std::get_if<Evaluation>(&outcome)) replicas = found->replicas;
  if (const auto* failed = std::get_if<EvaluationFailure>(&outcome)) {
    failure.emplace(failed->code, failed->why);
  }
  podautoscaler::CountMetric(metric.type(), replicas, subject.look.current_replicas,
                             failure ? &*failure : nullptr, SteadyTime::clock::now() - begin);
  return outcome;
}

}  // namespace

PodAutoscalerController::PodAutoscalerController(client::RestClient api, client::InformerFactory& informers,
                                                 client::EventRecorder& events, Clock& clock,
                                                 const PodAutoscalerOptions& options,
                                                 std::unique_ptr<podautoscaler::MetricsClient> metrics)
    : Controller("horizontalpodautoscaler", clock),
      api_(api),
      events_(events),
      options_(options),
      autoscalers_(informers.Get<Autoscaler>()),
      pods_(informers.Get<corev1::Pod>()),
      scales_(api),
      metrics_(metrics ? std::move(metrics) : podautoscaler::NewMetricsClient(api)) {
  pods_.AddIndex(kByNamespace,
                 [](const corev1::Pod& pod) { return std::vector{pod.metadata().namespace_()}; });
  // Ignores its own status writes.
  autoscalers_.AddHandler([this](const client::Change<Autoscaler>& change) {
    podautoscaler::CountAutoscaler(change.old_object.get(), change.new_object.get());
    if (change.old_object && change.new_object && SameSpec(*change.old_object, *change.new_object)) return;
    queue().Add(change.key);
  });
}

std::shared_ptr<PodAutoscalerController::Known> PodAutoscalerController::Remember(const std::string& key,
                                                                                  const std::string& ns) {
  MutexLock lock(mutex_);
  std::shared_ptr<Known>& known = known_[key];
  if (!known) {
    known = std::make_shared<Known>();
    known->ns = ns;
  }
  return known;
}

Result<Requeue> PodAutoscalerController::Reconcile(const std::string& key, std::stop_token) {
  std::shared_ptr<const Autoscaler> found = autoscalers_.Get(key);
  if (!found) {
    MutexLock lock(mutex_);
    known_.erase(key);
    return Requeue{};
  }
  Sync sync{key, *found, Remember(key, found->metadata().namespace_())};
  // The conditions report failures; the next period retries.
  const SteadyTime begin = SteadyTime::clock::now();
  Result<Action> done = Autoscale(sync);
  podautoscaler::CountReconciliation(done.value_or(Action::kNone), done ? nullptr : &done.error(),
                                     SteadyTime::clock::now() - begin);
  if (!done) log::Debug("Cannot autoscale", {{"autoscaler", key}, {"err", done.error()}});
  if (Result<> written = WriteStatus(sync, *found); !written) {
    Warn(sync, "FailedUpdateStatus", written.error().message());
    if (!written.error().Is(Code::kNotFound)) return written.error();
  }
  return Requeue{options_.sync_period};
}

void PodAutoscalerController::Warn(const Sync& sync, std::string_view reason, const std::string& message) {
  events_.Record(sync.autoscaler, "Warning", reason, message);
}

void PodAutoscalerController::SetCondition(Sync& sync, std::string_view type, bool status,
                                           std::string_view reason, std::string message) {
  auto& conditions = *sync.autoscaler.mutable_status()->mutable_conditions();
  auto found = std::find_if(conditions.begin(), conditions.end(),
                            [&](const auto& condition) { return condition.type() == type; });
  auto& condition = found == conditions.end() ? *conditions.Add() : *found;
  const char* text = status ? "True" : "False";
  if (condition.status() != text) *condition.mutable_last_transition_time() = api::ToTime(clock().Now());
  condition.set_type(std::string(type));
  condition.set_status(text);
  condition.set_reason(std::string(reason));
  condition.set_message(std::move(message));
}

void PodAutoscalerController::SetReplicas(Sync& sync, int32_t current, int32_t desired) {
  auto& status = *sync.autoscaler.mutable_status();
  status.set_current_replicas(current);
  status.set_desired_replicas(desired);
}

Result<Action> PodAutoscalerController::Autoscale(Sync& sync) {
  const auto& spec = sync.autoscaler.spec();
  const auto& target = spec.scale_target_ref();
  auto found = scales_.Get(sync.autoscaler.metadata().namespace_(), target.api_version(), target.kind(),
                           target.name());
  if (!found) {
    Warn(sync, "FailedGetScale", found.error().message());
    SetCondition(
        sync, kAbleToScale, false, "FailedGetScale",
        "the HPA controller was unable to get the target's current scale: " + found.error().message());
    return found.error();
  }
  SetCondition(sync, kAbleToScale, true, "SucceededGetScale",
               "the HPA controller was able to get the target's current scale");
  const int32_t current = found->scale.spec().replicas();
  const int32_t least = spec.has_min_replicas() ? spec.min_replicas() : 1;
  podautoscaler::History& history = sync.known->history;
  if (history.recommendations.empty()) history.recommendations.push_back({clock().Now(), current});

  if (current == 0 && least != 0) {
    SetCondition(sync, kScalingActive, false, "ScalingDisabled",
                 "scaling is disabled since the replica count of the target is zero");
    sync.autoscaler.mutable_status()->clear_current_metrics();
    SetReplicas(sync, current, current);
    return Action::kNone;
  }
  if (current > spec.max_replicas() || current < least) {
    sync.autoscaler.mutable_status()->clear_current_metrics();
    const bool above = current > spec.max_replicas();
    return Rescale(sync, std::move(*found), above ? spec.max_replicas() : least,
                   above ? "Current number of replicas above Spec.MaxReplicas"
                         : "Current number of replicas below Spec.MinReplicas");
  }
  Result<Computed> computed = Compute(sync, found->scale);
  if (!computed) {
    sync.autoscaler.mutable_status()->set_current_replicas(current);
    Warn(sync, "FailedComputeMetricsReplicas", computed.error().message());
    return computed.error();
  }
  const Wish wish{least, spec.max_replicas(), current, computed->replicas};
  const Decision decision = podautoscaler::Decide(
      wish, spec.has_behavior() ? &spec.behavior() : nullptr,
      std::chrono::duration_cast<std::chrono::seconds>(options_.downscale_stabilization), clock().Now(),
      history);
  SetCondition(sync, kAbleToScale, true, decision.able_reason, std::string(decision.able_message));
  SetCondition(sync, kScalingLimited, decision.limited, decision.limited_reason,
               std::string(decision.limited_message));
  if (decision.replicas == current) {
    SetReplicas(sync, current, current);
    return Action::kNone;
  }
  return Rescale(
      sync, std::move(*found), decision.replicas,
      computed->replicas > current ? computed->name + " above target" : "All metrics below target");
}

Result<Pods> PodAutoscalerController::PodsOf(Sync& sync, const std::string& text) {
  auto refuse = [&](const char* event, const char* reason, const std::string& message,
                    const std::string& condition) {
    Warn(sync, event, message);
    SetCondition(sync, kScalingActive, false, reason, condition);
    return Error(Code::kInvalid, message);
  };
  if (text.empty()) {
    return refuse("SelectorRequired", "InvalidSelector", "selector is required",
                  "the HPA target's scale is missing a selector");
  }
  Result<api::LabelSelector> selector = api::LabelSelector::Parse(text);
  if (!selector) {
    const std::string message = "couldn't convert selector into a corresponding internal selector object: " +
                                selector.error().message();
    return refuse("InvalidSelector", "InvalidSelector", message, message);
  }
  const std::string& ns = sync.autoscaler.metadata().namespace_();
  Pods out;
  for (auto& pod : pods_.ByIndex(kByNamespace, ns)) {
    if (selector->Matches(pod->metadata().labels())) out.push_back(std::move(pod));
  }

  std::vector<std::string> owners;
  {
    MutexLock lock(mutex_);
    sync.known->selector = std::move(*selector);
    for (const auto& [key, known] : known_) {
      if (known->ns != ns) continue;
      const bool selects = std::any_of(out.begin(), out.end(), [&known = known](const auto& pod) {
        return known->selector.Matches(pod->metadata().labels());
      });
      if (selects) owners.push_back(key);
    }
  }
  if (owners.size() > 1) {
    const std::string message = fmt::format("pods by selector {} are controlled by multiple HPAs: [{}]", text,
                                            fmt::join(owners, " "));
    return refuse("AmbiguousSelector", "AmbiguousSelector", message, message);
  }
  return out;
}

Result<PodAutoscalerController::Computed> PodAutoscalerController::Compute(
    Sync& sync, const autoscalingv1::Scale& scale) {
  auto& status = *sync.autoscaler.mutable_status();
  status.clear_current_metrics();
  KEELSON_ASSIGN_OR_RETURN(const Pods pods, PodsOf(sync, scale.status().selector()));
  const Look look{pods,
                  scale.spec().replicas(),
                  TolerancesOf(sync.autoscaler, options_.tolerance),
                  clock().Now(),
                  options_.cpu_initialization_period,
                  options_.initial_readiness_delay};
  const podautoscaler::Subject subject{sync.autoscaler.metadata().namespace_(), scale.status().selector(),
                                       scale.status().replicas(), look};
  Computed out;
  int invalid = 0;
  EvaluationFailure first{};
  for (const auto& metric : sync.autoscaler.spec().metrics()) {
    auto outcome = EvaluateCounted(metric, subject, *metrics_);
    auto& shown = *status.add_current_metrics();  // stays empty when there is nothing to show
    if (auto* failure = std::get_if<EvaluationFailure>(&outcome)) {
      Warn(sync, failure->reason, failure->why);
      if (invalid++ == 0) first = std::move(*failure);
      continue;
    }
    auto& evaluation = std::get<Evaluation>(outcome);
    shown = std::move(evaluation.status);
    if (out.replicas != 0 && evaluation.replicas <= out.replicas) continue;
    out.replicas = evaluation.replicas;
    out.name = std::move(evaluation.name);
  }
  // A metric that failed might recommend more replicas.
  const int all = sync.autoscaler.spec().metrics_size();
  if (invalid >= all || (invalid > 0 && out.replicas < look.current_replicas)) {
    SetCondition(sync, kScalingActive, false, first.reason,
                 "the HPA was unable to compute the replica count: " + first.why);
    return Error(first.code, fmt::format("invalid metrics ({} invalid out of {}), first error is: {}",
                                         invalid, all, first.error));
  }
  SetCondition(sync, kScalingActive, true, "ValidMetricFound",
               "the HPA was able to successfully calculate a replica count from " + out.name);
  return out;
}

Result<> PodAutoscalerController::PutScale(FoundScale found, int32_t replicas) const {
  constexpr int kTries = 5;
  const int32_t current = found.scale.spec().replicas();
  for (int i = 1;; ++i) {
    found.scale.mutable_spec()->set_replicas(replicas);
    Result<> put = scales_.Put(found);
    if (put || !put.error().Is(Code::kConflict) || i == kTries) return put;
    KEELSON_ASSIGN_OR_RETURN(found, scales_.Again(found));
    // Another client has scaled the target: the result is void.
    if (found.scale.spec().replicas() != current) return put;
  }
}

Result<Action> PodAutoscalerController::Rescale(Sync& sync, FoundScale found, int32_t replicas,
                                                const std::string& reason) {
  const int32_t current = found.scale.spec().replicas();
  if (Result<> put = PutScale(std::move(found), replicas); !put) {
    Warn(sync, "FailedRescale",
         fmt::format("New size: {}; reason: {}; error: {}", replicas, reason, put.error().message()));
    SetCondition(sync, kAbleToScale, false, "FailedUpdateScale",
                 "the HPA controller was unable to update the target scale: " + put.error().message());
    sync.autoscaler.mutable_status()->set_current_replicas(current);
    return put.error();
  }
  SetCondition(sync, kAbleToScale, true, "SucceededRescale",
               fmt::format("the HPA controller was able to update the target scale to {}", replicas));
  events_.Record(sync.autoscaler, "Normal", "SuccessfulRescale",
                 fmt::format("New size: {}; reason: {}", replicas, reason));
  const auto& spec = sync.autoscaler.spec();
  podautoscaler::NoteScale(current, replicas, spec.has_behavior() ? &spec.behavior() : nullptr, clock().Now(),
                           sync.known->history);
  log::Info("Rescaled", {{"autoscaler", sync.key}, {"from", current}, {"to", replicas}, {"reason", reason}});
  SetReplicas(sync, current, replicas);
  *sync.autoscaler.mutable_status()->mutable_last_scale_time() = api::ToTime(clock().Now());
  return replicas > current ? Action::kUp : Action::kDown;
}

Result<> PodAutoscalerController::WriteStatus(Sync& sync, const Autoscaler& before) {
  if (api::EncodeRaw(sync.autoscaler.status()) == api::EncodeRaw(before.status())) return {};
  Result<Autoscaler> written = api_.UpdateStatus(sync.autoscaler);
  if (written) return {};
  if (!written.error().Is(Code::kConflict)) return written.error();
  // Another client changed the rest of the object; only this controller writes the status.
  const metav1::ObjectMeta& meta = sync.autoscaler.metadata();
  Result<Autoscaler> stored = client::UpdateWithRetry<Autoscaler>(
      api_, meta.namespace_(), meta.name(), "status", [&](Autoscaler& fresh) -> Result<bool> {
        if (fresh.metadata().uid() != meta.uid()) return false;
        *fresh.mutable_status() = sync.autoscaler.status();
        return true;
      });
  if (!stored) return stored.error();
  return {};
}

}  // namespace keelson::controllers

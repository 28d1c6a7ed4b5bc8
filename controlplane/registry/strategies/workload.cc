// Kinds with a pod template.
#include <algorithm>

#include <fmt/format.h>

#include "controlplane/registry/strategy.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/batch_v1.pb.h"
#include "lib/k8s/disabled_fields.h"

namespace keelson::registry {
namespace {

namespace batchv1 = api::batch::v1;

// The spec of each kind's template; null: none.
template <typename T>
corev1::PodSpec* TemplateSpec(T& object) {
  return object.spec().has_template_() ? object.mutable_spec()->mutable_template_()->mutable_spec() : nullptr;
}
corev1::PodSpec* TemplateSpec(corev1::PodTemplate& object) {
  return object.mutable_template_()->mutable_spec();
}
corev1::PodSpec* TemplateSpec(batchv1::CronJob& object) {
  if (!object.spec().job_template().spec().has_template_()) return nullptr;
  return object.mutable_spec()->mutable_job_template()->mutable_spec()->mutable_template_()->mutable_spec();
}
template <typename T>
const corev1::PodSpec& OldTemplateSpec(const T& object) {
  return object.spec().template_().spec();
}
const corev1::PodSpec& OldTemplateSpec(const corev1::PodTemplate& object) {
  return object.template_().spec();
}
const corev1::PodSpec& OldTemplateSpec(const batchv1::CronJob& object) {
  return object.spec().job_template().spec().template_().spec();
}

template <typename T>
class TemplateStrategy : public Strategy {
 public:
  explicit TemplateStrategy(const ResourceInfo& info) : Strategy(info) { counts_generation_ = true; }

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    if (corev1::PodSpec* spec = TemplateSpec(static_cast<T&>(object))) {
      k8s::DropDisabledFields(*spec, nullptr);
    }
  }
  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    if (corev1::PodSpec* spec = TemplateSpec(static_cast<T&>(object))) {
      k8s::DropDisabledFields(*spec, &OldTemplateSpec(static_cast<const T&>(old)));
    }
    Strategy::PrepareUpdate(context, object, old);
  }
};

class StatefulSetStrategy : public TemplateStrategy<appsv1::StatefulSet> {
 public:
  using TemplateStrategy::TemplateStrategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    k8s::DropDisabledFields(*static_cast<appsv1::StatefulSet&>(object).mutable_spec(), nullptr);
    TemplateStrategy::PrepareCreate(context, object);
  }
  // Runs before the generation is compared.
  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    k8s::DropDisabledFields(*static_cast<appsv1::StatefulSet&>(object).mutable_spec(),
                            &static_cast<const appsv1::StatefulSet&>(old).spec());
    TemplateStrategy::PrepareUpdate(context, object, old);
  }
};

// Rollouts compare annotations too, so changing them changes the generation.
class DeploymentStrategy : public TemplateStrategy<appsv1::Deployment> {
 public:
  using TemplateStrategy::TemplateStrategy;

  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    TemplateStrategy::PrepareUpdate(context, object, old);
    metav1::ObjectMeta& meta = api::MutableMeta(object);
    const metav1::ObjectMeta& before = api::Meta(old);
    if (meta.generation() != before.generation()) return;
    const bool same =
        meta.annotations().size() == before.annotations().size() &&
        std::all_of(meta.annotations().begin(), meta.annotations().end(), [&](const auto& item) {
          const auto found = before.annotations().find(item.first);
          return found != before.annotations().end() && found->second == item.second;
        });
    if (!same) meta.set_generation(before.generation() + 1);
  }
  void PreparePart(const Context& context, Part part, Message& object, const Message& old) const override {
    Strategy::PreparePart(context, part, object, old);
    if (part == Part::kStatus) *api::MutableMeta(object).mutable_labels() = api::Meta(old).labels();
  }
};

class JobStrategy : public TemplateStrategy<batchv1::Job> {
 public:
  using TemplateStrategy::TemplateStrategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    TemplateStrategy::PrepareCreate(context, object);
    auto& job = static_cast<batchv1::Job&>(object);
    if (job.spec().manual_selector()) return;
    // A selector that no other Job can share: the Job's own UID. Keeps what the user has set, for
    // validation to refuse.
    const std::string uid = job.metadata().uid(), name = job.metadata().name();
    auto& labels = *job.mutable_spec()->mutable_template_()->mutable_metadata()->mutable_labels();
    for (const char* key : {"job-name", "batch.kubernetes.io/job-name"}) labels.insert({key, name});
    for (const char* key : {"controller-uid", kUidLabel}) labels.insert({key, uid});
    job.mutable_spec()->mutable_selector()->mutable_match_labels()->insert({kUidLabel, uid});
    // A Job without labels gets the template's.
    if (job.metadata().labels().empty()) *job.mutable_metadata()->mutable_labels() = labels;
  }

 private:
  static constexpr const char* kUidLabel = "batch.kubernetes.io/controller-uid";
};

// Maintains the template's generation, which apps/v1 shows only as an annotation.
class DaemonSetStrategy : public TemplateStrategy<appsv1::DaemonSet> {
 public:
  using TemplateStrategy::TemplateStrategy;

  void Fold(Message& object) const override {
    if (!api::Meta(object).annotations().contains(kAnnotation)) SetTemplateGeneration(object, 0);
  }

  void PrepareCreate(const Context& context, Message& object) const override {
    TemplateStrategy::PrepareCreate(context, object);
    SetTemplateGeneration(object, 1);
  }

  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    TemplateStrategy::PrepareUpdate(context, object, old);
    const auto& before = static_cast<const appsv1::DaemonSet&>(old);
    const auto& after = static_cast<const appsv1::DaemonSet&>(object);
    int64_t generation = 0;
    auto found = before.metadata().annotations().find(kAnnotation);
    if (found != before.metadata().annotations().end()) generation = std::atoll(found->second.c_str());
    if (api::EncodeRaw(before.spec().template_()) != api::EncodeRaw(after.spec().template_())) ++generation;
    if (generation > 0) SetTemplateGeneration(object, generation);
  }

  void PreparePart(const Context& context, Part part, Message& object, const Message& old) const override {
    TemplateStrategy::PreparePart(context, part, object, old);
    const auto& annotations = api::Meta(old).annotations();
    if (auto found = annotations.find(kAnnotation); found != annotations.end()) {
      (*api::MutableMeta(object).mutable_annotations())[kAnnotation] = found->second;
    }
  }

 private:
  static constexpr const char* kAnnotation = "deprecated.daemonset.template.generation";
  static void SetTemplateGeneration(Message& object, int64_t generation) {
    (*api::MutableMeta(object).mutable_annotations())[kAnnotation] = fmt::format("{}", generation);
  }
};

}  // namespace

std::unique_ptr<Strategy> MakeWorkloadStrategy(const ResourceInfo& info) {
  if (info.group == "batch" && info.resource == "jobs") return std::make_unique<JobStrategy>(info);
  if (info.group == "batch" && info.resource == "cronjobs") {
    return std::make_unique<TemplateStrategy<batchv1::CronJob>>(info);
  }
  if (info.group == "apps" && info.resource == "daemonsets") return std::make_unique<DaemonSetStrategy>(info);
  if (info.group == "apps" && info.resource == "deployments") {
    return std::make_unique<DeploymentStrategy>(info);
  }
  if (info.group == "apps" && info.resource == "replicasets") {
    return std::make_unique<TemplateStrategy<appsv1::ReplicaSet>>(info);
  }
  if (info.group == "apps" && info.resource == "statefulsets") {
    return std::make_unique<StatefulSetStrategy>(info);
  }
  if (info.group.empty() && info.resource == "replicationcontrollers") {
    return std::make_unique<TemplateStrategy<corev1::ReplicationController>>(info);
  }
  if (info.group.empty() && info.resource == "podtemplates") {
    return std::make_unique<TemplateStrategy<corev1::PodTemplate>>(info);
  }
  return nullptr;
}

}  // namespace keelson::registry

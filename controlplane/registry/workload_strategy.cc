// Workloads whose strategy does more than the default: Job, DaemonSet.
#include <fmt/format.h>

#include "controlplane/registry/strategy.h"
#include "lib/api/meta.h"
#include "lib/api/proto/batch_v1.pb.h"

namespace keelson::registry {
namespace {

namespace batchv1 = api::batch::v1;

class JobStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    auto& job = static_cast<batchv1::Job&>(object);
    if (job.spec().manual_selector()) return;
    // A selector that no other Job can share: the Job's own UID.
    const std::string uid = job.metadata().uid(), name = job.metadata().name();
    auto& labels = *job.mutable_spec()->mutable_template_()->mutable_metadata()->mutable_labels();
    labels["batch.kubernetes.io/controller-uid"] = uid;
    labels["batch.kubernetes.io/job-name"] = name;
    labels["controller-uid"] = uid;
    labels["job-name"] = name;
    (*job.mutable_spec()->mutable_selector()->mutable_match_labels())["batch.kubernetes.io/controller-uid"] =
        uid;
  }
};

// The template's generation, which apps/v1 shows as an annotation only.
class DaemonSetStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    SetTemplateGeneration(object, 1);
  }

  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    Strategy::PrepareUpdate(context, object, old);
    const auto& before = static_cast<const appsv1::DaemonSet&>(old);
    const auto& after = static_cast<const appsv1::DaemonSet&>(object);
    int64_t generation = 0;
    auto found = before.metadata().annotations().find(kAnnotation);
    if (found != before.metadata().annotations().end()) generation = std::atoll(found->second.c_str());
    if (before.spec().template_().SerializeAsString() != after.spec().template_().SerializeAsString())
      ++generation;
    if (generation > 0) SetTemplateGeneration(object, generation);
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
  if (info.group == "apps" && info.resource == "daemonsets") return std::make_unique<DaemonSetStrategy>(info);
  return nullptr;
}

}  // namespace keelson::registry

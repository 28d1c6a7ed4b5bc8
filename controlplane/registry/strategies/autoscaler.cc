// HorizontalPodAutoscaler of autoscaling/v1, which keeps parts of spec and status in annotations: only
// writers of that part may change them.
#include "controlplane/registry/strategy.h"
#include "lib/api/meta.h"

namespace keelson::registry {
namespace {

constexpr const char* kOfSpec[] = {"autoscaling.alpha.kubernetes.io/metrics",
                                   "autoscaling.alpha.kubernetes.io/behavior"};
constexpr const char* kOfStatus[] = {"autoscaling.alpha.kubernetes.io/conditions",
                                     "autoscaling.alpha.kubernetes.io/current-metrics"};

class AutoscalerV1Strategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    for (const char* key : kOfStatus) api::MutableMeta(object).mutable_annotations()->erase(key);
  }
  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    Strategy::PrepareUpdate(context, object, old);
    for (const char* key : kOfStatus) Keep(key, object, old);
  }
  void PreparePart(const Context& context, Part part, Message& object, const Message& old) const override {
    Strategy::PreparePart(context, part, object, old);
    for (const char* key : kOfSpec) Keep(key, object, old);
  }

 private:
  static void Keep(const char* key, Message& object, const Message& old) {
    auto& annotations = *api::MutableMeta(object).mutable_annotations();
    const auto before = api::Meta(old).annotations().find(key);
    if (before == api::Meta(old).annotations().end()) {
      annotations.erase(key);
    } else {
      annotations[key] = before->second;
    }
  }
};

}  // namespace

std::unique_ptr<Strategy> MakeAutoscalerStrategy(const ResourceInfo& info) {
  if (info.group != "autoscaling" || info.version != "v1") return nullptr;
  return std::make_unique<AutoscalerV1Strategy>(info);
}

}  // namespace keelson::registry

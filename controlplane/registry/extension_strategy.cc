// CustomResourceDefinition, APIService, and kinds whose status writers may not touch metadata.
#include <algorithm>

#include "controlplane/registry/strategy.h"
#include "lib/api/meta.h"
#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/api/proto/apiregistration_v1.pb.h"

namespace keelson::registry {
namespace {

namespace apiextensionsv1 = api::apiextensions::v1;
namespace apiregistrationv1 = api::apiregistration::v1;

// What a status writer sends of metadata is ignored.
class GuardedStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PreparePart(const Context& context, Part part, Message& object, const Message& old) const override {
    Strategy::PreparePart(context, part, object, old);
    if (part != Part::kStatus) return;
    metav1::ObjectMeta& meta = api::MutableMeta(object);
    const metav1::ObjectMeta& before = api::Meta(old);
    *meta.mutable_labels() = before.labels();
    *meta.mutable_annotations() = before.annotations();
    *meta.mutable_finalizers() = before.finalizers();
    *meta.mutable_owner_references() = before.owner_references();
  }
};

class DefinitionStrategy : public GuardedStrategy {
 public:
  using GuardedStrategy::GuardedStrategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    RememberStored(object);
  }
  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    Strategy::PrepareUpdate(context, object, old);
    RememberStored(object);
  }

 private:
  // Every version that objects have ever been stored in.
  static void RememberStored(Message& object) {
    auto& definition = static_cast<apiextensionsv1::CustomResourceDefinition&>(object);
    for (const auto& version : definition.spec().versions()) {
      if (!version.storage()) continue;
      auto& stored = *definition.mutable_status()->mutable_stored_versions();
      if (std::find(stored.begin(), stored.end(), version.name()) == stored.end())
        *stored.Add() = version.name();
      return;
    }
  }
};

class ApiServiceStrategy : public GuardedStrategy {
 public:
  using GuardedStrategy::GuardedStrategy;

  // What this server answers itself is available at once.
  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    auto& service = static_cast<apiregistrationv1::APIService&>(object);
    if (service.spec().has_service()) return;
    apiregistrationv1::APIServiceCondition& available = *service.mutable_status()->add_conditions();
    available.set_type("Available");
    available.set_status("True");
    available.set_reason("Local");
    available.set_message("Local APIServices are always available");
    *available.mutable_last_transition_time() = api::ToTime(context.clock.Now());
  }
};

}  // namespace

std::unique_ptr<Strategy> MakeExtensionStrategy(const ResourceInfo& info) {
  if (info.resource == "customresourcedefinitions") return std::make_unique<DefinitionStrategy>(info);
  if (info.resource == "apiservices") return std::make_unique<ApiServiceStrategy>(info);
  if (info.resource == "volumeattachments" || info.resource == "validatingadmissionpolicies" ||
      info.resource == "resourceclaims")
    return std::make_unique<GuardedStrategy>(info);
  return nullptr;
}

}  // namespace keelson::registry

// CustomResourceDefinition, APIService, ResourceClaim, ResourceSlice, and kinds where status writers may
// not change metadata.
#include <algorithm>
#include <set>

#include "controlplane/registry/strategy.h"
#include "lib/api/meta.h"
#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/api/proto/apiregistration_v1.pb.h"
#include "lib/api/proto/resource_v1.pb.h"

namespace keelson::registry {
namespace {

namespace apiextensionsv1 = api::apiextensions::v1;
namespace apiregistrationv1 = api::apiregistration::v1;
namespace resourcev1 = api::resource::v1;

// Ignores the metadata that a status writer sends.
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
  // The objects go before their definition does.
  void BeginDeletion(Message& object, Clock& clock) const override {
    constexpr const char* kCleanup = "customresourcecleanup.apiextensions.k8s.io";
    auto& definition = static_cast<apiextensionsv1::CustomResourceDefinition&>(object);
    auto& finalizers = *definition.mutable_metadata()->mutable_finalizers();
    if (std::find(finalizers.begin(), finalizers.end(), kCleanup) == finalizers.end()) {
      *finalizers.Add() = kCleanup;
    }
    auto& conditions = *definition.mutable_status()->mutable_conditions();
    auto terminating = std::find_if(conditions.begin(), conditions.end(),
                                    [](const auto& one) { return one.type() == "Terminating"; });
    auto& condition = terminating == conditions.end() ? *conditions.Add() : *terminating;
    condition.set_type("Terminating");
    condition.set_status("True");
    *condition.mutable_last_transition_time() = api::ToTime(clock.Now());
    condition.set_reason("InstanceDeletionPending");
    condition.set_message(
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon");
  }

 private:
  // Records every version that objects have ever been stored in.
  static void RememberStored(Message& object) {
    auto& definition = static_cast<apiextensionsv1::CustomResourceDefinition&>(object);
    for (const auto& version : definition.spec().versions()) {
      if (!version.storage()) continue;
      auto& stored = *definition.mutable_status()->mutable_stored_versions();
      if (std::find(stored.begin(), stored.end(), version.name()) == stored.end()) {
        *stored.Add() = version.name();
      }
      return;
    }
  }
};

class ApiServiceStrategy : public GuardedStrategy {
 public:
  using GuardedStrategy::GuardedStrategy;

  // A group version that this server serves itself is available at once.
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

class ResourceClaimStrategy : public GuardedStrategy {
 public:
  using GuardedStrategy::GuardedStrategy;

  // Drivers' device status goes when the allocation does.
  void PreparePart(const Context& context, Part part, Message& object, const Message& old) const override {
    GuardedStrategy::PreparePart(context, part, object, old);
    if (part != Part::kStatus) return;
    auto& status = *static_cast<resourcev1::ResourceClaim&>(object).mutable_status();
    std::set<std::string> freed;
    const auto& before = static_cast<const resourcev1::ResourceClaim&>(old).status();
    for (const auto& result : before.allocation().devices().results()) freed.insert(DeviceId(result));
    for (const auto& result : status.allocation().devices().results()) freed.erase(DeviceId(result));
    auto& devices = *status.mutable_devices();
    devices.erase(std::remove_if(devices.begin(), devices.end(),
                                 [&](const auto& device) { return freed.count(DeviceId(device)) > 0; }),
                  devices.end());
  }

 private:
  template <typename Device>
  static std::string DeviceId(const Device& device) {
    return device.driver() + "/" + device.pool() + "/" + device.device();
  }
};

class ResourceSliceStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    DropAlpha(SpecOf(object), nullptr);
  }
  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    DropAlpha(SpecOf(object), &static_cast<const resourcev1::ResourceSlice&>(old).spec());
    Strategy::PrepareUpdate(context, object, old);
  }

 private:
  using Spec = resourcev1::ResourceSliceSpec;
  static Spec& SpecOf(Message& object) {
    return *static_cast<resourcev1::ResourceSlice&>(object).mutable_spec();
  }
  static bool IsList(const resourcev1::DeviceAttribute& one) {
    return !one.ints().empty() || !one.bools().empty() || !one.strings().empty() || !one.versions().empty();
  }
  static bool HasLists(const Spec& spec) {
    return std::any_of(spec.devices().begin(), spec.devices().end(), [](const resourcev1::Device& device) {
      return std::any_of(device.attributes().begin(), device.attributes().end(),
                         [](const auto& entry) { return IsList(entry.second); });
    });
  }
  static bool HasMappings(const Spec& spec) {
    return std::any_of(spec.devices().begin(), spec.devices().end(), [](const resourcev1::Device& device) {
      return !device.node_allocatable_resource_mappings().empty();
    });
  }
  // Fields of alpha features (DRAListTypeAttributes, DRANodeAllocatableResources) are dropped unless
  // already used.
  static void DropAlpha(Spec& spec, const Spec* old) {
    const bool lists = HasLists(spec) && !(old && HasLists(*old));
    const bool mappings = HasMappings(spec) && !(old && HasMappings(*old));
    if (!lists && !mappings) return;
    for (resourcev1::Device& device : *spec.mutable_devices()) {
      if (mappings) device.clear_node_allocatable_resource_mappings();
      if (!lists) continue;
      for (auto& entry : *device.mutable_attributes()) {
        entry.second.clear_ints();
        entry.second.clear_bools();
        entry.second.clear_strings();
        entry.second.clear_versions();
      }
    }
  }
};

}  // namespace

std::unique_ptr<Strategy> MakeExtensionStrategy(const ResourceInfo& info) {
  if (info.resource == "customresourcedefinitions") return std::make_unique<DefinitionStrategy>(info);
  if (info.resource == "apiservices") return std::make_unique<ApiServiceStrategy>(info);
  if (info.resource == "resourceslices") return std::make_unique<ResourceSliceStrategy>(info);
  if (info.resource == "resourceclaims") return std::make_unique<ResourceClaimStrategy>(info);
  if (info.resource == "volumeattachments" || info.resource == "validatingadmissionpolicies" ||
      info.resource == "storageversionmigrations") {
    return std::make_unique<GuardedStrategy>(info);
  }
  return nullptr;
}

}  // namespace keelson::registry

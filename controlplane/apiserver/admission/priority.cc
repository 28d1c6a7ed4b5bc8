// Priority: resolves spec.priorityClassName to spec.priority and spec.preemptionPolicy; allows one default
// class.
#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/meta.h"
#include "lib/api/proto/scheduling_v1.pb.h"

namespace keelson::apiserver {
namespace {

namespace schedulingv1 = api::scheduling::v1;
using ClassPtr = std::shared_ptr<const schedulingv1::PriorityClass>;

// System classes that exist even before their objects are created.
int32_t SystemPriority(std::string_view name) {
  if (name == "system-node-critical") return 2000001000;
  if (name == "system-cluster-critical") return 2000000000;
  return 0;
}

class Priority : public AdmissionPlugin {
 public:
  explicit Priority(storage::Store& store) : store_(store) {}
  std::string_view name() const override { return "Priority"; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (!request.Is("", "pods") || !request.object) return {};
    auto& spec = *static_cast<corev1::Pod&>(*request.object).mutable_spec();
    if (request.operation == registry::Operation::kUpdate) {
      // Old clients send these fields back empty.
      const auto& old = static_cast<const corev1::Pod&>(*request.old_object).spec();
      if (!spec.has_priority() && old.has_priority()) spec.set_priority(old.priority());
      if (!spec.has_preemption_policy() && old.has_preemption_policy()) {
        spec.set_preemption_policy(old.preemption_policy());
      }
      return {};
    }
    if (request.operation != registry::Operation::kCreate) return {};
    int32_t value = 0;
    std::string policy = "PreemptLowerPriority";
    if (!spec.priority_class_name().empty()) {
      KEELSON_ASSIGN_OR_RETURN(const ClassPtr found, Find(spec.priority_class_name()));
      value = found ? found->value() : SystemPriority(spec.priority_class_name());
      if (!found && value == 0) {
        return NotAdmitted(
            request, fmt::format("no PriorityClass with name {} was found", spec.priority_class_name()));
      }
      if (found && found->has_preemption_policy()) policy = found->preemption_policy();
    } else if (ClassPtr preset = Default()) {
      spec.set_priority_class_name(preset->metadata().name());
      value = preset->value();
      if (preset->has_preemption_policy()) policy = preset->preemption_policy();
    }
    if (spec.has_priority() && spec.priority() != value) {
      return NotAdmitted(request,
                         fmt::format("the integer value of priority ({}) must not be provided in pod spec; "
                                     "priority admission controller computed {} from the given "
                                     "PriorityClass name",
                                     spec.priority(), value));
    }
    if (spec.has_preemption_policy() && spec.preemption_policy() != policy) {
      return NotAdmitted(request,
                         fmt::format("the string value of PreemptionPolicy ({}) must not be provided in pod "
                                     "spec; priority admission controller computed {} from the given "
                                     "PriorityClass name",
                                     spec.preemption_policy(), policy));
    }
    spec.set_priority(value);
    spec.set_preemption_policy(policy);
    return {};
  }

  // There may be only one default.
  Result<> Validate(const AdmissionRequest& request) override {
    const bool writes = request.Creates() || request.Updates();
    if (!writes || !request.Is("scheduling.k8s.io", "priorityclasses")) return {};
    const auto& own = request.Object<schedulingv1::PriorityClass>();
    if (!own.global_default()) return {};
    ClassPtr other = Default();
    if (!other || other->metadata().name() == own.metadata().name()) return {};
    return NotAdmitted(
        request, fmt::format("PriorityClass {} is already marked as default. Only one default can exist",
                             other->metadata().name()));
  }

 private:
  // The cache may not have a new class yet: read consistently.
  Result<ClassPtr> Find(std::string_view name) const {
    const api::ResourceInfo& classes = api::ResourceOf<schedulingv1::PriorityClass>();
    storage::ObjectPtr object = store_.Peek(classes, name);
    if (!object) {
      KEELSON_ASSIGN_OR_RETURN(
          object, store_.Get(classes, name, "", {SteadyTime::clock::now() + std::chrono::seconds(10), {}}));
    }
    return object ? std::static_pointer_cast<const schedulingv1::PriorityClass>(object->Decode()) : nullptr;
  }
  // With several defaults the lowest counts.
  ClassPtr Default() const {
    ClassPtr best;
    store_.ForEach(api::ResourceOf<schedulingv1::PriorityClass>(), [&](const storage::ObjectPtr& object) {
      auto one = std::static_pointer_cast<const schedulingv1::PriorityClass>(object->Decode());
      if (one->global_default() && (!best || one->value() < best->value())) best = one;
    });
    return best;
  }

  storage::Store& store_;
};

}  // namespace

std::unique_ptr<AdmissionPlugin> NewPriority(storage::Store& store) {
  return std::make_unique<Priority>(store);
}

}  // namespace keelson::apiserver

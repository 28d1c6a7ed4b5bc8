// RuntimeClass: sets a pod's overhead and node scheduling from its RuntimeClass.
#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/proto/node_v1.pb.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/tolerations.h"

namespace keelson::apiserver {
namespace {

using api::node::v1::RuntimeClass;
using ClassPtr = std::shared_ptr<const RuntimeClass>;

class RuntimeClassAdmission : public AdmissionPlugin {
 public:
  explicit RuntimeClassAdmission(storage::Store& store) : store_(store) {}
  std::string_view name() const override { return "RuntimeClass"; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (!request.Creates() || !request.Is("", "pods")) return {};
    corev1::PodSpec& spec = *request.Object<corev1::Pod>().mutable_spec();
    if (!spec.has_runtime_class_name()) return {};
    KEELSON_ASSIGN_OR_RETURN(ClassPtr found, Find(request, spec.runtime_class_name()));
    const auto& overhead = found->overhead().pod_fixed();
    if (!overhead.empty()) {
      if (!spec.overhead().empty() && !Same(spec.overhead(), overhead)) return Mismatch(request);
      *spec.mutable_overhead() = overhead;
    }
    for (const auto& wanted : found->scheduling().node_selector()) {
      auto& selector = *spec.mutable_node_selector();
      auto have = selector.find(wanted.first);
      if (have != selector.end() && have->second != wanted.second) {
        return NotAdmitted(request, fmt::format("conflict: runtimeClass.scheduling.nodeSelector[{}] = {}; "
                                                "pod.spec.nodeSelector[{}] = {}",
                                                wanted.first, wanted.second, wanted.first, have->second));
      }
      selector[wanted.first] = wanted.second;
    }
    for (const corev1::Toleration& toleration : found->scheduling().tolerations()) {
      k8s::AddToleration(*spec.mutable_tolerations(), toleration);
    }
    return {};
  }

  Result<> Validate(const AdmissionRequest& request) override {
    if (!request.Creates() || !request.Is("", "pods")) return {};
    const corev1::PodSpec& spec = request.Object<corev1::Pod>().spec();
    ClassPtr found;
    if (spec.has_runtime_class_name()) {
      KEELSON_ASSIGN_OR_RETURN(found, Find(request, spec.runtime_class_name()));
    }
    if (found && !found->overhead().pod_fixed().empty()) {
      return Same(spec.overhead(), found->overhead().pod_fixed()) ? Result<>() : Mismatch(request);
    }
    if (spec.overhead().empty()) return {};
    return NotAdmitted(request,
                       "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
  }

 private:
  static bool Same(const k8s::QuantityMap& a, const k8s::QuantityMap& b) {
    return k8s::ToResourceList(a) == k8s::ToResourceList(b);
  }
  static Result<> Mismatch(const AdmissionRequest& request) {
    return NotAdmitted(request, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  }

  // The cache may not have a new class yet: read consistently.
  Result<ClassPtr> Find(const AdmissionRequest& request, const std::string& name) const {
    const api::ResourceInfo& classes = api::ResourceOf<RuntimeClass>();
    storage::ObjectPtr object = store_.Peek(classes, name);
    if (!object) {
      KEELSON_ASSIGN_OR_RETURN(
          object, store_.Get(classes, name, "", {SteadyTime::clock::now() + std::chrono::seconds(10), {}}));
    }
    if (!object) {
      return NotAdmitted(request, fmt::format("pod rejected: RuntimeClass \"{}\" not found", name));
    }
    return std::static_pointer_cast<const RuntimeClass>(object->Decode());
  }

  storage::Store& store_;
};

}  // namespace

PluginPtr NewRuntimeClass(storage::Store& store) { return std::make_unique<RuntimeClassAdmission>(store); }

}  // namespace keelson::apiserver

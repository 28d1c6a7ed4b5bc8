// ExtendedResourceToleration: pods tolerate taints named after the extended resources that they request.
#include <set>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/tolerations.h"

namespace keelson::apiserver {
namespace {

class ExtendedResourceToleration : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "ExtendedResourceToleration"; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (!request.Is("", "pods") || !request.object) return {};
    corev1::PodSpec& spec = *request.Object<corev1::Pod>().mutable_spec();
    std::set<std::string> resources;
    k8s::ForEachContainer(spec, [&](const corev1::Container& container) {
      for (const auto& wanted : container.resources().requests()) {
        if (k8s::IsExtendedResource(wanted.first)) resources.insert(wanted.first);
      }
    });
    for (const std::string& resource : resources) {
      corev1::Toleration toleration;
      toleration.set_key(resource);
      toleration.set_operator_("Exists");
      toleration.set_effect("NoSchedule");
      k8s::AddToleration(*spec.mutable_tolerations(), toleration);
    }
    return {};
  }
};

}  // namespace

PluginPtr NewExtendedResourceToleration() { return std::make_unique<ExtendedResourceToleration>(); }

}  // namespace keelson::apiserver

// NodeDeclaredFeatureValidator: rejects changes of a bound pod that need a feature its node does not declare.
// The scheduler checks unbound pods.
#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/codec/codec.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::apiserver {
namespace {

bool Differ(const corev1::ResourceRequirements& a, const corev1::ResourceRequirements& b) {
  return api::EncodeRaw(a) != api::EncodeRaw(b);
}

bool GuaranteedCpuChanges(const corev1::Pod& now, const corev1::Pod& before) {
  if (before.status().qos_class() != "Guaranteed") return false;
  auto cpu = [](const corev1::Container& container) {
    return k8s::AmountOf(k8s::ToResourceList(container.resources().requests()), "cpu");
  };
  return !std::equal(now.spec().containers().begin(), now.spec().containers().end(),
                     before.spec().containers().begin(), before.spec().containers().end(),
                     [&](const auto& a, const auto& b) { return cpu(a) == cpu(b); });
}

bool InitContainersChange(const corev1::Pod& now, const corev1::Pod& before) {
  return !std::equal(now.spec().init_containers().begin(), now.spec().init_containers().end(),
                     before.spec().init_containers().begin(), before.spec().init_containers().end(),
                     [](const auto& a, const auto& b) {
                       return k8s::IsSidecar(b) || !Differ(a.resources(), b.resources());
                     });
}

bool PodLevelChanges(const corev1::Pod& now, const corev1::Pod& before) {
  return now.spec().has_resources() != before.spec().has_resources() ||
         Differ(now.spec().resources(), before.spec().resources());
}

// Feature names as nodes declare them (kubelet), and the changes that need them.
constexpr struct {
  std::string_view feature;
  bool (*needed)(const corev1::Pod& now, const corev1::Pod& before);
} kFeatures[] = {{"GuaranteedQoSPodCPUResize", GuaranteedCpuChanges},
                 {"InPlacePodLevelResourcesVerticalScaling", PodLevelChanges},
                 {"InPlacePodVerticalScalingInitContainers", InitContainersChange}};

class NodeDeclaredFeatures : public AdmissionPlugin {
 public:
  explicit NodeDeclaredFeatures(storage::Store& store) : store_(store) {}
  std::string_view name() const override { return "NodeDeclaredFeatureValidator"; }

  Result<> Validate(const AdmissionRequest& request) override {
    if (!request.Updates() || !(request.Is("", "pods") || request.Is("", "pods/resize"))) return {};
    const auto &now = request.Object<corev1::Pod>(), &before = request.OldObject<corev1::Pod>();
    const std::string& on = now.spec().node_name();
    if (on.empty() || now.metadata().generation() == before.metadata().generation()) return {};
    std::vector<std::string_view> needed;
    for (const auto& [feature, needs] : kFeatures) {
      if (needs(now, before)) needed.push_back(feature);
    }
    if (needed.empty()) return {};
    storage::ObjectPtr object = store_.Peek(api::ResourceOf<corev1::Node>(), on);
    if (!object) return NotAdmitted(request, fmt::format("node \"{}\" not found", on));
    const auto node = std::static_pointer_cast<const corev1::Node>(object->Decode());
    const auto& declared = node->status().declared_features();
    auto is_there = [&](std::string_view feature) {
      return std::find(declared.begin(), declared.end(), feature) != declared.end();
    };
    needed.erase(std::remove_if(needed.begin(), needed.end(), is_there), needed.end());
    if (needed.empty()) return {};
    return NotAdmitted(request,
                       fmt::format("pod update requires features {} which are not available on node \"{}\"",
                                   fmt::join(needed, ", "), on));
  }

 private:
  storage::Store& store_;
};

}  // namespace

PluginPtr NewNodeDeclaredFeatures(storage::Store& store) {
  return std::make_unique<NodeDeclaredFeatures>(store);
}

}  // namespace keelson::apiserver

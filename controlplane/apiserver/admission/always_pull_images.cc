// AlwaysPullImages: every container pulls its image, so that a pod cannot use a private image from the node's
// cache without credentials.
#include <set>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiserver {
namespace {

bool Concerns(const AdmissionRequest& request) {
  const bool writes = request.Creates() || request.Updates();
  return writes && (request.Is("", "pods") || request.Is("", "pods/ephemeralcontainers"));
}

std::set<std::string> Images(const corev1::PodSpec& spec) {
  std::set<std::string> images;
  for (const auto& container : spec.init_containers()) images.insert(container.image());
  for (const auto& container : spec.containers()) images.insert(container.image());
  for (const auto& container : spec.ephemeral_containers()) {
    images.insert(container.ephemeral_container_common().image());
  }
  return images;
}

// Ignores an update that adds no new image.
bool HasNewImage(const AdmissionRequest& request) {
  if (!request.Updates()) return true;
  const std::set<std::string> before = Images(request.OldObject<corev1::Pod>().spec());
  for (const std::string& image : Images(request.Object<corev1::Pod>().spec())) {
    if (!before.count(image)) return true;
  }
  return false;
}

class AlwaysPullImages : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "AlwaysPullImages"; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (!Concerns(request) || !HasNewImage(request)) return {};
    corev1::PodSpec& spec = *request.Object<corev1::Pod>().mutable_spec();
    for (auto& container : *spec.mutable_init_containers()) container.set_image_pull_policy("Always");
    for (auto& container : *spec.mutable_containers()) container.set_image_pull_policy("Always");
    for (auto& container : *spec.mutable_ephemeral_containers()) {
      container.mutable_ephemeral_container_common()->set_image_pull_policy("Always");
    }
    for (corev1::Volume& volume : *spec.mutable_volumes()) {
      if (volume.volume_source().has_image()) {
        volume.mutable_volume_source()->mutable_image()->set_pull_policy("Always");
      }
    }
    return {};
  }

  // A later plugin may have changed it.
  Result<> Validate(const AdmissionRequest& request) override {
    if (!Concerns(request) || !HasNewImage(request)) return {};
    const corev1::PodSpec& spec = request.Object<corev1::Pod>().spec();
    for (const auto* containers : {&spec.init_containers(), &spec.containers()}) {
      const bool init = containers == &spec.init_containers();
      for (int i = 0; i < containers->size(); ++i) {
        const std::string& policy = (*containers)[i].image_pull_policy();
        if (policy == "Always") continue;
        const k8s::Path root("spec");
        const k8s::Path list = root.Child(init ? "initContainers" : "containers");
        const k8s::Path item = list.Index(i);
        return NotAdmitted(request,
                           k8s::NotSupported(item.Child("imagePullPolicy"), policy, {"Always"}).ToString());
      }
    }
    return {};
  }
};

}  // namespace

PluginPtr NewAlwaysPullImages() { return std::make_unique<AlwaysPullImages>(); }

}  // namespace keelson::apiserver

// PodTopologyLabels: copies the zone and region labels of the node to pods when they are bound to it or
// created for it.
#include "controlplane/apiserver/admission/plugins.h"

namespace keelson::apiserver {
namespace {

class PodTopologyLabels : public AdmissionPlugin {
 public:
  explicit PodTopologyLabels(storage::Store& store) : store_(store) {}
  std::string_view name() const override { return "PodTopologyLabels"; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (!request.Creates()) return {};
    if (request.Is("", "pods/binding")) {
      auto& binding = request.Object<corev1::Binding>();
      Copy(binding.target().name(), *binding.mutable_metadata());
    } else if (request.Is("", "pods")) {
      auto& pod = request.Object<corev1::Pod>();
      Copy(pod.spec().node_name(), *pod.mutable_metadata());
    }
    return {};
  }

 private:
  void Copy(const std::string& node, metav1::ObjectMeta& meta) const {
    if (node.empty()) return;
    const storage::ObjectPtr object = store_.Peek(api::ResourceOf<corev1::Node>(), node);
    if (!object) return;
    for (const auto& [name, value] : object->labels()) {
      if (name == "topology.kubernetes.io/zone" || name == "topology.kubernetes.io/region") {
        (*meta.mutable_labels())[std::string(name)] = std::string(value);
      }
    }
  }
  storage::Store& store_;
};

}  // namespace

PluginPtr NewPodTopologyLabels(storage::Store& store) { return std::make_unique<PodTopologyLabels>(store); }

}  // namespace keelson::apiserver

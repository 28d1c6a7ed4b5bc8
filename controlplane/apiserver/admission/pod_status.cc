// A new pod begins as Pending with its QoS class, whatever status the client sent.
#include "controlplane/apiserver/admission/admission.h"
#include "lib/k8s/qos.h"

namespace keelson::apiserver {
namespace {

class PodStatus : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "PodStatus"; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (request.operation != registry::Operation::kCreate || !request.Is("", "pods")) return {};
    auto& pod = static_cast<corev1::Pod&>(*request.object);
    pod.clear_status();
    pod.mutable_status()->set_phase("Pending");
    pod.mutable_status()->set_qos_class(std::string(k8s::ComputeQosClass(pod)));
    return {};
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> NewPodStatus() { return std::make_unique<PodStatus>(); }

}  // namespace keelson::apiserver

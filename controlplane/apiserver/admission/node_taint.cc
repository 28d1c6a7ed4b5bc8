// TaintNodesByCondition: new nodes get the not-ready taint until the node controller has seen them ready.
#include <algorithm>

#include "controlplane/apiserver/admission/plugins.h"

namespace keelson::apiserver {
namespace {

constexpr char kNotReady[] = "node.kubernetes.io/not-ready";

class TaintNodesByCondition : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "TaintNodesByCondition"; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (!request.Is("", "nodes") || request.operation != registry::Operation::kCreate) return {};
    corev1::NodeSpec& spec = *static_cast<corev1::Node&>(*request.object).mutable_spec();
    const bool tainted =
        std::any_of(spec.taints().begin(), spec.taints().end(), [](const corev1::Taint& taint) {
          return taint.key() == kNotReady && taint.effect() == "NoSchedule";
        });
    if (tainted) return {};
    corev1::Taint& taint = *spec.add_taints();
    taint.set_key(kNotReady);
    taint.set_effect("NoSchedule");
    return {};
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> NewTaintNodesByCondition() {
  return std::make_unique<TaintNodesByCondition>();
}

}  // namespace keelson::apiserver

// Pods stay on a node that is not ready or not reachable for five minutes, unless they say otherwise.
#include "controlplane/apiserver/admission/admission.h"

namespace keelson::apiserver {
namespace {

constexpr int64_t kSeconds = 300;

class DefaultTolerationSeconds : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "DefaultTolerationSeconds"; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (!request.Is("", "pods") || !request.object || request.operation == registry::Operation::kDelete)
      return {};
    auto& pod = static_cast<corev1::Pod&>(*request.object);
    for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
      if (!ToleratesNoExecute(pod, key)) Add(pod, key);
    }
    return {};
  }

 private:
  static bool ToleratesNoExecute(const corev1::Pod& pod, std::string_view key) {
    for (const corev1::Toleration& toleration : pod.spec().tolerations()) {
      bool same_key = toleration.key() == key || toleration.key().empty();
      if (same_key && (toleration.effect() == "NoExecute" || toleration.effect().empty())) return true;
    }
    return false;
  }
  static void Add(corev1::Pod& pod, std::string_view key) {
    corev1::Toleration& toleration = *pod.mutable_spec()->add_tolerations();
    toleration.set_key(std::string(key));
    toleration.set_operator_("Exists");
    toleration.set_effect("NoExecute");
    toleration.set_toleration_seconds(kSeconds);
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> NewDefaultTolerationSeconds() {
  return std::make_unique<DefaultTolerationSeconds>();
}

}  // namespace keelson::apiserver

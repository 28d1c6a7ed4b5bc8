// DefaultTolerationSeconds: by default pods tolerate not-ready and unreachable nodes for five minutes.
#include "controlplane/apiserver/admission/plugins.h"

namespace keelson::apiserver {
namespace {

constexpr char kNotReady[] = "node.kubernetes.io/not-ready",
               kUnreachable[] = "node.kubernetes.io/unreachable";

class DefaultTolerationSeconds : public AdmissionPlugin {
 public:
  DefaultTolerationSeconds(int64_t not_ready, int64_t unreachable)
      : not_ready_(not_ready), unreachable_(unreachable) {}
  std::string_view name() const override { return "DefaultTolerationSeconds"; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (!request.Is("", "pods") || !request.object) return {};
    auto& pod = request.Object<corev1::Pod>();
    // Both are judged before either is there.
    const bool not_ready = ToleratesNoExecute(pod, kNotReady),
               unreachable = ToleratesNoExecute(pod, kUnreachable);
    if (!not_ready) Add(pod, kNotReady, not_ready_);
    if (!unreachable) Add(pod, kUnreachable, unreachable_);
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
  static void Add(corev1::Pod& pod, std::string_view key, int64_t seconds) {
    corev1::Toleration& toleration = *pod.mutable_spec()->add_tolerations();
    toleration.set_key(std::string(key));
    toleration.set_operator_("Exists");
    toleration.set_effect("NoExecute");
    toleration.set_toleration_seconds(seconds);
  }

  const int64_t not_ready_, unreachable_;
};

}  // namespace

PluginPtr NewDefaultTolerationSeconds(int64_t not_ready, int64_t unreachable) {
  return std::make_unique<DefaultTolerationSeconds>(not_ready, unreachable);
}

}  // namespace keelson::apiserver

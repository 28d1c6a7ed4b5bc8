#include "controlplane/scheduler/plugins/plugins.h"
#include "lib/api/scheme.h"

namespace keelson::scheduler {

namespace {

class DefaultBinder : public BindPlugin {
 public:
  explicit DefaultBinder(client::RestClient api) : api_(std::move(api)) {}
  std::string_view name() const override { return "DefaultBinder"; }

  Result<bool> Bind(CycleState&, const PodInfo& pod, const std::string& node) override {
    corev1::Binding binding;
    metav1::ObjectMeta& meta = *binding.mutable_metadata();
    meta.set_name(pod.name);
    meta.set_namespace_(pod.ns);
    meta.set_uid(pod.uid);  // never binds a successor of the same name
    binding.mutable_target()->set_kind("Node");
    binding.mutable_target()->set_name(node);
    KEELSON_RETURN_IF_ERROR(
        api_.CreateSub(api::ResourceOf<corev1::Pod>(), pod.ns, pod.name, "binding", binding, nullptr));
    return true;
  }

 private:
  const client::RestClient api_;
};

}  // namespace

std::unique_ptr<Plugin> NewDefaultBinder(client::RestClient api) {
  return std::make_unique<DefaultBinder>(std::move(api));
}

}  // namespace keelson::scheduler

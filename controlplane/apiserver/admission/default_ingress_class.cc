// DefaultIngressClass: sets the default class on Ingresses without one.
#include "controlplane/apiserver/admission/default_class.h"
#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/proto/networking_v1.pb.h"

namespace keelson::apiserver {
namespace {

class DefaultIngressClass : public AdmissionPlugin {
 public:
  explicit DefaultIngressClass(storage::Store& store) : store_(store) {}
  std::string_view name() const override { return "DefaultIngressClass"; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (!request.Creates() || !request.Is("networking.k8s.io", "ingresses")) return {};
    auto& ingress = request.Object<api::networking::v1::Ingress>();
    const bool named = ingress.spec().has_ingress_class_name() ||
                       ingress.metadata().annotations().count("kubernetes.io/ingress.class");
    if (named) return {};
    auto found = DefaultClass<api::networking::v1::IngressClass>(
        store_, {"ingressclass.kubernetes.io/is-default-class"});
    if (found) ingress.mutable_spec()->set_ingress_class_name(found->metadata().name());
    return {};
  }

 private:
  storage::Store& store_;
};

}  // namespace

PluginPtr NewDefaultIngressClass(storage::Store& store) {
  return std::make_unique<DefaultIngressClass>(store);
}

}  // namespace keelson::apiserver

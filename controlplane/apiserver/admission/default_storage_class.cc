// DefaultStorageClass: sets the default class on claims without one.
#include "controlplane/apiserver/admission/default_class.h"
#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/proto/storage_v1.pb.h"

namespace keelson::apiserver {
namespace {

class DefaultStorageClass : public AdmissionPlugin {
 public:
  explicit DefaultStorageClass(storage::Store& store) : store_(store) {}
  std::string_view name() const override { return "DefaultStorageClass"; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (!request.Creates() || !request.Is("", "persistentvolumeclaims")) return {};
    auto& claim = request.Object<corev1::PersistentVolumeClaim>();
    const bool named = claim.spec().has_storage_class_name() ||
                       claim.metadata().annotations().count("volume.beta.kubernetes.io/storage-class");
    if (named) return {};  // an empty name means no class
    auto found = DefaultClass<api::storage::v1::StorageClass>(
        store_,
        {"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"});
    if (found) claim.mutable_spec()->set_storage_class_name(found->metadata().name());
    return {};
  }

 private:
  storage::Store& store_;
};

}  // namespace

PluginPtr NewDefaultStorageClass(storage::Store& store) {
  return std::make_unique<DefaultStorageClass>(store);
}

}  // namespace keelson::apiserver

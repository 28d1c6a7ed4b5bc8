// PersistentVolumeClaimResize: only bound claims of a class with allowVolumeExpansion may grow.
#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::apiserver {
namespace {

using api::storage::v1::StorageClass;
using Claim = corev1::PersistentVolumeClaim;

std::string ClassOf(const Claim& claim) {
  auto found = claim.metadata().annotations().find("volume.beta.kubernetes.io/storage-class");
  return found != claim.metadata().annotations().end() ? found->second : claim.spec().storage_class_name();
}

api::Amount SizeOf(const Claim& claim) {
  return k8s::AmountOf(k8s::ToResourceList(claim.spec().resources().requests()), "storage");
}

class ClaimResize : public AdmissionPlugin {
 public:
  explicit ClaimResize(storage::Store& store) : store_(store) {}
  std::string_view name() const override { return "PersistentVolumeClaimResize"; }

  Result<> Validate(const AdmissionRequest& request) override {
    if (!request.Updates() || !request.Is("", "persistentvolumeclaims")) return {};
    const auto &now = request.Object<Claim>(), &before = request.OldObject<Claim>();
    if (SizeOf(now) <= SizeOf(before)) return {};
    if (before.status().phase() != "Bound") {
      return NotAdmitted(request, "Only bound persistent volume claims can be expanded");
    }
    if (MayGrow(ClassOf(now), ClassOf(before))) return {};
    return NotAdmitted(request,
                       "only dynamically provisioned pvc can be resized and the storageclass that provisions "
                       "the pvc must support resize");
  }

 private:
  bool MayGrow(const std::string& name, const std::string& before) const {
    if (name.empty() || name != before) return false;
    storage::ObjectPtr object = store_.Peek(api::ResourceOf<StorageClass>(), name);
    return object && std::static_pointer_cast<const StorageClass>(object->Decode())->allow_volume_expansion();
  }

  storage::Store& store_;
};

}  // namespace

PluginPtr NewClaimResize(storage::Store& store) { return std::make_unique<ClaimResize>(store); }

}  // namespace keelson::apiserver

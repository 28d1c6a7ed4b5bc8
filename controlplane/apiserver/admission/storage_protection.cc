// StorageObjectInUseProtection: adds the protection finalizers to claims, volumes and
// VolumeAttributesClasses.
#include <algorithm>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/meta.h"

namespace keelson::apiserver {
namespace {

class StorageProtection : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "StorageObjectInUseProtection"; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (!request.Creates()) return {};
    if (request.Is("", "persistentvolumeclaims")) Add(*request.object, "kubernetes.io/pvc-protection");
    if (request.Is("", "persistentvolumes")) Add(*request.object, "kubernetes.io/pv-protection");
    if (request.Is("storage.k8s.io", "volumeattributesclasses")) {
      Add(*request.object, "kubernetes.io/vac-protection");
    }
    return {};
  }

 private:
  static void Add(api::Message& object, const char* finalizer) {
    auto& finalizers = *api::MutableMeta(object).mutable_finalizers();
    if (std::find(finalizers.begin(), finalizers.end(), finalizer) == finalizers.end()) {
      *finalizers.Add() = finalizer;
    }
  }
};

}  // namespace

PluginPtr NewStorageProtection() { return std::make_unique<StorageProtection>(); }

}  // namespace keelson::apiserver

#include "controlplane/controllers/storageprotection/classes.h"

#include "controlplane/controllers/storageprotection/finalizer.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

constexpr char kFinalizer[] = "kubernetes.io/vac-protection", kByClass[] = "attributesClass";

using Names = std::vector<std::string>;

// The classes of a claim: requested, current, and the target of a modification.
Names ClassesOf(const corev1::PersistentVolumeClaim& claim) {
  Names names;
  for (const std::string& name :
       {claim.spec().volume_attributes_class_name(), claim.status().current_volume_attributes_class_name(),
        claim.status().modify_volume_status().target_volume_attributes_class_name()}) {
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

Names ClassesOf(const corev1::PersistentVolume& volume) {
  const std::string& name = volume.spec().volume_attributes_class_name();
  return name.empty() ? Names() : Names{name};
}

template <typename T>
bool AnyNames(const std::vector<T>& objects, const std::string& name) {
  return std::any_of(objects.begin(), objects.end(), [&](const T& object) {
    const Names names = ClassesOf(object);
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

}  // namespace

ClassProtectionController::ClassProtectionController(client::RestClient api,
                                                     client::InformerFactory& informers,
                                                     client::EventRecorder&, Clock& clock)
    : Controller("vacprotection", clock),
      api_(std::move(api)),
      classes_(informers.Get<Class>()),
      claims_(informers.Get<corev1::PersistentVolumeClaim>()),
      volumes_(informers.Get<corev1::PersistentVolume>()) {
  classes_.AddHandler([this](const client::Change<Class>& change) {
    if (change.new_object) queue().Add(change.key);
  });
  // What named a class before may not name it any more.
  auto watch = [this]<typename T>(client::Informer<T>& informer) {
    informer.AddIndex(kByClass, [](const T& object) { return ClassesOf(object); });
    informer.AddHandler([this](const client::Change<T>& change) {
      if (!change.old_object) return;
      for (const std::string& name : ClassesOf(*change.old_object)) queue().Add(name);
    });
  };
  watch(claims_);
  watch(volumes_);
}

// Claims and volumes may be newer than the store: ask the API before removing the finalizer.
Result<bool> ClassProtectionController::IsUsed(const client::RestClient& api, const std::string& name) const {
  if (!claims_.ByIndex(kByClass, name).empty() || !volumes_.ByIndex(kByClass, name).empty()) return true;
  KEELSON_ASSIGN_OR_RETURN(auto claims, api.List<corev1::PersistentVolumeClaim>(""));
  if (AnyNames(claims, name)) return true;
  KEELSON_ASSIGN_OR_RETURN(auto volumes, api.List<corev1::PersistentVolume>(""));
  return AnyNames(volumes, name);
}

Result<Requeue> ClassProtectionController::Reconcile(const std::string& key, std::stop_token stop) {
  auto object = classes_.Get(key);
  if (!object) return Requeue{};
  const client::RestClient api = api_.With(stop);
  if (!object->metadata().has_deletion_timestamp()) return SetFinalizer(api, *object, kFinalizer, true);
  if (!HasFinalizer(object->metadata(), kFinalizer)) return Requeue{};
  KEELSON_ASSIGN_OR_RETURN(bool used, IsUsed(api, key));
  if (used) return Requeue{};  // the next change of the user triggers a sync
  return SetFinalizer(api, *object, kFinalizer, false);
}

}  // namespace keelson::controllers

// Persistent volumes and claims.
#include "lib/api/quantity.h"
#include "lib/k8s/rule_table.h"

namespace keelson::k8s {

namespace {

const std::vector<std::string_view> kAccessModes = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                                                    "ReadWriteOncePod"};
const std::vector<std::string_view> kVolumeModes = {"Block", "Filesystem"};

void CheckAccessModes(const Strings& modes, const Path& path, FieldErrors& errors) {
  bool exclusive = false;
  for (const std::string& mode : modes) {
    CheckEnum(mode, kAccessModes, path, errors);
    exclusive = exclusive || mode == "ReadWriteOncePod";
  }
  if (exclusive && modes.size() > 1) {
    errors.push_back(Forbidden(path, "may not use ReadWriteOncePod with other access modes"));
  }
}

void CheckPositive(const QuantityMap& quantities, const Path& path, FieldErrors& errors) {
  const auto storage = quantities.find("storage");
  const Path key = path.Key("storage");
  if (storage == quantities.end()) {
    errors.push_back(Required(key));
    return;
  }
  const Result<api::Amount> amount = api::Amount::Parse(storage->second.string());
  if (!amount || *amount <= api::Amount()) {
    errors.push_back(Invalid(key, storage->second.string(), "must be greater than zero"));
  }
}

void CheckPersistentVolume(const corev1::PersistentVolume& object, FieldErrors& errors) {
  const Path path("spec");
  const corev1::PersistentVolumeSpec& spec = object.spec();
  if (spec.access_modes().empty()) errors.push_back(Required(path.Child("accessModes")));
  CheckAccessModes(spec.access_modes(), path.Child("accessModes"), errors);
  if (spec.capacity().empty()) {
    errors.push_back(Required(path.Child("capacity")));
  } else {
    CheckPositive(spec.capacity(), path.Child("capacity"), errors);
  }
  CheckEnum(spec.persistent_volume_reclaim_policy(), {"Delete", "Recycle", "Retain"},
            path.Child("persistentVolumeReclaimPolicy"), errors);
  const corev1::PersistentVolumeSource& source = spec.persistent_volume_source();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  source.GetReflection()->ListFields(source, &fields);
  if (fields.empty()) errors.push_back(Required(path, "must specify a volume type"));
  for (size_t i = 1; i < fields.size(); ++i) {
    errors.push_back(
        Forbidden(path.Child(fields[i]->json_name()), "may not specify more than 1 volume type"));
  }
  if (source.has_host_path() && source.host_path().path().empty()) {
    const Path host_path = path.Child("hostPath");
    errors.push_back(Required(host_path.Child("path")));
  }
  if (source.has_local() && !spec.has_node_affinity()) {
    errors.push_back(Required(path.Child("nodeAffinity"), "Local volume requires node affinity"));
  }
  if (source.has_csi()) {
    const Path csi = path.Child("csi");
    if (source.csi().driver().empty()) errors.push_back(Required(csi.Child("driver")));
    if (source.csi().volume_handle().empty()) errors.push_back(Required(csi.Child("volumeHandle")));
  }
  if (spec.has_node_affinity()) {
    const Path affinity = path.Child("nodeAffinity");
    if (!spec.node_affinity().has_required()) {
      errors.push_back(Required(affinity.Child("required"), "must specify required node constraints"));
    } else {
      CheckNodeSelector(spec.node_affinity().required(), affinity.Child("required"), errors);
    }
  }
  if (spec.has_volume_mode()) CheckEnum(spec.volume_mode(), kVolumeModes, path.Child("volumeMode"), errors);
}

void CheckPersistentVolumeUpdate(const corev1::PersistentVolume& object, const corev1::PersistentVolume& old,
                                 FieldErrors& errors) {
  const Path path("spec");
  if (!SameMessage(object.spec().persistent_volume_source(), old.spec().persistent_volume_source())) {
    errors.push_back(Forbidden(path.Child("persistentvolumesource"),
                               "spec.persistentvolumesource is immutable after creation"));
  }
  CheckImmutable(object.spec().volume_mode(), old.spec().volume_mode(), path.Child("volumeMode"), errors);
}

void CheckClaim(const corev1::PersistentVolumeClaim& object, FieldErrors& errors) {
  CheckClaimSpec(object.spec(), Path("spec"), errors);
}

void CheckClaimUpdate(const corev1::PersistentVolumeClaim& object, const corev1::PersistentVolumeClaim& old,
                      FieldErrors& errors) {
  const Path path("spec");
  corev1::PersistentVolumeClaimSpec now = object.spec(), before = old.spec();
  const bool bound = old.status().phase() == "Bound";
  // The binder fills in the volume's name, and the default class may come late.
  if (before.volume_name().empty()) before.set_volume_name(now.volume_name());
  if (!before.has_storage_class_name() && now.has_storage_class_name()) {
    before.set_storage_class_name(now.storage_class_name());
  }
  if (bound) {
    *before.mutable_resources()->mutable_requests() = now.resources().requests();
    if (now.has_volume_attributes_class_name()) {
      before.set_volume_attributes_class_name(now.volume_attributes_class_name());
    }
  }
  if (now.volume_name().empty()) {
    now.clear_volume_name();
    before.clear_volume_name();
  }
  if (!SameMessage(now, before)) {
    errors.push_back(Forbidden(path,
                               "spec is immutable after creation except resources.requests and "
                               "volumeAttributesClassName for bound claims"));
  }
  const api::Amount asked = AmountOf(ToResourceList(object.spec().resources().requests()), "storage");
  const api::Amount had = AmountOf(ToResourceList(old.status().capacity()), "storage");
  if (bound && asked < had) {
    const Path resources = path.Child("resources");
    const Path requests = resources.Child("requests");
    errors.push_back(Forbidden(requests.Child("storage"), "field can not be less than status.capacity"));
  }
}

}  // namespace

void CheckClaimSpec(const corev1::PersistentVolumeClaimSpec& spec, const Path& path, FieldErrors& errors) {
  if (spec.access_modes().empty()) {
    errors.push_back(Required(path.Child("accessModes"), "at least 1 access mode is required"));
  }
  CheckAccessModes(spec.access_modes(), path.Child("accessModes"), errors);
  if (spec.has_selector()) CheckLabelSelector(spec.selector(), path.Child("selector"), errors);
  const Path resources = path.Child("resources");
  const Path requests = resources.Child("requests");
  CheckPositive(spec.resources().requests(), requests, errors);
  if (!spec.storage_class_name().empty()) {
    AddProblems(CheckDns1123Subdomain(spec.storage_class_name()), spec.storage_class_name(),
                path.Child("storageClassName"), errors);
  }
  if (spec.has_volume_mode()) CheckEnum(spec.volume_mode(), kVolumeModes, path.Child("volumeMode"), errors);
}

void RegisterStorageRules(RuleTable& table) {
  table.Add<corev1::PersistentVolume, CheckPersistentVolume>();
  table.AddUpdate<corev1::PersistentVolume, CheckPersistentVolumeUpdate>();
  table.Add<corev1::PersistentVolumeClaim, CheckClaim>();
  table.AddUpdate<corev1::PersistentVolumeClaim, CheckClaimUpdate>();
}

}  // namespace keelson::k8s

// The rest of storage.k8s.io: classes, attachments, capacities.
#include <fmt/format.h>

#include "lib/api/proto/storage_v1.pb.h"
#include "lib/base/text.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace storagev1 = api::storage::v1;

void RegisterCsiRules(RuleTable& table);

namespace {

constexpr int64_t kParameterBytes = 256 * 1024;
constexpr int kParameters = 512;
constexpr size_t kErrorBytes = 1024;

void CheckProvisioner(const std::string& name, const Path& path, FieldErrors& errors) {
  if (name.empty()) {
    errors.push_back(Required(path));
  } else {
    AddProblems(CheckQualifiedName(Lower(name)), name, path, errors);
  }
}

void CheckParameters(const StringMap& parameters, bool may_be_empty, const Path& path, FieldErrors& errors) {
  if (parameters.size() > kParameters) {
    errors.push_back(TooLong(path, kParameters));
    return;
  }
  int64_t total = 0;
  for (const auto& [key, value] : parameters) {
    if (key.empty()) errors.push_back(Invalid(path, key, "field can not be empty."));
    total += static_cast<int64_t>(key.size() + value.size());
  }
  if (total > kParameterBytes) errors.push_back(TooLong(path, kParameterBytes));
  if (!may_be_empty && parameters.empty()) {
    errors.push_back(Required(path, "must contain at least one key/value pair"));
  }
}

void CheckTopologyLabel(const corev1::TopologySelectorLabelRequirement& label, const Path& path,
                        FieldErrors& errors) {
  const Path values = path.Child("values");
  if (label.values().empty()) errors.push_back(Required(values));
  std::set<std::string_view> seen;
  for (int i = 0; i < label.values_size(); ++i) {
    if (!seen.insert(label.values(i)).second) errors.push_back(Duplicate(values.Index(i), label.values(i)));
  }
  CheckLabelKey(label.key(), path.Child("key"), errors);
}

void CheckTopologies(const google::protobuf::RepeatedPtrField<corev1::TopologySelectorTerm>& terms,
                     const Path& path, FieldErrors& errors) {
  std::set<std::string> seen;
  for (int i = 0; i < terms.size(); ++i) {
    const Path item = path.Index(i);
    const Path list = item.Child("matchLabelExpressions");
    std::map<std::string, std::set<std::string>> labels;
    for (int j = 0; j < terms[i].match_label_expressions_size(); ++j) {
      const auto& label = terms[i].match_label_expressions(j);
      CheckTopologyLabel(label, list.Index(j), errors);
      if (!labels.try_emplace(label.key(), label.values().begin(), label.values().end()).second) {
        errors.push_back(Duplicate(list.Index(j).Child("key"), label.key()));
      }
    }
    std::string shape;
    for (const auto& [key, values] : labels) {
      shape += key + "=";
      for (const std::string& value : values) shape += value + ",";
      shape += ";";
    }
    if (!seen.insert(shape).second) errors.push_back(Duplicate(list, ""));
  }
}

void CheckStorageClass(const storagev1::StorageClass& object, FieldErrors& errors) {
  CheckProvisioner(object.provisioner(), Path("provisioner"), errors);
  CheckParameters(object.parameters(), true, Path("parameters"), errors);
  if (!object.reclaim_policy().empty()) {
    CheckOneOf(object.reclaim_policy(), {"Delete", "Retain"}, Path("reclaimPolicy"), errors);
  }
  if (!object.has_volume_binding_mode()) {
    errors.push_back(Required(Path("volumeBindingMode")));
  } else {
    CheckOneOf(object.volume_binding_mode(), {"Immediate", "WaitForFirstConsumer"}, Path("volumeBindingMode"),
               errors);
  }
  CheckTopologies(object.allowed_topologies(), Path("allowedTopologies"), errors);
}

void Freeze(bool same, const char* field, FieldErrors& errors) {
  if (!same) errors.push_back(Forbidden(Path(field), fmt::format("updates to {} are forbidden.", field)));
}

void CheckStorageClassUpdate(const storagev1::StorageClass& object, const storagev1::StorageClass& old,
                             FieldErrors& errors) {
  Freeze(SameMap(object.parameters(), old.parameters()), "parameters", errors);
  Freeze(object.provisioner() == old.provisioner(), "provisioner", errors);
  Freeze(object.reclaim_policy() == old.reclaim_policy(), "reclaimPolicy", errors);
  CheckImmutable(object.volume_binding_mode(), old.volume_binding_mode(), Path("volumeBindingMode"), errors);
}

void CheckAttributesClass(const storagev1::VolumeAttributesClass& object, FieldErrors& errors) {
  CheckProvisioner(object.driver_name(), Path("driverName"), errors);
  CheckParameters(object.parameters(), false, Path("parameters"), errors);
}

void CheckAttributesClassUpdate(const storagev1::VolumeAttributesClass& object,
                                const storagev1::VolumeAttributesClass& old, FieldErrors& errors) {
  Freeze(object.driver_name() == old.driver_name(), "driverName", errors);
  Freeze(SameMap(object.parameters(), old.parameters()), "parameters", errors);
}

void CheckSource(const storagev1::VolumeAttachmentSource& source, const Path& path, FieldErrors& errors) {
  constexpr char kOne[] = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  const bool named = source.has_persistent_volume_name(), is_inline = source.has_inline_volume_spec();
  if (named == is_inline) {
    errors.push_back(named ? Forbidden(path, kOne) : Required(path, kOne));
  } else if (is_inline) {
    CheckVolumeSpec(source.inline_volume_spec(), true, path.Child("inlineVolumeSpec"), errors);
  } else if (source.persistent_volume_name().empty()) {
    errors.push_back(
        Required(path.Child("persistentVolumeName"), "must specify non empty persistentVolumeName"));
  }
}

void CheckVolumeError(const storagev1::VolumeError& error, const Path& path, FieldErrors& errors) {
  if (error.message().size() > kErrorBytes) errors.push_back(TooLong(path.Child("message"), kErrorBytes));
  if (error.has_error_code()) CheckNonNegative(error.error_code(), path.Child("errorCode"), errors);
}

void CheckAttachment(const storagev1::VolumeAttachment& object, FieldErrors& errors) {
  const Path spec("spec"), status("status");
  const std::string& attacher = object.spec().attacher();
  if (attacher.empty()) errors.push_back(Required(spec.Child("attacher")));
  CheckSource(object.spec().source(), spec.Child("source"), errors);
  AddProblems(CheckDns1123Subdomain(object.spec().node_name()), object.spec().node_name(),
              spec.Child("nodeName"), errors);
  CheckParameters(object.status().attachment_metadata(), true, status.Child("attachmentMetadata"), errors);
  CheckVolumeError(object.status().attach_error(), status.Child("attachError"), errors);
  CheckVolumeError(object.status().detach_error(), status.Child("detachError"), errors);
}

void CheckNewAttachment(const storagev1::VolumeAttachment& object, FieldErrors& errors) {
  CheckAttachment(object, errors);
  const Path spec("spec");
  CheckCsiDriverName(object.spec().attacher(), spec.Child("attacher"), errors);
  const storagev1::VolumeAttachmentSource& source = object.spec().source();
  if (source.has_persistent_volume_name()) {
    AddProblems(CheckDns1123Subdomain(source.persistent_volume_name()), source.persistent_volume_name(),
                spec.Child("source").Child("persistentVolumeName"), errors);
  }
}

void CheckAttachmentUpdate(const storagev1::VolumeAttachment& object, const storagev1::VolumeAttachment& old,
                           FieldErrors& errors) {
  CheckAttachment(object, errors);
  CheckFrozen(object.spec(), old.spec(), Path("spec"), errors);
}

void CheckStorageCapacity(const storagev1::CSIStorageCapacity& object, FieldErrors& errors) {
  if (object.has_node_topology()) {
    CheckLabelSelector(object.node_topology(), Path("nodeTopology"), errors);
  }
  AddProblems(CheckDns1123Subdomain(object.storage_class_name()), object.storage_class_name(),
              Path("storageClassName"), errors);
  if (object.has_capacity()) CheckNonNegativeQuantity(object.capacity(), Path("capacity"), errors);
}

void CheckStorageCapacityUpdate(const storagev1::CSIStorageCapacity& object,
                                const storagev1::CSIStorageCapacity& old, FieldErrors& errors) {
  CheckImmutable(object.node_topology(), old.node_topology(), Path("nodeTopology"), errors);
  CheckImmutable(object.storage_class_name(), old.storage_class_name(), Path("storageClassName"), errors);
}

}  // namespace

void RegisterStorageClassRules(RuleTable& table) {
  table.Add<storagev1::StorageClass, CheckStorageClass>();
  table.AddUpdate<storagev1::StorageClass, CheckStorageClassUpdate>();
  table.Add<storagev1::VolumeAttributesClass, CheckAttributesClass>();
  table.AddUpdate<storagev1::VolumeAttributesClass, CheckAttributesClassUpdate>();
  table.Add<storagev1::VolumeAttachment, CheckNewAttachment>();
  table.AddUpdate<storagev1::VolumeAttachment, CheckAttachmentUpdate>(true);
  table.AddStatus<storagev1::VolumeAttachment, CheckAttachmentUpdate>();
  table.Add<storagev1::CSIStorageCapacity, CheckStorageCapacity>();
  table.AddUpdate<storagev1::CSIStorageCapacity, CheckStorageCapacityUpdate>();
  RegisterCsiRules(table);
}

}  // namespace keelson::k8s

// PersistentVolumeClaims.
#include <algorithm>

#include <fmt/format.h>

#include "lib/api/quantity.h"
#include "lib/k8s/object_diff.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace {

constexpr char kClaim[] = "PersistentVolumeClaim";
constexpr char kClassAnnotation[] = "volume.beta.kubernetes.io/storage-class";

// For both types of data source reference.
template <typename Reference>
void CheckDataSource(const Reference& source, const Path& path, FieldErrors& errors) {
  if (source.name().empty()) errors.push_back(Required(path.Child("name")));
  if (source.kind().empty()) errors.push_back(Required(path.Child("kind")));
  if (source.api_group().empty() && source.kind() != kClaim) {
    errors.push_back(Invalid(path, source.kind(),
                             "must be 'PersistentVolumeClaim' when referencing the default apiGroup"));
  }
  if (!source.api_group().empty()) {
    AddProblems(CheckDns1123Subdomain(source.api_group()), source.api_group(), path.Child("apiGroup"),
                errors);
  }
}

bool SameSource(const corev1::TypedLocalObjectReference& one, const corev1::TypedObjectReference& other) {
  return one.api_group() == other.api_group() && one.kind() == other.kind() && one.name() == other.name();
}

void CheckDataSources(const corev1::PersistentVolumeClaimSpec& spec, const Path& path, FieldErrors& errors) {
  const Path source = path.Child("dataSource"), reference = path.Child("dataSourceRef");
  if (spec.has_data_source()) CheckDataSource(spec.data_source(), source, errors);
  if (spec.has_data_source_ref()) {
    CheckDataSource(spec.data_source_ref(), reference, errors);
    const std::string& ns = spec.data_source_ref().namespace_();
    if (!ns.empty()) AddProblems(CheckDns1123Label(ns), ns, reference.Child("namespace"), errors);
  }
  if (!spec.data_source_ref().namespace_().empty()) {
    if (spec.has_data_source()) {
      errors.push_back(
          Invalid(path, source.ToString(), "may not be specified when dataSourceRef.namespace is specified"));
    }
  } else if (spec.has_data_source() && spec.has_data_source_ref() &&
             !SameSource(spec.data_source(), spec.data_source_ref())) {
    errors.push_back(Invalid(path, source.ToString(), "must match dataSourceRef"));
  }
}

void CheckSize(const corev1::PersistentVolumeClaimSpec& spec, const Path& path, FieldErrors& errors) {
  const Path resources = path.Child("resources");
  const Path storage = resources.Key("storage");
  const auto asked = spec.resources().requests().find("storage");
  if (asked == spec.resources().requests().end()) {
    errors.push_back(Required(storage));
  } else if (SignOf(asked->second) <= 0) {
    CheckPositiveQuantity(asked->second, storage, errors);
  }
}

void CheckClass(bool set, const std::string& name, const Path& path, FieldErrors& errors) {
  if (set && !name.empty()) AddProblems(CheckDns1123Subdomain(name), name, path, errors);
}

void CheckClaim(const corev1::PersistentVolumeClaim& object, FieldErrors& errors) {
  CheckClaimSpec(object.spec(), Path("spec"), errors);
}

api::Amount Storage(const QuantityMap& amounts) { return AmountOf(ToResourceList(amounts), "storage"); }

const std::string* FindAnnotation(const corev1::PersistentVolumeClaim& object, const char* key) {
  const auto it = object.metadata().annotations().find(key);
  return it == object.metadata().annotations().end() ? nullptr : &it->second;
}

// The class moves from the old annotation into the spec, which had none.
bool MovesClass(const corev1::PersistentVolumeClaim& object, const corev1::PersistentVolumeClaim& old) {
  const std::string* before = FindAnnotation(old, kClassAnnotation);
  const std::string* now = FindAnnotation(object, kClassAnnotation);
  return before && !old.spec().has_storage_class_name() && object.spec().has_storage_class_name() &&
         object.spec().storage_class_name() == *before && (!now || *now == *before);
}

// A claim without a class may get the default class later.
bool GainsClass(const corev1::PersistentVolumeClaim& object, const corev1::PersistentVolumeClaim& old) {
  const std::string* before = FindAnnotation(old, kClassAnnotation);
  return !old.spec().has_storage_class_name() && object.spec().has_storage_class_name() &&
         (!before || *before == object.spec().storage_class_name());
}

void CheckClassAnnotation(const corev1::PersistentVolumeClaim& object,
                          const corev1::PersistentVolumeClaim& old, FieldErrors& errors) {
  if (MovesClass(object, old)) return;
  const std::string *before = FindAnnotation(old, kClassAnnotation),
                    *now = FindAnnotation(object, kClassAnnotation);
  const std::string none;
  const Path metadata("metadata"), annotations = metadata.Child("annotations");
  CheckImmutable(now ? *now : none, before ? *before : none, annotations.Child(kClassAnnotation), errors);
}

// Resets what the binder and users may change; then nothing else may differ. Empty: nothing does.
std::string ChangesImmutable(const corev1::PersistentVolumeClaim& object,
                             const corev1::PersistentVolumeClaim& old) {
  corev1::PersistentVolumeClaimSpec now = object.spec(), before = old.spec();
  if (before.volume_name().empty()) before.set_volume_name(now.volume_name());
  if (MovesClass(object, old) || GainsClass(object, old)) {
    before.set_storage_class_name(now.storage_class_name());
  }
  if (object.status().phase() == "Bound") {
    if (!now.resources().requests().empty()) {
      QuantityMap& requests = *now.mutable_resources()->mutable_requests();
      const auto size = before.resources().requests().find("storage");
      if (size != before.resources().requests().end()) requests["storage"] = size->second;
    }
    now.clear_volume_attributes_class_name();
    before.clear_volume_attributes_class_name();
  }
  if (now.volume_name().empty()) now.clear_volume_name();
  if (before.volume_name().empty()) before.clear_volume_name();
  for (corev1::PersistentVolumeClaimSpec* spec : {&now, &before}) {
    if (spec->has_data_source_ref()) spec->clear_data_source();
    QuantityMap& requests = *spec->mutable_resources()->mutable_requests();
    // 1Gi and 1024Mi are the same.
    for (auto& entry : requests) entry.second.set_string(api::Amount::Of(entry.second).ToString());
  }
  return SameMessage(now, before) ? "" : ObjectDiff(before, now, "spec");
}

// A class that has been applied to the volume may be replaced, not removed.
void CheckAttributesClassUpdate(const corev1::PersistentVolumeClaim& object,
                                const corev1::PersistentVolumeClaim& old, const Path& path,
                                FieldErrors& errors) {
  const bool set = object.spec().has_volume_attributes_class_name();
  const std::string& name = object.spec().volume_attributes_class_name();
  const bool same = set == old.spec().has_volume_attributes_class_name() &&
                    name == old.spec().volume_attributes_class_name();
  if (same || !old.status().has_current_volume_attributes_class_name() || !name.empty()) return;
  errors.push_back(Forbidden(path, fmt::format("update to {} is forbidden when "
                                               "status.currentVolumeAttributesClassName is not nil",
                                               set ? "empty string" : "nil")));
}

void CheckClaimUpdate(const corev1::PersistentVolumeClaim& object, const corev1::PersistentVolumeClaim& old,
                      FieldErrors& errors) {
  CheckClaim(object, errors);
  CheckClassAnnotation(object, old, errors);
  const Path spec("spec");
  if (const std::string changes = ChangesImmutable(object, old); !changes.empty()) {
    errors.push_back(Forbidden(spec,
                               "spec is immutable after creation except resources.requests and "
                               "volumeAttributesClassName for bound claims\n" +
                                   changes));
  }
  const api::Amount asked = Storage(object.spec().resources().requests());
  const api::Amount before = Storage(old.spec().resources().requests());
  // A smaller request cancels a failed expansion; volumes do not shrink.
  if (asked < before && asked <= Storage(old.status().capacity())) {
    errors.push_back(Forbidden(spec.Child("resources").Child("requests").Child("storage"),
                               "field can not be less than status.capacity"));
  }
  CheckImmutable(object.spec().volume_mode(), old.spec().volume_mode(), Path("volumeMode"), errors);
  CheckAttributesClassUpdate(object, old, spec.Child("volumeAttributesClassName"), errors);
}

// The key of an allocated amount or its state: storage, or a custom one with a domain.
bool CheckResourceKey(const std::string& name, const Path& path, FieldErrors& errors) {
  const Problems problems = CheckQualifiedName(name);
  AddProblems(problems, name, path, errors);
  if (!problems.empty()) return false;
  if (!IsNativeResource(name) || name == "storage") return true;
  errors.push_back(NotSupported(path, name, {"storage"}));
  return false;
}

void CheckBasicAmount(const Quantity& amount, const Path& path, FieldErrors& errors) {
  if (SignOf(amount) >= 0) return;
  errors.push_back(Invalid(path, api::Amount::Of(amount).Value(), "must be a valid resource quantity"));
}

void CheckClaimStatus(const corev1::PersistentVolumeClaim& object, const corev1::PersistentVolumeClaim&,
                      FieldErrors& errors) {
  const Path path("status");
  const corev1::PersistentVolumeClaimStatus& status = object.status();
  if (object.spec().access_modes().empty()) errors.push_back(Required(Path("Spec").Child("accessModes")));
  const Path capacity = path.Child("capacity"), allocated = path.Child("allocatedResources");
  for (const std::string& name : SortedKeys(status.capacity())) {
    CheckBasicAmount(status.capacity().at(name), capacity.Key(name), errors);
  }
  static const std::vector<std::string_view> kStates = {"ControllerResizeInProgress",
                                                        "ControllerResizeInfeasible", "NodeResizeInProgress",
                                                        "NodeResizeInfeasible", "NodeResizePending"};
  const Path states = path.Child("allocatedResourceStatuses");
  for (const std::string& name : SortedKeys(status.allocated_resource_statuses())) {
    CheckResourceKey(name, states, errors);
    const std::string& state = status.allocated_resource_statuses().at(name);
    if (std::find(kStates.begin(), kStates.end(), state) == kStates.end()) {
      errors.push_back(NotSupported(states, name, kStates));
    }
  }
  for (const std::string& name : SortedKeys(status.allocated_resources())) {
    if (CheckResourceKey(name, allocated, errors)) {
      CheckBasicAmount(status.allocated_resources().at(name), allocated.Key(name), errors);
    }
  }
}

}  // namespace

void CheckClaimSpec(const corev1::PersistentVolumeClaimSpec& spec, const Path& path, FieldErrors& errors) {
  if (spec.access_modes().empty()) {
    errors.push_back(Required(path.Child("accessModes"), "at least 1 access mode is required"));
  }
  if (spec.has_selector()) CheckLabelSelector(spec.selector(), path.Child("selector"), errors);
  CheckAccessModes(spec.access_modes(), path.Child("accessModes"), errors);
  CheckSize(spec, path, errors);
  CheckClass(spec.has_storage_class_name(), spec.storage_class_name(), path.Child("storageClassName"),
             errors);
  if (spec.has_volume_mode()) {
    CheckOneOf(spec.volume_mode(), {"Block", "Filesystem"}, path.Child("volumeMode"), errors);
  }
  CheckDataSources(spec, path, errors);
  CheckClass(spec.has_volume_attributes_class_name(), spec.volume_attributes_class_name(),
             path.Child("volumeAttributesClassName"), errors);
}

void RegisterClaimRules(RuleTable& table) {
  table.Add<corev1::PersistentVolumeClaim, CheckClaim>();
  table.AddUpdate<corev1::PersistentVolumeClaim, CheckClaimUpdate>(true);
  table.AddStatus<corev1::PersistentVolumeClaim, CheckClaimStatus>();
}

}  // namespace keelson::k8s

// PersistentVolumes. The rules for their sources are in volume_source.cc.
#include <algorithm>

#include "lib/api/quantity.h"
#include "lib/k8s/internal_form.h"
#include "lib/k8s/object_diff.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"
#include "lib/k8s/validation_settings.h"

namespace keelson::k8s {

namespace {

constexpr char kInline[] = "in the context of inline volumes";

void CheckCapacity(const corev1::PersistentVolumeSpec& spec, const Path& path, FieldErrors& errors) {
  const Path capacity = path.Child("capacity");
  if (spec.capacity().empty()) errors.push_back(Required(capacity));
  if (!spec.capacity().contains("storage") || spec.capacity().size() > 1) {
    std::string printed;
    for (const std::string& name : SortedKeys(spec.capacity())) {
      printed += printed.empty() ? "{" : ",";
      printed += Quote(name) + ":" + Quote(api::Amount::Of(spec.capacity().at(name)).ToString());
    }
    FieldError error = NotSupported(capacity, "", {"storage"});
    error.value = printed.empty() ? "null" : printed + "}";
    errors.push_back(std::move(error));
  }
  for (const std::string& name : SortedKeys(spec.capacity())) {
    const Quantity& amount = spec.capacity().at(name);
    if (SignOf(amount) < 0) {
      errors.push_back(
          Invalid(capacity.Key(name), api::Amount::Of(amount).Value(), "must be a valid resource quantity"));
    }
    CheckPositiveQuantity(amount, capacity.Key(name), errors);
  }
}

void CheckInlineOnly(const corev1::PersistentVolumeSpec& spec, const Path& path, FieldErrors& errors) {
  const std::string forbidden = std::string("may not be specified ") + kInline;
  if (spec.has_claim_ref()) errors.push_back(Forbidden(path.Child("claimRef"), forbidden));
  if (!spec.capacity().empty()) errors.push_back(Forbidden(path.Child("capacity"), forbidden));
  if (!spec.persistent_volume_source().has_csi()) {
    errors.push_back(Required(path.Child("csi"), std::string("has to be specified ") + kInline));
  }
}

void CheckReclaim(const corev1::PersistentVolumeSpec& spec, bool inline_volume, const Path& path,
                  FieldErrors& errors) {
  const std::string& policy = spec.persistent_volume_reclaim_policy();
  if (policy.empty()) return;
  const Path place = path.Child("persistentVolumeReclaimPolicy");
  if (!inline_volume) {
    CheckOneOf(policy, {"Delete", "Recycle", "Retain"}, place, errors);
  } else if (policy != "Retain") {
    errors.push_back(Forbidden(place, std::string("may only be Retain ") + kInline));
  }
}

bool CheckNodeAffinity(const corev1::PersistentVolumeSpec& spec, const Path& path, FieldErrors& errors) {
  if (!spec.has_node_affinity()) return false;
  const Path required = path.Child("required");
  if (spec.node_affinity().has_required()) {
    CheckNodeSelector(spec.node_affinity().required(), required, errors);
  } else {
    errors.push_back(Required(required, "must specify required node constraints"));
  }
  return true;
}

bool IsRoot(const std::string& path) {
  return !path.empty() && path.find_first_not_of("/.") == std::string::npos && path.front() == '/';
}

void CheckClasses(const corev1::PersistentVolumeSpec& spec, bool inline_volume, const Path& path,
                  FieldErrors& errors) {
  const std::string& name = spec.storage_class_name();
  if (!name.empty() && inline_volume) {
    errors.push_back(
        Forbidden(path.Child("storageClassName"), std::string("may not be specified ") + kInline));
  } else if (!name.empty()) {
    AddProblems(CheckDns1123Subdomain(name), name, path.Child("storageClassName"), errors);
  }
  if (spec.has_volume_mode()) {
    const Path mode = path.Child("volumeMode");
    if (!inline_volume) {
      CheckOneOf(spec.volume_mode(), {"Block", "Filesystem"}, mode, errors);
    } else if (spec.volume_mode() != "Filesystem") {
      errors.push_back(
          Forbidden(mode, std::string("may not specify volumeMode other than Filesystem ") + kInline));
    }
  }
  if (!spec.has_volume_attributes_class_name()) return;
  const Path attributes = path.Child("volumeAttributesClassName");
  if (spec.volume_attributes_class_name().empty()) {
    errors.push_back(Required(attributes, "an empty string is disallowed"));
  } else {
    AddProblems(CheckDns1123Subdomain(spec.volume_attributes_class_name()),
                spec.volume_attributes_class_name(), attributes, errors);
  }
  if (!spec.persistent_volume_source().has_csi()) {
    errors.push_back(Required(path.Child("csi"), "has to be specified when using volumeAttributesClassName"));
  }
}

void CheckPersistentVolume(const corev1::PersistentVolume& object, FieldErrors& errors) {
  CheckVolumeSpec(object.spec(), false, Path("spec"), errors);
}

// Labels that have left beta may change to their present names.
bool SameRequirement(const corev1::NodeSelectorRequirement& now, const corev1::NodeSelectorRequirement& old) {
  constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {
      {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
      {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
      {"beta.kubernetes.io/os", "kubernetes.io/os"},
      {"beta.kubernetes.io/arch", "kubernetes.io/arch"},
      {"beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"}};
  corev1::NodeSelectorRequirement before = old;
  for (const auto& [beta, stable] : kRenamed) {
    if (old.key() == beta && now.key() == stable) before.set_key(now.key());
  }
  return SameMessage(now, before);
}

template <typename List>
bool SameRequirements(const List& now, const List& old) {
  return std::equal(now.begin(), now.end(), old.begin(), old.end(), SameRequirement);
}

void CheckAffinityUpdate(const corev1::PersistentVolumeSpec& spec, const corev1::PersistentVolumeSpec& old,
                         FieldErrors& errors) {
  const auto& now = spec.node_affinity().required().node_selector_terms();
  const auto& before = old.node_affinity().required().node_selector_terms();
  const auto same_term = [](const corev1::NodeSelectorTerm& a, const corev1::NodeSelectorTerm& b) {
    return SameRequirements(a.match_expressions(), b.match_expressions()) &&
           SameRequirements(a.match_fields(), b.match_fields());
  };
  if (spec.has_node_affinity() &&
      std::equal(now.begin(), now.end(), before.begin(), before.end(), same_term)) {
    return;
  }
  const std::string printed = spec.has_node_affinity() ? PrintInternal(spec.node_affinity()) : "null";
  errors.push_back(InvalidRaw(Path("nodeAffinity"), printed,
                              "field is immutable, except for updating from beta label to GA"));
}

void CheckPersistentVolumeUpdate(const corev1::PersistentVolume& object, const corev1::PersistentVolume& old,
                                 FieldErrors& errors) {
  CheckPersistentVolume(object, errors);
  corev1::PersistentVolumeSource now = object.spec().persistent_volume_source();
  const corev1::PersistentVolumeSource& before = old.spec().persistent_volume_source();
  // The secret for expansion may be added later.
  if (before.has_csi() && !before.csi().has_controller_expand_secret_ref() && now.has_csi()) {
    now.mutable_csi()->clear_controller_expand_secret_ref();
  }
  const Path spec("spec");
  if (!SameMessage(now, before)) {
    errors.push_back(Forbidden(
        spec.Child("persistentvolumesource"),
        "spec.persistentvolumesource is immutable after creation\n" + ObjectDiff(before, now, "spec")));
  }
  CheckImmutable(object.spec().volume_mode(), old.spec().volume_mode(), Path("volumeMode"), errors);
  if (old.spec().has_node_affinity() && !Settings().mutable_volume_node_affinity) {
    CheckAffinityUpdate(object.spec(), old.spec(), errors);
  }
  if (old.spec().has_volume_attributes_class_name() && !object.spec().has_volume_attributes_class_name()) {
    errors.push_back(
        Forbidden(spec.Child("volumeAttributesClassName"), "update from non-nil value to nil is forbidden"));
  }
}

}  // namespace

void CheckAccessModes(const Strings& modes, const Path& path, FieldErrors& errors) {
  bool exclusive = false, others = false;
  for (const std::string& mode : modes) {
    const bool known = mode == "ReadOnlyMany" || mode == "ReadWriteMany" || mode == "ReadWriteOnce";
    exclusive = exclusive || mode == "ReadWriteOncePod";
    others = others || known;
    CheckOneOf(mode, {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"}, path, errors);
  }
  if (exclusive && others) {
    errors.push_back(Forbidden(path, "may not use ReadWriteOncePod with other access modes"));
  }
}

void CheckVolumeSpec(const corev1::PersistentVolumeSpec& spec, bool inline_volume, const Path& path,
                     FieldErrors& errors) {
  if (inline_volume) CheckInlineOnly(spec, path, errors);
  if (spec.access_modes().empty()) errors.push_back(Required(path.Child("accessModes")));
  CheckAccessModes(spec.access_modes(), path.Child("accessModes"), errors);
  if (!inline_volume) CheckCapacity(spec, path, errors);
  CheckReclaim(spec, inline_volume, path, errors);
  if (!inline_volume) CheckNodeAffinity(spec, path.Child("nodeAffinity"), errors);
  CheckVolumeSource(spec, path, errors);
  const corev1::PersistentVolumeSource& source = spec.persistent_volume_source();
  if (source.has_host_path() && IsRoot(source.host_path().path()) &&
      spec.persistent_volume_reclaim_policy() == "Recycle") {
    errors.push_back(Forbidden(path.Child("persistentVolumeReclaimPolicy"),
                               "may not be 'recycle' for a hostPath mount of '/'"));
  }
  CheckClasses(spec, inline_volume, path, errors);
}

void RegisterStorageRules(RuleTable& table) {
  table.Add<corev1::PersistentVolume, CheckPersistentVolume>();
  table.AddUpdate<corev1::PersistentVolume, CheckPersistentVolumeUpdate>(true);
}

}  // namespace keelson::k8s

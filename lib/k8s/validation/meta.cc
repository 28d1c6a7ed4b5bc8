// metadata of every kind.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "lib/api/meta.h"
#include "lib/api/scheme.h"
#include "lib/k8s/validation/template.h"

namespace keelson::k8s {

namespace {

constexpr int64_t kAnnotationBytes = 256 * 1024;

void CheckGenerateName(const std::string& prefix, NameRule rule, const Path& path, FieldErrors& errors) {
  if (prefix.empty()) return;
  // A trailing dash is fine: letters will follow it.
  std::string shape = prefix;
  if (shape.size() > 1 && shape.back() == '-') shape = shape.substr(0, shape.size() - 2) + "a";
  AddProblems(rule(shape), prefix, path, errors);
}

void CheckNamespace(const std::string& ns, bool namespaced, const Path& path, FieldErrors& errors) {
  if (!namespaced) {
    if (!ns.empty()) errors.push_back(Forbidden(path, "not allowed on this type"));
    return;
  }
  CheckName(ns, CheckDns1123Label, path, errors);
}

void CheckOwners(const metav1::ObjectMeta& meta, const Path& path, FieldErrors& errors) {
  const std::string* controller = nullptr;
  for (const metav1::OwnerReference& owner : meta.owner_references()) {
    if (api::SplitApiVersion(owner.api_version()).second.empty()) {
      errors.push_back(Invalid(path.Child("apiVersion"), owner.api_version(), "version must not be empty"));
    }
    const std::pair<std::string_view, const std::string*> parts[] = {
        {"kind", &owner.kind()}, {"name", &owner.name()}, {"uid", &owner.uid()}};
    for (const auto& [field, value] : parts) {
      if (value->empty()) errors.push_back(Invalid(path.Child(field), "", "must not be empty"));
    }
    if (owner.kind() == "Event" && owner.api_version() == "v1") {
      errors.push_back(InvalidObject(path, owner, "/v1, Kind=Event is disallowed from being an owner"));
    }
    if (!owner.controller()) continue;
    if (controller) {
      errors.push_back(InvalidObject(
          path, owner,
          fmt::format(
              "Only one reference can have Controller set to true. Found \"true\" in references for {} "
              "and {}",
              *controller, owner.name())));
    }
    controller = &owner.name();
  }
}

void CheckFinalizers(const Strings& finalizers, const Path& path, FieldErrors& errors) {
  bool orphan = false, foreground = false;
  for (const std::string& finalizer : finalizers) {
    AddProblems(CheckQualifiedName(finalizer), finalizer, path, errors);
    orphan = orphan || finalizer == "orphan";
    foreground = foreground || finalizer == "foregroundDeletion";
  }
  if (orphan && foreground) {
    errors.push_back(InvalidRaw(path, PrintStrings(finalizers),
                                "finalizer orphan and foregroundDeletion cannot be both set"));
  }
}

void CheckNoNewFinalizers(const metav1::ObjectMeta& meta, const metav1::ObjectMeta& old, const Path& path,
                          FieldErrors& errors) {
  const std::set<std::string> before(old.finalizers().begin(), old.finalizers().end());
  std::set<std::string> added;
  for (const std::string& finalizer : meta.finalizers()) {
    if (!before.contains(finalizer)) added.insert(finalizer);
  }
  if (added.empty()) return;
  std::string list;
  for (const std::string& finalizer : added) list += (list.empty() ? "" : ", ") + Quote(finalizer);
  errors.push_back(Forbidden(
      path, fmt::format("no new finalizers can be added if the object is being deleted, found new finalizers "
                        "[]string{{{}}}",
                        list)));
}

void CheckSameTime(const metav1::Time& time, const metav1::Time& old, const Path& path, FieldErrors& errors) {
  if (time.seconds() == old.seconds()) return;
  errors.push_back(InvalidRaw(path, Quote(api::FormatTime(time)), kImmutable));
}

}  // namespace

void CheckAnnotations(const StringMap& annotations, const Path& path, FieldErrors& errors) {
  int64_t total = 0;
  for (const auto& [key, value] : annotations) {
    total += static_cast<int64_t>(key.size() + value.size());
    std::string lower = key;
    for (char& c : lower) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    AddProblems(CheckQualifiedName(lower), key, path, errors);
  }
  if (total > kAnnotationBytes) errors.push_back(TooLong(path, kAnnotationBytes));
}

void CheckTemplateMeta(const metav1::ObjectMeta& meta, const Path& path, FieldErrors& errors) {
  CheckAnnotations(meta.annotations(), path.Child("annotations"), errors);
  CheckLabels(meta.labels(), path.Child("labels"), errors);
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  meta.GetReflection()->ListFields(meta, &fields);
  for (const auto* field : fields) {
    const std::string& name = field->json_name();
    if (name == "annotations" || name == "labels") continue;
    // Upstream derives this path from the Go field's name.
    errors.push_back(Forbidden(path.Child(name == "uid" ? "uID" : name), "cannot be set"));
  }
}

void CheckObjectMeta(const metav1::ObjectMeta& meta, const MetaRules& rules, const Path& path,
                     FieldErrors& errors) {
  CheckGenerateName(meta.generate_name(), rules.name, path.Child("generateName"), errors);
  if (meta.name().empty()) {
    errors.push_back(Required(path.Child("name"), "name or generateName is required"));
  } else {
    AddProblems(rules.name(meta.name()), meta.name(), path.Child("name"), errors);
  }
  CheckNamespace(meta.namespace_(), rules.namespaced, path.Child("namespace"), errors);
  CheckNonNegative(meta.generation(), path.Child("generation"), errors);
  CheckLabels(meta.labels(), path.Child("labels"), errors);
  CheckAnnotations(meta.annotations(), path.Child("annotations"), errors);
  CheckOwners(meta, path.Child("ownerReferences"), errors);
  CheckFinalizers(meta.finalizers(), path.Child("finalizers"), errors);
}

void CheckObjectMetaUpdate(const metav1::ObjectMeta& meta, const metav1::ObjectMeta& old, const Path& path,
                           FieldErrors& errors) {
  if (old.has_deletion_timestamp()) CheckNoNewFinalizers(meta, old, path.Child("finalizers"), errors);
  if (meta.resource_version().empty()) {
    errors.push_back(Invalid(path.Child("resourceVersion"), "", "must be specified for an update"));
  }
  if (meta.generation() < old.generation()) {
    errors.push_back(Invalid(path.Child("generation"), meta.generation(), "must not be decremented"));
  }
  CheckImmutable(meta.name(), old.name(), path.Child("name"), errors);
  CheckImmutable(meta.namespace_(), old.namespace_(), path.Child("namespace"), errors);
  CheckImmutable(meta.uid(), old.uid(), path.Child("uid"), errors);
  CheckSameTime(meta.creation_timestamp(), old.creation_timestamp(), path.Child("creationTimestamp"), errors);
  CheckSameTime(meta.deletion_timestamp(), old.deletion_timestamp(), path.Child("deletionTimestamp"), errors);
  if (meta.deletion_grace_period_seconds() != old.deletion_grace_period_seconds()) {
    errors.push_back(
        Invalid(path.Child("deletionGracePeriodSeconds"), meta.deletion_grace_period_seconds(), kImmutable));
  }
  CheckLabels(meta.labels(), path.Child("labels"), errors);
  CheckAnnotations(meta.annotations(), path.Child("annotations"), errors);
  CheckOwners(meta, path.Child("ownerReferences"), errors);
  CheckFinalizers(meta.finalizers(), path.Child("finalizers"), errors);
}

}  // namespace keelson::k8s

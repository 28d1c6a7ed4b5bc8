#include "controlplane/storage/versions/stored_versions.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/storage/versions/definition_conversion.h"

namespace keelson::storage {
namespace {

struct VersionOfKind {
  std::string_view api_version, kind;  // empty kind: all of the group
};

bool Has(const api::TypeMeta& type, const VersionOfKind& one) {
  return type.api_version == one.api_version && (one.kind.empty() || type.kind == one.kind);
}
template <size_t N>
bool IsAmong(const api::TypeMeta& type, const VersionOfKind (&list)[N]) {
  return std::any_of(std::begin(list), std::end(list),
                     [&](const VersionOfKind& one) { return Has(type, one); });
}

// Whose fields are those of v1.
constexpr VersionOfKind kLikeV1[] = {
    {"admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicy"},         // 1.34 to 1.36
    {"admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicyBinding"},  // 1.34 to 1.36
    {"networking.k8s.io/v1beta1", "IPAddress"},                                  // until 1.33
    {"networking.k8s.io/v1beta1", "ServiceCIDR"},                                // until 1.33
    {"resource.k8s.io/v1beta2", ""},                                             // 1.34
    {"storage.k8s.io/v1beta1", "VolumeAttributesClass"},                         // 1.34
};

// Of earlier releases, with other fields.
constexpr VersionOfKind kUnreadable[] = {
    {"autoscaling/v2beta1", "HorizontalPodAutoscaler"},
    {"extensions/v1beta1", "Ingress"},
    {"networking.k8s.io/v1beta1", "Ingress"},
    {"resource.k8s.io/v1alpha2", ""},
    {"resource.k8s.io/v1alpha3", ""},
    {"resource.k8s.io/v1beta1", ""},
};

std::unique_ptr<api::Message> DefinitionToV1(const api::Message& message, const api::ResourceInfo& /*to*/) {
  return std::make_unique<apiextensionsv1::CustomResourceDefinition>(
      ToV1(static_cast<const apiextensionsv1beta1::CustomResourceDefinition&>(message)));
}

}  // namespace

Result<StoredVersion> FindOwnVersion(const api::ResourceInfo& stored, const api::TypeMeta& type) {
  if (type.api_version == stored.ApiVersion()) return StoredVersion{stored.descriptor(), true, nullptr};
  if (type.api_version == "apiextensions.k8s.io/v1beta1" && type.kind == "CustomResourceDefinition") {
    return StoredVersion{apiextensionsv1beta1::CustomResourceDefinition::descriptor(), true, DefinitionToV1};
  }
  if (IsAmong(type, kUnreadable)) {
    return Error(Code::kInternal, fmt::format("stored object is a {} of {}, which this server cannot read",
                                              type.kind, type.api_version));
  }
  return StoredVersion{stored.descriptor(), IsAmong(type, kLikeV1), nullptr};
}

api::GroupVersionKind WrittenGvk(const api::ResourceInfo& stored) {
  api::GroupVersionKind gvk = stored.Gvk();
  // kube-apiserver 1.36 too stores them so, for 1.35.
  if (gvk.group == "admissionregistration.k8s.io" && gvk.kind.starts_with("MutatingAdmissionPolicy")) {
    gvk.version = "v1beta1";
  }
  return gvk;
}

}  // namespace keelson::storage

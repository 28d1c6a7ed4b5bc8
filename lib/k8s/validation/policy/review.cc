// Reviews: questions about a user's identity and permissions.
#include <fmt/format.h>

#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/validation.h"

namespace keelson::k8s {

namespace {

constexpr int64_t kTokenMin = 10 * 60, kTokenMax = int64_t{1} << 32;

constexpr char kOneOfThem[] = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
constexpr char kNotBoth[] = "cannot be specified in combination with resourceAttributes";

// Unknown operators of newer clients are accepted: authorizers ignore the requirement.
bool IsKnownOperator(std::string_view op) {
  return op == "In" || op == "NotIn" || op == "Exists" || op == "DoesNotExist";
}

template <typename Selector, typename Check>
void CheckSelector(const Selector& selector, const Path& path, const Check& check, FieldErrors& errors) {
  const Path requirements = path.Child("requirements");
  if (!selector.raw_selector().empty() && !selector.requirements().empty()) {
    errors.push_back(Invalid(path.Child("rawSelector"), selector.raw_selector(),
                             "may not specified at the same time as requirements"));
  }
  if (selector.raw_selector().empty() && selector.requirements().empty()) {
    errors.push_back(Required(
        requirements,
        fmt::format("when {} is specified, requirements or rawSelector is required", path.ToString())));
  }
  for (int i = 0; i < selector.requirements_size(); ++i) {
    check(selector.requirements(i), requirements.Index(i));
  }
}

void CheckSelectors(const authorizationv1::ResourceAttributes& attributes, const Path& path,
                    FieldErrors& errors) {
  const auto check_operator = [&](const auto& requirement, const Path& item) {
    if (!IsKnownOperator(requirement.operator_())) return;
    CheckSelectorOperator(requirement.operator_(), requirement.values_size(), item, errors);
  };
  const auto field = [&](const metav1::FieldSelectorRequirement& requirement, const Path& item) {
    if (requirement.key().empty()) errors.push_back(Required(item.Child("key"), "must be specified"));
    check_operator(requirement, item);
  };
  const auto label = [&](const metav1::LabelSelectorRequirement& requirement, const Path& item) {
    check_operator(requirement, item);
    CheckLabelKey(requirement.key(), item.Child("key"), errors);
    const Path values = item.Child("values");
    for (int i = 0; i < requirement.values_size(); ++i) {
      AddProblems(CheckLabelValue(requirement.values(i)), requirement.values(i), values.Index(i), errors);
    }
  };
  if (attributes.has_field_selector()) {
    CheckSelector(attributes.field_selector(), path.Child("fieldSelector"), field, errors);
  }
  if (attributes.has_label_selector()) {
    CheckSelector(attributes.label_selector(), path.Child("labelSelector"), label, errors);
  }
}

template <typename Spec>
void CheckAttributes(const Spec& spec, const Path& path, FieldErrors& errors) {
  if (spec.has_resource_attributes() && spec.has_non_resource_attributes()) {
    errors.push_back(
        InvalidInternal(path.Child("nonResourceAttributes"), spec.non_resource_attributes(), kNotBoth));
  }
  if (!spec.has_resource_attributes() && !spec.has_non_resource_attributes()) {
    errors.push_back(Invalid(path.Child("resourceAttributes"), "null", kOneOfThem));
  }
}

void CheckSubject(const authorizationv1::SubjectAccessReviewSpec& spec, const Path& path,
                  FieldErrors& errors) {
  CheckAttributes(spec, path, errors);
  if (spec.user().empty() && spec.groups().empty()) {
    errors.push_back(Invalid(path.Child("user"), "", "at least one of user or group must be specified"));
  }
  if (spec.has_resource_attributes()) {
    CheckSelectors(spec.resource_attributes(), path.Child("resourceAttributes"), errors);
  }
}

// Reviews are not stored, so they must not have metadata.
void CheckNoMetadata(const metav1::ObjectMeta& meta, bool may_have_namespace, FieldErrors& errors) {
  metav1::ObjectMeta rest = meta;
  rest.clear_managed_fields();
  if (may_have_namespace) rest.clear_namespace_();
  if (rest.ByteSizeLong() == 0) return;
  errors.push_back(InvalidObject(
      Path("metadata"), meta, may_have_namespace ? "must be empty except for namespace" : "must be empty"));
}

void CheckTokenRequest(const authenticationv1::TokenRequestSpec& spec, FieldErrors& errors) {
  const Path path("spec");
  const Path expiration = path.Child("expirationSeconds");
  if (!spec.has_expiration_seconds()) return;
  if (spec.expiration_seconds() < kTokenMin) {
    errors.push_back(
        Invalid(expiration, spec.expiration_seconds(), "may not specify a duration less than 10 minutes"));
  }
  if (spec.expiration_seconds() > kTokenMax) {
    errors.push_back(Invalid(expiration, spec.expiration_seconds(),
                             "may not specify a duration larger than 2^32 seconds"));
  }
}

}  // namespace

FieldErrors ValidateReview(const google::protobuf::Message& review) {
  FieldErrors errors;
  const Path spec("spec");
  const auto* descriptor = review.GetDescriptor();
  if (descriptor == authorizationv1::SubjectAccessReview::descriptor()) {
    const auto& subject = static_cast<const authorizationv1::SubjectAccessReview&>(review);
    CheckSubject(subject.spec(), spec, errors);
    CheckNoMetadata(subject.metadata(), false, errors);
  } else if (descriptor == authorizationv1::LocalSubjectAccessReview::descriptor()) {
    const auto& local = static_cast<const authorizationv1::LocalSubjectAccessReview&>(review);
    CheckSubject(local.spec(), spec, errors);
    CheckNoMetadata(local.metadata(), true, errors);
    const Path attributes = spec.Child("resourceAttributes");
    if (local.spec().has_resource_attributes() &&
        local.spec().resource_attributes().namespace_() != local.metadata().namespace_()) {
      errors.push_back(Invalid(attributes.Child("namespace"), local.spec().resource_attributes().namespace_(),
                               "must match metadata.namespace"));
    }
    if (local.spec().has_non_resource_attributes()) {
      errors.push_back(InvalidInternal(spec.Child("nonResourceAttributes"),
                                       local.spec().non_resource_attributes(),
                                       "disallowed on this kind of request"));
    }
  } else if (descriptor == authorizationv1::SelfSubjectAccessReview::descriptor()) {
    const auto& self = static_cast<const authorizationv1::SelfSubjectAccessReview&>(review);
    CheckAttributes(self.spec(), spec, errors);
    if (self.spec().has_resource_attributes()) {
      CheckSelectors(self.spec().resource_attributes(), spec.Child("resourceAttributes"), errors);
    }
    CheckNoMetadata(self.metadata(), false, errors);
  } else if (descriptor == authenticationv1::TokenRequest::descriptor()) {
    CheckTokenRequest(static_cast<const authenticationv1::TokenRequest&>(review).spec(), errors);
  }
  return errors;
}

}  // namespace keelson::k8s

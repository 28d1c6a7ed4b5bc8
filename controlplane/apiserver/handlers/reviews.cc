#include "controlplane/apiserver/handlers/reviews.h"

#include <fmt/format.h>

#include "controlplane/apiserver/endpoints/body.h"
#include "controlplane/apiserver/endpoints/request_admission.h"
#include "controlplane/apiserver/endpoints/response.h"
#include "controlplane/apiserver/endpoints/write_options.h"
#include "lib/api/meta.h"
#include "lib/api/selector.h"
#include "lib/k8s/validation/validation.h"

namespace keelson::apiserver {
namespace {

void ToProto(const User& user, authenticationv1::UserInfo& out) {
  out.set_username(user.name);
  if (!user.uid.empty()) out.set_uid(user.uid);
  for (const std::string& group : user.groups) out.add_groups(group);
  for (const auto& entry : user.extra) {
    auto& values = (*out.mutable_extra())[entry.first];
    for (const std::string& value : entry.second) values.add_items(value);
  }
}

User ToUser(const authorizationv1::SubjectAccessReviewSpec& spec) {
  User user{spec.user(), spec.uid(), {spec.groups().begin(), spec.groups().end()}, {}};
  for (const auto& entry : spec.extra()) {
    user.extra[entry.first] = {entry.second.items().begin(), entry.second.items().end()};
  }
  return user;
}

// Converts a selector to text. Requirements that a field selector cannot express, and invalid selectors, are
// dropped, which only widens the request. `problem` reports them.
std::string FieldText(const authorizationv1::FieldSelectorAttributes& from, std::string& problem) {
  constexpr const char* kField = "spec.resourceAttributes.fieldSelector ";
  if (!from.raw_selector().empty()) {
    if (api::FieldSelector::Parse(from.raw_selector())) return from.raw_selector();
    problem = std::string(kField) + "ignored due to parse error";
    return "";
  }
  api::FieldSelector selector;
  for (const metav1::FieldSelectorRequirement& one : from.requirements()) {
    bool in = one.operator_() == "In";
    if ((in || one.operator_() == "NotIn") && one.values_size() == 1) {
      selector.terms.push_back({one.key(), one.values(0), in});
    } else {
      problem = kField;
    }
  }
  if (!problem.empty()) {
    problem += selector.terms.empty() ? "ignored due to parse error" : "partially ignored due to parse error";
  }
  return selector.ToString();
}

std::string LabelText(const authorizationv1::LabelSelectorAttributes& from, std::string& problem) {
  constexpr const char* kLabel = "spec.resourceAttributes.labelSelector ";
  if (!from.raw_selector().empty()) {
    if (auto parsed = api::LabelSelector::Parse(from.raw_selector())) return parsed->ToString();
    problem = std::string(kLabel) + "ignored due to parse error";
    return "";
  }
  metav1::LabelSelector known;
  for (const metav1::LabelSelectorRequirement& requirement : from.requirements()) {
    metav1::LabelSelector one;
    *one.add_match_expressions() = requirement;
    if (api::LabelSelector::From(one)) {
      *known.add_match_expressions() = requirement;
    } else {
      problem = kLabel;
    }
  }
  if (!problem.empty()) {
    problem += known.match_expressions().empty() ? "ignored due to parse error"
                                                 : "partially ignored due to parse error";
  }
  auto parsed = api::LabelSelector::From(known);
  return parsed ? parsed->ToString() : "";
}

RequestInfo ToRequest(const authorizationv1::ResourceAttributes& from, std::vector<std::string>& problems) {
  RequestInfo info;
  info.is_resource = true;
  info.verb = from.verb();
  info.group = from.group();
  info.version = from.version();
  info.ns = from.namespace_();
  info.resource = from.resource();
  info.subresource = from.subresource();
  info.name = from.name();
  std::string field_problem, label_problem;
  if (from.has_field_selector()) info.field_selector = FieldText(from.field_selector(), field_problem);
  if (from.has_label_selector()) info.label_selector = LabelText(from.label_selector(), label_problem);
  for (std::string* problem : {&field_problem, &label_problem}) {
    if (!problem->empty()) problems.push_back(std::move(*problem));
  }
  return info;
}

// Ignores a status in the request.
void ClearAnswer(api::Message& review) {
  if (const auto* status = review.GetDescriptor()->FindFieldByName("status")) {
    review.GetReflection()->ClearField(&review, status);
  }
}

template <typename Repeated>
void AddAll(Repeated& to, const std::vector<std::string>& from) {
  for (const std::string& one : from) *to.Add() = one;
}

}  // namespace

bool ReviewHandler::Serves(const api::ResourceInfo& resource) {
  return resource.group == "authentication.k8s.io" || resource.group == "authorization.k8s.io";
}

void ReviewHandler::Handle(Context& context) const {
  Result<registry::WriteOptions> options = ParseWriteOptions(context);
  if (!options) return ReplyError(context, options.error());
  auto review = DecodeObject(context, options->field_validation);
  if (!review) return ReplyError(context, review.error());
  if (context.resource->namespaced && api::Meta(**review).namespace_().empty()) {
    api::MutableMeta(**review).set_namespace_(std::string(context.info.ns));
  }
  RequestAdmission admission(admission_, context, options->dry_run);
  auto admit = [&](registry::AdmissionPhase phase) {
    return admission.Run(phase, registry::Operation::kCreate, *context.resource, review->get(), nullptr);
  };
  if (Result<> admitted = admit(registry::AdmissionPhase::kMutate); !admitted) {
    return ReplyError(context, admitted.error());
  }
  if (k8s::FieldErrors errors = k8s::ValidateReview(**review); !errors.empty()) {
    return ReplyError(context, k8s::ToInvalid(context.resource->Gvk(), "", errors));
  }
  if (Result<> admitted = admit(registry::AdmissionPhase::kValidate); !admitted) {
    return ReplyError(context, admitted.error());
  }
  ClearAnswer(**review);
  Result<> answered = Answer(context, **review);
  if (!answered) return ReplyError(context, answered.error());
  context.output.as = As::kObject;
  ReplyMessage(context, 201, **review, context.resource->Gvk());
}

Result<> ReviewHandler::Answer(Context& context, api::Message& review) const {
  std::string_view kind = context.resource->kind;
  if (kind == "TokenReview") {
    return TokenReview(static_cast<authenticationv1::TokenReview&>(review));
  }
  if (kind == "SelfSubjectReview") {
    auto& self = static_cast<authenticationv1::SelfSubjectReview&>(review);
    self.Clear();
    *self.mutable_metadata()->mutable_creation_timestamp() = api::ToTime(Clock::Real().Now());
    ToProto(context.user, *self.mutable_status()->mutable_user_info());
    return {};
  }
  if (kind == "SelfSubjectRulesReview") {
    return RulesReview(context.user, static_cast<authorizationv1::SelfSubjectRulesReview&>(review));
  }
  auto access = [&](const User& user, auto& spec, auto& status) {
    return Access(user, spec.has_resource_attributes() ? &spec.resource_attributes() : nullptr,
                  spec.has_non_resource_attributes() ? &spec.non_resource_attributes() : nullptr, status);
  };
  if (kind == "SelfSubjectAccessReview") {
    auto& self = static_cast<authorizationv1::SelfSubjectAccessReview&>(review);
    return access(context.user, self.spec(), *self.mutable_status());
  }
  if (kind == "LocalSubjectAccessReview") {
    auto& local = static_cast<authorizationv1::LocalSubjectAccessReview&>(review);
    if (local.metadata().namespace_() != context.info.ns) {
      return Error(
          Code::kBadRequest,
          fmt::format("spec.resourceAttributes.namespace must match namespace: {}", context.info.ns));
    }
    return access(ToUser(local.spec()), local.spec(), *local.mutable_status());
  }
  auto& subject = static_cast<authorizationv1::SubjectAccessReview&>(review);
  return access(ToUser(subject.spec()), subject.spec(), *subject.mutable_status());
}

Result<> ReviewHandler::TokenReview(authenticationv1::TokenReview& review) const {
  std::vector<std::string> audiences(review.spec().audiences().begin(), review.spec().audiences().end());
  authenticationv1::TokenReviewStatus& status = *review.mutable_status();
  status.Clear();
  if (review.spec().token().empty()) {
    return Error(Code::kBadRequest, "token is required for TokenReview in authentication");
  }
  Result<TokenAnswer> answer = authenticator_.AuthenticateToken(review.spec().token(), audiences);
  if (!answer) {
    status.set_error(answer.error().message());
    return {};
  }
  status.set_authenticated(true);
  ToProto(answer->user, *status.mutable_user());
  AddAll(*status.mutable_audiences(), answer->audiences);
  return {};
}

Result<> ReviewHandler::RulesReview(const User& user, authorizationv1::SelfSubjectRulesReview& review) const {
  if (review.spec().namespace_().empty()) return Error(Code::kBadRequest, "no namespace on request");
  authorizationv1::SubjectRulesReviewStatus& status = *review.mutable_status();
  status.Clear();
  UserRules found = authorizer_.RulesFor(user, review.spec().namespace_());
  status.set_incomplete(found.incomplete);
  if (!found.error.empty()) status.set_evaluation_error(found.error);
  for (const PolicyRule& rule : found.rules) {
    if (!rule.urls.empty()) {
      authorizationv1::NonResourceRule& out = *status.add_non_resource_rules();
      AddAll(*out.mutable_verbs(), rule.verbs);
      AddAll(*out.mutable_non_resource_urls(), rule.urls);
      continue;
    }
    authorizationv1::ResourceRule& out = *status.add_resource_rules();
    AddAll(*out.mutable_verbs(), rule.verbs);
    AddAll(*out.mutable_api_groups(), rule.groups);
    AddAll(*out.mutable_resources(), rule.resources);
    AddAll(*out.mutable_resource_names(), rule.names);
  }
  return {};
}

Result<> ReviewHandler::Access(const User& user, const authorizationv1::ResourceAttributes* resource,
                               const authorizationv1::NonResourceAttributes* path,
                               authorizationv1::SubjectAccessReviewStatus& status) const {
  RequestInfo request;
  std::vector<std::string> problems;
  if (resource) {
    request = ToRequest(*resource, problems);
  } else {
    request.verb = path->verb();
    request.path = path->path();
  }
  Decision decision = authorizer_.Authorize({user, request});
  status.Clear();
  if (decision.allowed) status.set_allowed(true);
  if (!decision.reason.empty()) status.set_reason(decision.reason);
  if (decision.denied) status.set_denied(true);
  if (!decision.evaluation_error.empty()) problems.insert(problems.begin(), decision.evaluation_error);
  if (!problems.empty()) status.set_evaluation_error(fmt::format("{}", fmt::join(problems, "; ")));
  return {};
}

}  // namespace keelson::apiserver

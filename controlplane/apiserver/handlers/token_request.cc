#include "controlplane/apiserver/handlers/token_request.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/endpoints/body.h"
#include "controlplane/apiserver/endpoints/request_admission.h"
#include "controlplane/apiserver/endpoints/response.h"
#include "controlplane/apiserver/endpoints/write_options.h"
#include "lib/api/meta.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiserver {
namespace {

constexpr int64_t kDefaultSeconds = 3600;
constexpr int64_t kMinSeconds = 600;
constexpr int64_t kMaxSeconds = int64_t{1} << 32;
// The expiration that the ServiceAccount admission plugin requests: such tokens are valid for a year, with a
// warning, for clients that do not reload them.
constexpr int64_t kExtendableSeconds = 3607;
constexpr int64_t kExtendedSeconds = int64_t{365} * 24 * 3600;

Error Invalid(std::string_view field, std::string_view value, std::string_view why,
              std::string_view name = "") {
  ErrorDetails details;
  details.name = std::string(name);
  details.kind = "TokenRequest";
  details.group = "authentication.k8s.io";
  details.causes.push_back(
      {"FieldValueInvalid", fmt::format("Invalid value: {}: {}", value, why), std::string(field)});
  return Error(Code::kInvalid,
               fmt::format("TokenRequest.authentication.k8s.io \"{}\" is invalid: {}: Invalid value: {}: {}",
                           name, field, value, why))
      .WithDetails(std::move(details));
}

// A name in the body must match the URL.
Result<> CheckAccount(const metav1::ObjectMeta& meta, std::string_view ns, std::string_view name) {
  if (!meta.name().empty() && meta.name() != name) {
    return Invalid("metadata.name", k8s::Quote(meta.name()),
                   "must match the service account name if specified", name);
  }
  if (!meta.namespace_().empty() && meta.namespace_() != ns) {
    return Invalid("metadata.namespace", k8s::Quote(meta.namespace_()),
                   "must match the service account namespace if specified", name);
  }
  return {};
}

// A client that names the account by its UID too gets no token for a later account of that name.
Result<> CheckAccountUid(const metav1::ObjectMeta& asked, std::string_view account, const std::string& uid) {
  if (asked.uid().empty() || asked.uid() == uid) return {};
  ErrorDetails details;
  details.group = "authentication.k8s.io";
  details.name = account;
  details.kind = "TokenRequest";
  return Error(
             Code::kConflict,
             fmt::format(
                 "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"{}\": the UID in the "
                 "token request ({}) does not match the UID of the service account ({})",
                 account, asked.uid(), uid))
      .WithDetails(std::move(details));
}

Result<> CheckUid(const api::ResourceInfo& info, const authenticationv1::BoundObjectReference& reference,
                  const std::string& uid) {
  if (reference.uid().empty() || reference.uid() == uid) return {};
  ErrorDetails details;
  details.name = reference.name();
  details.kind = std::string(info.kind);
  return Error(Code::kConflict,
               fmt::format(
                   "Operation cannot be fulfilled on {} \"{}\": the UID in the bound object reference ({}) "
                   "does not match the UID in record. The object might have been deleted and then recreated",
                   info.kind, reference.name(), reference.uid()))
      .WithDetails(std::move(details));
}

}  // namespace

void TokenIssuer::Handle(Context& context) const {
  Result<registry::WriteOptions> options = ParseWriteOptions(context);
  if (!options) return ReplyError(context, options.error());
  auto body = DecodeObject(context, options->field_validation);
  if (!body) return ReplyError(context, body.error());
  auto& request = static_cast<authenticationv1::TokenRequest&>(**body);
  RequestAdmission admission(admission_, context, options->dry_run);
  if (Result<> admitted =
          admission.RunBoth(registry::Operation::kCreate, *context.resource, &request, nullptr);
      !admitted) {
    return ReplyError(context, admitted.error());
  }
  Result<> issued = CheckAccount(request.metadata(), context.info.ns, context.info.name);
  if (issued) issued = node_rules_.Check(context.user, context.info.ns, context.info.name, request.spec());
  if (issued) issued = Issue(context.info.ns, context.info.name, request);
  if (!issued) return ReplyError(context, issued.error());
  context.output.as = As::kObject;
  ReplyMessage(context, 201, request, context.resource->Gvk());
}

Result<> TokenIssuer::Bind(const authenticationv1::BoundObjectReference& reference,
                           TokenClaims& claims) const {
  auto get = [&](std::string_view resource,
                 std::string_view ns) -> Result<std::shared_ptr<const api::Message>> {
    const api::ResourceInfo& info = *api::FindResource("", "v1", resource);
    KEELSON_ASSIGN_OR_RETURN(registry::ObjectPtr object, registry_.Get(info, ns, reference.name()));
    std::shared_ptr<const api::Message> message = object->Decode();
    KEELSON_RETURN_IF_ERROR(CheckUid(info, reference, api::Meta(*message).uid()));
    return message;
  };
  if (reference.kind() == "Pod") {
    KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<const api::Message> message, get("pods", claims.ns));
    const auto& pod = static_cast<const corev1::Pod&>(*message);
    if (pod.spec().service_account_name() != claims.service_account.name) {
      return Error(Code::kBadRequest,
                   fmt::format("cannot bind token for serviceaccount \"{}\" to pod running with different "
                               "serviceaccount name.",
                               claims.service_account.name));
    }
    claims.pod = TokenClaims::Object{pod.metadata().name(), pod.metadata().uid()};
    if (pod.spec().node_name().empty()) return {};
    auto node = registry_.Get(*api::FindResource("", "v1", "nodes"), "", pod.spec().node_name(), "0");
    claims.node =
        TokenClaims::Object{pod.spec().node_name(), node ? api::Meta(*(*node)->Decode()).uid() : ""};
    return {};
  }
  if (reference.kind() == "Node") {
    KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<const api::Message> message, get("nodes", ""));
    claims.node = TokenClaims::Object{reference.name(), api::Meta(*message).uid()};
    return {};
  }
  if (reference.kind() == "Secret") {
    KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<const api::Message> message, get("secrets", claims.ns));
    claims.secret = TokenClaims::Object{reference.name(), api::Meta(*message).uid()};
    return {};
  }
  const auto [group, version] = api::SplitApiVersion(reference.api_version());
  return Error(Code::kBadRequest, fmt::format("cannot bind token for objects of type {}/{}, Kind={}", group,
                                              version, reference.kind()));
}

Result<> TokenIssuer::Issue(std::string_view ns, std::string_view account,
                            authenticationv1::TokenRequest& request) const {
  authenticationv1::TokenRequestSpec& spec = *request.mutable_spec();
  if (!spec.has_expiration_seconds()) spec.set_expiration_seconds(kDefaultSeconds);
  int64_t seconds = spec.expiration_seconds();
  if (seconds < kMinSeconds) {
    return Invalid("spec.expirationSeconds", std::to_string(seconds),
                   "may not specify a duration less than 10 minutes");
  }
  if (seconds > kMaxSeconds) {
    return Invalid("spec.expirationSeconds", std::to_string(seconds),
                   "may not specify a duration larger than 2^32 seconds");
  }
  seconds = std::min<int64_t>(seconds, options_.max_expiration.count());
  if (spec.audiences().empty()) {
    for (const std::string& audience : options_.default_audiences) spec.add_audiences(audience);
  }
  const api::ResourceInfo& info = *api::FindResource("", "v1", "serviceaccounts");
  KEELSON_ASSIGN_OR_RETURN(registry::ObjectPtr found, registry_.Get(info, ns, account));
  std::shared_ptr<const api::Message> stored = found->Decode();
  KEELSON_RETURN_IF_ERROR(CheckAccountUid(request.metadata(), account, api::Meta(*stored).uid()));

  TokenClaims claims;
  claims.issuer = options_.issuer;
  claims.subject = fmt::format("{}{}:{}", kUserServiceAccountPrefix, ns, account);
  claims.id = api::NewUid();
  claims.audiences = {spec.audiences().begin(), spec.audiences().end()};
  claims.issued_at = api::ToTime(clock_.Now()).seconds();
  claims.not_before = claims.issued_at;
  claims.expires = claims.issued_at + seconds;
  claims.ns = ns;
  claims.service_account = {std::string(account), api::Meta(*stored).uid()};
  if (spec.has_bound_object_ref()) KEELSON_RETURN_IF_ERROR(Bind(spec.bound_object_ref(), claims));

  const int64_t told = claims.expires;
  bool for_us = std::all_of(claims.audiences.begin(), claims.audiences.end(), [&](const std::string& one) {
    const std::vector<std::string>& ours = options_.default_audiences;
    return std::find(ours.begin(), ours.end(), one) != ours.end();
  });
  if (options_.extend_expiration && claims.pod && for_us && seconds == kExtendableSeconds) {
    claims.warn_after = claims.expires;
    claims.expires = claims.issued_at + kExtendedSeconds;
  }

  KEELSON_ASSIGN_OR_RETURN(std::string token, SignToken(claims, *key_.load()));
  metav1::ObjectMeta& meta = *request.mutable_metadata();
  meta.set_name(std::string(account));
  meta.set_namespace_(std::string(ns));
  *meta.mutable_creation_timestamp() = api::ToTime(clock_.Now());
  request.mutable_status()->set_token(std::move(token));
  request.mutable_status()->mutable_expiration_timestamp()->set_seconds(told);
  return {};
}

}  // namespace keelson::apiserver

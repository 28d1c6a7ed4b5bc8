#include "controlplane/apiserver/admission/webhook/dispatch.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/matching/selectors.h"
#include "controlplane/apiserver/admission/webhook/hook_metrics.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/text/names.h"

namespace keelson::apiserver::webhook {
namespace {

// The version of the reviews that the webhook understands; empty: none that this server speaks.
std::string_view ReviewVersion(const Hook& hook) {
  for (const std::string& version : hook.review_versions) {
    if (version == "v1" || version == "v1beta1") return version;
  }
  return {};
}

// The response to a request that the webhook has rejected.
metav1::Status DenialOf(const Hook& hook, const std::optional<metav1::Status>& given) {
  metav1::Status status = given.value_or(metav1::Status());
  const std::string by = fmt::format("admission webhook {} denied the request", k8s::Quote(hook.name));
  if (status.code() < 400) status.set_code(400);
  if (status.status().empty() || status.status() == "Success") status.set_status("Failure");
  if (!status.message().empty()) {
    status.set_message(by + ": " + status.message());
  } else if (!status.reason().empty()) {
    status.set_message(by + ": " + status.reason());
  } else {
    status.set_message(by + " without explanation");
  }
  return status;
}

Outcome Rejected(const Hook& hook, Answer answer) {
  Outcome outcome;
  outcome.kind = Outcome::Kind::kRejected;
  outcome.denial = DenialOf(hook, answer.status);
  outcome.code = outcome.denial->code();
  outcome.error = Error(CodeOf(outcome.denial->code(), outcome.denial->reason()), outcome.denial->message());
  outcome.answer = std::move(answer);
  return outcome;
}

void Record(const Hook& hook, const Answer& answer, AdmissionNotes* notes) {
  if (!notes) return;
  for (const auto& [name, value] : answer.audit_annotations) {
    const std::string key = hook.name + "/" + name;
    if (k8s::CheckQualifiedName(key).empty()) {
      notes->annotations.emplace(key, value);
    } else {
      log::Warn("An audit annotation of a webhook has no valid key", {{"webhook", hook.name}, {"key", key}});
    }
  }
  notes->told.insert(notes->told.end(), answer.warnings.begin(), answer.warnings.end());
}

}  // namespace

Error InternalError(std::string_view why) {
  ErrorDetails details;
  details.causes.push_back({"", std::string(why), ""});
  return Error(Code::kInternal, fmt::format("Internal error occurred: {}", why))
      .WithDetails(std::move(details));
}

Outcome CallFailed(const Hook& hook, std::string_view reason, int code) {
  Outcome outcome;
  outcome.kind = Outcome::Kind::kCallFailed;
  outcome.code = code;
  outcome.error = InternalError(fmt::format("failed calling webhook {}: {}", k8s::Quote(hook.name), reason));
  return outcome;
}

Result<const api::ResourceInfo*> RowFor(const Hook& hook, const AdmissionRequest& request,
                                        storage::Store& store) {
  const Result<bool> in_namespace = NamespaceMatches(hook.namespaces, request, store);
  if (in_namespace && !*in_namespace) return nullptr;
  if (!ObjectMatches(hook.objects, request)) return nullptr;
  const api::ResourceInfo* row = MatchRules(hook.rules, hook.equivalent, request);
  if (!row) return nullptr;
  // Only for webhooks that are about this kind of request.
  if (!in_namespace) {
    if (in_namespace.error().Is(Code::kNotFound)) return in_namespace.error();
    return InternalError(in_namespace.error().message());
  }
  return row;
}

Result<bool> ConditionsMatch(const Hook& hook, const AdmissionRequest& request, const api::ResourceInfo& row,
                             VersionedObject& versions, const Authorizer& authorizer) {
  if (hook.conditions.empty()) return true;
  const Result<const api::Message*> object = versions.Object(row);
  if (!object) return InternalError(object.error().message());
  const Result<const api::Message*> old_object = versions.OldObject(row);
  if (!old_object) return InternalError(old_object.error().message());
  // As upstream, conditions of webhooks see no namespace.
  const ExpressionInput input(request, row, *object, *old_object, nullptr, authorizer);
  Result<bool> match = hook.conditions.Match(input);
  if (match) return match;
  log::Warn("Failed evaluating match conditions, failing closed",
            {{"webhook", hook.name}, {"err", match.error()}});
  return NotAdmitted(request, match.error().message());
}

Invocation::Invocation(const Hook& hook, const AdmissionRequest& request, const api::ResourceInfo& row,
                       std::string_view object, std::string_view old_object, HookClient& client,
                       bool mutating)
    : hook_(hook), request_(request), mutating_(mutating), begin_(SteadyTime::clock::now()) {
  if (request.dry_run && !hook.without_side_effects) {
    early_.emplace();
    early_->kind = Outcome::Kind::kInternal;
    early_->code = 0;
    early_->error = Error(Code::kBadRequest, fmt::format("admission webhook {} does not support dry run",
                                                         k8s::Quote(hook.name)));
    return;
  }
  const std::string_view version = ReviewVersion(hook);
  if (version.empty()) {
    early_ = CallFailed(hook,
                        "could not create admission objects: webhook does not accept known AdmissionReview "
                        "versions (v1, v1beta1)",
                        400);
    return;
  }
  question_ = MakeQuestion(request, version, row, object, old_object);
  const SteadyTime deadline = std::min(request.deadline, begin_ + hook.timeout);
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(deadline - begin_);
  Endpoint endpoint = hook.endpoint;
  endpoint.path += fmt::format("?timeout={}s", std::max<int64_t>(seconds.count(), 1));
  call_ = client.Start(endpoint, std::move(question_.json), deadline);
}

Outcome Invocation::Await() {
  if (early_) return *early_;
  Result<std::string> response = call_.Await();
  if (!response) return CallFailed(hook_, response.error().message(), HttpStatus(response.error().code()));
  Result<Answer> answer = ReadAnswer(*response, question_, mutating_);
  if (!answer) {
    const bool undecodable = answer.error().Is(Code::kBadRequest);
    return CallFailed(hook_,
                      (undecodable ? "failed to call webhook: " : "received invalid webhook response: ") +
                          answer.error().message(),
                      HttpStatus(Code::kUnavailable));
  }
  Record(hook_, *answer, request_.notes);
  if (!answer->allowed) return Rejected(hook_, std::move(*answer));
  Outcome outcome;
  outcome.answer = std::move(*answer);
  return outcome;
}

Result<> Invocation::Conclude(const Outcome& outcome, const std::string& annotation) const {
  const std::string_view type = mutating_ ? "admit" : "validating";
  RejectionType rejection = RejectionType::kNone;
  if (outcome.kind == Outcome::Kind::kRejected) rejection = RejectionType::kNoError;
  if (outcome.kind == Outcome::Kind::kInternal) rejection = RejectionType::kInternal;
  const bool failed = outcome.kind == Outcome::Kind::kCallFailed;
  if (failed && !hook_.ignore_failures) rejection = RejectionType::kCallingWebhook;
  CountCall(hook_.name, request_.operation, type, SteadyTime::clock::now() - begin_, outcome.code, rejection);
  if (!outcome.error) return {};
  if (!failed) {
    if (request_.notes) request_.notes->denial = outcome.denial;
    return *outcome.error;
  }
  log::Warn(hook_.ignore_failures ? "Failed calling webhook, failing open"
                                  : "Failed calling webhook, failing closed",
            {{"webhook", hook_.name}, {"err", *outcome.error}});
  if (!hook_.ignore_failures) return *outcome.error;
  CountFailOpen(hook_.name, type);
  if (request_.notes) request_.notes->annotations.emplace(annotation, hook_.name);
  if (SteadyTime::clock::now() < request_.deadline) return {};
  return Error(Code::kTimeout, "Timeout: request did not complete within requested timeout");
}

}  // namespace keelson::apiserver::webhook

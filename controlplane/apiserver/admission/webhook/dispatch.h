// Steps that calls of mutating and validating webhooks share.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "controlplane/apiserver/admission/matching/versions.h"
#include "controlplane/apiserver/admission/webhook/hook.h"
#include "controlplane/apiserver/admission/webhook/review.h"
#include "controlplane/apiserver/webhook/hook_client.h"
#include "controlplane/storage/store.h"

namespace keelson::apiserver::webhook {

// Begins the messages of failed calls.
inline constexpr std::string_view kCallPrefix = "failed to call webhook: ";

// The row in whose version the webhook wants to see the request; null: its rules are not about the request. An error
// rejects the request.
Result<const api::ResourceInfo*> RowFor(const Hook& hook, const AdmissionRequest& request,
                                        storage::Store& store);

// Whether the webhook's match conditions are true of the request in the version of `row`. An error rejects the request.
Result<bool> ConditionsMatch(const Hook& hook, const AdmissionRequest& request, const api::ResourceInfo& row,
                             VersionedObject& versions, const Authorizer& authorizer);

// The outcome of one call.
struct Outcome {
  enum class Kind { kAllowed, kRejected, kCallFailed, kInternal } kind = Kind::kAllowed;
  int code = 200;              // for metrics
  Answer answer;               // if there was one
  std::optional<Error> error;  // unless allowed
  std::optional<metav1::Status> denial;
};

// The call of one webhook.
class Invocation {
 public:
  // Begins the call. `object`, `old_object`: as for MakeQuestion().
  Invocation(const Hook& hook, const AdmissionRequest& request, const api::ResourceInfo& row,
             std::string_view object, std::string_view old_object, HookClient& client, bool mutating);
  // Waits for its end, records warnings and annotations of the answer in the request's notes, and counts
  // nothing yet.
  Outcome Await();
  const Hook& hook() const { return hook_; }
  // Counts the call, and decides about a failed one by failurePolicy. Returns the error that rejects the
  // request. `annotation`: the key for a failure that was passed over.
  Result<> Conclude(const Outcome& outcome, const std::string& annotation) const;

 private:
  const Hook& hook_;
  const AdmissionRequest& request_;
  const bool mutating_;
  const SteadyTime begin_;
  std::optional<Outcome> early_;  // the call has not begun
  Question question_;
  HookCall call_;
};

// The Internal error, as upstream words it for any cause.
Error InternalError(std::string_view why);
// The failure of a call, which failurePolicy judges. `code`: of the response, for metrics.
Outcome CallFailed(const Hook& hook, std::string_view reason, int code);

}  // namespace keelson::apiserver::webhook

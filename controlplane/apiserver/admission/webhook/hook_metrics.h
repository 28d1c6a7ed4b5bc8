// apiserver_admission_webhook_*
#pragma once

#include <chrono>
#include <string_view>

#include "controlplane/registry/registry.h"

namespace keelson::apiserver::webhook {

enum class RejectionType { kNone, kNoError, kCallingWebhook, kInternal };

// Counts one call. `type`: admit or validating. `code`: HTTP status of the webhook's answer, 0: none.
// `rejection` kNone: the request was not rejected by this call.
void CountCall(std::string_view hook, registry::Operation operation, std::string_view type,
               std::chrono::duration<double> took, int code, RejectionType rejection);
// Counts a failed call that failurePolicy Ignore has passed over.
void CountFailOpen(std::string_view hook, std::string_view type);

}  // namespace keelson::apiserver::webhook

#include "controlplane/apiserver/request_limits.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/endpoints/response.h"
#include "lib/api/codec/text_forms.h"

namespace keelson::apiserver {

Result<> SetDeadline(Context& context, std::chrono::milliseconds most) {
  std::chrono::milliseconds timeout = most;
  if (std::string_view given = context.query().Get("timeout"); !given.empty()) {
    Result<int64_t> nanos = api::ParseGoDuration(given);
    if (!nanos) {
      return Error(Code::kBadRequest,
                   fmt::format("invalid timeout specified in the request URL - time: invalid "
                               "duration \"{}\"",
                               given));
    }
    auto wanted = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::nanoseconds(*nanos));
    if (wanted.count() > 0) timeout = std::min(timeout, wanted);
  }
  context.deadline = SteadyTime::clock::now() + timeout;
  return {};
}

void ReplyTooManyRequests(Context& context) {
  constexpr int kTooManyRequests = 429;
  context.retry_after_seconds = 1;
  ReplyText(context, kTooManyRequests, "text/plain; charset=utf-8",
            "Too many requests, please try again later.\n");
}

}  // namespace keelson::apiserver

// The ID by which a request is found in the audit log, here and at the servers behind this one.
#pragma once

#include <string>
#include <string_view>

#include "lib/http/message.h"

namespace keelson::apiserver {

inline constexpr std::string_view kAuditId = "Audit-Id";  // header of requests and of replies

// The client's own ID as it is, or else a new UUID.
std::string AuditIdOf(const http::Headers& request);

}  // namespace keelson::apiserver

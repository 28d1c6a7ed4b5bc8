// Words for failed calls, as kube-apiserver's HTTP client has them: users and tools search logs for these.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::apiserver::webhook {

// Why there was no response from `address` (host:port).
std::string CauseOf(const Error& error, std::string_view address);
// What a response with a status other than success says.
std::string UnexpectedStatus(int status, std::string_view body);

}  // namespace keelson::apiserver::webhook

// Validates the query options of pods/log.
#pragma once

#include <string>

#include "lib/base/error.h"
#include "lib/http/message.h"

namespace keelson::apiserver {

// kBadRequest for a malformed option, kInvalid for an invalid value; both in upstream's wording.
Result<> CheckLogOptions(const http::Query& query, const std::string& pod);

}  // namespace keelson::apiserver

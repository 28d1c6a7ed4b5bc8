// The options of pods/log, as clients give them.
#pragma once

#include <string>

#include "lib/base/error.h"
#include "lib/http/message.h"

namespace keelson::apiserver {

// kBadRequest for what cannot be read, kInvalid for what makes no sense, both in upstream's words.
Result<> CheckLogOptions(const http::Query& query, const std::string& pod);

}  // namespace keelson::apiserver

// Headers for browsers: pages of which other origins may use the server (--cors-allowed-origins; the Fetch standard),
// and that it is to be used over HTTPS alone (--strict-transport-security-directives; RFC 6797).
#pragma once

#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/http/server/server.h"

namespace keelson::apiserver {

// A handler that adds these headers to every reply of `next`, also of streams. It answers preflight requests of an
// allowed origin (OPTIONS) with 204 itself, since browsers send no credentials with them. `origins` are regular
// expressions (RE2) that match somewhere in the header Origin. Without either list it is `next`. kInvalid, in upstream's
// words: an origin that is no expression or is bound to no end of the host, or an unknown directive.
Result<http::Handler> WithBrowserHeaders(const std::vector<std::string>& origins,
                                         const std::vector<std::string>& directives, http::Handler next);

}  // namespace keelson::apiserver

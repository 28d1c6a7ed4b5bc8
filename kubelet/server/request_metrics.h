// kubelet_http_requests_total, _duration_seconds, kubelet_http_inflight_requests.
#pragma once

#include <string>

#include "lib/http/server/server.h"

namespace keelson::kubelet::server {

// Counts the request now and the time that it takes until its response is complete. `server_type`: readwrite
// or readonly.
void CountRequest(const http::ServerRequest& request, http::ResponseWriter& writer,
                  const std::string& server_type);

// What a path is counted under: its first part, metrics with what follows; "other" for what is not served.
std::string PathLabel(const std::string& path);

}  // namespace keelson::kubelet::server

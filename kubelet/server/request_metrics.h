// kubelet_http_requests_total, _duration_seconds, kubelet_http_inflight_requests.
#pragma once

#include <string>

#include "lib/http/server/server.h"

namespace keelson::kubelet::server {

// Counts the request now, and its duration once the response is complete. `server_type`: readwrite
// or readonly.
void CountRequest(const http::ServerRequest& request, http::ResponseWriter& writer,
                  const std::string& server_type);

// The path label: the first part of the path, or all of /metrics/...; "other": not served.
std::string PathLabel(const std::string& path);

}  // namespace keelson::kubelet::server

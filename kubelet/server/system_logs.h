// The node's log directory at /logs/.
#pragma once

#include <string>

#include "lib/http/server/server.h"

namespace keelson::kubelet::server {

// Serves directories as lists of links, files as they are. No path or symlink leads out of `directory`. `queries`:
// also serves ?query= (log_query.h).
void ServeSystemLogs(const std::string& directory, const http::ServerRequest& request,
                     http::ResponseWriter& writer, bool queries = false);

}  // namespace keelson::kubelet::server

// Logs of node services: from the journal, or from files named after them.
#pragma once

#include "kubelet/server/log_query.h"
#include "lib/http/server/server.h"

namespace keelson::kubelet::server {

// Writes the logs of the query's services. Errors are written in between.
void ServeServiceLogs(const LogQuery& query, const std::string& directory, http::ResponseWriter& writer);

// Writes the rest of the file. False: the client is gone.
bool SendFile(int fd, http::ResponseWriter& writer);

}  // namespace keelson::kubelet::server

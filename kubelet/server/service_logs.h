// Logs of the node's services: from the journal, or from files that are called after them.
#pragma once

#include "kubelet/server/log_query.h"
#include "lib/http/server/server.h"

namespace keelson::kubelet::server {

// Answers with the logs of the query's services. What is not to be had is said between them.
void ServeServiceLogs(const LogQuery& query, const std::string& directory, http::ResponseWriter& writer);

// Writes what the file has left. False when the client has gone.
bool SendFile(int fd, http::ResponseWriter& writer);

}  // namespace keelson::kubelet::server

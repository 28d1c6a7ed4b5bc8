// Logs of the node, as /logs/ shows them.
#pragma once

#include <string>

#include "lib/http/server/server.h"

namespace keelson::kubelet::server {

// A directory as a list of links, a file as it is. Nothing outside `directory` is to be had, by whatever path
// or link. With `queries` ?query= asks for services too.
void ServeSystemLogs(const std::string& directory, const http::ServerRequest& request,
                     http::ResponseWriter& writer, bool queries = false);

}  // namespace keelson::kubelet::server

// Creates the API server's authentication and authorization from flags and files.
#pragma once

#include "controlplane/apiserver/server.h"
#include "controlplane/options/options.h"
#include "lib/http/server/file_reloader.h"

namespace keelson::controlplane {

Result<> ReadAuthOptions(const Options& options, apiserver::ApiServerOptions& out);

// Makes the server reload keys, tokens, and authentication and authorization configurations when their files
// change. `options` and `server` must outlive `files`.
void WatchAuthFiles(const Options& options, apiserver::ApiServer& server, http::FileReloader& files);

}  // namespace keelson::controlplane

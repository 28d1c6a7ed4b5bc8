// From flags and the files that they name to what the API server authenticates and authorizes by.
#pragma once

#include "controlplane/apiserver/server.h"
#include "controlplane/options/options.h"
#include "lib/http/server/file_reloader.h"

namespace keelson::controlplane {

Result<> ReadAuthOptions(const Options& options, apiserver::ApiServerOptions& out);

// Has the server take up keys, tokens, authentication and authorization configurations when their files
// change. `options` and `server` outlive `files`.
void WatchAuthFiles(const Options& options, apiserver::ApiServer& server, http::FileReloader& files);

}  // namespace keelson::controlplane

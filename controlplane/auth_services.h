// From flags and the files that they name to what the API server authenticates and authorizes by.
#pragma once

#include "controlplane/apiserver/server.h"
#include "controlplane/options.h"

namespace keelson::controlplane {

// Fills in all but keys and issuers, which are to be there already.
Result<> ReadAuthOptions(const Options& options, apiserver::ApiServerOptions& out);

}  // namespace keelson::controlplane

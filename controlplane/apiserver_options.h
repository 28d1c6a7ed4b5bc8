// What the API server and its registry get from flags and from the files that these name.
#pragma once

#include "controlplane/apiserver/server.h"
#include "controlplane/options/options.h"
#include "controlplane/registry/registry.h"

namespace keelson::controlplane {

// Threads that run requests.
inline constexpr int kApiServerWorkers = 48;

// Errors of these functions name the flag.
Result<registry::Config> RegistryConfigOf(const Options& options);
Result<apiserver::ApiServerOptions> ApiServerOptionsOf(const Options& options);

// The certificate for requests to extension API servers, as its files are now. Empty without the flags.
Result<apiserver::ProxyCertificate> ReadProxyCertificate(const Options& options);

}  // namespace keelson::controlplane

// TLS options of this process, from flags.
#pragma once

#include "controlplane/options/options.h"
#include "lib/crypto/tls.h"
#include "lib/http/server/server.h"

namespace keelson::controlplane {

// From --tls-cert-file and --tls-private-key-file, which may both be empty, and related flags. Logs a warning
// for insecure values. kInvalid: unknown version or cipher suite, or only one of the two files.
Result<crypto::TlsServerOptions> TlsOptionsOf(const Options& options);

// The files to watch for Server::ReloadTls().
std::vector<std::string> TlsFilesOf(const crypto::TlsServerOptions& tls);

// --http2-max-streams-per-connection and --permit-port-sharing.
void SetConnections(const Options& options, http::ServerOptions& server);
// --goaway-chance, for the API server only. kInvalid: not between 0 and 0.02.
Result<double> GoawayChance(const Options& options);

}  // namespace keelson::controlplane

// How this process serves HTTPS, by its flags.
#pragma once

#include "controlplane/options/options.h"
#include "lib/crypto/tls.h"
#include "lib/http/server/server.h"

namespace keelson::controlplane {

// With the files of --tls-cert-file and --tls-private-key-file, which may both be empty. Warns of what is
// better not asked for. kInvalid: a version or cipher suite that there is not, or only one of the two files.
Result<http::TlsServerOptions> TlsOptionsOf(const Options& options);

// The files whose change is taken up: Server::ReloadTls().
std::vector<std::string> TlsFilesOf(const http::TlsServerOptions& tls);

// --http2-max-streams-per-connection and --permit-port-sharing.
void SetConnections(const Options& options, http::ServerOptions& server);
// --goaway-chance, of the API server alone. kInvalid: not from 0 to 0.02.
Result<double> GoawayChance(const Options& options);

}  // namespace keelson::controlplane

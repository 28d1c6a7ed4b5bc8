// How this process serves HTTPS, by its flags.
#pragma once

#include "controlplane/options.h"
#include "lib/http/tls.h"

namespace keelson::controlplane {

// With the files of --tls-cert-file and --tls-private-key-file, which may both be empty. Warns of what is
// better not asked for. kInvalid: a version or cipher suite that there is not, or only one of the two files.
Result<http::TlsServerOptions> TlsOptionsOf(const Options& options);

}  // namespace keelson::controlplane

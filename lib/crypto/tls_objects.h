// The use of OpenSSL that the TLS files share. Internal to lib/crypto.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/crypto/key_objects.h"
#include "lib/crypto/tls.h"

namespace keelson::crypto {

using SslContextPtr = std::shared_ptr<SSL_CTX>;

// The thread's OpenSSL error queue as text; clears it. "unknown TLS error" for an empty queue.
std::string OpenSslErrors();
// "what: " and that text, as kBadRequest.
Error TlsError(std::string_view what);

// As TlsContext's ForServer and ForClient (tls_context.h).
Result<SslContextPtr> MakeServerContext(const TlsServerOptions& options);
Result<SslContextPtr> MakeClientContext(const TlsClientOptions& options, bool http2);

bool IsIpAddress(const std::string& name);

// Makes a server request client certificates, and record those that do not verify. kBadRequest for files that are no
// CA bundles.
Result<> TrustClients(SSL_CTX* context, const TlsServerOptions& options);

PeerCertificate Describe(X509* certificate);
// After the handshake. nullopt: the peer has presented no certificate, or one that does not verify.
std::optional<PeerCertificate> VerifiedPeer(SSL* ssl);

}  // namespace keelson::crypto

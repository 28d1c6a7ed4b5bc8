// OpenSSL behind lib/crypto/tls.h. Internal to lib/crypto.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>

#include "lib/base/error.h"
#include "lib/crypto/tls.h"

namespace keelson::crypto {

struct SslFree {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using SslPtr = std::unique_ptr<SSL, SslFree>;
using SslContextPtr = std::shared_ptr<SSL_CTX>;

// The thread's OpenSSL error queue as text; clears it.
std::string OpenSslErrors();

Result<SslContextPtr> MakeServerContext(const TlsServerOptions& options);
// Offers h2 and http/1.1 by ALPN when `http2`, else http/1.1.
Result<SslContextPtr> MakeClientContext(const TlsClientOptions& options, bool http2);

Result<SslPtr> NewServerSsl(const SslContextPtr& context, int fd);
// `name` is the DNS name or IP address that the certificate must carry.
Result<SslPtr> NewClientSsl(const SslContextPtr& context, int fd, const std::string& name, bool verify);

// After the handshake.
std::string NegotiatedProtocol(SSL* ssl);               // "h2", "http/1.1" or empty
std::optional<PeerCertificate> VerifiedPeer(SSL* ssl);  // nullopt: none shown, or not trusted
bool HasShownCertificate(SSL* ssl);

}  // namespace keelson::crypto

// TLS settings that are ready for connections: loaded and checked certificates, keys and CAs. TLS 1.2 and 1.3, without
// resumption: every connection verifies its client certificate.
#pragma once

#include <memory>

#include "lib/base/error.h"
#include "lib/crypto/tls.h"

struct ssl_ctx_st;  // OpenSSL's

namespace keelson::crypto {

// Immutable, thread safe. A stream made from it may outlive it.
class TlsContext {
 public:
  // Reads the files of `options`. kBadRequest when one is missing or unusable, kInvalid for unknown versions, cipher
  // suites and curves.
  static Result<std::shared_ptr<const TlsContext>> ForServer(const TlsServerOptions& options);
  // Offers h2 and http/1.1 by ALPN when `http2`, else http/1.1. kBadRequest when a PEM text is unusable.
  static Result<std::shared_ptr<const TlsContext>> ForClient(const TlsClientOptions& options, bool http2);

 private:
  friend class TlsStream;
  explicit TlsContext(std::shared_ptr<ssl_ctx_st> context) : context_(std::move(context)) {}

  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace keelson::crypto

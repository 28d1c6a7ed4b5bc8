// TLS settings made ready for connections: certificates, keys and CAs, read and checked. TLS 1.2 and 1.3, without
// resumption: every connection's client certificate is looked at anew.
#pragma once

#include <memory>

#include "lib/base/error.h"
#include "lib/crypto/tls.h"

struct ssl_ctx_st;  // OpenSSL's

namespace keelson::crypto {

// Immutable, thread safe. Streams made from it keep what they need of it.
class TlsContext {
 public:
  // Reads the files that `options` name. kBadRequest when one is missing or of no use, kInvalid for versions, cipher
  // suites and curves that nobody knows.
  static Result<std::shared_ptr<const TlsContext>> ForServer(const TlsServerOptions& options);
  // Offers h2 and http/1.1 by ALPN when `http2`, else http/1.1. kBadRequest when a PEM text is of no use.
  static Result<std::shared_ptr<const TlsContext>> ForClient(const TlsClientOptions& options, bool http2);

 private:
  friend class TlsStream;
  explicit TlsContext(std::shared_ptr<ssl_ctx_st> context) : context_(std::move(context)) {}

  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace keelson::crypto

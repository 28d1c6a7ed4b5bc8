// One TLS connection on a non-blocking socket, a step at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/crypto/tls.h"
#include "lib/crypto/tls_context.h"

struct ssl_st;  // OpenSSL's

namespace keelson::crypto {

// Reads and writes the socket itself and holds no buffers between records. Does not own the descriptor. One
// thread at a time; a step returns at once.
class TlsStream {
 public:
  enum class Io {
    kDone,
    kWantRead,   // take the same step again once the socket is readable
    kWantWrite,  // or writable
    kEnd,        // the peer sends no more; writing may still work
    kFailed,     // see error_number() and error_text()
  };
  // The behaviour of a peer that speaks HTTP without TLS.
  enum class PlainHttp { kNo, kRequests, kResponds };

  // The server's side of a connection. kBadRequest when OpenSSL refuses.
  static Result<std::unique_ptr<TlsStream>> Accept(const TlsContext& context, int fd);
  // The client's side. Names `name` to the server unless it is an address; with `verify` the certificate must be for
  // this DNS name or IP address. kBadRequest for a name that cannot be one.
  static Result<std::unique_ptr<TlsStream>> Connect(const TlsContext& context, int fd,
                                                    const std::string& name, bool verify);

  // kDone: the handshake is complete. Never kEnd: a peer that closes in the middle is a failure.
  Io Handshake();
  // Reads at most `size` bytes. `count` is valid only after kDone, and then not 0.
  Io Read(char* buffer, size_t size, size_t& count);
  // Writes `bytes`, which must not be empty. After kDone the socket has the first `count` of them. After kWantRead and
  // kWantWrite offer the same bytes again; their address may differ.
  Io Write(std::string_view bytes, size_t& count);
  // Sends close_notify, if the socket takes it at once. Reading may continue.
  void Shutdown();

  // Of the failed step: errno if the socket failed, else 0; OpenSSL's reasons, or after a client's handshake the reason
  // why the server's certificate does not verify.
  int error_number() const { return error_number_; }
  const std::string& error_text() const { return error_text_; }
  // Of a handshake that has failed. After kRequests the socket takes an answer without TLS.
  PlainHttp plain_http() const { return plain_http_; }

  // After the handshake.
  std::string NegotiatedProtocol() const;  // "h2", "http/1.1" or empty
  // nullopt: the peer has presented no certificate, or one that does not verify.
  std::optional<PeerCertificate> VerifiedPeer() const;
  bool HasShownCertificate() const;

 private:
  struct Free {
    void operator()(ssl_st* ssl) const;
  };
  using SslPtr = std::unique_ptr<ssl_st, Free>;

  explicit TlsStream(SslPtr ssl) : ssl_(std::move(ssl)) {}
  static Result<std::unique_ptr<TlsStream>> New(const TlsContext& context, int fd);
  Io Outcome(int result);

  SslPtr ssl_;
  int error_number_ = 0;
  PlainHttp plain_http_ = PlainHttp::kNo;
  std::string error_text_;
};

}  // namespace keelson::crypto

#include "lib/crypto/tls_stream.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <utility>

#include "lib/crypto/tls_objects.h"

namespace keelson::crypto {
namespace {

// The first bytes that a server without TLS answers with, where a record's head should be.
void NotePlainHttp(int written, int, int type, const void* bytes, size_t size, SSL*, void* responds) {
  constexpr std::string_view kHttp = "HTTP/";
  if (!written && type == SSL3_RT_HEADER &&
      std::string_view(static_cast<const char*>(bytes), size) == kHttp) {
    *static_cast<bool*>(responds) = true;
  }
}

}  // namespace

void TlsStream::Free::operator()(ssl_st* ssl) const { SSL_free(ssl); }

Result<std::unique_ptr<TlsStream>> TlsStream::New(const TlsContext& context, int fd) {
  SslPtr ssl(SSL_new(context.context_.get()));
  if (!ssl || SSL_set_fd(ssl.get(), fd) != 1) return TlsError("TLS connection");
  return std::unique_ptr<TlsStream>(new TlsStream(std::move(ssl)));
}

Result<std::unique_ptr<TlsStream>> TlsStream::Accept(const TlsContext& context, int fd) {
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<TlsStream> stream, New(context, fd));
  SSL_set_accept_state(stream->ssl_.get());
  return stream;
}

Result<std::unique_ptr<TlsStream>> TlsStream::Connect(const TlsContext& context, int fd,
                                                      const std::string& name, bool verify) {
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<TlsStream> stream, New(context, fd));
  SSL* ssl = stream->ssl_.get();
  const bool is_ip = IsIpAddress(name);
  if (!is_ip) SSL_set_tlsext_host_name(ssl, name.c_str());
  if (verify) {
    X509_VERIFY_PARAM* param = SSL_get0_param(ssl);
    const int ok =
        is_ip ? X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str()) : SSL_set1_host(ssl, name.c_str());
    if (ok != 1) return TlsError("server name " + name);
  }
  SSL_set_connect_state(ssl);
  return stream;
}

TlsStream::Io TlsStream::Handshake() {
  ERR_clear_error();
  SSL* ssl = ssl_.get();
  const bool server = SSL_is_server(ssl);
  bool responds = false;
  SSL_set_msg_callback(ssl, server ? nullptr : NotePlainHttp);
  SSL_set_msg_callback_arg(ssl, &responds);
  const int result = SSL_do_handshake(ssl);
  SSL_set_msg_callback(ssl, nullptr);
  if (result == 1) return Io::kDone;
  const bool requests = ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
  const Io io = Outcome(result);
  if (io == Io::kWantRead || io == Io::kWantWrite) return io;
  if (io == Io::kEnd) error_text_ = OpenSslErrors();
  if (responds) plain_http_ = PlainHttp::kResponds;
  if (requests) plain_http_ = PlainHttp::kRequests;
  const long verified = SSL_get_verify_result(ssl);
  if (!server && verified != X509_V_OK) error_text_ = X509_verify_cert_error_string(verified);
  return Io::kFailed;
}

TlsStream::Io TlsStream::Read(char* buffer, size_t size, size_t& count) {
  ERR_clear_error();
  const int result = SSL_read_ex(ssl_.get(), buffer, size, &count);
  return result == 1 ? Io::kDone : Outcome(result);
}

TlsStream::Io TlsStream::Write(std::string_view bytes, size_t& count) {
  ERR_clear_error();
  const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &count);
  return result == 1 ? Io::kDone : Outcome(result);
}

TlsStream::Io TlsStream::Outcome(int result) {
  const int saved = errno;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Io::kWantRead;
    case SSL_ERROR_WANT_WRITE:
      return Io::kWantWrite;
    case SSL_ERROR_ZERO_RETURN:
      return Io::kEnd;
    case SSL_ERROR_SYSCALL:
      error_number_ = saved ? saved : ECONNRESET;
      break;
    default:
      error_number_ = 0;
      break;
  }
  error_text_ = OpenSslErrors();
  return Io::kFailed;
}

void TlsStream::Shutdown() {
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

std::string TlsStream::NegotiatedProtocol() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return std::string(reinterpret_cast<const char*>(name), size);
}

bool TlsStream::HasShownCertificate() const { return SSL_get0_peer_certificate(ssl_.get()) != nullptr; }

std::optional<PeerCertificate> TlsStream::VerifiedPeer() const { return crypto::VerifiedPeer(ssl_.get()); }

}  // namespace keelson::crypto

#include "lib/crypto/testing/blocking_tls.h"

#include <openssl/ssl.h>
#include <signal.h>

#include <cstdlib>

#include "lib/crypto/key_objects.h"

namespace keelson::crypto {

struct BlockingTls::Impl {
  OpenSslPtr<SSL_CTX, SSL_CTX_free> context{SSL_CTX_new(TLS_client_method())};
  OpenSslPtr<SSL, SSL_free> ssl;
};

BlockingTls::BlockingTls(int fd, const std::string& protocol) : impl_(std::make_unique<Impl>()) {
  signal(SIGPIPE, SIG_IGN);
  const std::string alpn = static_cast<char>(protocol.size()) + protocol;
  if (!protocol.empty()) {
    SSL_CTX_set_alpn_protos(impl_->context.get(), Bytes(alpn), static_cast<unsigned>(alpn.size()));
  }
  impl_->ssl.reset(SSL_new(impl_->context.get()));
  SSL_set_fd(impl_->ssl.get(), fd);
  if (SSL_connect(impl_->ssl.get()) != 1) abort();
}

BlockingTls::~BlockingTls() = default;

bool BlockingTls::Send(std::string_view bytes) {
  return SSL_write(impl_->ssl.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
}

std::string BlockingTls::Read() {
  char buffer[16384];
  const int size = SSL_read(impl_->ssl.get(), buffer, sizeof buffer);
  return size > 0 ? std::string(buffer, static_cast<size_t>(size)) : std::string();
}

}  // namespace keelson::crypto

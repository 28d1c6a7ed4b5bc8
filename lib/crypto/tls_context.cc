#include "lib/crypto/tls_context.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/socket.h>

#include "lib/crypto/tls_names.h"
#include "lib/crypto/tls_objects.h"
#include "lib/crypto/tls_settings.h"
#include "lib/crypto/x509_objects.h"

namespace keelson::crypto {
namespace {

// The wire form of a protocol list: each name after its length.
std::string AlpnWire(const std::vector<std::string>& names) {
  std::string wire;
  for (const std::string& name : names) {
    wire += static_cast<char>(name.size());
    wire += name;
  }
  return wire;
}

int SelectAlpn(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
               unsigned in_size, void* arg) {
  const auto& ours = *static_cast<std::string*>(arg);
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, reinterpret_cast<const unsigned char*>(ours.data()),
                            static_cast<unsigned>(ours.size()), in, in_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

SslContextPtr NewContext(const SSL_METHOD* method) {
  SslContextPtr context(SSL_CTX_new(method), SSL_CTX_free);
  if (!context) return nullptr;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context.get(),
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  // Without resumption every connection verifies its client certificate.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context.get(), 0);
  return context;
}

Result<> AddCertificates(SSL_CTX* context, const std::string& pem) {
  BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  int count = 0;
  while (CertificatePtr cert{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), cert.get());
    ++count;
  }
  ERR_clear_error();
  if (!count) return Error(Code::kBadRequest, "CA: no certificate in PEM text");
  return {};
}

Result<> UseCertificate(SSL_CTX* context, const std::string& certificate_pem, const std::string& key_pem) {
  BioPtr bio(BIO_new_mem_buf(certificate_pem.data(), static_cast<int>(certificate_pem.size())));
  CertificatePtr leaf(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!leaf || SSL_CTX_use_certificate(context, leaf.get()) != 1) return TlsError("client certificate");
  while (CertificatePtr next{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (SSL_CTX_add0_chain_cert(context, next.get()) == 1) (void)next.release();
  }
  ERR_clear_error();
  BioPtr key_bio(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  KeyPtr key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
  if (!key || SSL_CTX_use_PrivateKey(context, key.get()) != 1) return TlsError("client key");
  if (SSL_CTX_check_private_key(context) != 1) return TlsError("client certificate and key");
  return {};
}

Result<SslContextPtr> MakeOneServerContext(const TlsServerOptions& options) {
  ERR_clear_error();
  SslContextPtr context = NewContext(TLS_server_method());
  if (!context) return TlsError("TLS context");
  KEELSON_ASSIGN_OR_RETURN(const int least, ParseTlsVersion(options.min_version));
  SSL_CTX_set_min_proto_version(context.get(), least);
  KEELSON_ASSIGN_OR_RETURN(const std::string ciphers, CipherList(options.cipher_suites));
  if (!ciphers.empty() && SSL_CTX_set_cipher_list(context.get(), ciphers.c_str()) != 1) {
    return TlsError("cipher suites " + ciphers);
  }
  KEELSON_ASSIGN_OR_RETURN(const std::string groups, GroupList(options.curves));
  if (!groups.empty() && SSL_CTX_set1_groups_list(context.get(), groups.c_str()) != 1) {
    return TlsError("curves " + groups);
  }
  if (SSL_CTX_use_certificate_chain_file(context.get(), options.certificate_file.c_str()) != 1) {
    return TlsError("certificate " + options.certificate_file);
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), options.key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return TlsError("key " + options.key_file);
  }
  if (!options.client_ca_file.empty() || !options.proxy_ca_file.empty()) {
    KEELSON_RETURN_IF_ERROR(TrustClients(context.get(), options));
  }
  if (!options.alpn.empty()) {
    static const int kIndex = SSL_CTX_get_ex_new_index(
        0, nullptr, nullptr, nullptr,
        [](void*, void* wire, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<std::string*>(wire); });
    auto* wire = new std::string(AlpnWire(options.alpn));  // freed with the context
    SSL_CTX_set_ex_data(context.get(), kIndex, wire);
    SSL_CTX_set_alpn_select_cb(context.get(), SelectAlpn, wire);
  }
  return context;
}

// Contexts for names, with those names.
struct NamedContexts {
  std::vector<std::vector<std::string>> names;
  std::vector<SslContextPtr> contexts;
};

int NamedIndex() {
  static const int index = SSL_CTX_get_ex_new_index(
      0, nullptr, nullptr, nullptr,
      [](void*, void* held, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<NamedContexts*>(held); });
  return index;
}

// What a client that names no host has dialled, most likely: the address that it has reached.
std::string LocalAddress(SSL* ssl) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getsockname(SSL_get_fd(ssl), reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "";
  char text[INET6_ADDRSTRLEN] = {};
  if (storage.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(&storage)->sin_addr, text, sizeof text);
  } else if (storage.ss_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<sockaddr_in6*>(&storage)->sin6_addr;
    constexpr size_t kMapped = 12;  // what stands before an IPv4 address
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
      inet_ntop(AF_INET, v6.s6_addr + kMapped, text, sizeof text);
    } else {
      inet_ntop(AF_INET6, &v6, text, sizeof text);
    }
  }
  return text;
}

int SelectCertificate(SSL* ssl, int*, void* arg) {
  const auto& named = *static_cast<const NamedContexts*>(arg);
  const char* asked = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  const int found = FindName(named.names, asked ? asked : LocalAddress(ssl));
  if (found >= 0) SSL_set_SSL_CTX(ssl, named.contexts[static_cast<size_t>(found)].get());
  return SSL_TLSEXT_ERR_OK;
}

// Names of hosts alone, as Kubernetes has it: a certificate that is for the server's address too would
// otherwise take the place of the one for everybody else.
std::vector<std::string> NamesOf(X509* cert) {
  PeerCertificate described = Describe(cert);
  std::vector<std::string> out = std::move(described.dns_names);
  if (const std::string& name = described.common_name; !name.empty() && !IsIpAddress(name)) {
    out.push_back(name);
  }
  return out;
}

Result<> AddNamed(SSL_CTX* context, const TlsServerOptions& options) {
  auto named = std::make_unique<NamedContexts>();
  for (bool explicitly : {true, false}) {
    for (const TlsServerOptions::Named& one : options.named) {
      if (one.names.empty() == explicitly) continue;
      TlsServerOptions own = options;
      own.certificate_file = one.certificate_file;
      own.key_file = one.key_file;
      KEELSON_ASSIGN_OR_RETURN(SslContextPtr made, MakeOneServerContext(own));
      named->names.push_back(explicitly ? one.names : NamesOf(SSL_CTX_get0_certificate(made.get())));
      named->contexts.push_back(std::move(made));
    }
  }
  SSL_CTX_set_tlsext_servername_callback(context, SelectCertificate);
  SSL_CTX_set_tlsext_servername_arg(context, named.get());
  SSL_CTX_set_ex_data(context, NamedIndex(), named.release());  // freed with the context
  return {};
}

}  // namespace

Result<SslContextPtr> MakeServerContext(const TlsServerOptions& options) {
  KEELSON_ASSIGN_OR_RETURN(SslContextPtr context, MakeOneServerContext(options));
  if (!options.named.empty()) KEELSON_RETURN_IF_ERROR(AddNamed(context.get(), options));
  return context;
}

Result<SslContextPtr> MakeClientContext(const TlsClientOptions& options, bool http2) {
  ERR_clear_error();
  SslContextPtr context = NewContext(TLS_client_method());
  if (!context) return TlsError("TLS context");
  if (options.insecure_skip_verify) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  } else {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    if (options.ca_pem.empty()) {
      SSL_CTX_set_default_verify_paths(context.get());
    } else {
      KEELSON_RETURN_IF_ERROR(AddCertificates(context.get(), options.ca_pem));
    }
  }
  if (!options.certificate_pem.empty()) {
    KEELSON_RETURN_IF_ERROR(UseCertificate(context.get(), options.certificate_pem, options.key_pem));
  }
  std::string wire = http2 ? AlpnWire({"h2", "http/1.1"}) : AlpnWire({"http/1.1"});
  SSL_CTX_set_alpn_protos(context.get(), reinterpret_cast<const unsigned char*>(wire.data()),
                          static_cast<unsigned>(wire.size()));
  return context;
}

Result<std::shared_ptr<const TlsContext>> TlsContext::ForServer(const TlsServerOptions& options) {
  KEELSON_ASSIGN_OR_RETURN(SslContextPtr context, MakeServerContext(options));
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(context)));
}

Result<std::shared_ptr<const TlsContext>> TlsContext::ForClient(const TlsClientOptions& options, bool http2) {
  KEELSON_ASSIGN_OR_RETURN(SslContextPtr context, MakeClientContext(options, http2));
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(context)));
}

}  // namespace keelson::crypto

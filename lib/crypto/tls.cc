#include "lib/crypto/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include "lib/crypto/key_objects.h"
#include "lib/crypto/tls_context.h"
#include "lib/crypto/tls_names.h"
#include "lib/crypto/tls_settings.h"
#include "lib/crypto/x509_objects.h"

namespace keelson::crypto {
namespace {

using X509Ptr = OpenSslPtr<X509, X509_free>;
using NamesPtr = OpenSslPtr<GENERAL_NAMES, GENERAL_NAMES_free>;

Error TlsError(std::string_view what) {
  return Error(Code::kBadRequest, std::string(what) + ": " + OpenSslErrors());
}

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

int RefusedIndex() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

// Lets the handshake go on with a certificate that does not verify, and remembers it.
int RememberRefusal(int ok, X509_STORE_CTX* store) {
  if (!ok) {
    auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    SSL_set_ex_data(ssl, RefusedIndex(), ssl);
  }
  return 1;
}

using StorePtr = OpenSslPtr<X509_STORE, X509_STORE_free>;

// The CAs one by one, where a server has two: a handshake tells only that either of them has signed.
struct ClientAuthorities {
  StorePtr clients, proxies;
};

int AuthoritiesIndex() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr,
                                                    [](void*, void* held, CRYPTO_EX_DATA*, int, long, void*) {
                                                      delete static_cast<ClientAuthorities*>(held);
                                                    });
  return index;
}

bool SignedBy(X509_STORE* store, SSL* ssl, X509* cert) {
  if (!store) return false;
  OpenSslPtr<X509_STORE_CTX, X509_STORE_CTX_free> context(X509_STORE_CTX_new());
  if (!context || X509_STORE_CTX_init(context.get(), store, cert, SSL_get_peer_cert_chain(ssl)) != 1)
    return false;
  X509_STORE_CTX_set_default(context.get(), "ssl_client");
  bool verified = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  return verified;
}

Result<> TrustClients(SSL_CTX* context, const TlsServerOptions& options) {
  auto authorities = std::make_unique<ClientAuthorities>();
  auto load = [&](const std::string& file, StorePtr& store) -> Result<> {
    if (file.empty()) return {};
    store.reset(X509_STORE_new());
    if (!store || X509_STORE_load_file(store.get(), file.c_str()) != 1 ||
        SSL_CTX_load_verify_file(context, file.c_str()) != 1) {
      return TlsError("client CA " + file);
    }
    return {};
  };
  RETURN_IF_ERROR(load(options.client_ca_file, authorities->clients));
  RETURN_IF_ERROR(load(options.proxy_ca_file, authorities->proxies));
  STACK_OF(X509_NAME)* names = sk_X509_NAME_new_null();
  for (const std::string& file : {options.client_ca_file, options.proxy_ca_file}) {
    if (!file.empty()) SSL_add_file_cert_subjects_to_stack(names, file.c_str());
  }
  SSL_CTX_set_client_CA_list(context, names);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, RememberRefusal);
  if (authorities->proxies) SSL_CTX_set_ex_data(context, AuthoritiesIndex(), authorities.release());
  return {};
}

SslContextPtr NewContext(const SSL_METHOD* method) {
  SslContextPtr context(SSL_CTX_new(method), SSL_CTX_free);
  if (!context) return nullptr;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context.get(),
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  // Without resumption every connection's client certificate is looked at anew.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context.get(), 0);
  return context;
}

Result<> AddCertificates(SSL_CTX* context, const std::string& pem) {
  BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  int count = 0;
  while (X509Ptr cert{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), cert.get());
    ++count;
  }
  ERR_clear_error();
  if (!count) return Error(Code::kBadRequest, "CA: no certificate in PEM text");
  return {};
}

Result<> UseCertificate(SSL_CTX* context, const std::string& certificate_pem, const std::string& key_pem) {
  BioPtr bio(BIO_new_mem_buf(certificate_pem.data(), static_cast<int>(certificate_pem.size())));
  X509Ptr leaf(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!leaf || SSL_CTX_use_certificate(context, leaf.get()) != 1) return TlsError("client certificate");
  while (X509Ptr next{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (SSL_CTX_add0_chain_cert(context, next.get()) == 1) (void)next.release();
  }
  ERR_clear_error();
  BioPtr key_bio(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  KeyPtr key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
  if (!key || SSL_CTX_use_PrivateKey(context, key.get()) != 1) return TlsError("client key");
  if (SSL_CTX_check_private_key(context) != 1) return TlsError("client certificate and key");
  return {};
}

std::string NameEntry(X509_NAME_ENTRY* entry) {
  unsigned char* utf8 = nullptr;
  int size = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(entry));
  std::string text(reinterpret_cast<char*>(utf8), size > 0 ? static_cast<size_t>(size) : 0);
  OPENSSL_free(utf8);
  return text;
}

void ReadAlternativeNames(X509* cert, PeerCertificate& peer) {
  NamesPtr names(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(cert, NID_subject_alt_name, nullptr, nullptr)));
  if (!names) return;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS && name->type != GEN_URI) continue;
    const ASN1_IA5STRING* text = name->d.ia5;
    std::string value(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                      static_cast<size_t>(ASN1_STRING_length(text)));
    (name->type == GEN_DNS ? peer.dns_names : peer.uris).push_back(std::move(value));
  }
}

PeerCertificate Describe(X509* cert) {
  PeerCertificate peer;
  X509_NAME* subject = X509_get_subject_name(cert);
  for (int i = 0; i < X509_NAME_entry_count(subject); ++i) {
    X509_NAME_ENTRY* entry = X509_NAME_get_entry(subject, i);
    int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    if (nid == NID_commonName) peer.common_name = NameEntry(entry);
    if (nid == NID_organizationName) peer.organizations.push_back(NameEntry(entry));
  }
  ReadAlternativeNames(cert, peer);
  peer.not_after = TimeOf(X509_get0_notAfter(cert));
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  X509_digest(cert, EVP_sha256(), digest, &size);
  static constexpr char kHex[] = "0123456789abcdef";
  for (unsigned i = 0; i < size; ++i) {
    peer.sha256_fingerprint += kHex[digest[i] >> 4];
    peer.sha256_fingerprint += kHex[digest[i] & 15];
  }
  return peer;
}

bool IsIpAddress(const std::string& name) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, name.c_str(), bytes) == 1 || inet_pton(AF_INET6, name.c_str(), bytes) == 1;
}

}  // namespace

std::string OpenSslErrors() {
  std::string text;
  char buffer[256];
  while (unsigned long code = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(code);
    if (!reason) ERR_error_string_n(code, buffer, sizeof buffer);
    if (!text.empty()) text += "; ";
    text += reason ? reason : buffer;
  }
  return text.empty() ? "unknown TLS error" : text;
}

namespace {

Result<SslContextPtr> MakeOneServerContext(const TlsServerOptions& options) {
  ERR_clear_error();
  SslContextPtr context = NewContext(TLS_server_method());
  if (!context) return TlsError("TLS context");
  ASSIGN_OR_RETURN(const int least, ParseTlsVersion(options.min_version));
  SSL_CTX_set_min_proto_version(context.get(), least);
  ASSIGN_OR_RETURN(const std::string ciphers, CipherList(options.cipher_suites));
  if (!ciphers.empty() && SSL_CTX_set_cipher_list(context.get(), ciphers.c_str()) != 1)
    return TlsError("cipher suites " + ciphers);
  ASSIGN_OR_RETURN(const std::string groups, GroupList(options.curves));
  if (!groups.empty() && SSL_CTX_set1_groups_list(context.get(), groups.c_str()) != 1)
    return TlsError("curves " + groups);
  if (SSL_CTX_use_certificate_chain_file(context.get(), options.certificate_file.c_str()) != 1) {
    return TlsError("certificate " + options.certificate_file);
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), options.key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return TlsError("key " + options.key_file);
  }
  if (!options.client_ca_file.empty() || !options.proxy_ca_file.empty()) {
    RETURN_IF_ERROR(TrustClients(context.get(), options));
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
  if (const std::string& name = described.common_name; !name.empty() && !IsIpAddress(name))
    out.push_back(name);
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
      ASSIGN_OR_RETURN(SslContextPtr made, MakeOneServerContext(own));
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
  ASSIGN_OR_RETURN(SslContextPtr context, MakeOneServerContext(options));
  if (!options.named.empty()) RETURN_IF_ERROR(AddNamed(context.get(), options));
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
      RETURN_IF_ERROR(AddCertificates(context.get(), options.ca_pem));
    }
  }
  if (!options.certificate_pem.empty()) {
    RETURN_IF_ERROR(UseCertificate(context.get(), options.certificate_pem, options.key_pem));
  }
  std::string wire = http2 ? AlpnWire({"h2", "http/1.1"}) : AlpnWire({"http/1.1"});
  SSL_CTX_set_alpn_protos(context.get(), reinterpret_cast<const unsigned char*>(wire.data()),
                          static_cast<unsigned>(wire.size()));
  return context;
}

Result<SslPtr> NewServerSsl(const SslContextPtr& context, int fd) {
  SslPtr ssl(SSL_new(context.get()));
  if (!ssl || SSL_set_fd(ssl.get(), fd) != 1) return TlsError("TLS connection");
  SSL_set_accept_state(ssl.get());
  return ssl;
}

Result<SslPtr> NewClientSsl(const SslContextPtr& context, int fd, const std::string& name, bool verify) {
  SslPtr ssl(SSL_new(context.get()));
  if (!ssl || SSL_set_fd(ssl.get(), fd) != 1) return TlsError("TLS connection");
  bool is_ip = IsIpAddress(name);
  if (!is_ip) SSL_set_tlsext_host_name(ssl.get(), name.c_str());
  if (verify) {
    X509_VERIFY_PARAM* param = SSL_get0_param(ssl.get());
    int ok =
        is_ip ? X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str()) : SSL_set1_host(ssl.get(), name.c_str());
    if (ok != 1) return TlsError("server name " + name);
  }
  SSL_set_connect_state(ssl.get());
  return ssl;
}

std::string NegotiatedProtocol(SSL* ssl) {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl, &name, &size);
  return std::string(reinterpret_cast<const char*>(name), size);
}

bool HasShownCertificate(SSL* ssl) { return SSL_get0_peer_certificate(ssl) != nullptr; }

std::optional<PeerCertificate> VerifiedPeer(SSL* ssl) {
  X509* cert = SSL_get0_peer_certificate(ssl);
  if (!cert) return std::nullopt;
  if (const auto* authorities = static_cast<const ClientAuthorities*>(
          SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), AuthoritiesIndex()))) {
    // Not as the handshake found it: two CAs of one name would be mixed up there.
    PeerCertificate peer = Describe(cert);
    peer.from_client_ca = SignedBy(authorities->clients.get(), ssl, cert);
    peer.from_proxy_ca = SignedBy(authorities->proxies.get(), ssl, cert);
    if (!peer.from_client_ca && !peer.from_proxy_ca) return std::nullopt;
    return peer;
  }
  if (SSL_get_ex_data(ssl, RefusedIndex()) || SSL_get_verify_result(ssl) != X509_V_OK) return std::nullopt;
  return Describe(cert);
}

}  // namespace keelson::crypto

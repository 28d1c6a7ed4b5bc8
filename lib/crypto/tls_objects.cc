#include "lib/crypto/tls_objects.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "lib/base/text.h"
#include "lib/crypto/x509_objects.h"

namespace keelson::crypto {
namespace {

using NamesPtr = OpenSslPtr<GENERAL_NAMES, GENERAL_NAMES_free>;

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
  if (!context || X509_STORE_CTX_init(context.get(), store, cert, SSL_get_peer_cert_chain(ssl)) != 1) {
    return false;
  }
  X509_STORE_CTX_set_default(context.get(), "ssl_client");
  bool verified = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  return verified;
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

Error TlsError(std::string_view what) {
  return Error(Code::kBadRequest, std::string(what) + ": " + OpenSslErrors());
}

bool IsIpAddress(const std::string& name) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, name.c_str(), bytes) == 1 || inet_pton(AF_INET6, name.c_str(), bytes) == 1;
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
  KEELSON_RETURN_IF_ERROR(load(options.client_ca_file, authorities->clients));
  KEELSON_RETURN_IF_ERROR(load(options.proxy_ca_file, authorities->proxies));
  STACK_OF(X509_NAME)* names = sk_X509_NAME_new_null();
  for (const std::string& file : {options.client_ca_file, options.proxy_ca_file}) {
    if (!file.empty()) SSL_add_file_cert_subjects_to_stack(names, file.c_str());
  }
  SSL_CTX_set_client_CA_list(context, names);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, RememberRefusal);
  if (authorities->proxies) SSL_CTX_set_ex_data(context, AuthoritiesIndex(), authorities.release());
  return {};
}

// Whether an attribute has one of the types that are strings (RFC 5280, DirectoryString, and IA5String).
bool IsString(X509_NAME_ENTRY* entry) {
  switch (ASN1_STRING_type(X509_NAME_ENTRY_get_data(entry))) {
    case V_ASN1_UTF8STRING:
    case V_ASN1_PRINTABLESTRING:
    case V_ASN1_IA5STRING:
    case V_ASN1_T61STRING:
    case V_ASN1_BMPSTRING:
    case V_ASN1_NUMERICSTRING:
      return true;
    default:
      return false;
  }
}

// The attribute for UIDs below the enterprise number of the CNCF.
bool IsUid(X509_NAME_ENTRY* entry) {
  static const std::unique_ptr<ASN1_OBJECT, void (*)(ASN1_OBJECT*)> uid(OBJ_txt2obj("1.3.6.1.4.1.57683.2", 1),
                                                                        ASN1_OBJECT_free);
  return uid && OBJ_cmp(X509_NAME_ENTRY_get_object(entry), uid.get()) == 0;
}

void ReadUid(X509_NAME_ENTRY* entry, bool another, PeerCertificate& peer) {
  peer.uid = IsString(entry) ? NameEntry(entry) : "";
  if (another) {
    peer.uid_problem = "expected 1 UID, but found multiple";
  } else if (!IsString(entry)) {
    peer.uid_problem = "unable to parse UID into a string";
  } else if (peer.uid.empty()) {
    peer.uid_problem = "UID cannot be an empty string";
  }
}

PeerCertificate Describe(X509* cert) {
  PeerCertificate peer;
  X509_NAME* subject = X509_get_subject_name(cert);
  int uids = 0;
  for (int i = 0; i < X509_NAME_entry_count(subject); ++i) {
    X509_NAME_ENTRY* entry = X509_NAME_get_entry(subject, i);
    int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    if (IsUid(entry)) ReadUid(entry, ++uids > 1, peer);
    if (nid == NID_commonName) peer.common_name = NameEntry(entry);
    if (nid == NID_organizationName) peer.organizations.push_back(NameEntry(entry));
  }
  ReadAlternativeNames(cert, peer);
  peer.not_after = TimeOf(X509_get0_notAfter(cert));
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  X509_digest(cert, EVP_sha256(), digest, &size);
  peer.sha256_fingerprint = Hex({reinterpret_cast<char*>(digest), size});
  return peer;
}

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

#include "lib/crypto/public_key.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rsa.h>

#include "lib/crypto/alternative_names.h"
#include "lib/crypto/x509_objects.h"

namespace keelson::crypto {
namespace {

// The whole of `der` as `read` takes it; null for less, and for what has something behind it.
template <typename Pointer, typename T>
Pointer Parse(T* (*read)(T**, const unsigned char**, long), std::string_view der) {
  const unsigned char* at = Bytes(der);
  Pointer parsed(read(nullptr, &at, static_cast<long>(der.size())));
  ERR_clear_error();
  return parsed && at == Bytes(der) + der.size() ? std::move(parsed) : nullptr;
}

}  // namespace

struct PublicKey::Impl {
  KeyPtr key;
};

Result<PublicKey> PublicKey::FromDer(std::string_view der) {
  auto impl = std::make_shared<Impl>();
  impl->key = Parse<KeyPtr>(d2i_PUBKEY, der);
  if (!impl->key) return Error(Code::kBadRequest, "no public key");
  PublicKey out;
  out.impl_ = std::move(impl);
  return out;
}

Result<PublicKey> PublicKey::OfRequest(std::string_view der) {
  RequestPtr request = Parse<RequestPtr>(d2i_X509_REQ, der);
  auto impl = std::make_shared<Impl>();
  if (request) impl->key.reset(X509_REQ_get_pubkey(request.get()));
  ERR_clear_error();
  if (!impl->key) return Error(Code::kBadRequest, "no certificate request");
  const bool own = X509_REQ_verify(request.get(), impl->key.get()) == 1;
  ERR_clear_error();
  if (!own) return Error(Code::kInvalid, "the request is not signed with its own key");
  PublicKey out;
  out.impl_ = std::move(impl);
  return out;
}

PublicKey::Kind PublicKey::kind() const {
  switch (EVP_PKEY_get_base_id(impl_->key.get())) {
    case EVP_PKEY_RSA:
      return Kind::kRsa;
    case EVP_PKEY_EC:
      return Kind::kEcdsa;
    case EVP_PKEY_ED25519:
      return Kind::kEd25519;
    default:
      return Kind::kOther;
  }
}

int PublicKey::bits() const { return EVP_PKEY_get_size(impl_->key.get()) * 8; }

std::string PublicKey::curve() const {
  if (const Curve* known = CurveOf(impl_->key.get())) return std::string(known->name);
  char name[64] = {};
  size_t size = 0;
  EVP_PKEY_get_utf8_string_param(impl_->key.get(), OSSL_PKEY_PARAM_GROUP_NAME, name, sizeof name, &size);
  ERR_clear_error();
  return {name, size};
}

bool PublicKey::HasSigned(std::string_view data, std::string_view signature) const {
  const Kind kind = this->kind();
  if (kind == Kind::kOther) return false;
  DigestPtr context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* key_context = nullptr;
  const EVP_MD* digest = kind == Kind::kEd25519 ? nullptr : EVP_sha256();
  bool ready = EVP_DigestVerifyInit(context.get(), &key_context, digest, nullptr, impl_->key.get()) > 0;
  if (ready && kind == Kind::kRsa) {
    ready = EVP_PKEY_CTX_set_rsa_padding(key_context, RSA_PKCS1_PSS_PADDING) > 0 &&
            EVP_PKEY_CTX_set_rsa_pss_saltlen(key_context, RSA_PSS_SALTLEN_AUTO) > 0;
  }
  const bool valid = ready && EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(data),
                                               data.size()) == 1;
  ERR_clear_error();
  return valid;
}

bool PublicKey::operator==(const PublicKey& other) const {
  const bool same = EVP_PKEY_eq(impl_->key.get(), other.impl_->key.get()) == 1;
  ERR_clear_error();
  return same;
}

Result<IssuedCertificate> IssuedCertificate::FromDer(std::string_view der) {
  CertificatePtr certificate = Parse<CertificatePtr>(d2i_X509, der);
  auto impl = std::make_shared<PublicKey::Impl>();
  if (certificate) impl->key.reset(X509_get_pubkey(certificate.get()));
  ERR_clear_error();
  if (!impl->key) return Error(Code::kBadRequest, "no certificate");
  IssuedCertificate out;
  out.key.impl_ = std::move(impl);
  out.not_before = TimeOf(X509_get0_notBefore(certificate.get()));
  out.not_after = TimeOf(X509_get0_notAfter(certificate.get()));
  KEELSON_ASSIGN_OR_RETURN(NamesOfHosts names, ReadAlternativeNames(X509_get0_extensions(certificate.get())));
  out.dns_names = std::move(names.dns_names);
  out.emails = std::move(names.emails);
  return out;
}

}  // namespace keelson::crypto

#include "lib/crypto/signing_key.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include <algorithm>

#include "lib/base/base64.h"
#include "lib/crypto/digest.h"
#include "lib/crypto/key_objects.h"

namespace keelson::crypto {
namespace {

using CertificatePtr = OpenSslPtr<X509, X509_free>;

std::string Number(EVP_PKEY* key, const char* parameter, size_t width) {
  BIGNUM* raw = nullptr;
  if (!EVP_PKEY_get_bn_param(key, parameter, &raw)) return "";
  BignumPtr number(raw);
  std::string out(std::max<size_t>(width, BN_num_bytes(number.get())), '\0');
  BN_bn2binpad(number.get(), reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(out.size()));
  return out;
}

}  // namespace

struct SigningKey::Impl {
  KeyPtr key;
  bool is_private = false;
  const Curve* curve = nullptr;  // null: RSA
  std::string algorithm, id;

  const EVP_MD* digest() const { return curve ? curve->digest() : EVP_sha256(); }

  static std::shared_ptr<const Impl> Make(KeyPtr key, bool is_private) {
    auto impl = std::make_shared<Impl>();
    int type = EVP_PKEY_get_base_id(key.get());
    if (type == EVP_PKEY_EC) {
      impl->curve = CurveOf(key.get());
      if (!impl->curve) return nullptr;
      impl->algorithm = impl->curve->algorithm;
    } else if (type == EVP_PKEY_RSA) {
      impl->algorithm = "RS256";
    } else {
      return nullptr;
    }
    unsigned char* der = nullptr;
    int size = i2d_PUBKEY(key.get(), &der);
    if (size <= 0) return nullptr;
    impl->id =
        EncodeBase64(Sha256({reinterpret_cast<char*>(der), static_cast<size_t>(size)}), Base64::kRawUrl);
    OPENSSL_free(der);
    impl->key = std::move(key);
    impl->is_private = is_private;
    return impl;
  }
};

Result<std::vector<SigningKey>> SigningKey::FromPem(std::string_view pem) {
  std::vector<SigningKey> keys;
  BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  while (PEM_read_bio(bio.get(), &name, &header, &data, &size)) {
    std::string kind(name);
    const unsigned char* at = data;
    KeyPtr key;
    bool is_private = kind.find("PRIVATE KEY") != std::string::npos;
    if (is_private) {
      key.reset(d2i_AutoPrivateKey(nullptr, &at, size));
    } else if (kind == "PUBLIC KEY") {
      key.reset(d2i_PUBKEY(nullptr, &at, size));
    } else if (kind == "RSA PUBLIC KEY") {
      key.reset(d2i_PublicKey(EVP_PKEY_RSA, nullptr, &at, size));
    } else if (kind == "CERTIFICATE") {
      CertificatePtr certificate(d2i_X509(nullptr, &at, size));
      if (certificate) key.reset(X509_get_pubkey(certificate.get()));
    }
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_clear_free(data, static_cast<size_t>(size));
    if (kind == "EC PARAMETERS") continue;  // openssl ecparam writes them before the key
    if (!key) return Error(Code::kInvalid, "cannot read the " + kind + " block");
    SigningKey made;
    made.impl_ = Impl::Make(std::move(key), is_private);
    if (!made.impl_) return Error(Code::kInvalid, "key type is neither RSA nor a NIST elliptic curve");
    keys.push_back(std::move(made));
  }
  ERR_clear_error();
  if (keys.empty()) return Error(Code::kInvalid, "no PEM key found");
  return keys;
}

Result<SigningKey> SigningKey::GenerateRsa() {
  KeyPtr key(EVP_RSA_gen(2048));
  if (!key) return Error(Code::kInternal, "cannot generate an RSA key");
  SigningKey made;
  made.impl_ = Impl::Make(std::move(key), true);
  return made;
}

bool SigningKey::is_private() const { return impl_->is_private; }
const std::string& SigningKey::algorithm() const { return impl_->algorithm; }
const std::string& SigningKey::id() const { return impl_->id; }

Result<std::string> SigningKey::Sign(std::string_view data) const {
  if (!impl_->is_private) return Error(Code::kInternal, "a public key cannot sign");
  DigestPtr context(EVP_MD_CTX_new());
  size_t size = 0;
  if (EVP_DigestSignInit(context.get(), nullptr, impl_->digest(), nullptr, impl_->key.get()) <= 0 ||
      EVP_DigestSign(context.get(), nullptr, &size, Bytes(data), data.size()) <= 0) {
    return Error(Code::kInternal, "cannot sign");
  }
  std::string signature(size, '\0');
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, Bytes(data),
                     data.size()) <= 0) {
    return Error(Code::kInternal, "cannot sign");
  }
  signature.resize(size);
  return impl_->curve ? JoseOfDer(signature, *impl_->curve) : signature;
}

bool SigningKey::Verify(std::string_view data, std::string_view signature) const {
  std::string der;
  if (impl_->curve) {
    der = DerOfJose(signature, *impl_->curve);
    if (der.empty()) return false;
    signature = der;
  }
  DigestPtr context(EVP_MD_CTX_new());
  bool valid =
      EVP_DigestVerifyInit(context.get(), nullptr, impl_->digest(), nullptr, impl_->key.get()) > 0 &&
      EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(data), data.size()) == 1;
  ERR_clear_error();
  return valid;
}

std::vector<std::pair<std::string, std::string>> SigningKey::Jwk() const {
  std::vector<std::pair<std::string, std::string>> out = {
      {"use", "sig"}, {"kid", impl_->id}, {"alg", impl_->algorithm}};
  EVP_PKEY* key = impl_->key.get();
  if (impl_->curve) {
    out.emplace_back("kty", "EC");
    out.emplace_back("crv", impl_->curve->name);
    out.emplace_back(
        "x", EncodeBase64(Number(key, OSSL_PKEY_PARAM_EC_PUB_X, impl_->curve->bytes), Base64::kRawUrl));
    out.emplace_back(
        "y", EncodeBase64(Number(key, OSSL_PKEY_PARAM_EC_PUB_Y, impl_->curve->bytes), Base64::kRawUrl));
  } else {
    out.emplace_back("kty", "RSA");
    out.emplace_back("n", EncodeBase64(Number(key, OSSL_PKEY_PARAM_RSA_N, 0), Base64::kRawUrl));
    out.emplace_back("e", EncodeBase64(Number(key, OSSL_PKEY_PARAM_RSA_E, 0), Base64::kRawUrl));
  }
  return out;
}

Result<std::string> SigningKey::PrivatePem() const {
  BioPtr bio(BIO_new(BIO_s_mem()));
  if (!impl_->is_private ||
      !PEM_write_bio_PrivateKey(bio.get(), impl_->key.get(), nullptr, nullptr, 0, nullptr, nullptr)) {
    return Error(Code::kInternal, "no private key to write");
  }
  char* data = nullptr;
  long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace keelson::crypto

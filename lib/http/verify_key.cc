#include "lib/http/verify_key.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include "lib/http/signing_key.h"

namespace keelson::http {
namespace {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* p) const {
    Free(p);
  }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using ContextPtr = std::unique_ptr<EVP_PKEY_CTX, Deleter<EVP_PKEY_CTX_free>>;
using BuilderPtr = std::unique_ptr<OSSL_PARAM_BLD, Deleter<OSSL_PARAM_BLD_free>>;
using ParametersPtr = std::unique_ptr<OSSL_PARAM, Deleter<OSSL_PARAM_free>>;
using BignumPtr = std::unique_ptr<BIGNUM, Deleter<BN_free>>;
using DigestPtr = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;
using SignaturePtr = std::unique_ptr<ECDSA_SIG, Deleter<ECDSA_SIG_free>>;

enum class Scheme { kRsa, kRsaPss, kEcdsa };
struct Algorithm {
  std::string_view name;
  Scheme scheme;
  const EVP_MD* (*digest)();
  std::string_view curve;
};
constexpr Algorithm kAlgorithms[] = {
    {"RS256", Scheme::kRsa, EVP_sha256, ""},        {"RS384", Scheme::kRsa, EVP_sha384, ""},
    {"RS512", Scheme::kRsa, EVP_sha512, ""},        {"PS256", Scheme::kRsaPss, EVP_sha256, ""},
    {"PS384", Scheme::kRsaPss, EVP_sha384, ""},     {"PS512", Scheme::kRsaPss, EVP_sha512, ""},
    {"ES256", Scheme::kEcdsa, EVP_sha256, "P-256"}, {"ES384", Scheme::kEcdsa, EVP_sha384, "P-384"},
    {"ES512", Scheme::kEcdsa, EVP_sha512, "P-521"},
};

const Algorithm* FindAlgorithm(std::string_view name) {
  for (const Algorithm& one : kAlgorithms) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// An ECDSA signature in DER, from its two numbers side by side.
std::string ToDer(std::string_view jose, size_t width) {
  if (jose.size() != 2 * width) return "";
  SignaturePtr signature(ECDSA_SIG_new());
  ECDSA_SIG_set0(signature.get(), BN_bin2bn(Bytes(jose), static_cast<int>(width), nullptr),
                 BN_bin2bn(Bytes(jose) + width, static_cast<int>(width), nullptr));
  unsigned char* der = nullptr;
  int size = i2d_ECDSA_SIG(signature.get(), &der);
  if (size <= 0) return "";
  std::string out(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return out;
}

KeyPtr Build(const char* type, OSSL_PARAM_BLD* builder) {
  ParametersPtr parameters(OSSL_PARAM_BLD_to_param(builder));
  ContextPtr context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (parameters && context && EVP_PKEY_fromdata_init(context.get()) == 1)
    EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get());
  ERR_clear_error();
  return KeyPtr(key);
}

Error BadKey(std::string_view why) { return Error(Code::kInvalid, "JSON Web Key: " + std::string(why)); }

}  // namespace

bool IsSigningAlgorithm(std::string_view algorithm) { return FindAlgorithm(algorithm) != nullptr; }

struct VerifyKey::Impl {
  KeyPtr key;
  std::string curve;  // empty: RSA
  size_t width = 0;   // of a number of the curve
};

Result<VerifyKey> VerifyKey::FromJwk(const std::function<std::string(std::string_view)>& member) {
  auto impl = std::make_shared<Impl>();
  std::string kind = member("kty");
  BuilderPtr builder(OSSL_PARAM_BLD_new());
  if (kind == "RSA") {
    ASSIGN_OR_RETURN(std::string n, Base64UrlDecode(member("n")));
    ASSIGN_OR_RETURN(std::string e, Base64UrlDecode(member("e")));
    // Below 1024 bits anybody could sign; above 16384 verification is work for an attacker to hand out.
    if (n.size() < 128 || n.size() > 2048 || e.empty() || e.size() > 8) return BadKey("no usable RSA key");
    BignumPtr modulus(BN_bin2bn(Bytes(n), static_cast<int>(n.size()), nullptr));
    BignumPtr exponent(BN_bin2bn(Bytes(e), static_cast<int>(e.size()), nullptr));
    OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get());
    OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get());
    impl->key = Build("RSA", builder.get());
  } else if (kind == "EC") {
    impl->curve = member("crv");
    impl->width = impl->curve == "P-256" ? 32 : impl->curve == "P-384" ? 48 : impl->curve == "P-521" ? 66 : 0;
    ASSIGN_OR_RETURN(std::string x, Base64UrlDecode(member("x")));
    ASSIGN_OR_RETURN(std::string y, Base64UrlDecode(member("y")));
    if (impl->width == 0 || x.size() != impl->width || y.size() != impl->width)
      return BadKey("no usable elliptic curve key");
    std::string point = "\x04" + x + y;
    OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, impl->curve.c_str(), 0);
    OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size());
    impl->key = Build("EC", builder.get());
  } else {
    return BadKey("kty is neither RSA nor EC");
  }
  if (!impl->key) return BadKey("no public key");
  VerifyKey out;
  out.impl_ = std::move(impl);
  return out;
}

bool VerifyKey::Verify(std::string_view algorithm, std::string_view data, std::string_view signature) const {
  const Algorithm* found = FindAlgorithm(algorithm);
  if (!found || found->curve != impl_->curve) return false;
  std::string der;
  if (found->scheme == Scheme::kEcdsa) {
    der = ToDer(signature, impl_->width);
    if (der.empty()) return false;
    signature = der;
  }
  DigestPtr context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* key_context = nullptr;
  bool ready =
      EVP_DigestVerifyInit(context.get(), &key_context, found->digest(), nullptr, impl_->key.get()) > 0;
  if (ready && found->scheme == Scheme::kRsaPss) {
    ready = EVP_PKEY_CTX_set_rsa_padding(key_context, RSA_PKCS1_PSS_PADDING) > 0 &&
            EVP_PKEY_CTX_set_rsa_pss_saltlen(key_context, RSA_PSS_SALTLEN_DIGEST) > 0;
  }
  bool valid = ready && EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(data),
                                         data.size()) == 1;
  ERR_clear_error();
  return valid;
}

}  // namespace keelson::http

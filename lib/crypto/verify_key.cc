#include "lib/crypto/verify_key.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include "lib/base/base64.h"
#include "lib/crypto/key_objects.h"

namespace keelson::crypto {
namespace {

using ContextPtr = OpenSslPtr<EVP_PKEY_CTX, EVP_PKEY_CTX_free>;
using BuilderPtr = OpenSslPtr<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>;
using ParametersPtr = OpenSslPtr<OSSL_PARAM, OSSL_PARAM_free>;

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

KeyPtr Build(const char* type, OSSL_PARAM_BLD* builder) {
  ParametersPtr parameters(OSSL_PARAM_BLD_to_param(builder));
  ContextPtr context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (parameters && context && EVP_PKEY_fromdata_init(context.get()) == 1) {
    EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get());
  }
  ERR_clear_error();
  return KeyPtr(key);
}

Error BadKey(std::string_view why) { return Error(Code::kInvalid, "JSON Web Key: " + std::string(why)); }

}  // namespace

bool IsSigningAlgorithm(std::string_view algorithm) { return FindAlgorithm(algorithm) != nullptr; }

struct VerifyKey::Impl {
  KeyPtr key;
  const Curve* curve = nullptr;  // null: RSA
};

Result<VerifyKey> VerifyKey::FromJwk(const std::function<std::string(std::string_view)>& member) {
  auto impl = std::make_shared<Impl>();
  std::string kind = member("kty");
  BuilderPtr builder(OSSL_PARAM_BLD_new());
  if (kind == "RSA") {
    KEELSON_ASSIGN_OR_RETURN(std::string n, DecodeBase64(member("n"), Base64::kRawUrl));
    KEELSON_ASSIGN_OR_RETURN(std::string e, DecodeBase64(member("e"), Base64::kRawUrl));
    // Below 1024 bits anybody could sign; above 16384 verification is work for an attacker to hand out.
    if (n.size() < 128 || n.size() > 2048 || e.empty() || e.size() > 8) return BadKey("no usable RSA key");
    BignumPtr modulus(BN_bin2bn(Bytes(n), static_cast<int>(n.size()), nullptr));
    BignumPtr exponent(BN_bin2bn(Bytes(e), static_cast<int>(e.size()), nullptr));
    OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get());
    OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get());
    impl->key = Build("RSA", builder.get());
  } else if (kind == "EC") {
    impl->curve = CurveNamed(member("crv"));
    KEELSON_ASSIGN_OR_RETURN(std::string x, DecodeBase64(member("x"), Base64::kRawUrl));
    KEELSON_ASSIGN_OR_RETURN(std::string y, DecodeBase64(member("y"), Base64::kRawUrl));
    if (!impl->curve || x.size() != impl->curve->bytes || y.size() != impl->curve->bytes) {
      return BadKey("no usable elliptic curve key");
    }
    std::string point = "\x04" + x + y;
    const std::string group(impl->curve->group);
    OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, group.c_str(), 0);
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
  if (!found || found->curve != (impl_->curve ? impl_->curve->name : "")) return false;
  std::string der;
  if (found->scheme == Scheme::kEcdsa) {
    der = DerOfJose(signature, *impl_->curve);
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

}  // namespace keelson::crypto

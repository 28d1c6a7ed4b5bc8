#include "lib/crypto/key_objects.h"

#include <algorithm>

namespace keelson::crypto {
namespace {

using SignaturePtr = OpenSslPtr<ECDSA_SIG, ECDSA_SIG_free>;

constexpr Curve kCurves[] = {{"prime256v1", "P-256", "ES256", 32, EVP_sha256},
                             {"secp384r1", "P-384", "ES384", 48, EVP_sha384},
                             {"secp521r1", "P-521", "ES512", 66, EVP_sha512}};

const Curve* Find(std::string_view Curve::*field, std::string_view value) {
  for (const Curve& curve : kCurves) {
    if (curve.*field == value) return &curve;
  }
  return nullptr;
}

}  // namespace

const Curve* CurveOf(EVP_PKEY* key) {
  char group[64];
  size_t size = 0;
  if (!EVP_PKEY_get_group_name(key, group, sizeof group, &size)) return nullptr;
  return Find(&Curve::group, {group, size});
}

const Curve* CurveNamed(std::string_view name) { return Find(&Curve::name, name); }

std::string JoseOfDer(std::string_view der, const Curve& curve) {
  const unsigned char* at = Bytes(der);
  SignaturePtr signature(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())));
  if (!signature) return "";
  std::string out(2 * curve.bytes, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(out.data());
  const int width = static_cast<int>(curve.bytes);
  if (BN_bn2binpad(ECDSA_SIG_get0_r(signature.get()), bytes, width) < 0 ||
      BN_bn2binpad(ECDSA_SIG_get0_s(signature.get()), bytes + width, width) < 0) {
    return "";
  }
  return out;
}

std::string DerOfJose(std::string_view jose, const Curve& curve) {
  if (jose.size() != 2 * curve.bytes) return "";
  SignaturePtr signature(ECDSA_SIG_new());
  const int width = static_cast<int>(curve.bytes);
  ECDSA_SIG_set0(signature.get(), BN_bin2bn(Bytes(jose), width, nullptr),
                 BN_bin2bn(Bytes(jose) + width, width, nullptr));
  unsigned char* der = nullptr;
  int size = i2d_ECDSA_SIG(signature.get(), &der);
  if (size <= 0) return "";
  std::string out(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return out;
}

}  // namespace keelson::crypto

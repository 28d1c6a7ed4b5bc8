// OpenSSL's objects for certificates and requests (RFC 5280, RFC 2986). Internal to lib/crypto.
#pragma once

#include <openssl/x509v3.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/crypto/key_objects.h"

namespace keelson::crypto {

using CertificatePtr = OpenSslPtr<X509, X509_free>;
using RequestPtr = OpenSslPtr<X509_REQ, X509_REQ_free>;

struct ExtensionsFree {
  void operator()(STACK_OF(X509_EXTENSION) * list) const {
    sk_X509_EXTENSION_pop_free(list, X509_EXTENSION_free);
  }
};
using ExtensionsPtr = std::unique_ptr<STACK_OF(X509_EXTENSION), ExtensionsFree>;

// OpenSSL's last error; clears the others.
Error OpenSslError(const char* what);

BioPtr ReadPem(const std::string& pem);
// The output of `write`, which returns 1 for success as OpenSSL's functions do.
Result<std::string> WritePem(const char* what, const std::function<int(BIO*)>& write);

Result<KeyPtr> ReadKey(const std::string& pem);                  // the first private key
Result<CertificatePtr> ReadCertificate(const std::string& pem);  // the first

std::chrono::system_clock::time_point TimeOf(const ASN1_TIME* time);

// nullopt for a malformed name, and for one with a NUL inside, which other programs might truncate.
std::optional<std::string> TextOf(const ASN1_STRING* from);
// The entries of one kind, in order. kBadRequest when one is malformed.
Result<std::vector<std::string>> EntriesOf(X509_NAME* name, int kind);

// Does nothing for an empty value. `value` has the syntax of x509v3_config(5).
bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value);
// 127 random bits.
bool SetSerial(X509* certificate);
// Null for keys with a built-in digest (Ed25519).
const EVP_MD* DigestFor(EVP_PKEY* key);

}  // namespace keelson::crypto

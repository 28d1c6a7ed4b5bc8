// The subject of a certificate signing request (RFC 2986).
#pragma once

#include <string_view>

#include "lib/base/error.h"
#include "lib/crypto/certificates.h"

namespace keelson::apiserver {

// As crypto::SubjectOfRequest, of the first block of PEM. kBadRequest for what is no request in PEM, or has a name that
// cannot be read.
Result<crypto::CertificateSubject> SubjectOfRequest(std::string_view pem);

}  // namespace keelson::apiserver

// Whom a certificate signing request (RFC 2986) asks a certificate for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::apiserver {

struct CertificateSubject {
  std::string common_name;                 // the last, if there are several
  std::vector<std::string> organizations;  // in order
};

// kBadRequest for what is no request in PEM, or has a name that cannot be read.
Result<CertificateSubject> SubjectOfRequest(std::string_view pem);

}  // namespace keelson::apiserver

// The subject of a certificate signing request (RFC 2986).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::apiserver {

struct CertificateSubject {
  std::string common_name;                 // the last one, if there are several
  std::vector<std::string> organizations;  // in order
};

// kBadRequest when `pem` is not a certificate request, or its subject cannot be parsed.
Result<CertificateSubject> SubjectOfRequest(std::string_view pem);

}  // namespace keelson::apiserver

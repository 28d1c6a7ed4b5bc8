#include "controlplane/apiserver/admission/certificate_request.h"

#include <optional>

#include "lib/k8s/text/pem.h"

namespace keelson::apiserver {

Result<crypto::CertificateSubject> SubjectOfRequest(std::string_view pem) {
  const Error none(Code::kBadRequest, "PEM block type must be CERTIFICATE REQUEST");
  const std::optional<k8s::PemBlock> block = k8s::NextPemBlock(pem);
  if (!block) return none;
  Result<crypto::CertificateSubject> subject = crypto::SubjectOfRequest(block->bytes);
  if (!subject && subject.error().Is(Code::kInvalid)) return none;
  return subject;
}

}  // namespace keelson::apiserver

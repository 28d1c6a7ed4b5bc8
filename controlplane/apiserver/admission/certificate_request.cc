#include "controlplane/apiserver/admission/certificate_request.h"

#include <openssl/x509.h>

#include <memory>
#include <optional>

#include "lib/k8s/text/pem.h"

namespace keelson::apiserver {
namespace {

std::optional<std::string> Text(const X509_NAME_ENTRY* entry) {
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(entry));
  if (size < 0) return std::nullopt;
  std::string out(reinterpret_cast<char*>(text), static_cast<size_t>(size));
  OPENSSL_free(text);
  return out;
}

}  // namespace

Result<CertificateSubject> SubjectOfRequest(std::string_view pem) {
  std::optional<k8s::PemBlock> block = k8s::NextPemBlock(pem);
  const auto* der = block ? reinterpret_cast<const unsigned char*>(block->bytes.data()) : nullptr;
  std::unique_ptr<X509_REQ, decltype(&X509_REQ_free)> parsed(
      der ? d2i_X509_REQ(nullptr, &der, static_cast<long>(block->bytes.size())) : nullptr, X509_REQ_free);
  if (!parsed) return Error(Code::kBadRequest, "PEM block type must be CERTIFICATE REQUEST");
  CertificateSubject out;
  X509_NAME* subject = X509_REQ_get_subject_name(parsed.get());
  for (int i = 0; i < X509_NAME_entry_count(subject); ++i) {
    X509_NAME_ENTRY* entry = X509_NAME_get_entry(subject, i);
    const int kind = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    if (kind != NID_commonName && kind != NID_organizationName) continue;
    std::optional<std::string> text = Text(entry);
    // Reject what cannot be parsed: other parsers might read it differently.
    if (!text) return Error(Code::kBadRequest, "a name in the subject cannot be read");
    if (kind == NID_commonName) {
      out.common_name = std::move(*text);
    } else {
      out.organizations.push_back(std::move(*text));
    }
  }
  return out;
}

}  // namespace keelson::apiserver

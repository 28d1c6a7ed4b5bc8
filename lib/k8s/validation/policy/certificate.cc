// CertificateSigningRequests. The registry's strategy decides which part is writable; these rules check
// the contents.
#include <algorithm>

#include <fmt/format.h>

#include "lib/api/proto/certificates_v1.pb.h"
#include "lib/base/base64.h"
#include "lib/k8s/text/pem.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/policy/certificate.h"

namespace keelson::k8s {

namespace certificatesv1 = api::certificates::v1;

namespace {

using Request = certificatesv1::CertificateSigningRequest;

constexpr int32_t kShortest = 600;
const std::vector<std::string_view> kUsages = {"any",
                                               "cert sign",
                                               "client auth",
                                               "code signing",
                                               "content commitment",
                                               "crl sign",
                                               "data encipherment",
                                               "decipher only",
                                               "digital signature",
                                               "email protection",
                                               "encipher only",
                                               "ipsec end system",
                                               "ipsec tunnel",
                                               "ipsec user",
                                               "key agreement",
                                               "key encipherment",
                                               "microsoft sgc",
                                               "netscape sgc",
                                               "ocsp signing",
                                               "s/mime",
                                               "server auth",
                                               "signing",
                                               "timestamping"};

enum class Part { kMain, kApproval, kStatus };

// The error for spec.request, or empty.
std::string RequestProblem(const std::string& request) {
  std::string_view text = request;
  const std::optional<PemBlock> block = NextPemBlock(text);
  if (!block || block->type != "CERTIFICATE REQUEST") return "PEM block type must be CERTIFICATE REQUEST";
  if (!IsCertificateRequest(block->bytes)) return "asn1: structure error: tags don't match";
  return {};
}

std::string CertificateProblem(const std::string& certificate) {
  if (certificate.empty()) return {};
  std::string_view rest = certificate;
  int blocks = 0;
  while (const std::optional<PemBlock> block = NextPemBlock(rest)) {
    if (block->type != "CERTIFICATE") {
      return fmt::format("only CERTIFICATE PEM blocks are allowed, found {}", Quote(block->type));
    }
    if (block->has_headers) return "no PEM block headers are permitted";
    if (block->bytes.empty()) return "found CERTIFICATE PEM block containing 0 certificates";
    if (!IsCertificate(block->bytes)) return "x509: malformed certificate";
    ++blocks;
  }
  return blocks == 0 ? "must contain at least one CERTIFICATE PEM block" : "";
}

void CheckSpec(const certificatesv1::CertificateSigningRequestSpec& spec, FieldErrors& errors) {
  const Path path("spec");
  if (const std::string problem = RequestProblem(spec.request()); !problem.empty()) {
    errors.push_back(InvalidRaw(path.Child("request"),
                                spec.request().empty() ? "null" : '"' + EncodeBase64(spec.request()) + '"',
                                problem));
  }
  const Path usages = path.Child("usages");
  if (spec.usages().empty()) errors.push_back(Required(usages));
  for (int i = 0; i < spec.usages_size(); ++i) CheckOneOf(spec.usages(i), kUsages, usages.Index(i), errors);
  std::set<std::string_view> seen;
  for (int i = 0; i < spec.usages_size(); ++i) {
    if (!seen.insert(spec.usages(i)).second) errors.push_back(Duplicate(usages.Index(i), spec.usages(i)));
  }
  if (spec.signer_name() == "kubernetes.io/legacy-unknown") {
    errors.push_back(Invalid(path.Child("signerName"), spec.signer_name(),
                             "the legacy signerName is not allowed via this API version"));
  } else {
    CheckSigner(spec.signer_name(), path.Child("signerName"), errors);
  }
  if (spec.has_expiration_seconds() && spec.expiration_seconds() < kShortest) {
    errors.push_back(Invalid(path.Child("expirationSeconds"), int64_t{spec.expiration_seconds()},
                             "may not specify a duration less than 600 seconds (10 minutes)"));
  }
}

bool IsDecision(std::string_view type) { return type == "Approved" || type == "Denied" || type == "Failed"; }

void CheckRequestConditions(const Request& object, FieldErrors& errors) {
  const Path status("status");
  const Path list = status.Child("conditions");
  std::set<std::string_view> seen;
  for (int i = 0; i < object.status().conditions_size(); ++i) {
    const auto& condition = object.status().conditions(i);
    const std::string& type = condition.type();
    const Path item = list.Index(i);
    if (type.empty()) errors.push_back(Required(item.Child("type")));
    if (condition.status().empty()) {
      errors.push_back(Required(item.Child("status")));
    } else if (IsDecision(type)) {
      CheckOneOf(condition.status(), {"True"}, item.Child("status"), errors);
    } else {
      CheckOneOf(condition.status(), {"False", "True", "Unknown"}, item.Child("status"), errors);
    }
    if ((type == "Approved" && seen.count("Denied")) || (type == "Denied" && seen.count("Approved"))) {
      errors.push_back(
          Invalid(item.Child("type"), type, "Approved and Denied conditions are mutually exclusive"));
    }
    if (!seen.insert(type).second) errors.push_back(Duplicate(item.Child("type"), type));
  }
}

void CheckRequest(const Request& object, FieldErrors& errors) {
  CheckSpec(object.spec(), errors);
  CheckRequestConditions(object, errors);
  if (const std::string problem = CertificateProblem(object.status().certificate()); !problem.empty()) {
    errors.push_back(Invalid(Path("status").Child("certificate"), "<certificate data>", problem));
  }
}

int Count(const Request& object, std::string_view type) {
  return static_cast<int>(std::count_if(object.status().conditions().begin(),
                                        object.status().conditions().end(),
                                        [&](const auto& condition) { return condition.type() == type; }));
}

// spec is immutable and not checked again.
void CheckChange(const Request& object, const Request& old, Part part, FieldErrors& errors) {
  CheckRequestConditions(object, errors);
  const Path status("status");
  const Path conditions = status.Child("conditions"), certificate = status.Child("certificate");
  const bool issued = object.status().certificate() != old.status().certificate();
  if (const std::string problem = CertificateProblem(object.status().certificate());
      issued && !problem.empty()) {
    errors.push_back(Invalid(certificate, "<certificate data>", problem));
  }
  for (std::string_view type : {"Approved", "Denied", "Failed"}) {
    if (Count(object, type) < Count(old, type)) {
      errors.push_back(
          Forbidden(conditions, fmt::format("updates may not remove a condition of type {}", Quote(type))));
    }
  }
  for (std::string_view type : {"Approved", "Denied"}) {
    if (part == Part::kApproval || Count(object, type) <= Count(old, type)) continue;
    errors.push_back(
        Forbidden(conditions, fmt::format("updates may not add a condition of type {}", Quote(type))));
  }
  if (!issued) return;
  if (part != Part::kStatus) {
    errors.push_back(Forbidden(certificate, "updates may not set certificate content"));
  } else if (!old.status().certificate().empty()) {
    errors.push_back(Forbidden(certificate, "updates may not modify existing certificate content"));
  }
}

void CheckUpdate(const Request& object, const Request& old, FieldErrors& errors) {
  CheckChange(object, old, Part::kMain, errors);
}
void CheckStatus(const Request& object, const Request& old, FieldErrors& errors) {
  CheckChange(object, old, Part::kStatus, errors);
}
void CheckApproval(const Request& object, const Request& old, FieldErrors& errors) {
  CheckChange(object, old, Part::kApproval, errors);
}

}  // namespace

void RegisterCertificateRules(RuleTable& table) {
  table.Add<Request, CheckRequest>().name = CheckAnyName;
  table.AddUpdate<Request, CheckUpdate>(true);
  table.AddStatus<Request, CheckStatus>();
  table.AddPart<Request, CheckApproval>("approval");
  RegisterPodCertificateRules(table);
}

}  // namespace keelson::k8s

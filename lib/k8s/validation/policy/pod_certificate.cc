// PodCertificateRequests, except for the keys: the registry's strategy verifies the proof of possession and
// the issued certificates.
#include <fmt/format.h>

#include "lib/api/proto/certificates_v1beta1.pb.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/policy/certificate.h"

namespace keelson::k8s {
namespace {

namespace certificatesv1beta1 = api::certificates::v1beta1;
using Request = certificatesv1beta1::PodCertificateRequest;
using Spec = certificatesv1beta1::PodCertificateRequestSpec;
using Status = certificatesv1beta1::PodCertificateRequestStatus;

constexpr size_t kMaxUid = 128, kMaxKeyBytes = 10 * 1024, kMaxChainBytes = 100 * 1024;
constexpr int32_t kShortest = 3600, kLongest = 91 * 24 * 3600, kLongestOfKubernetes = 24 * 3600;

void CheckObjectName(const std::string& name, const Path& path, FieldErrors& errors) {
  AddProblems(CheckDns1123Subdomain(name), name, path, errors);
}

void CheckUid(const std::string& uid, const Path& path, FieldErrors& errors) {
  if (uid.empty()) errors.push_back(Invalid(path, uid, "must not be empty"));
  if (uid.size() > kMaxUid) errors.push_back(TooLong(path, kMaxUid));
}

bool IsOfKubernetes(std::string_view signer) {
  const size_t slash = signer.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view host = signer.substr(0, slash);
  return host == "kubernetes.io" || host.ends_with(".kubernetes.io");
}

void CheckLifetime(const Spec& spec, const Path& path, FieldErrors& errors) {
  if (!spec.has_max_expiration_seconds()) {
    errors.push_back(Required(path, "must be set"));
    return;
  }
  const int32_t longest = IsOfKubernetes(spec.signer_name()) ? kLongestOfKubernetes : kLongest;
  if (spec.max_expiration_seconds() >= kShortest && spec.max_expiration_seconds() <= longest) return;
  errors.push_back(Invalid(path, int64_t{spec.max_expiration_seconds()},
                           fmt::format("must be in the range [{}, {}]", kShortest, longest)));
}

void CheckRequest(const Request& object, FieldErrors& errors) {
  const Spec& spec = object.spec();
  const Path path("spec");
  CheckSigner(spec.signer_name(), path.Child("signerName"), errors);
  CheckUserAnnotations(spec.unverified_user_annotations(), path.Child("unverifiedUserAnnotations"), errors);
  CheckObjectName(spec.pod_name(), path.Child("podName"), errors);
  CheckUid(spec.pod_uid(), path.Child("podUID"), errors);
  CheckObjectName(spec.service_account_name(), path.Child("serviceAccountName"), errors);
  CheckUid(spec.service_account_uid(), path.Child("serviceAccountUID"), errors);
  CheckObjectName(spec.node_name(), path.Child("nodeName"), errors);
  CheckUid(spec.node_uid(), path.Child("nodeUID"), errors);
  CheckLifetime(spec, path.Child("maxExpirationSeconds"), errors);
  const std::pair<std::string_view, const std::string*> keys[] = {
      {"stubPKCS10Request", &spec.stub_pkcs10_request()},
      {"pkixPublicKey", &spec.pkix_public_key()},
      {"proofOfPossession", &spec.proof_of_possession()}};
  for (const auto& [field, bytes] : keys) {
    if (bytes->size() > kMaxKeyBytes) errors.push_back(TooLong(path.Child(field), kMaxKeyBytes));
  }
  const bool stub = !spec.stub_pkcs10_request().empty(), key = !spec.pkix_public_key().empty(),
             proof = !spec.proof_of_possession().empty();
  if (key == proof && stub != key) return;
  errors.push_back(InvalidRaw(
      path, "", "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"));
}

void CheckUpdate(const Request& object, const Request& old, FieldErrors& errors) {
  CheckImmutable(object.spec(), old.spec(), Path("spec"), errors);
}

// Issued, Denied or Failed; empty: none of them.
std::string_view OutcomeOf(const Status& status) {
  for (const metav1::Condition& condition : status.conditions()) {
    if (condition.status() == "True") return condition.type();
  }
  return {};
}

void CheckOutcomes(const Status& status, const Path& list, FieldErrors& errors) {
  int known = 0;
  for (int i = 0; i < status.conditions_size(); ++i) {
    const metav1::Condition& condition = status.conditions(i);
    const Path item = list.Index(i);
    if (condition.type() != "Issued" && condition.type() != "Denied" && condition.type() != "Failed") {
      errors.push_back(NotSupported(item.Child("type"), condition.type(), {"Denied", "Failed", "Issued"}));
      continue;
    }
    if (++known > 1) {
      errors.push_back(
          Invalid(item.Child("type"), condition.type(),
                  R"(There may be at most one condition with type "Issued", "Denied", or "Failed")"));
    }
    if (condition.status() != "True") {
      errors.push_back(NotSupported(item.Child("status"), condition.status(), {"True"}));
    }
  }
  CheckConditions(status.conditions(), list, errors);
}

void CheckStatus(const Request& object, const Request& old, FieldErrors& errors) {
  const Path path("status");
  const Status& status = object.status();
  CheckOutcomes(status, path.Child("conditions"), errors);
  if (!errors.empty()) return;
  auto refuse = [&](std::string_view why) { errors.push_back(InvalidRaw(path, "", why)); };
  const std::string_view outcome = OutcomeOf(status);
  if (!OutcomeOf(old.status()).empty()) {
    if (!SameMessage(status, old.status())) {
      refuse("immutable after PodCertificateRequest is issued, denied, or failed");
    }
  } else if (outcome == "Issued") {
    if (status.certificate_chain().size() > kMaxChainBytes) {
      errors.push_back(TooLong(path.Child("certificateChain"), kMaxChainBytes));
    }
  } else if (outcome.empty()) {
    if (!SameMessage(status, old.status())) {
      refuse(R"(status is immutable unless transitioning to "Issued", "Denied", or "Failed")");
    }
  } else {
    Status bare;
    *bare.mutable_conditions() = status.conditions();
    if (!SameMessage(status, bare)) {
      refuse("non-condition status fields must be empty when denying or failing the PodCertificateRequest");
    }
  }
}

}  // namespace

void CheckUserAnnotations(const StringMap& annotations, const Path& path, FieldErrors& errors) {
  CheckAnnotations(annotations, path, errors);
  for (const auto& [key, value] : annotations) {
    if (key.find('/') == std::string::npos) {
      errors.push_back(Invalid(path, key, R"(must be a domain-prefixed key (such as "acme.io/foo"))"));
    }
  }
}

void RegisterPodCertificateRules(RuleTable& table) {
  table.Add<Request, CheckRequest>();
  table.AddUpdate<Request, CheckUpdate>(true);
  table.AddStatus<Request, CheckStatus>();
}

}  // namespace keelson::k8s

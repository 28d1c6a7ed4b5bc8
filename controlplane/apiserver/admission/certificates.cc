// Certificate signing requests: CertificateApproval, CertificateSigning and CertificateSubjectRestriction.
// Approving and signing need permission for the signer; client certificates for system:masters are rejected.
#include <memory>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/certificate_request.h"
#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/meta.h"
#include "lib/api/proto/certificates_v1.pb.h"
#include "lib/api/proto/certificates_v1beta1.pb.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiserver {
namespace {

using Csr = api::certificates::v1::CertificateSigningRequest;
constexpr char kGroup[] = "certificates.k8s.io";
constexpr char kClientSigner[] = "kubernetes.io/kube-apiserver-client";

// Permission for the signer, or for all signers of its domain.
bool MayUseSigner(const Authorizer& authorizer, const User& user, std::string_view verb,
                  const std::string& signer) {
  RequestInfo info;
  info.is_resource = true;
  info.verb = verb;
  info.group = kGroup;
  info.version = "*";
  info.resource = "signers";
  info.name = signer;
  if (authorizer.Authorize({user, info}).allowed) return true;
  info.name = signer.substr(0, signer.find('/')) + "/*";
  return authorizer.Authorize({user, info}).allowed;
}

class CertificateApproval : public AdmissionPlugin {
 public:
  explicit CertificateApproval(std::shared_ptr<const Authorizer> authorizer)
      : authorizer_(std::move(authorizer)) {}
  std::string_view name() const override { return "CertificateApproval"; }

  Result<> Validate(const AdmissionRequest& request) override {
    if (!request.Updates() || !request.Is(kGroup, "certificatesigningrequests/approval")) return {};
    const std::string& signer = request.OldObject<Csr>().spec().signer_name();
    if (MayUseSigner(*authorizer_, request.user, "approve", signer)) return {};
    return NotAdmitted(request,
                       fmt::format("user not permitted to approve requests with signerName \"{}\"", signer));
  }

 private:
  const std::shared_ptr<const Authorizer> authorizer_;
};

class CertificateSigning : public AdmissionPlugin {
 public:
  explicit CertificateSigning(std::shared_ptr<const Authorizer> authorizer)
      : authorizer_(std::move(authorizer)) {}
  std::string_view name() const override { return "CertificateSigning"; }

  Result<> Validate(const AdmissionRequest& request) override {
    if (!request.Updates() || !request.Is(kGroup, "certificatesigningrequests/status")) return {};
    const auto &now = request.Object<Csr>(), &before = request.OldObject<Csr>();
    // Only issuing a certificate, or setting Failed, counts as signing.
    if (now.status().certificate() == before.status().certificate() && Failures(now) == Failures(before)) {
      return {};
    }
    const std::string& signer = before.spec().signer_name();
    if (MayUseSigner(*authorizer_, request.user, "sign", signer)) return {};
    return NotAdmitted(request,
                       fmt::format("user not permitted to sign requests with signerName \"{}\"", signer));
  }

 private:
  static std::string Failures(const Csr& csr) {
    std::string text;
    for (const auto& condition : csr.status().conditions()) {
      if (condition.type() == "Failed") {
        text += condition.status() + "\n" + condition.reason() + "\n" + condition.message() + "\n";
      }
    }
    return text;
  }
  const std::shared_ptr<const Authorizer> authorizer_;
};

class PodCertificateSigning : public AdmissionPlugin {
 public:
  explicit PodCertificateSigning(std::shared_ptr<const Authorizer> authorizer)
      : authorizer_(std::move(authorizer)) {}
  std::string_view name() const override { return "PodCertificateSigning"; }

  Result<> Validate(const AdmissionRequest& request) override {
    if (!request.Updates() || !request.Is(kGroup, "podcertificaterequests/status")) return {};
    using Request = api::certificates::v1beta1::PodCertificateRequest;
    const auto &now = request.Object<Request>(), &before = request.OldObject<Request>();
    if (now.status().certificate_chain() == before.status().certificate_chain()) return {};
    const std::string& signer = before.spec().signer_name();
    if (MayUseSigner(*authorizer_, request.user, "sign", signer)) return {};
    return k8s::ToInvalid(
        request.info.Gvk(), now.metadata().name(),
        {k8s::Forbidden(k8s::Path("spec").Child("signerName"),
                        fmt::format("User \"{}\" is not permitted to \"sign\" for signer \"{}\"",
                                    request.user.name, signer))});
  }

 private:
  const std::shared_ptr<const Authorizer> authorizer_;
};

class CertificateSubjectRestriction : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "CertificateSubjectRestriction"; }

  Result<> Validate(const AdmissionRequest& request) override {
    if (!request.Creates() || !request.Is(kGroup, "certificatesigningrequests")) return {};
    const auto& csr = request.Object<Csr>();
    if (csr.spec().signer_name() != kClientSigner) return {};
    Result<crypto::CertificateSubject> subject = SubjectOfRequest(csr.spec().request());
    if (!subject) {
      return NotAdmitted(request, fmt::format("failed to parse CSR: {}", subject.error().message()));
    }
    for (const std::string& organization : subject->organizations) {
      if (organization != kGroupMasters) continue;
      return NotAdmitted(request, fmt::format("use of {} signer with {} group is not allowed", kClientSigner,
                                              kGroupMasters));
    }
    return {};
  }
};

}  // namespace

PluginPtr NewCertificateApproval(std::shared_ptr<const Authorizer> authorizer) {
  return std::make_unique<CertificateApproval>(std::move(authorizer));
}
PluginPtr NewCertificateSigning(std::shared_ptr<const Authorizer> authorizer) {
  return std::make_unique<CertificateSigning>(std::move(authorizer));
}
PluginPtr NewPodCertificateSigning(std::shared_ptr<const Authorizer> authorizer) {
  return std::make_unique<PodCertificateSigning>(std::move(authorizer));
}
PluginPtr NewCertificateSubjectRestriction() { return std::make_unique<CertificateSubjectRestriction>(); }

}  // namespace keelson::apiserver

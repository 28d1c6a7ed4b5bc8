// The contents of a CertificateSigningRequest, and the rules of the kubernetes.io signers. No I/O.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/api/proto/certificates_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/crypto/certificate_authority.h"

namespace keelson::controllers {

namespace certificatesv1 = api::certificates::v1;
using CertificateSigningRequest = certificatesv1::CertificateSigningRequest;

constexpr char kApiServerClientSigner[] = "kubernetes.io/kube-apiserver-client";
constexpr char kKubeletClientSigner[] = "kubernetes.io/kube-apiserver-client-kubelet";
constexpr char kKubeletServingSigner[] = "kubernetes.io/kubelet-serving";
constexpr char kLegacyUnknownSigner[] = "kubernetes.io/legacy-unknown";

// Returns the condition of that type, or null.
const certificatesv1::CertificateSigningRequestCondition* ConditionOf(
    const CertificateSigningRequest& request, std::string_view type);
// Adds a condition with status True and both times set to `now`.
void AddCondition(CertificateSigningRequest& request, const char* type, const char* reason,
                  const std::string& message, WallTime now);

using Usages = google::protobuf::RepeatedPtrField<std::string>;
// kBadRequest when the request breaks the signer's rules; the message names the rule.
Result<> CheckKubeletClient(const crypto::RequestedCertificate& asked, const Usages& usages);
Result<> CheckKubeletServing(const crypto::RequestedCertificate& asked, const Usages& usages);
// Applies the rules of `signer`, one of the four signers above.
Result<> CheckForSigner(const std::string& signer, const crypto::RequestedCertificate& asked,
                        const Usages& usages);

}  // namespace keelson::controllers

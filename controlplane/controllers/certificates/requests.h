// What a CertificateSigningRequest asks for, and whether its signer may give it. No I/O.
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

// The condition of that type; null: there is none.
const certificatesv1::CertificateSigningRequestCondition* ConditionOf(
    const CertificateSigningRequest& request, std::string_view type);
// Adds a condition whose status is True, stamped with `now`.
void AddCondition(CertificateSigningRequest& request, const char* type, const char* reason,
                  const std::string& message, WallTime now);

using Usages = google::protobuf::RepeatedPtrField<std::string>;
// kBadRequest says what a kubelet's certificate must be like and this one is not.
Result<> CheckKubeletClient(const http::RequestedCertificate& asked, const Usages& usages);
Result<> CheckKubeletServing(const http::RequestedCertificate& asked, const Usages& usages);
// Of whichever of the four signers it is.
Result<> CheckForSigner(const std::string& signer, const http::RequestedCertificate& asked,
                        const Usages& usages);

}  // namespace keelson::controllers

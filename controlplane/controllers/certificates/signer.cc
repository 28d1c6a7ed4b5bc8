#include "controlplane/controllers/certificates/signer.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/base/file.h"

namespace keelson::controllers {

using std::chrono::seconds;

crypto::CertificateTerms TermsOf(const CertificateSigningRequest& request, seconds most, WallTime now) {
  constexpr seconds kShortest = std::chrono::minutes(10), kBackdate = std::chrono::minutes(5);
  constexpr seconds kShort = std::chrono::hours(8);  // below this, the five minutes of clock skew matter
  seconds life = most;
  if (request.spec().has_expiration_seconds()) {
    life = std::min(std::max(seconds(request.spec().expiration_seconds()), kShortest), most);
  }
  return {now - kBackdate,
          now + (life < kShort ? life : life - kBackdate),
          {request.spec().usages().begin(), request.spec().usages().end()}};
}

CertificateSigner::CertificateSigner(client::RestClient api, client::InformerFactory& informers,
                                     client::EventRecorder&, Clock& clock, CertificateSigning signing)
    : Controller("certificate", clock),
      api_(std::move(api)),
      requests_(informers.Get<CertificateSigningRequest>()),
      signing_(std::move(signing)) {
  requests_.AddHandler([this](const auto& change) {
    if (change.new_object) queue().Add(change.key);
  });
}

Result<Requeue> CertificateSigner::Reconcile(const std::string& key, std::stop_token stop) {
  auto request = requests_.Get(key);
  if (!request || !request->status().certificate().empty()) return Requeue{};
  if (!ConditionOf(*request, "Approved") || ConditionOf(*request, "Failed")) return Requeue{};
  const std::string& signer = request->spec().signer_name();
  if (!signing_.authorities.count(signer)) return Requeue{};
  auto asked = crypto::InspectRequest(request->spec().request());
  if (!asked) return asked.error().Wrap(fmt::format("unable to parse csr \"{}\"", key));

  CertificateSigningRequest answered = *request;
  if (auto fits = CheckForSigner(signer, *asked, request->spec().usages()); !fits) {
    AddCondition(answered, "Failed", "SignerValidationFailure", fits.error().message(), clock().Now());
  } else {
    auto certificate = Sign(*request);
    if (!certificate) return certificate.error().Wrap("error auto signing csr");
    answered.mutable_status()->set_certificate(*certificate);
  }
  auto stored = api_.With(stop).UpdateStatus(answered);
  if (!stored) return stored.error().Wrap("error updating signature for csr");
  return Requeue{};
}

Result<std::string> CertificateSigner::Sign(const CertificateSigningRequest& request) {
  const CertificateSigning::Files& files = signing_.authorities.at(request.spec().signer_name());
  KEELSON_ASSIGN_OR_RETURN(std::string certificate, ReadFile(files.certificate));
  KEELSON_ASSIGN_OR_RETURN(std::string key, ReadFile(files.key));
  auto authority = crypto::CertificateAuthority::FromPem(certificate, key);
  if (!authority) return authority.error().Wrap(files.certificate);
  return authority->Sign(request.spec().request(), TermsOf(request, signing_.duration, clock().Now()));
}

}  // namespace keelson::controllers

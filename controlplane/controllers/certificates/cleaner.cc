#include "controlplane/controllers/certificates/cleaner.h"

#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/crypto/certificates.h"

namespace keelson::controllers {
namespace {

constexpr char kKey[] = "all";
constexpr std::chrono::hours kEvery(1), kDecided(1), kPending(24);

}  // namespace

bool IsOver(const CertificateSigningRequest& request, WallTime now) {
  if (request.status().conditions().empty()) {
    return api::FromTime(request.metadata().creation_timestamp()) < now - kPending;
  }
  for (const auto& condition : request.status().conditions()) {
    if (condition.type() != "Approved" && condition.type() != "Denied" && condition.type() != "Failed") {
      continue;
    }
    if (api::FromTime(condition.last_update_time()) < now - kDecided) return true;
  }
  if (!ConditionOf(request, "Approved") || request.status().certificate().empty()) return false;
  auto certificate = crypto::InspectCertificate(request.status().certificate());
  return certificate && certificate->not_after < now;
}

CertificateCleaner::CertificateCleaner(client::RestClient api, client::InformerFactory& informers,
                                       client::EventRecorder&, Clock& clock)
    : Controller("certificate_cleaner", clock),
      api_(std::move(api)),
      requests_(informers.Get<CertificateSigningRequest>()) {
  queue().Add(kKey);
}

Result<Requeue> CertificateCleaner::Reconcile(const std::string&, std::stop_token stop) {
  const client::RestClient api = api_.With(stop);
  for (const auto& request : requests_.List()) {
    if (!IsOver(*request, clock().Now())) continue;
    auto deleted = api.Delete<CertificateSigningRequest>("", request->metadata().name());
    if (!deleted && !deleted.error().Is(Code::kNotFound)) {
      log::Warn("Cannot remove a certificate signing request",
                {{"name", request->metadata().name()}, {"err", deleted.error()}});
    }
  }
  return Requeue{kEvery};
}

}  // namespace keelson::controllers

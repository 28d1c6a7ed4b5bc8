#include "controlplane/controllers/certificates/pod_request_cleaner.h"

#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

constexpr std::chrono::minutes kKept(15);

}  // namespace

PodCertificateRequestCleaner::PodCertificateRequestCleaner(client::RestClient api,
                                                           client::InformerFactory& informers,
                                                           client::EventRecorder&, Clock& clock)
    : Controller("podcertificaterequest_cleaner", clock),
      api_(std::move(api)),
      requests_(informers.Get<PodCertificateRequest>()) {
  requests_.AddHandler([this](const auto& change) {
    if (!change.old_object) queue().Add(change.key);
  });
}

Result<Requeue> PodCertificateRequestCleaner::Reconcile(const std::string& key, std::stop_token stop) {
  auto request = requests_.Get(key);
  if (!request) return Requeue{};
  const metav1::ObjectMeta& meta = request->metadata();
  const auto left = api::FromTime(meta.creation_timestamp()) + kKept - clock().Now();
  if (left > left.zero()) return Requeue{left};
  const Result<> deleted =
      api_.With(stop).Delete<PodCertificateRequest>(meta.namespace_(), meta.name(), {.uid = meta.uid()});
  if (!deleted && !deleted.error().Is(Code::kNotFound)) {
    return deleted.error().Wrap("unable to delete PodCertificateRequest \"" + key + "\"");
  }
  return Requeue{};
}

}  // namespace keelson::controllers

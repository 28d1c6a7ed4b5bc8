// Deletes finished Jobs and their dependents after spec.ttlSecondsAfterFinished (KEP-592).
#pragma once

#include <optional>

#include "controlplane/controllers/common/controller.h"
#include "lib/api/proto/batch_v1.pb.h"

namespace keelson::controllers {

class TtlAfterFinishedController : public Controller {
 public:
  TtlAfterFinishedController(client::RestClient api, client::InformerFactory& informers,
                             client::EventRecorder&, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  client::RestClient api_;
  client::Informer<api::batch::v1::Job>& jobs_;
};

// When the Job expires; nullopt: it has not finished, has no TTL, or is being deleted. kInvalid when its
// finish time is unknown.
Result<std::optional<WallTime>> ExpiryOf(const api::batch::v1::Job& job);

}  // namespace keelson::controllers

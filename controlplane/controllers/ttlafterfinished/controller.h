// Removes Jobs when spec.ttlSecondsAfterFinished have passed since they ended, with all that they own.
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

// When a Job is to go; nullopt: it has not ended, has no such limit, or is on its way out already. kInvalid
// when it does not say when it ended.
Result<std::optional<WallTime>> ExpiryOf(const api::batch::v1::Job& job);

}  // namespace keelson::controllers

// Takes the tracking finalizer off pods that no Job will count: their Job is gone or over, or they have left
// it. Without that they could never be deleted.
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/job/failures.h"

namespace keelson::controllers {

class JobOrphanController : public Controller {  // keys are those of pods
 public:
  JobOrphanController(client::RestClient api, client::InformerFactory& informers,
                      client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  void OnJob(const client::Change<batchv1::Job>& change);
  Result<bool> IsOrphan(const client::RestClient& api, const corev1::Pod& pod) const;

  client::RestClient api_;
  client::Informer<batchv1::Job>& jobs_;
  client::Informer<corev1::Pod>& pods_;
};

}  // namespace keelson::controllers

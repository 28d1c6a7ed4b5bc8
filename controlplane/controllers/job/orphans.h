// Removes the tracking finalizer from pods that no Job will count: their Job is deleted or finished, or no
// longer owns them. The finalizer would block their deletion forever.
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/job/failures.h"

namespace keelson::controllers {

class JobOrphanController : public Controller {  // key: a pod
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

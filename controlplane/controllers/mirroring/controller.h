// Mirrors manually written Endpoints of Services without a selector into EndpointSlices.
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/endpoints/slice_tracker.h"
#include "controlplane/controllers/mirroring/metrics.h"
#include "controlplane/controllers/mirroring/plan.h"

namespace keelson::controllers {

class EndpointSliceMirroringController : public Controller {
 public:
  EndpointSliceMirroringController(client::RestClient api, client::InformerFactory& informers,
                                   client::EventRecorder& events, Clock& clock,
                                   int max_mirrored = kMaxMirrored);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  void OnSlice(const client::Change<discoveryv1::EndpointSlice>& change);

  MirrorMeters meters_;
  const int max_mirrored_;
  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<corev1::Service>& services_;
  client::Informer<corev1::Endpoints>& endpoints_;
  client::Informer<discoveryv1::EndpointSlice>& slices_;
  SliceTracker tracker_;
};

}  // namespace keelson::controllers

// Keeps the EndpointSlices of Services that select pods.
#pragma once

#include <map>

#include "controlplane/controllers/controller.h"
#include "controlplane/controllers/endpoints/endpoint_pods.h"
#include "controlplane/controllers/endpoints/slice_plan.h"

namespace keelson::controllers {

class EndpointSliceController : public Controller {
 public:
  EndpointSliceController(client::RestClient api, client::InformerFactory& informers,
                          client::EventRecorder& events, Clock& clock, EndpointPods& pods);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  void OnSlice(const client::Change<discoveryv1::EndpointSlice>& change);
  void OnNode(const client::Change<corev1::Node>& change);
  // Our own writes that the informer has not shown yet. Planning on a store without them would create the
  // same slices again.
  bool IsBehind(const std::string& service, const std::vector<SlicePointer>& slices) EXCLUDES(mutex_);
  void NoteWritten(const std::string& service, const discoveryv1::EndpointSlice& slice) EXCLUDES(mutex_);
  void NoteGone(const std::string& service, const std::string& slice) EXCLUDES(mutex_);
  Result<> Apply(const std::string& key, const SlicePlan& plan, const client::RestClient& api);

  client::RestClient api_;
  client::EventRecorder& events_;
  EndpointPods& pods_;
  client::Informer<corev1::Service>& services_;
  client::Informer<discoveryv1::EndpointSlice>& slices_;
  client::Informer<corev1::Node>& nodes_;
  Mutex mutex_;
  // By Service, then slice: the resource version of our last write.
  std::map<std::string, std::map<std::string, uint64_t>> written_ GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers

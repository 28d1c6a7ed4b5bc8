// Maintains the EndpointSlices of Services with a selector.
#pragma once

#include <map>
#include <set>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/endpoints/endpoint_pods.h"
#include "controlplane/controllers/endpoints/slice_metrics.h"
#include "controlplane/controllers/endpoints/slice_plan.h"
#include "controlplane/controllers/endpoints/slice_tracker.h"
#include "controlplane/controllers/endpoints/trigger_time.h"

namespace keelson::controllers {

class EndpointSliceController : public Controller {
 public:
  EndpointSliceController(client::RestClient api, client::InformerFactory& informers,
                          client::EventRecorder& events, Clock& clock, EndpointPods& pods,
                          size_t max_endpoints = kMaxEndpoints);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  void OnSlice(const client::Change<discoveryv1::EndpointSlice>& change);
  void OnNode(const client::Change<corev1::Node>& change);
  ZoneShares Shares() KEELSON_EXCLUDES(mutex_);
  // Removes pods whose Node is not in the store from `pods`. The Service is enqueued again when the Node
  // appears.
  void DropStranded(const std::string& key, std::vector<EndpointPodPointer>& pods) KEELSON_EXCLUDES(mutex_);
  // Records events when topology hints became available or unavailable since the last call.
  void TellHints(const std::string& key, const corev1::Service& service, const SlicePlan& plan)
      KEELSON_EXCLUDES(mutex_);

  client::RestClient api_;
  client::EventRecorder& events_;
  EndpointPods& pods_;
  const size_t max_endpoints_;
  client::Informer<corev1::Service>& services_;
  client::Informer<discoveryv1::EndpointSlice>& slices_;
  client::Informer<corev1::Node>& nodes_;
  TriggerTimes trigger_times_;
  SliceTracker tracker_;
  SliceTotals totals_;
  Mutex mutex_;
  std::optional<ZoneShares> shares_
      KEELSON_GUARDED_BY(mutex_);  // cleared when a relevant node change happens
  uint64_t share_changes_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::set<std::string>> awaited_
      KEELSON_GUARDED_BY(mutex_);  // Services by the missing node
  std::map<std::string, std::map<std::string, std::string>> told_
      KEELSON_GUARDED_BY(mutex_);  // the last SlicePlan::hint_problems, by Service
};

// Writes a plan for a Service, and notes each write in `tracker`.
Result<> ApplySlicePlan(const std::string& service, const SlicePlan& plan, const client::RestClient& api,
                        SliceTracker& tracker);
// Index function: the key of the Service that owns a slice.
std::vector<std::string> ServiceOfSlice(const discoveryv1::EndpointSlice& slice);

}  // namespace keelson::controllers

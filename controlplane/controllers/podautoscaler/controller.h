// Scales the targets of HorizontalPodAutoscalers by their metrics, once every sync period.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/common/options.h"
#include "controlplane/controllers/common/scale_client.h"
#include "controlplane/controllers/podautoscaler/behavior.h"
#include "controlplane/controllers/podautoscaler/meters.h"
#include "controlplane/controllers/podautoscaler/metric_source.h"
#include "lib/api/proto/autoscaling_v2.pb.h"
#include "lib/api/selector.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

class PodAutoscalerController : public Controller {
 public:
  using Autoscaler = api::autoscaling::v2::HorizontalPodAutoscaler;

  // `metrics` null: reads the metrics APIs through `api`.
  PodAutoscalerController(client::RestClient api, client::InformerFactory& informers,
                          client::EventRecorder& events, Clock& clock, const PodAutoscalerOptions& options,
                          std::unique_ptr<podautoscaler::MetricsClient> metrics = nullptr);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  // In-memory state of an autoscaler. Only the worker that holds the key writes it; other workers read the
  // selector only.
  struct Known {
    podautoscaler::History history;
    std::string ns;
    api::LabelSelector selector = api::LabelSelector::Nothing();  // of the pods that it scales
  };
  // The state of one Reconcile() call: the object with its updated status.
  struct Sync {
    std::string key;
    Autoscaler autoscaler;
    std::shared_ptr<Known> known;
  };
  struct Computed {
    int32_t replicas = 0;
    std::string name;  // of the metric with the highest recommendation
  };

  std::shared_ptr<Known> Remember(const std::string& key, const std::string& ns);
  void Warn(const Sync& sync, std::string_view reason, const std::string& message);
  void SetCondition(Sync& sync, std::string_view type, bool status, std::string_view reason,
                    std::string message);

  // On failure, conditions and events are already written.
  Result<podautoscaler::Action> Autoscale(Sync& sync);
  Result<Computed> Compute(Sync& sync, const autoscalingv1::Scale& scale);
  Result<podautoscaler::Pods> PodsOf(Sync& sync, const std::string& selector);
  // Retries a conflict as long as spec.replicas is unchanged.
  Result<> PutScale(FoundScale found, int32_t replicas) const;
  Result<podautoscaler::Action> Rescale(Sync& sync, FoundScale found, int32_t replicas,
                                        const std::string& reason);
  void SetReplicas(Sync& sync, int32_t current, int32_t desired);
  Result<> WriteStatus(Sync& sync, const Autoscaler& before);

  client::RestClient api_;
  client::EventRecorder& events_;
  const PodAutoscalerOptions options_;
  client::Informer<Autoscaler>& autoscalers_;
  client::Informer<corev1::Pod>& pods_;
  ScaleClient scales_;
  std::unique_ptr<podautoscaler::MetricsClient> metrics_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Known>> known_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers

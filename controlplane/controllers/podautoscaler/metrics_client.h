// The source of metric values for autoscalers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/controllers/podautoscaler/replicas.h"
#include "lib/api/proto/autoscaling_v2.pb.h"
#include "lib/client/rest.h"

namespace keelson::controllers::podautoscaler {

// Values are in thousandths; selectors have the query syntax. Error messages are upstream's, because
// conditions show them. Thread safe.
class MetricsClient {
 public:
  virtual ~MetricsClient() = default;
  // CPU or memory of each pod, or of the container `container` in each pod when it is not empty.
  virtual Result<PodValues> OfResource(const std::string& resource, const std::string& ns,
                                       const std::string& selector, const std::string& container) = 0;
  virtual Result<PodValues> OfPods(const std::string& metric, const std::string& ns,
                                   const std::string& selector, const std::string& metric_selector) = 0;
  virtual Result<int64_t> OfObject(const std::string& metric, const std::string& ns,
                                   const api::autoscaling::v2::CrossVersionObjectReference& object,
                                   const std::string& metric_selector) = 0;
  virtual Result<std::vector<int64_t>> OfExternal(const std::string& metric, const std::string& ns,
                                                  const std::string& metric_selector) = 0;
};

// Reads metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io from the API server.
std::unique_ptr<MetricsClient> NewMetricsClient(client::RestClient api);

}  // namespace keelson::controllers::podautoscaler

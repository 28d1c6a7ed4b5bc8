// Where the values come from that autoscalers go by.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/controllers/podautoscaler/replicas.h"
#include "lib/api/proto/autoscaling_v2.pb.h"
#include "lib/client/rest.h"

namespace keelson::controllers::podautoscaler {

// Values in thousandths; selectors as in a query. Errors are those that upstream's conditions show. Thread
// safe.
class MetricsClient {
 public:
  virtual ~MetricsClient() = default;
  // CPU or memory of the pods, or of one container in each (`container` not empty).
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

// metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io, as the API server has them.
std::unique_ptr<MetricsClient> NewMetricsClient(client::RestClient api);

}  // namespace keelson::controllers::podautoscaler

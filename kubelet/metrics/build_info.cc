#include "kubelet/metrics/build_info.h"

#include "lib/base/build_info.h"
#include "lib/k8s/feature_gates.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

void SetBuildInfo(const std::string& node_name, const std::map<std::string, bool>& feature_gates) {
  TellBuild();
  metrics::Gauge("kubelet_node_name", "The node's name. The count is always 1.", {"node"})
      .With({node_name})
      .Set(1);
  k8s::TellFeatureGates(feature_gates, k8s::Program::kKubelet);
}

}  // namespace keelson::kubelet

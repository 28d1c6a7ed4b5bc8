#include "kubelet/metrics/build_info.h"

#include "kubelet/config/feature_gates.h"
#include "lib/base/metrics.h"
#include "lib/base/version.h"

namespace keelson::kubelet {

void TellNode(const std::string& node_name, const std::map<std::string, bool>& feature_gates) {
  TellBuild();
  metrics::Gauge("kubelet_node_name", "The node's name. The count is always 1.", {"node"})
      .With({node_name})
      .Set(1);
  metrics::Family& enabled = metrics::Gauge(
      "kubernetes_feature_enabled",
      "This metric records the data about the stage and enablement of a k8s feature.", {"name", "stage"});
  for (const FeatureState& feature : Features(feature_gates))
    enabled.With({feature.name, feature.stage}).Set(feature.enabled ? 1 : 0);
}

}  // namespace keelson::kubelet

// Metrics that say what this program is: kubernetes_build_info, kubernetes_feature_enabled, kubelet_node_name.
#pragma once

#include <map>
#include <string>

namespace keelson::kubelet {

// Once, before /metrics is served.
void SetBuildInfo(const std::string& node_name, const std::map<std::string, bool>& feature_gates);

}  // namespace keelson::kubelet

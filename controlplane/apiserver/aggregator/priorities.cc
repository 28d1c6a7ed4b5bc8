#include "controlplane/apiserver/aggregator/priorities.h"

namespace keelson::apiserver {
namespace {

struct Row {
  std::string_view group, version;
  ApiServicePriority priority;
};
// Source: cmd/kube-apiserver/app/aggregator.go and pkg/controlplane/apiserver/aggregator.go of Kubernetes.
constexpr Row kRows[] = {
    {"", "v1", {18000, 1}},
    {"apps", "v1", {17800, 15}},
    {"events.k8s.io", "v1", {17750, 15}},
    {"authentication.k8s.io", "v1", {17700, 15}},
    {"authorization.k8s.io", "v1", {17600, 15}},
    {"autoscaling", "v1", {17500, 15}},
    {"autoscaling", "v2", {17500, 30}},
    {"batch", "v1", {17400, 15}},
    {"certificates.k8s.io", "v1", {17300, 15}},
    {"certificates.k8s.io", "v1beta1", {17300, 9}},
    {"networking.k8s.io", "v1", {17200, 15}},
    {"policy", "v1", {17100, 15}},
    {"rbac.authorization.k8s.io", "v1", {17000, 15}},
    {"storage.k8s.io", "v1", {16800, 15}},
    {"admissionregistration.k8s.io", "v1", {16700, 15}},
    {"apiextensions.k8s.io", "v1", {16700, 15}},
    {"scheduling.k8s.io", "v1", {16600, 15}},
    {"coordination.k8s.io", "v1", {16500, 15}},
    {"node.k8s.io", "v1", {16300, 15}},
    {"discovery.k8s.io", "v1", {16200, 15}},
    {"resource.k8s.io", "v1", {16200, 20}},
    {"flowcontrol.apiserver.k8s.io", "v1", {16100, 21}},
    {"storagemigration.k8s.io", "v1beta1", {15800, 9}},
    {"metrics.k8s.io", "v1beta1", {100, 100}},
};

}  // namespace

std::optional<ApiServicePriority> BuiltInPriority(std::string_view group, std::string_view version) {
  for (const Row& row : kRows) {
    if (row.group == group && row.version == version) return row.priority;
  }
  return std::nullopt;
}

}  // namespace keelson::apiserver

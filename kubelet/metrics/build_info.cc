#include "kubelet/metrics/build_info.h"

#include <sys/utsname.h>

#include "kubelet/config/feature_gates.h"
#include "lib/base/metrics.h"

namespace keelson::kubelet {

namespace {

std::string Platform() {
  utsname system{};
  ::uname(&system);
  const std::string machine = system.machine;
  return "linux/" + (machine == "x86_64" ? "amd64" : machine == "aarch64" ? "arm64" : machine);
}

}  // namespace

void TellBuild(const std::string& node_name, const std::map<std::string, bool>& feature_gates) {
  metrics::Gauge(
      "kubernetes_build_info",
      "A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree "
      "state, build date, Go version, and compiler from which Kubernetes was built, and platform on "
      "which it is running.",
      {"major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version",
       "compiler", "platform"})
      .With({"1", "36", "v1.36.2", "", "clean", "", "", "c++", Platform()})
      .Set(1);
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

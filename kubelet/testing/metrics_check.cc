// Part of test programs: when all of a program's tests have run, holds the metrics that they have made to
// those of Kubernetes 1.36. Which of them there are at all is KubeletMetricsTest.AreThoseOfKubernetes.
#include <gtest/gtest.h>

#include "lib/metrics/conformance.h"

namespace keelson::kubelet {
namespace {

class MetricsCheck : public ::testing::Environment {
 public:
  void TearDown() override {
    const metrics::Expectation kubelet{metrics::Component::kKubelet};
    for (const std::string& difference : metrics::Differences(kubelet, metrics::Describe())) {
      // Those of lib/client are held there.
      if (difference.starts_with("rest_client_") || difference.starts_with("workqueue_")) continue;
      if (!difference.ends_with(": missing")) ADD_FAILURE() << difference;
    }
  }
};

[[maybe_unused]] const auto* const kCheck = ::testing::AddGlobalTestEnvironment(new MetricsCheck);

}  // namespace
}  // namespace keelson::kubelet

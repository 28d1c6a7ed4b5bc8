#include "proxy/serving/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/build_info.h"
#include "lib/client/transport.h"
#include "lib/k8s/feature_gates.h"
#include "lib/metrics/conformance.h"
#include "proxy/serving/testing/absent_metrics.h"

namespace keelson::proxy {
namespace {

TEST(ProxyMetrics, AreThoseOfKubernetes) {
  [[maybe_unused]] auto volatile transport = &client::NewHttpTransport;  // linked, with what it counts
  for (bool v4 : {true, false}) (void)MetricsOf(v4);
  (void)MetricsOfChanges();
  for (bool live : {true, false}) CountHealthAnswer(live, 200);
  TellBuild();
  k8s::TellFeatureGates({}, k8s::Program::kProxy);
  (void)metrics::Print();
  EXPECT_THAT(metrics::Differences({metrics::Component::kProxy, "", kAbsentMetrics}, metrics::Describe()),
              testing::IsEmpty());
}

}  // namespace
}  // namespace keelson::proxy
